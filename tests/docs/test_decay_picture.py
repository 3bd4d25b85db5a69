"""The picture of decay is the one that the formulas give."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_picture_is_what_the_formulas_say() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "decay_curve.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
