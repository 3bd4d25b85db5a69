"""Stores that hear of what other processes write.

Level: stores (imports nothing of the package).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

__all__ = ["Waking"]


@runtime_checkable
class Waking(Protocol):
    """What only some stores can do: tell at once that something was written, by whatever process.

    What is told is no more than that; what happened is in the logs, by its number. So who is woken looks,
    and nothing is lost when a word is.
    """

    @property
    def hears(self) -> bool:
        """Whether the store hears of writes just now; where it doesn't, only looking helps."""
        ...

    def awake(self, tenant: str, wake: Callable[[], object]) -> Callable[[], None]:
        """Have `wake` called after each write for a tenant, until what is returned is called.

        It is called on any thread, must be quick, may be called for no reason, and is called whenever
        something may have been missed.
        """
        ...
