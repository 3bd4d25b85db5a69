"""What a store of conversations may do besides, to spare a window the rest of a long log.

Level: stores (imports model).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from germane.model.log import LastGroups

__all__ = ["Glancing"]


@runtime_checkable
class Glancing(Protocol):
    """Reads the end of a conversation without what stands before it."""

    def last_groups(self, agent: str, session: str, count: int) -> LastGroups | None:
        """What a window of the last `count` groups shows, exactly as `messages` has it.

        None where reading all is as good: much of it is asked for, or it is in memory already.
        """
        ...
