"""The commands `space …`: memories that agents share, their members and events."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

from germane.cli import options
from germane.cli.call import Call, command, follow_each, id_of
from germane.cli.options import arg, opt
from germane.cli.output import memory_line, print_columns, print_table, warn
from germane.model.context import short_id
from germane.spaces import Right, Role

if TYPE_CHECKING:
    from germane.spaces import SpaceEvent, SpaceInfo

_MOST_EVENTS = 50

_Name = Annotated[str, arg("SPACE", "Name of the space.")]
_MemberName = Annotated[str, arg("MEMBER", "The agent concerned, or user:NAME:AGENT.")]
_Other = Annotated[str | None, opt("--member NAME", "Another agent than --agent.")]


class _Admits(StrEnum):
    """Which rights agents may give themselves."""

    WRITE = "write"
    READ = "read"
    NOBODY = "nobody"


@command("space create")
def _create(
    call: Call,
    name: _Name,
    *,
    admits: Annotated[
        _Admits, opt("--admits RIGHT", "The right of those who join: write, read or nobody.")
    ] = _Admits.WRITE,
) -> None:
    """Nothing changes if the agent is a member already. The name of a space of others is an error."""
    with call.engine(makes=True) as engine:
        most = None if admits is _Admits.NOBODY else admits.value
        _print_members(call, engine.space(name, create=True, admits=most).info())


@command("space list")
def _list(call: Call) -> None:
    with call.engine() as engine:
        spaces = engine.spaces()
    if call.prints({"spaces": spaces}):
        return
    if not spaces:
        warn(f"Agent {call.agent!r} is in no space.")
        return
    rows = []
    for space in spaces:
        me = space.member(call.member)
        mine = ("", "") if me is None else (str(me.rights), str(me.role))
        rows.append((space.name, *mine, str(len(space.members))))
    print_table(("space", "rights", "role", "members"), rows, right=(3,))


@command("space members")
def _members(call: Call, name: _Name) -> None:
    with call.engine() as engine:
        _print_members(call, engine.space(name).info())


@command("space join")
def _join(
    call: Call,
    name: _Name,
    *,
    member: _Other = None,
    rights: Annotated[Right, opt("--rights RIGHT", "write or read.")] = Right.WRITE,
    role: Annotated[Role, opt("--role ROLE", "active, or passive: on standby.")] = Role.ACTIVE,
) -> None:
    with call.engine(writes=True) as engine:
        _print_members(call, engine.space(name).join(member, rights=rights, role=role))


@command("space leave")
def _leave(call: Call, name: _Name, *, member: _Other = None) -> None:
    """If no active member with write access is left, the first passive member is promoted."""
    with call.engine(writes=True) as engine:
        _print_members(call, engine.space(name).leave(member))


@command("space promote")
def _promote(call: Call, name: _Name, member: _MemberName) -> None:
    with call.engine(writes=True) as engine:
        _print_members(call, engine.space(name).promote(member))


@command("space demote")
def _demote(call: Call, name: _Name, *, member: _Other = None) -> None:
    """If it was the last active member, the first passive member is promoted."""
    with call.engine(writes=True) as engine:
        _print_members(call, engine.space(name).demote(member))


@command("space fail-over")
def _fail_over(call: Call, name: _Name, member: _MemberName) -> None:
    with call.engine(writes=True) as engine:
        _print_members(call, engine.space(name).fail_over(member))


@command("space share")
def _share(call: Call, name: _Name, memory_id: options.Target) -> None:
    with call.engine(writes=True) as engine:
        memory = engine.space(name).share(id_of(engine, memory_id))
    call.answer({"memory": memory}, memory_line("Shared", memory))


@command("space events")
def _events(
    call: Call,
    name: _Name,
    *,
    after: options.AfterNumber = None,
    limit: Annotated[
        int | None, opt("--limit N", f"The maximum number of events; default: {_MOST_EVENTS}.")
    ] = None,
    follow: options.Follow = False,
) -> None:
    """With --follow, new events (or all after --after) are printed, at most --limit."""
    with call.engine() as engine:
        space = engine.space(name)
        if follow:
            follow_each(call, partial(space.follow, after=after), row=_row, limit=limit)
            return
        events = space.events(after=after or 0, limit=_MOST_EVENTS if limit is None else limit)
    if not call.prints({"events": events}):
        print_table(("number", "what", "by", "of", "at"), [_row(event) for event in events], right=(0,))


@command("space disband")
def _disband(call: Call, name: _Name, *, yes: options.Yes = False) -> None:
    with call.engine(writes=True) as engine:
        engine.space(name).disband(confirm=yes)
    call.answer({"disbanded": name}, f"Disbanded {name}; every memory in it is gone.")


def _print_members(call: Call, space: SpaceInfo) -> None:
    if call.prints({"space": space}):
        return
    columns = {
        "member": lambda each: each.agent,
        "rights": lambda each: str(each.rights),
        "role": lambda each: str(each.role),
        "joined": lambda each: f"{each.joined_at:%Y-%m-%d %H:%M}",
    }
    print_columns(space.members, columns)


def _row(event: SpaceEvent) -> tuple[str, ...]:
    at = "" if event.at is None else f"{event.at:%Y-%m-%d %H:%M:%S}"
    memory = short_id(event.memory_id) if event.memory_id else ""
    concerned = f"{memory} in {event.working_set}".strip() if event.working_set else memory
    return str(event.number), str(event.what), event.by, event.agent or concerned, at
