"""Which tests run, and how many examples a property has, by the environment's GERMANE_TESTS."""

from __future__ import annotations

import os

__all__ = ["QUICK", "REST", "examples"]

QUICK = os.environ.get("GERMANE_TESTS") == "quick"
"""Whether tests that are marked long are left out: `make test`."""
REST = os.environ.get("GERMANE_TESTS") == "rest"
"""Whether only those tests run, and every property with all its examples: what `make test-all` adds."""

_FEWER = 4
_FEWEST = 5


def examples(most: int) -> int:
    """The number of examples for a property that has so many in the long run; a quarter of them elsewhere."""
    return most if REST else max(_FEWEST, most // _FEWER)
