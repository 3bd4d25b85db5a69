"""An upkeep that is killed anywhere leaves whole memories, and the next one ends as one alone would have."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import germane
from germane.testing.fakes import START

pytestmark = pytest.mark.long

CHILD = Path(__file__).with_name("upkeep_child.py")
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def fill(path: Path) -> None:
    """Sixty memories of which most are due."""
    moments = iter(NOW - timedelta(days=10 * day) for day in range(200))
    with germane.open(path, agent="a", clock=lambda: NOW) as engine:
        for number in range(20):
            engine.remember(f"Talked about case {number}.", kind="episode", created_at=next(moments))
            engine.remember(f"Case {number} is about billing.", kind="fact", created_at=START)
            engine.remember(f"case {number} is about BILLING", kind="fact", created_at=START)


def state(path: Path) -> list[tuple[object, ...]]:
    """What upkeep decides, without the ids that differ from file to file."""
    with germane.open(path, agent="a", clock=lambda: NOW) as engine:
        assert engine.doctor() == ()
        found = engine.memories(germane.Filter(statuses=tuple(germane.Status)))
        return sorted(
            (one.content, str(one.status), str(one.stage), one.superseded_by is None) for one in found
        )


@pytest.mark.parametrize("reports", [1, 2, 9, 21, 33])
def test_a_killed_upkeep_goes_on_where_it_stopped(tmp_path: Path, reports: int) -> None:
    whole, killed = tmp_path / "whole.db", tmp_path / "killed.db"
    for path in (whole, killed):
        fill(path)
    with germane.open(whole, agent="a", clock=lambda: NOW) as engine:
        due = engine.maintain(dry_run=True)
        assert len(due.steps) > 33
        assert engine.maintain().done == len(due.steps)
        assert engine.maintain().steps == ()
    child = subprocess.Popen(
        [sys.executable, str(CHILD), str(killed)],
        stdout=subprocess.PIPE,
        text=True,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdout is not None
    with child.stdout as lines:
        for _ in range(reports):
            assert lines.readline()
        child.kill()
    child.wait()
    with germane.open(killed, agent="a", clock=lambda: NOW) as engine:
        assert engine.doctor() == ()
        left = len(engine.maintain(dry_run=True).steps)
        assert left <= len(due.steps) - (reports - 1)
        assert engine.maintain().done == left
        assert len(engine.events()) == len(due.steps) + sum(1 for step in due.steps if step.task == "merge")
    assert state(killed) == state(whole)
