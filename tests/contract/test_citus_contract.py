"""A store whose tables are spread over a real cluster keeps the contract.

It is at GERMANE_CITUS_URL: an empty database of a Citus coordinator, which tests fill and empty.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from germane.stores import distribute_store, migrate_store, store_status
from germane.testing.contract import OpenStore
from support.cluster import opener_of
from support.contracts import TablesContract

CITUS = os.environ.get("GERMANE_CITUS_URL", "")
if not CITUS:
    pytest.skip("GERMANE_CITUS_URL names no database of a Citus coordinator.", allow_module_level=True)


@pytest.fixture(scope="module")
def cluster() -> str:
    migrate_store(CITUS)
    distribute_store(CITUS)
    assert store_status(CITUS).distributed
    return CITUS


class TestCluster(TablesContract):
    @pytest.fixture
    def open_store(self, cluster: str) -> Iterator[OpenStore]:
        yield from opener_of(cluster)
