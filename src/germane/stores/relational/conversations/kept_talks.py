"""The conversations that a process keeps in memory, none at first.

Level: stores. What is kept of each stands in `talk`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from germane.stores.relational.conversations.talk import Talk

__all__ = ["KeptTalks"]

_MOST_TALK_BYTES: Final = 256 << 20


class KeptTalks:
    """The conversations that a process keeps in memory, the least used leave first."""

    def __init__(self) -> None:
        self._talks: OrderedDict[tuple[str, str], Talk] = OrderedDict()
        self._guard = Lock()

    def of(self, agent: str, session: str, make: Callable[[str, str], Talk]) -> Talk:
        """What is kept of a conversation, if only an empty beginning that `make` made."""
        with self._guard:
            talk = self._talks.setdefault((agent, session), make(agent, session))
            self._talks.move_to_end((agent, session))
            total = sum(each.nbytes for each in self._talks.values())
            while total > _MOST_TALK_BYTES and len(self._talks) > 1:
                _, dropped = self._talks.popitem(last=False)
                total -= dropped.nbytes
            return talk

    def has(self, agent: str, session: str) -> bool:
        """Whether anything is kept of a conversation."""
        with self._guard:
            return (agent, session) in self._talks

    def drop(self, agent: str, session: str) -> None:
        """Keep nothing of a conversation."""
        with self._guard:
            self._talks.pop((agent, session), None)

    def clear(self) -> None:
        """Keep nothing."""
        with self._guard:
            self._talks.clear()
