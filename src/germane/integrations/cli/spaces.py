"""space: memories that agents share, and who is in them.

Level: integrations.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from germane import Right, Role
from germane.integrations.cli import options
from germane.integrations.cli.opening import (
    DEFAULT_AGENT,
    DEFAULT_DATABASE,
    fields_of,
    id_of,
    open_to_change,
    open_to_read,
    open_to_write,
)
from germane.integrations.cli.output import print_json, print_table, print_text, warn
from germane.integrations.cli.remembering import print_remembered, text_of, told
from germane.integrations.shapes import memory_shape
from germane.integrations.space_shapes import space_shape

if TYPE_CHECKING:
    from germane import Memory, Space, SpaceInfo

__all__ = ["COMMANDS"]

Name = Annotated[str, typer.Argument(metavar="SPACE", help="The name of the space.")]
MemberName = Annotated[str, typer.Argument(metavar="MEMBER", help="The agent that it is about.")]
Other = Annotated[
    str | None,
    typer.Option("--member", metavar="NAME", help="Another agent, instead of the one that --agent names."),
]


class _Admits(StrEnum):
    """Who may join by himself."""

    WRITE = "write"
    READ = "read"
    NOBODY = "nobody"


def _create(
    name: Name,
    *,
    admits: Annotated[
        _Admits,
        typer.Option(
            "--admits", metavar="RIGHT", help="What agents may give themselves: write, read or nobody."
        ),
    ] = _Admits.WRITE,
    database: options.Database = DEFAULT_DATABASE,
    agent: options.Agent = DEFAULT_AGENT,
    as_json: options.Json = False,
) -> None:
    """Make a space, and be its first member.

    Made again by a member it stays as it is; a space of others is a mistake.
    """
    with open_to_write(database, agent) as engine:
        most = None if admits is _Admits.NOBODY else admits.value
        _show(engine.space(name, create=True, admits=most).info(), as_json=as_json)


def _list(
    database: options.Database = DEFAULT_DATABASE,
    agent: options.Agent = DEFAULT_AGENT,
    as_json: options.Json = False,
) -> None:
    """The spaces that the agent is in."""
    with open_to_read(database, agent) as engine:
        found = engine.spaces()
    if as_json:
        print_json({"spaces": [space_shape(space) for space in found]})
        return
    if not found:
        warn(f"Agent {agent!r} is in no space.")
        return
    rows = []
    for space in found:
        me = space.member(agent)
        mine = ("", "") if me is None else (str(me.rights), str(me.role))
        rows.append((space.name, *mine, str(len(space.members))))
    print_table(("space", "rights", "role", "members"), rows, right=(3,))


def _members(
    name: Name,
    database: options.Database = DEFAULT_DATABASE,
    agent: options.Agent = DEFAULT_AGENT,
    as_json: options.Json = False,
) -> None:
    """Who is in a space, in the order of joining."""
    with open_to_read(database, agent) as engine:
        _show(engine.space(name).info(), as_json=as_json)


def _join(
    name: Name,
    *,
    member: Other = None,
    rights: Annotated[
        Right, typer.Option("--rights", metavar="RIGHT", help="What it may do there: write or read.")
    ] = Right.WRITE,
    role: Annotated[
        Role,
        typer.Option("--role", metavar="ROLE", help="active, or passive: to read along and stand by."),
    ] = Role.ACTIVE,
    database: options.Database = DEFAULT_DATABASE,
    agent: options.Agent = DEFAULT_AGENT,
    as_json: options.Json = False,
) -> None:
    """Be a member of a space, or let another agent in."""
    with open_to_change(database, agent) as engine:
        _show(engine.space(name).join(member, rights=rights, role=role), as_json=as_json)


def _leave(
    name: Name,
    *,
    member: Other = None,
    database: options.Database = DEFAULT_DATABASE,
    agent: options.Agent = DEFAULT_AGENT,
    as_json: options.Json = False,
) -> None:
    """Be no member of a space any more, or put another one out; what it wrote stays.

    Where no active member is left that may write, the first passive one is promoted.
    """
    with open_to_change(database, agent) as engine:
        _show(engine.space(name).leave(member), as_json=as_json)


def _demote(
    name: Name,
    *,
    member: Other = None,
    database: options.Database = DEFAULT_DATABASE,
    agent: options.Agent = DEFAULT_AGENT,
    as_json: options.Json = False,
) -> None:
    """Make an active member of a space passive; the first passive one follows where it was the last."""
    with open_to_change(database, agent) as engine:
        _show(engine.space(name).demote(member), as_json=as_json)


def _of_a_member(act: Callable[[Space, str], SpaceInfo], *, says: str) -> Callable[..., None]:
    """A command that does one thing to one member and shows who is in the space then."""

    def command(
        name: Name,
        member: MemberName,
        *,
        database: options.Database = DEFAULT_DATABASE,
        agent: options.Agent = DEFAULT_AGENT,
        as_json: options.Json = False,
    ) -> None:
        with open_to_change(database, agent) as engine:
            _show(act(engine.space(name), member), as_json=as_json)

    command.__doc__ = says
    return command


def _remember(
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
    database: options.Database = DEFAULT_DATABASE,
    agent: options.Agent = DEFAULT_AGENT,
    as_json: options.Json = False,
) -> None:
    """Store a memory in a space, for all its members."""
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
    with open_to_change(database, agent) as engine:
        done = engine.space(name).remember_many([draft])[0]
    print_remembered(done, as_json=as_json)


def _share(
    name: Name,
    memory_id: options.Target,
    *,
    database: options.Database = DEFAULT_DATABASE,
    agent: options.Agent = DEFAULT_AGENT,
    as_json: options.Json = False,
) -> None:
    """Put a copy of one of the agent's own memories into a space."""
    with open_to_change(database, agent) as engine:
        memory = engine.space(name).share(id_of(engine, memory_id))
    _print_memory("Shared", memory, as_json=as_json)


def _of_a_memory(act: Callable[[Space, str], Memory], verb: str, *, says: str) -> Callable[..., None]:
    """A command that does one thing to one memory of a space and shows it as it is then."""

    def command(
        name: Name,
        memory_id: options.Target,
        *,
        database: options.Database = DEFAULT_DATABASE,
        agent: options.Agent = DEFAULT_AGENT,
        as_json: options.Json = False,
    ) -> None:
        with open_to_change(database, agent) as engine:
            space = engine.space(name)
            memory = act(space, id_of(space, memory_id))
        _print_memory(verb, memory, as_json=as_json)

    command.__doc__ = says
    return command


def _disband(
    name: Name,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Confirm that it can't be undone.")] = False,
    database: options.Database = DEFAULT_DATABASE,
    agent: options.Agent = DEFAULT_AGENT,
    as_json: options.Json = False,
) -> None:
    """End a space, and purge every memory in it, for all its members."""
    with open_to_change(database, agent) as engine:
        engine.space(name).disband(confirm=yes)
    if as_json:
        print_json({"disbanded": name})
    else:
        print_text(f"Disbanded {name}; every memory in it is gone.")


def _show(space: SpaceInfo, *, as_json: bool) -> None:
    if as_json:
        print_json({"space": space_shape(space)})
        return
    print_table(
        ("member", "rights", "role", "joined"),
        [
            (one.agent, str(one.rights), str(one.role), f"{one.joined_at:%Y-%m-%d %H:%M}")
            for one in space.members
        ],
    )


def _print_memory(verb: str, memory: Memory, *, as_json: bool) -> None:
    if as_json:
        print_json({"memory": memory_shape(memory)})
    else:
        print_text(told(verb, memory))


COMMANDS: dict[str, Callable[..., Any]] = {
    "space create": _create,
    "space list": _list,
    "space members": _members,
    "space join": _join,
    "space leave": _leave,
    "space promote": _of_a_member(
        lambda space, member: space.promote(member), says="Make a passive member of a space active."
    ),
    "space demote": _demote,
    "space fail-over": _of_a_member(
        lambda space, member: space.fail_over(member),
        says="Let the first passive member take over from an active one that failed.",
    ),
    "space remember": _remember,
    "space share": _share,
    "space forget": _of_a_memory(
        lambda space, memory_id: space.forget(memory_id),
        "Forgotten",
        says="Keep a memory of a space out of every result until it is restored.",
    ),
    "space restore": _of_a_memory(
        lambda space, memory_id: space.restore(memory_id), "Restored", says="Undo a forget in a space."
    ),
    "space disband": _disband,
}
"""The commands of this file by name."""
