"""Spaces: make and enter them, settle who is in them, and put copies of own memories into them.

Who may do what is decided by the pure rules, inside the store's transactions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from germane.errors import InvalidInput, PurgeNotConfirmed, SpaceTaken, UnknownSpace
from germane.extractors.rules import USER
from germane.model.conversation import Message
from germane.model.extraction import Proposal
from germane.model.memory import Memory, Status
from germane.model.text import tenant_of, user_and_agent
from germane.model.validation import as_utc, checked_number, checked_word
from germane.operations.context import AgentContext, AgentLanguage, WeightCache, settled_language
from germane.operations.drafts import keep
from germane.operations.inputs import checked_count
from germane.operations.read import as_trusted_as_its_sources, current
from germane.packing.lines import RememberedLines
from germane.spaces import Create, Disband, Right, SpaceAct, SpaceEvent, SpaceInfo, admit
from germane.stores.location import NOTIFICATIONS, SPACES, Following


def create(session: AgentContext, name: str, *, admits: Right | str | None) -> SpaceInfo:
    """Make a space, in the language of the agent that makes it; one that this agent is in already stays.

    Raises SpaceTaken when others have a space of that name, and InvalidInput.
    """
    most = None if admits is None else checked_word(Right, admits, name="admits")
    spaces = SPACES.required(session.store)
    try:
        made = spaces.apply(
            name, Create(by=session.agent, at=as_utc(session.clock(), name="clock"), admits=most)
        )
    except SpaceTaken:
        there = spaces.get(name)
        if there is None or there.member(session.agent) is None:
            raise
        return there
    settled_language(session.store, tenant_of(name), session.language)
    if made is None:  # To create ends nothing; a store that breaks this is broken.
        raise AssertionError("The store has no space that was just created.")
    return made


def entered(session: AgentContext, name: str) -> AgentContext:
    """The agent's side of a space: what a verb does with it, it does in the space, if the rules allow it.

    Raises UnknownSpace; whether the agent is a member is checked at each use.
    """
    required_info(session, name)
    spaces = SPACES.required(session.store)
    tenant = tenant_of(name)
    return replace(
        session,
        agent=tenant,
        base=None,
        member=session,
        store=spaces.enter(name, session.agent),
        words=AgentLanguage(session.store, tenant),
        lines=RememberedLines(),
        weight_cache=WeightCache(),
    )


def settle(session: AgentContext, name: str, act: SpaceAct) -> SpaceInfo:
    """Do one act to a space, and return the space as it is then. Raises what the rules raise."""
    now = SPACES.required(session.store).apply(name, act)
    if now is None:
        raise UnknownSpace(name)
    return now


def disband(session: AgentContext, name: str, *, confirm: bool) -> None:
    """End a space with all that is in it. Raises PurgeNotConfirmed unless `confirm` is true."""
    if confirm is not True:
        raise PurgeNotConfirmed(space=name)
    at = as_utc(session.clock(), name="clock")
    SPACES.required(session.store).apply(name, Disband(by=session.agent, at=at))
    session.clear_texts()
    session.clear_texts()


def share(session: AgentContext, space: AgentContext, memory_id: str) -> Memory:
    """Put a copy of an own memory into a space: its current content, without its versions and counts.

    It isn't pinned there. Shared again, it is counted, not doubled. Raises NotFound, InvalidInput for
    what is forgotten or superseded, and NotAllowed.
    """
    memory = current(session, memory_id)
    if memory.status is Status.FORGOTTEN:
        raise InvalidInput(f"Memory {memory_id!r} is forgotten; restore it before you share it.")
    if memory.superseded_by is not None:
        raise InvalidInput(f"Memory {memory_id!r} was merged into {memory.superseded_by!r}. Share that one.")
    now = as_utc(session.clock(), name="clock")
    copied = space.ids.next(now)
    copy = memory.unused(
        id=copied,
        agent=space.agent,
        version=1,
        status=Status.ACTIVE,
        updated_at=now,
        pinned=False,
    )
    return keep(space, [as_trusted_as_its_sources(space, copy)])[0].memory


def events(session: AgentContext, name: str, *, after: int, limit: int | None) -> tuple[SpaceEvent, ...]:
    """The events of a space after an event, in order. Raises UnknownSpace or NotAllowed."""
    checked_count(after, name="after")
    if limit is not None:
        checked_count(limit, name="limit")
    return SPACES.required(session.store).events(name, session.agent, since=after, limit=limit)


def follow(
    session: AgentContext,
    name: str,
    callback: Callable[[SpaceEvent], object],
    *,
    after: int | None,
    every: float,
) -> Following[SpaceEvent]:
    """Call back with the events of a space from now on, or after an event.

    Raises UnknownSpace, NotAllowed or InvalidInput.
    """
    spaces = SPACES.required(session.store)
    checked_number(every, 0.001, 3600, name="every")
    start = spaces.latest_event(name) if after is None else checked_count(after, name="after")
    info_of(session, name)

    def look(latest: int) -> tuple[int, Sequence[SpaceEvent]]:
        if spaces.latest_event(name) <= latest:
            return latest, ()
        found = spaces.events(name, session.agent, since=latest)
        return (found[-1].number if found else latest), found

    return Following(
        look,
        callback,
        name=name,
        since=start,
        every=every,
        notifications=NOTIFICATIONS.of(session.store),
        tenant=tenant_of(name),
    )


def info_of(session: AgentContext, name: str) -> SpaceInfo:
    """A space as it is now, for a member. Raises UnknownSpace or NotAllowed."""
    info = required_info(session, name)
    admit(info, session.agent, Right.READ)
    return info


def required_info(session: AgentContext, name: str) -> SpaceInfo:
    """A space as it is now, for members and others alike. Raises UnknownSpace."""
    info = SPACES.required(session.store).get(name)
    if info is None:
        raise UnknownSpace(name)
    return info


def spaces_of(
    session: AgentContext, *, limit: int | None = None, after: str | None = None
) -> tuple[SpaceInfo, ...]:
    """The spaces that the agent is in, by name; none where the store keeps no spaces. Raises InvalidInput."""
    most = None if limit is None else checked_count(limit, name="limit")
    spaces = SPACES.of(session.store)
    return spaces.find(session.agent, limit=most, after=after) if spaces else ()


@dataclass(frozen=True, slots=True)
class Sharing:
    """That a member's messages teach a space: whose they are, and whether a user's may."""

    member: AgentContext
    private: bool = False

    def check(self) -> None:
        """Raises InvalidInput for a user's messages, unless these may be learned from."""
        user, agent = user_and_agent(self.member.agent)
        if user is not None and not self.private:
            raise InvalidInput(
                f"What the user {user!r} writes to {agent!r} is private, and all members would see what is "
                "learned from it. Pass private=True if the user wants that."
            )

    def renamed(
        self, session: str | None, messages: Sequence[Message]
    ) -> tuple[str | None, Sequence[Message]]:
        """The session and its messages under the member's name: members may have sessions of one name."""
        renamed = [
            each.evolve(session=f"{self.member.agent}/{each.session}") if each.session else each
            for each in messages
        ]
        return session and f"{self.member.agent}/{session}", renamed

    def named(self, proposal: Proposal) -> Proposal:
        """A proposal that calls the user by name, since members have different users."""
        user, agent = user_and_agent(self.member.agent)
        name = user or f"the user of {agent}"
        capital = name[:1].upper() + name[1:]
        subject = proposal.subject
        return proposal.evolve(
            content=_THE_USER.sub(lambda match: capital if match[0][0] == "T" else name, proposal.content),
            subject=name if subject is None or subject.casefold() == USER else subject,
        )

    def authors(self, messages: Sequence[Message]) -> Mapping[str, str]:
        """Who wrote each message of a conversation and on which day, by the message's id."""
        return {each.id or str(each.seq): _author_and_day(each) for each in messages if each.session}


_THE_USER: Final = re.compile(r"\bthe user\b", re.IGNORECASE)


def _author_and_day(message: Message) -> str:
    author = message.author
    return author if message.created_at is None else f"{author}, {message.created_at:%Y-%m-%d}"
