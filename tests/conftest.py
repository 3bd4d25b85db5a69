"""Settings for every test."""

from __future__ import annotations

import os
import tempfile
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from support.databases import (
    postgres_database,
    postgres_encrypted_store,
    postgres_owner,
    postgres_schema,
    postgres_server,
    postgres_store,
    postgres_store_database,
    store,
)
from support.examples import QUICK, REST, examples

# The fixtures of every test that asks for them.
__all__ = [
    "postgres_database",
    "postgres_encrypted_store",
    "postgres_owner",
    "postgres_schema",
    "postgres_server",
    "postgres_store",
    "postgres_store_database",
    "store",
]

# The machine that runs the tests may be slow or shared, so no example is failed for its time.
settings.register_profile(
    "default", deadline=None, max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

_DATA = Path(tempfile.gettempdir()) / f"germane-tests-{os.getpid()}"
_NUMBERS = count()


def pytest_runtest_setup() -> None:
    """Give each test a data folder of its own, so that none finds or makes a database of the user."""
    os.environ["XDG_DATA_HOME"] = os.environ["LOCALAPPDATA"] = str(_DATA / str(next(_NUMBERS)))


def pytest_configure(config: pytest.Config) -> None:
    """Name the marks by which `make test` and `make test-all` divide the tests."""
    config.addinivalue_line("markers", "slow: takes minutes or a network; run with -m slow")
    config.addinivalue_line("markers", "long: kills processes or restarts servers; part of make test-all")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests out unless they are selected, and long ones or all others as GERMANE_TESTS says."""
    if "slow" not in str(config.getoption("markexpr")):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow; run with -m slow"))
    if QUICK or REST:
        long = [item for item in items if item.get_closest_marker("long") or (REST and _is_property(item))]
        others = [item for item in items if item not in set(long)]
        config.hook.pytest_deselected(items=others if REST else long)
        items[:] = long if REST else others


def _is_property(item: pytest.Item) -> bool:
    return "property" in item.path.parts or hasattr(getattr(item, "obj", None), "hypothesis")
