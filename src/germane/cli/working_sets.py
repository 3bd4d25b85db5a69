"""The commands `working …`: what an agent or a space has in mind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, cast

from germane.cli import options
from germane.cli.call import Call, command, follow_each, id_of
from germane.cli.options import arg, opt
from germane.cli.output import label_of, print_columns, print_table, print_text, to_json, warn, warn_each
from germane.model.context import short_id
from germane.model.memory import split_id
from germane.ranking import Decay

if TYPE_CHECKING:
    from germane import Engine, Space, WorkingSet
    from germane.working_sets import AddResult, Eviction, WorkingSetEvent

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
        if max_tokens is not None:
            working_set.resize(max_tokens)
        ids = [id_of(owner, each) for each in targets]
        added = working_set.add_many(ids, pinned=pinned, policy=policy, basis=basis)
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
            "MEMORY": lambda item: label_of(item.memory, _LABEL),
        }
        print_columns(items, columns, right=(1, 2, 3))


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
        print_text(context.explain() if explain else context.text)
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
            follow_each(call, partial(working_set.follow, after=after), row=_row, limit=limit)
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
    """How many memories were added, touched and evicted."""
    touched = len(added.items) - len(added.new)
    return f"{verb} {len(added.new)}, touched {touched}{more}. {_evicted(added.eviction)}"


def fill(figures: dict[str, Any]) -> str:
    """How full a working set is."""
    tokens, most = figures["tokens"], figures["max_tokens"]
    share = f" ({tokens / most:.0%})" if most else ""
    return f"The set holds {tokens:,} of {most:,} tokens{share}."


def _evicted(eviction: Eviction) -> str:
    named = ", ".join(short_id(each.item.memory.id) for each in eviction.evicted)
    return f"Evicted {named}: {eviction.freed:,} tokens freed. " if named else ""
