"""What the tests of upkeep run in a process of its own: python upkeep_child.py PATH, until it is killed."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import germane
from germane.lifecycle import UpkeepStep


def report(done: int, of: int, step: UpkeepStep | None) -> None:
    print(done, of, step.task if step else "", flush=True)  # noqa: T201 - how it tells.


if __name__ == "__main__":
    now = datetime(2026, 6, 1, tzinfo=UTC)
    with germane.open(sys.argv[1], agent="a", clock=lambda: now) as engine:
        engine.maintain(progress=report)
