"""Settings for every test."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from support.databases import (
    postgres_database,
    postgres_owner,
    postgres_schema,
    postgres_server,
    postgres_store,
    postgres_store_database,
)

# The fixtures of every test that asks for them.
__all__ = [
    "postgres_database",
    "postgres_owner",
    "postgres_schema",
    "postgres_server",
    "postgres_store",
    "postgres_store_database",
]

# The machine that runs the tests may be slow or shared, so no example is failed for its time.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_configure(config: pytest.Config) -> None:
    """Tests marked slow take minutes or a network; they run where `-m slow` or the like asks for them."""
    config.addinivalue_line("markers", "slow: takes minutes or a network; run with -m slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests out unless they are asked for."""
    if "slow" in str(config.getoption("markexpr")):
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="slow; run with -m slow"))
