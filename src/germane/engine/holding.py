"""The verb that gives an agent its working sets.

Level: engine. No policy: each verb has its own room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from germane import verbs
from germane.engine.surface import Surface
from germane.model.names import DEFAULT_SET

if TYPE_CHECKING:
    from germane.verbs.working_set import WorkingSet

__all__ = ["Holding"]


class Holding(Surface):
    """What an agent holds in mind."""

    def working_set(self, name: str = DEFAULT_SET, *, max_tokens: int | None = None) -> WorkingSet:
        """What is held in mind now, by the name of the set: the same set each time, also after a restart.

        `max_tokens` is set when it is given, and stays; a new set holds 128,000. Raises InvalidInput
        for an empty name, a negative limit, or a store that keeps no working sets.
        """
        found = self._working_sets.get(name) or verbs.working_set.working_set(
            self._session, name, by=self._acting
        )
        if max_tokens is not None:
            found.resize(max_tokens)
        return self._working_sets.setdefault(name, found)

    @property
    def _acting(self) -> str:
        """Whose moves these are: the agent's own, except where it acts in a space."""
        return self._session.agent
