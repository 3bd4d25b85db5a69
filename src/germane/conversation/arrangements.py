"""The arrangements made last, so that a conversation that grows is arranged and counted once.

Level: ranking (imports model, protocols and conversation). It changes no result: an arrangement follows
the messages that it is given, and what is hidden or removed leaves it then.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias

from germane.forking import renewed
from germane.protocols import TokenCounter
from germane.tokens import CachedCounter

if TYPE_CHECKING:
    from germane.conversation.arranging import Arrangement
    from germane.conversation.tiers import Tiers
    from germane.model.message import Provider

__all__ = ["Arrangements"]

_MOST: Final = 4
_Key: TypeAlias = "tuple[str, str, Provider, str, Tiers]"


class Arrangements:
    """Arrangements of a few conversations, and a counter for each name. Threads may share it."""

    __slots__ = ("_counters", "_lock", "_made", "_process")

    def __init__(self) -> None:
        self._made: OrderedDict[_Key, Arrangement] = OrderedDict()
        self._counters: dict[str, tuple[TokenCounter, CachedCounter]] = {}
        self._lock = renewed(Lock())
        self._process = os.getpid()

    def of(
        self, agent: str, session: str | None, provider: Provider, counter: TokenCounter, tiers: Tiers
    ) -> Arrangement:
        """The arrangement of a conversation; without a session a new one, which nobody keeps."""
        from germane.conversation.arranging import Arrangement  # noqa: PLC0415 - Most agents send nothing.

        counting = self._counting(counter)
        if session is None:
            return Arrangement(provider, counting, tiers)
        key = (agent, session, provider, counter.name, tiers)
        with self._lock:
            if self._process != os.getpid():
                # A thread of the parent may have been at work on any of them.
                self._made.clear()
                self._process = os.getpid()
            known = self._made.pop(key, None)
            if known is None or known.counter is not counting:
                known = Arrangement(provider, counting, tiers)
            self._made[key] = known
            while len(self._made) > _MOST:
                self._made.popitem(last=False)
            return known

    def _counting(self, counter: TokenCounter) -> CachedCounter:
        """The counter with a memory; the same one for the same counter."""
        if isinstance(counter, CachedCounter):
            return counter
        with self._lock:
            known = self._counters.get(counter.name)
            if known is None or known[0] is not counter:
                known = self._counters[counter.name] = (counter, CachedCounter(counter))
            return known[1]
