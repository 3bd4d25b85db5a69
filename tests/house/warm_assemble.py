"""Run as a program: what a first `assemble` in a new process loads, and what a warm one calls, as JSON.

`python tests/house/warm_assemble.py STORE` opens a filled store and assembles once, to count the modules of
the package that are loaded, and once more for another question, to count its functions that are called.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import germane


def measured(store: str) -> dict[str, int]:
    """How many modules are loaded, and how many files and functions are called."""
    package = str(Path(germane.__file__).parent)
    called: set[tuple[str, int]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        # Python versions differ in which comprehensions are functions, so nothing without a name counts.
        if event == "call" and code.co_filename.startswith(package) and not code.co_name.startswith("<"):
            called.add((code.co_filename, code.co_firstlineno))

    with germane.open(store, agent="ada", clock=lambda: datetime(2026, 6, 1, tzinfo=UTC)) as engine:
        engine.assemble("Which database keeps the orders?", budget=600)
        loaded = [name for name in sys.modules if name.split(".")[0] == "germane"]
        sys.setprofile(note)
        try:
            engine.assemble("How are releases deployed?", budget=600)
        finally:
            sys.setprofile(None)
    return {"loaded": len(loaded), "files": len({path for path, _ in called}), "functions": len(called)}


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1])))  # noqa: T201 - Another process reads it.
