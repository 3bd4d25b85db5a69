"""The commands `working …` and `space …`: what an agent has in mind, and memories that agents share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

from germane.cli import options
from germane.cli.call import Call, command, id_of, stopped_by_signals
from germane.cli.options import arg, opt
from germane.cli.output import (
    columns_of_output,
    memory_line,
    print_columns,
    print_table,
    print_text,
    warn,
    warn_each,
)
from germane.encoding import to_json
from germane.model.context import short_id
from germane.model.memory import split_id
from germane.model.text import counted
from germane.ranking import Decay
from germane.spaces import Right, Role

if TYPE_CHECKING:
    from germane import Engine, Space, WorkingSet
    from germane.spaces import SpaceEvent, SpaceInfo
    from germane.stores.location import Following
    from germane.working_sets import AddResult, Eviction, WorkingSetEvent

T = TypeVar("T")

_LABEL = 60

_Name = Annotated[str, opt("--set NAME", "Name of the working set.")]
_Policy = Annotated[
    str,
    opt("--policy POLICY", "Evict first by: importance, lru, lfu, frequency-weighted or importance-age."),
]
_Basis = Annotated[str, opt("--basis FIELD", "Age since created_at, updated_at, accessed_at or entered_at.")]


@contextmanager
def _opened(call: Call, name: str, **settings: Any) -> Iterator[tuple[Engine | Space, WorkingSet]]:
    """The owner of a working set (the agent or a space), and the set; the settings are those of `engine`."""
    with call.open(**settings) as owner:
        yield owner, owner.working_set(name)


@command("working add", space=True)
def _add(
    call: Call,
    targets: Annotated[
        list[str], arg("ID...", "Memory ids, or their beginnings or ends; the last is the latest.")
    ],
    *,
    pinned: Annotated[bool, opt("--pinned", "Protect them from eviction.")] = False,
    policy: _Policy = "importance",
    basis: _Basis = "entered_at",
    max_tokens: Annotated[
        int | None, opt("--max-tokens TOKENS", "Set the capacity of the working set.")
    ] = None,
    name: _Name = "default",
) -> None:
    """A memory that the set already has is touched. Evicted memories stay stored."""
    with _opened(call, name, writes=True) as (owner, working_set):
        ids = [id_of(owner, each) for each in targets]
        added = working_set.add_many(ids, pinned=pinned, policy=policy, basis=basis, max_tokens=max_tokens)
        now = figures_of(working_set)
    call.answer({**to_json(added), "set": now}, added_text(added) + fill(now))


@command("working show", space=True)
def _show(call: Call, *, name: _Name = "default") -> None:
    with _opened(call, name) as (_, working_set):
        items, now = working_set.items(), figures_of(working_set)
    if call.prints({"set": now, "items": items}):
        return
    print_text(fill(now))
    if items:
        columns = {
            "ID": lambda item: short_id(item.memory.id),
            "IMPORTANCE": lambda item: f"{item.memory.importance:g}",
            "TOKENS": lambda item: f"{item.tokens:,}",
            "TOUCHES": lambda item: str(item.touches),
            "": lambda item: "pinned" if item.stays else "",
        }
        print_columns(items, columns, right=(1, 2, 3), memory=(lambda item: item.memory, _LABEL))


def _changing(method: str, done: str) -> None:
    """Define the command that calls a method of a working set with one memory."""

    @command(f"working {method}", space=True)
    def change(call: Call, target: options.Target, *, name: _Name = "default") -> None:
        with _opened(call, name, writes=True) as (owner, working_set):
            memory_id = split_id(id_of(owner, target))[0]
            getattr(working_set, method)(memory_id)
            now = figures_of(working_set)
            item = next((each for each in working_set if each.memory.id == memory_id), None)
        call.answer({"id": memory_id, "item": item, "set": now}, f"{short_id(memory_id)} {done}. {fill(now)}")


for _method, _done in (("touch", "touched"), ("remove", "removed"), ("pin", "pinned"), ("unpin", "unpinned")):
    _changing(_method, _done)


@command("working clear", space=True)
def _clear(
    call: Call,
    *,
    keep_pinned: Annotated[bool, opt("--keep-pinned", "Keep pinned items.")] = False,
    name: _Name = "default",
) -> None:
    with _opened(call, name, writes=True) as (_, working_set):
        left = working_set.clear(keep_pinned=keep_pinned)
        now = figures_of(working_set)
    call.answer({"left": left, "set": now}, f"Removed {left}. {fill(now)}")


@command("working evict", space=True)
def _evict(
    call: Call,
    tokens: Annotated[int, arg("TOKENS", "The minimum number of tokens to free.")],
    *,
    policy: _Policy = "importance",
    basis: _Basis = "entered_at",
    name: _Name = "default",
) -> None:
    """As few items as possible are evicted, and no pinned items."""
    with _opened(call, name, writes=True) as (_, working_set):
        eviction = working_set.evict(tokens, policy=policy, basis=basis)
        now = figures_of(working_set)
    if call.prints({"eviction": eviction, "set": now}):
        return
    if eviction.shortfall:
        short = f"{eviction.shortfall:,} of {tokens:,} tokens can't be freed"
        warn(f"{short}: only pinned items, or none, are left.")
    print_text((_evicted(eviction) or "Nothing was evicted. ") + fill(now))


@command("working assemble", space=True)
def _assemble(
    call: Call,
    query: Annotated[str, arg("[QUERY]", "The purpose; relevant items come first.")] = "",
    *,
    strategy: Annotated[
        str, opt("--strategy NAME", "balanced, recent, important, frequent, clustered or smart.")
    ] = "balanced",
    budget: Annotated[
        int | None, opt("--budget TOKENS", "Maximum tokens of the text; by default the set's capacity.")
    ] = None,
    overflow: Annotated[
        str,
        opt("--overflow RULE", "What doesn't fit: skip it, stop, degrade (shorten) it, or degrade_stop."),
    ] = "skip",
    order: Annotated[str, opt("--order ORDER", "best_first, or reverse: the best last.")] = "best_first",
    decay_hours: Annotated[
        float, opt("--decay-hours HOURS", "The age at which importance counts half.")
    ] = 1.0,
    decay: Annotated[
        str, opt("--decay SHAPE", "Decay with age: hyperbolic, exponential or none.")
    ] = "hyperbolic",
    basis: _Basis = "created_at",
    relevance: Annotated[float, opt("--relevance 0-1", "The weight of the query, from 0 to 1.")] = 0.5,
    explain: Annotated[bool, opt("--explain", "Print what is included and left out, and why.")] = False,
    record: options.Record = False,
    now: options.Now = None,
    name: _Name = "default",
) -> None:
    """Nothing changes; use `working touch` for items that were used."""
    with _opened(call, name, writes=record, now=now) as (_, working_set):
        context = working_set.assemble(
            query,
            strategy=strategy,
            budget=budget,
            overflow=overflow,
            order=order,
            relevance=relevance,
            decay=Decay(shape=cast("Any", decay), hours=decay_hours, basis=cast("Any", basis)),
            record=record,
        )
    if not call.prints(context):
        print_text(context.explain(columns=columns_of_output()) if explain else context.text)
        warn_each(context.trace.notes)


@command("working events", space=True)
def _events(
    call: Call,
    *,
    after: options.AfterNumber = None,
    limit: Annotated[int | None, opt("--limit N", "Only the latest N events.", min=0)] = None,
    follow: options.Follow = False,
    name: _Name = "default",
) -> None:
    """With --follow, new events (or all after --after) are printed, at most --limit."""
    with _opened(call, name) as (_, working_set):
        if follow:
            _follow_each(call, partial(working_set.follow, after=after), row=_row, limit=limit)
            return
        events = working_set.changes(after=after or 0)
    events = events if limit is None else events[max(0, len(events) - limit) :]
    if not call.prints({"events": events}):
        print_table(("NUMBER", "TIME", "BY", "EVENT", "ID"), [_row(event) for event in events], right=(0,))


def _row(event: WorkingSetEvent) -> tuple[str, ...]:
    memory = short_id(event.memory_id) if event.memory_id else ""
    return str(event.number), f"{event.at:%Y-%m-%d %H:%M:%S}", event.by, str(event.kind), memory


# Also used by `recall --into`.


def figures_of(working_set: WorkingSet) -> dict[str, Any]:
    """A working set as JSON without its items."""
    items, most = working_set.items(), working_set.max_tokens
    tokens = sum(item.tokens for item in items)
    return {
        "name": working_set.name,
        "owner": working_set.owner,
        "max_tokens": most,
        "tokens": tokens,
        "utilization": round(tokens / most, 6) if most else 0.0,
        "count": len(items),
    }


def added_text(added: AddResult, verb: str = "Added", more: str = "") -> str:
    """The numbers of added, touched and evicted memories."""
    touched = len(added.items) - len(added.new)
    return f"{verb} {len(added.new)}, touched {touched}{more}. {_evicted(added.eviction)}"


def fill(figures: dict[str, Any]) -> str:
    """The tokens of a working set and its capacity."""
    tokens, most = figures["tokens"], figures["max_tokens"]
    share = f" ({tokens / most:.0%})" if most else ""
    return f"The set holds {tokens:,} of {most:,} tokens{share}."


def _evicted(eviction: Eviction) -> str:
    named = ", ".join(short_id(each.item.memory.id) for each in eviction.evicted)
    return f"Evicted {named}: {counted(eviction.freed, 'token')} freed. " if named else ""


# Spaces.

_MOST_EVENTS = 50

_SpaceName = Annotated[str, arg("SPACE", "Name of the space.")]
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
    name: _SpaceName,
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
def _members(call: Call, name: _SpaceName) -> None:
    with call.engine() as engine:
        _print_members(call, engine.space(name).info())


@command("space join")
def _join(
    call: Call,
    name: _SpaceName,
    *,
    member: _Other = None,
    rights: Annotated[Right, opt("--rights RIGHT", "write or read.")] = Right.WRITE,
    role: Annotated[Role, opt("--role ROLE", "active, or passive: on standby.")] = Role.ACTIVE,
) -> None:
    with call.engine(writes=True) as engine:
        _print_members(call, engine.space(name).join(member, rights=rights, role=role))


@command("space leave")
def _leave(call: Call, name: _SpaceName, *, member: _Other = None) -> None:
    """If no active member with write access is left, the first passive member is promoted."""
    with call.engine(writes=True) as engine:
        _print_members(call, engine.space(name).leave(member))


@command("space promote")
def _promote(call: Call, name: _SpaceName, member: _MemberName) -> None:
    with call.engine(writes=True) as engine:
        _print_members(call, engine.space(name).promote(member))


@command("space demote")
def _demote(call: Call, name: _SpaceName, *, member: _Other = None) -> None:
    """If it was the last active member, the first passive member is promoted."""
    with call.engine(writes=True) as engine:
        _print_members(call, engine.space(name).demote(member))


@command("space fail-over")
def _fail_over(call: Call, name: _SpaceName, member: _MemberName) -> None:
    with call.engine(writes=True) as engine:
        _print_members(call, engine.space(name).fail_over(member))


@command("space share")
def _share(call: Call, name: _SpaceName, memory_id: options.Target) -> None:
    with call.engine(writes=True) as engine:
        memory = engine.space(name).share(id_of(engine, memory_id))
    call.answer({"memory": memory}, memory_line("Shared", memory))


@command("space events")
def _space_events(
    call: Call,
    name: _SpaceName,
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
            _follow_each(call, partial(space.follow, after=after), row=_space_row, limit=limit)
            return
        events = space.events(after=after or 0, limit=_MOST_EVENTS if limit is None else limit)
    if not call.prints({"events": events}):
        print_table(("number", "what", "by", "of", "at"), [_space_row(event) for event in events], right=(0,))


@command("space disband")
def _disband(call: Call, name: _SpaceName, *, yes: options.Yes = False) -> None:
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


def _space_row(event: SpaceEvent) -> tuple[str, ...]:
    at = "" if event.at is None else f"{event.at:%Y-%m-%d %H:%M:%S}"
    memory = short_id(event.memory_id) if event.memory_id else ""
    concerned = f"{memory} in {event.working_set}".strip() if event.working_set else memory
    return str(event.number), str(event.what), event.by, event.agent or concerned, at


# The events of either, until interrupted.

_TURN = 0.05
"""Seconds between two checks whether following has ended."""


def _follow_each(
    call: Call,
    follow: Callable[[Callable[[T], object]], Following[T]],
    *,
    row: Callable[[T], tuple[str, ...]],
    limit: int | None,
) -> None:
    """Print each new entry of a log on a line, until `limit` entries or an interruption.

    Raises the error that ended the following, if any.
    """
    stop, left = threading.Event(), limit

    def show(entry: T) -> None:
        nonlocal left
        if stop.is_set():
            return
        if not call.prints(entry, on_a_line=True):
            print_text("  ".join(filter(None, row(entry))))
        if left is not None:
            left -= 1
            if left <= 0:
                stop.set()

    if limit == 0:
        return
    with stopped_by_signals(stop), follow(show) as following:
        while following.is_alive and not stop.wait(_TURN):
            pass
    if following.error is not None:
        raise following.error
