"""Each section of `make torture` for a few seconds: the promises at a small size."""

from __future__ import annotations

import pytest

from torture.__main__ import SECTIONS
from torture.task import Task

pytestmark = pytest.mark.long


@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_finds_nothing(section: str) -> None:
    task = Task(seed=1, seconds=4, rounds=10)
    SECTIONS[section](task)
    assert task.findings == []
    assert sum(task.figures.values()) > 0
