"""space: memories that agents share, who is in them, and what happens there."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

from germane.cli import options
from germane.cli.memories import RankerName, memory_line, print_recalled, print_remembered, text_of
from germane.cli.options import (
    Call,
    Follow,
    Into,
    SinceNumber,
    arg,
    command,
    enter,
    fields_of,
    follow_each,
    id_of,
    moment_of,
    opt,
)
from germane.cli.output import print_table, warn
from germane.model.context import short_id
from germane.spaces import Right, Role

if TYPE_CHECKING:
    from germane.spaces import SpaceEvent, SpaceInfo

Name = Annotated[str, arg("SPACE", "The name of the space.")]
MemberName = Annotated[str, arg("MEMBER", "The agent that it is about.")]
Other = Annotated[str | None, opt("--member NAME", "Another agent, instead of the one that --agent names.")]


class _Admits(StrEnum):
    """Who may join by himself."""

    WRITE = "write"
    READ = "read"
    NOBODY = "nobody"


@command("space create")
def _create(
    call: Call,
    name: Name,
    *,
    admits: Annotated[
        _Admits, opt("--admits RIGHT", "What agents may give themselves: write, read or nobody.")
    ] = _Admits.WRITE,
) -> None:
    """Made again by a member it stays as it is; a space of others is a mistake."""
    with call.open(makes=True) as engine:
        most = None if admits is _Admits.NOBODY else admits.value
        _show(call, engine.space(name, create=True, admits=most).info())


@command("space list")
def _list(call: Call) -> None:
    with call.open() as engine:
        found = engine.spaces()
    if call.prints({"spaces": found}):
        return
    if not found:
        warn(f"Agent {call.agent!r} is in no space.")
        return
    rows = []
    for space in found:
        me = space.member(call.agent)
        mine = ("", "") if me is None else (str(me.rights), str(me.role))
        rows.append((space.name, *mine, str(len(space.members))))
    print_table(("space", "rights", "role", "members"), rows, right=(3,))


@command("space members")
def _members(call: Call, name: Name) -> None:
    with call.open() as engine:
        _show(call, engine.space(name).info())


@command("space join")
def _join(
    call: Call,
    name: Name,
    *,
    member: Other = None,
    rights: Annotated[Right, opt("--rights RIGHT", "What it may do there: write or read.")] = Right.WRITE,
    role: Annotated[
        Role, opt("--role ROLE", "active, or passive: to read along and stand by.")
    ] = Role.ACTIVE,
) -> None:
    with call.open(writes=True) as engine:
        _show(call, engine.space(name).join(member, rights=rights, role=role))


@command("space leave")
def _leave(call: Call, name: Name, *, member: Other = None) -> None:
    """Where no active member is left that may write, the first passive one is promoted."""
    with call.open(writes=True) as engine:
        _show(call, engine.space(name).leave(member))


@command("space demote")
def _demote(call: Call, name: Name, *, member: Other = None) -> None:
    with call.open(writes=True) as engine:
        _show(call, engine.space(name).demote(member))


def _of_a_member(does: str) -> None:
    """Make the command that calls one method of a space with one member, and shows who is in it then."""

    @command(f"space {does}")
    def act(call: Call, name: Name, member: MemberName) -> None:
        with call.open(writes=True) as engine:
            _show(call, getattr(engine.space(name), does.replace("-", "_"))(member))


_of_a_member("promote")
_of_a_member("fail-over")


@command("space remember")
def _remember(
    call: Call,
    name: Name,
    text: options.MemoryText,
    *,
    kind: options.KindName = "note",
    subject: options.Subject = None,
    tag: options.Tags = None,
    scope: options.ScopeName = "global",
    importance: options.Importance = None,
    confidence: options.Confidence = None,
    outcome: options.OutcomeName = None,
    source: options.SourceText = None,
    pinned: options.Pinned = False,
    meta: options.Meta = None,
) -> None:
    from germane import Draft  # noqa: PLC0415 - The other commands of this file make none.

    draft = Draft(
        content=text_of(text),
        kind=kind,
        subject=subject,
        tags=tuple(tag or ()),
        scope=scope,
        importance=importance,
        confidence=confidence,
        outcome=outcome,
        source=source,
        pinned=pinned,
        metadata=fields_of(meta or ()),
    )
    with call.open(writes=True) as engine:
        done = engine.space(name).remember_many([draft])[0]
    print_remembered(call, done)


@command("space share")
def _share(call: Call, name: Name, memory_id: options.Target) -> None:
    with call.open(writes=True) as engine:
        memory = engine.space(name).share(id_of(engine, memory_id))
    call.answer({"memory": memory}, memory_line("Shared", memory))


def _of_a_memory(does: str, verb: str) -> None:
    """Make the command that calls one method of a space with one memory, and shows it as it is then."""

    @command(f"space {does}")
    def act(call: Call, name: Name, memory_id: options.Target) -> None:
        with call.open(writes=True) as engine:
            space = engine.space(name)
            memory = getattr(space, does)(id_of(space, memory_id))
        call.answer({"memory": memory}, memory_line(verb, memory))


_of_a_memory("forget", "Forgotten")
_of_a_memory("restore", "Restored")


@command("space disband")
def _disband(call: Call, name: Name, *, yes: options.Yes = False) -> None:
    with call.open(writes=True) as engine:
        engine.space(name).disband(confirm=yes)
    call.answer({"disbanded": name}, f"Disbanded {name}; every memory in it is gone.")


def _show(call: Call, space: SpaceInfo) -> None:
    if call.prints({"space": space}):
        return
    print_table(
        ("member", "rights", "role", "joined"),
        [
            (one.agent, str(one.rights), str(one.role), f"{one.joined_at:%Y-%m-%d %H:%M}")
            for one in space.members
        ],
    )


# space recall, space events: what is read in a space.

_MOST_EVENTS = 50


@command("space recall")
def _recall(
    call: Call,
    name: Name,
    query: options.QueryText,
    *,
    limit: options.Most = 10,
    kind: options.KindFilter = None,
    tag: options.TagFilter = None,
    scope: options.Scopes = None,
    since: options.Since = None,
    until: options.Until = None,
    min_importance: options.MinImportance = None,
    ranker: RankerName = "relevance",
    into: Into = None,
    now: options.Now = None,
) -> None:
    with call.open(writes=into is not None, now=now) as engine:
        space = engine.space(name)
        recalled = space.recall(
            query,
            limit=limit,
            kinds=kind or (),
            tags=tag or (),
            scopes=scope or (),
            since=moment_of(since, name="--since"),
            until=moment_of(until, name="--until"),
            min_importance=min_importance,
            ranker=ranker,
        )
        entered = None if into is None else enter(space.working_set(into), recalled)
    print_recalled(call, recalled, entered)


@command("space events")
def _events(
    call: Call,
    name: Name,
    *,
    since: SinceNumber = None,
    limit: Annotated[
        int | None, opt("--limit N", f"The most to show, oldest first; {_MOST_EVENTS} at once.")
    ] = None,
    follow: Follow = False,
) -> None:
    """With --follow, what happens from now on, or since the --since given; --limit then ends it."""
    with call.open() as engine:
        space = engine.space(name)
        if follow:
            follow_each(call, partial(space.follow, after=since), row=_row, limit=limit)
            return
        events = space.events(after=since or 0, limit=_MOST_EVENTS if limit is None else limit)
    if call.prints({"events": events}):
        return
    print_table(("number", "what", "by", "of", "at"), [_row(event) for event in events], right=(0,))


def _row(event: SpaceEvent) -> tuple[str, ...]:
    return str(event.number), str(event.what), event.by, _object(event), _at(event)


def _object(event: SpaceEvent) -> str:
    """What it happened to: a member, a memory, or a working set."""
    if event.agent is not None:
        return event.agent
    memory = short_id(event.memory_id) if event.memory_id else ""
    return f"{memory} in {event.working_set}".strip() if event.working_set else memory


def _at(event: SpaceEvent) -> str:
    return "" if event.at is None else f"{event.at:%Y-%m-%d %H:%M:%S}"
