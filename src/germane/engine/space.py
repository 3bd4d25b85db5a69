"""A space as one agent has it: every method of the engine, on the memories that the members share.

No policy: who may do what is decided by `germane.spaces`, in the store's transactions.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Self
from weakref import WeakSet

from germane.engine.contexts import ContextMethods
from germane.model.memory import Memory
from germane.model.validation import as_utc, checked_word
from germane.operations import learning, spaces
from germane.operations.context import AgentContext
from germane.operations.embedding import Embeds
from germane.operations.inputs import checked_member, checking_verbs
from germane.spaces import (
    Demote,
    FailOver,
    Join,
    Leave,
    Member,
    MemberAct,
    Promote,
    Right,
    Role,
    SpaceEvent,
    SpaceInfo,
)
from germane.stores.location import Following

if TYPE_CHECKING:
    from germane.model.conversation import Message
    from germane.model.extraction import LearningRun
    from germane.operations.conversation import Conversation
    from germane.protocols import Extractor

_EVERY: Final = 0.02
"""Seconds between two looks at the log while it is followed."""


@checking_verbs
class Space(ContextMethods):
    """A named memory that agents share, as one of them has it. Made by `engine.space`; a context manager.

    The engine's verbs do here what they do there, on what was put into the space and on nothing else: no
    member's own memories are in it. Conversations alone are an agent's own: a request takes the member's, and
    shows what the space holds. Reading needs a member; writing one that is active and may write: each raises
    NotAllowed otherwise. `agent` is the name that the space's memories belong to, `member` the agent that
    uses it.
    """

    def __init__(self, session: AgentContext, name: str, *, embeds: Embeds = "by hand") -> None:
        super().__init__(spaces.entered(session, name), embeds=embeds)
        self._outside = session
        self._name = name
        self._followed: WeakSet[Following[SpaceEvent]] = WeakSet()
        if embeds != "by hand":
            # Nothing is embedded any more for a space that nobody closed.
            weakref.finalize(self, self._embedding.stop)

    @property
    def name(self) -> str:
        """The name of the space."""
        return self._name

    @property
    def member(self) -> str:
        """The agent that uses the space, whether it is a member or not."""
        return self._outside.agent

    def info(self) -> SpaceInfo:
        """The space as it is now: its members in their order, and whom it admits. Raises NotAllowed."""
        return spaces.info_of(self._outside, self._name)

    def members(self) -> tuple[Member, ...]:
        """Who is in the space now, in the order of joining. Raises NotAllowed."""
        return self.info().members

    def join(
        self,
        agent: str | None = None,
        *,
        rights: Right | str = Right.WRITE,
        role: Role | str = Role.ACTIVE,
    ) -> SpaceInfo:
        """Become a member, or let another agent in, which an active member may that may write.

        `rights` are "read" or "write"; by itself an agent gets no more than the space admits to. With the
        `role` "passive" a member reads along, ready to take over the writing. Raises NotAllowed,
        DuplicateMember, or InvalidInput.
        """
        given = {
            "rights": checked_word(Right, rights, name="rights"),
            "role": checked_word(Role, role, name="role"),
        }
        return self._settled(Join, agent, **given)

    def leave(self, agent: str | None = None) -> SpaceInfo:
        """Be no member any more, or put another one out. What it wrote stays.

        Where no active member is left that may write, the first passive one is promoted. Raises
        LastActive where there is none: such a space is disbanded. Raises NotAllowed or NotAMember.
        """
        return self._settled(Leave, agent)

    def promote(self, agent: str) -> SpaceInfo:
        """Make a passive member active. Raises NotAllowed, NotAMember, or InvalidInput."""
        return self._settled(Promote, checked_member(agent))

    def demote(self, agent: str | None = None) -> SpaceInfo:
        """Make an active member passive, oneself unless another is named.

        The last active one gives its place to the first passive one; raises LastActive where there is
        none. Raises NotAllowed, NotAMember, or InvalidInput.
        """
        return self._settled(Demote, agent)

    def fail_over(self, failed: str) -> SpaceInfo:
        """Let the first passive member take over from an active one that failed.

        Any other member that may write can say so, a passive one too. The failed one can't write from then
        on, and becomes the last in the queue. A second report raises InvalidInput:
        no two are promoted for one failure. Raises LastActive where nobody can take over.
        """
        return self._settled(FailOver, checked_member(failed))

    def disband(self, *, confirm: bool = False) -> None:
        """End the space: every memory in it is purged, for all members.

        It can't be undone, so it needs `confirm=True`. Raises PurgeNotConfirmed or NotAllowed.
        """
        spaces.disband(self._outside, self._name, confirm=confirm)

    def share(self, memory_id: str) -> Memory:
        """Put a copy of one of the member's own memories into the space, and return the copy.

        It is a memory of its own: a revision of either changes nothing in the other. Its trust is "peer" at
        most. Raises NotFound, NotAllowed, or InvalidInput for what is forgotten or superseded.
        """
        with self._embedding.woken():
            return spaces.share(self._outside, self._session, memory_id)

    def learn_from(
        self,
        source: Conversation | str | Iterable[Message | Mapping[str, Any]],
        *,
        extractor: Extractor | None = None,
        since: datetime | str | None = None,
        again: bool = False,
        dry_run: bool = False,
        private: bool = False,
    ) -> LearningRun:
        """Learn facts from the member's conversation, or from a list of messages, into the space.

        As `Engine.learn_from`, but that all members see what is learned. They can't read the conversation, so
        its words stay with the member: a `Quote` has the id of the message, its author and its day, the texts
        of refused proposals and the answers of a model are left out, and "the user" is called by name, or
        "the user of" the agent. The words of listed messages that belong to no conversation are quoted.
        A user's engine learns into a space only with `private=True`. Raises NotAllowed, InvalidInput,
        MessageNotFound, or what the extractor raises.
        """
        with self._embedding.woken():
            return learning.learn_from(
                self._session,
                source,
                extractor=extractor,
                since=since,
                again=again,
                dry_run=dry_run,
                sharing=spaces.Sharing(self._outside, private=private),
            )

    def consolidate(
        self, *, extractor: Extractor | None = None, dry_run: bool = False, private: bool = False
    ) -> tuple[LearningRun, ...]:
        """Learn into the space from every conversation of the member with messages that it didn't read.

        As `learn_from` for each of them; the runs. Only the member's own conversations are read, since those
        of other members are theirs. Raises NotAllowed, InvalidInput, or what the extractor raises.
        """
        with self._embedding.woken():
            return learning.consolidate(
                self._session,
                extractor=extractor,
                dry_run=dry_run,
                sharing=spaces.Sharing(self._outside, private=private),
            )

    def events(self, *, after: int = 0, limit: int | None = None) -> tuple[SpaceEvent, ...]:
        """What happened in the space after the event numbered `after`, oldest first, by whomever.

        It tells of members, memories and what working sets hold, without any text. Raises NotAllowed.
        """
        return spaces.events(self._outside, self._name, after=after, limit=limit)

    def follow(
        self, callback: Callable[[SpaceEvent], object], *, after: int | None = None, every: float = _EVERY
    ) -> Following[SpaceEvent]:
        """Call back with each event from now on, or after the one numbered `after`, until it is closed.

        The callback runs on a thread of its own and hears of all members alike, also of those in other
        processes, at most `every` seconds after they are done; on a server at once, and at most 5 seconds
        after where that is more. It ends by itself when the agent is no
        member any more; the `error` of what is returned then says so. Close that, or use it as a context
        manager. Raises NotAllowed.
        """
        following = spaces.follow(self._outside, self._name, callback, after=after, every=every)
        self._followed.add(following)
        return following

    def close(self) -> None:
        """End what works for the space in the background. The store stays open; closing twice is fine."""
        for following in tuple(self._followed):
            following.close()
        self._embedding.stop()

    @property
    def _acting(self) -> str:
        return self.member

    @property
    def _speaking(self) -> AgentContext:
        return self._outside

    def _settled(self, act: type[MemberAct], agent: str | None, **given: Any) -> SpaceInfo:
        """The space after an act on an agent, the member itself unless another is named."""
        member = self.member if agent is None else checked_member(agent)
        at = as_utc(self._outside.clock(), name="clock")
        return spaces.settle(self._outside, self._name, act(agent=member, by=self.member, at=at, **given))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<germane.Space name={self.name!r} member={self.member!r}>"
