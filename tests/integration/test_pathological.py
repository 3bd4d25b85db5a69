"""Text that is made to take long is read in time linear in its length; the timeout of the tests judges."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

# Without bench/ on the path: its modules have names that packages have as well.
_SPEC: Any = spec_from_file_location("pathological", Path(__file__).parents[2] / "bench" / "pathological.py")
pathological: Any = module_from_spec(_SPEC)
sys.modules["pathological"] = pathological  # Its dataclasses look for their module.
_SPEC.loader.exec_module(pathological)

_KINDS = (
    "sk-", "eyJ-", "![a](http://x/?", "⏎", "\r⏎", "`", "``` ", "“", "(", "no, ", "Ann's ", "://", "//",
    "<recalled-from-memory>", "- a⏎  ", "[", "{", "#a ", "statements", "turns", "nested quotes", "ﷺ", "a.",
)  # fmt: skip

pytestmark = pytest.mark.long


@pytest.mark.parametrize("consumer", pathological.CONSUMERS)
def test_hostile_text_takes_linear_time(consumer: str) -> None:
    size = 3_000 if consumer == "learn" else 15_000  # It looks at each sentence in some hundred ways.
    for kind in _KINDS:
        pathological.read_hostile(consumer, kind, size)
