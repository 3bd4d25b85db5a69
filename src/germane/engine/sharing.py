"""The verbs by which an agent comes to the memories that it shares with others.

Level: engine. No policy: each verb has its own room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakSet

from germane import verbs
from germane.engine.surface import Surface
from germane.verbs.embed import is_eager
from germane.verbs.session import Session

if TYPE_CHECKING:
    from germane.engine.space import Space
    from germane.model.space import Right, SpaceInfo

__all__ = ["SharingSpaces"]


class SharingSpaces(Surface):
    """What leads from an agent's own memory to the spaces that it is in."""

    def __init__(self, session: Session, *, embed_in_background: bool = False) -> None:
        super().__init__(session, embed_in_background=embed_in_background)
        self._spaces: WeakSet[Space] = WeakSet()

    def space(self, name: str, *, create: bool = False, admits: Right | str | None = "write") -> Space:
        """The space of that name, as this agent has it; it needs to join before it can do more.

        With `create` it is made where it isn't there, and this agent its first member. `admits` says to
        which rights agents may then join by themselves: "write", "read", or None where a member has to
        let them in. Raises UnknownSpace, SpaceTaken when it is there and this agent no member, or
        InvalidInput.
        """
        if create:
            verbs.sharing.create(self._session, name, admits=admits)
        from germane.engine.space import Space  # noqa: PLC0415 - Most engines share nothing.

        space = Space(self._session, name, embed_in_background=self._embeds_in_background(name))
        self._spaces.add(space)
        return space

    def spaces(self) -> tuple[SpaceInfo, ...]:
        """The spaces that this agent is a member of, by name."""
        return verbs.sharing.spaces_of(self._session)

    def _close_spaces(self) -> None:
        """End what works in the background for any of them."""
        for space in tuple(self._spaces):
            space.close()

    def _embeds_in_background(self, name: str) -> bool:
        """Whether vectors come later here as well, and this agent is one who may store them."""
        embedder = self._session.embedder
        if embedder is None or is_eager(embedder):
            return False
        member = verbs.sharing.required_info(self._session, name).member(self.agent)
        return member is not None and member.leads
