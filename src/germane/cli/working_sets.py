"""working: what an agent holds in mind, from the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, cast

from germane.cli.options import (
    SHOWN_OF_ID,
    Call,
    Follow,
    Now,
    Record,
    SinceNumber,
    Target,
    arg,
    command,
    eviction_line,
    figures_of,
    fill,
    follow_each,
    id_of,
    opt,
    told_of,
)
from germane.cli.output import label_of, print_table, print_text, to_json, warn
from germane.model.memory import split_id
from germane.ranking import Decay

if TYPE_CHECKING:
    from germane import Engine, Space, WorkingSet
    from germane.working_sets import WorkingSetEvent

# What commands on working sets share: their options, the set that they name, and how they tell of it.

Name = Annotated[str, opt("--set NAME", "Which of the agent's working sets.")]
Targets = Annotated[
    list[str], arg("ID...", "Memories, by id or its beginning or end; the last is the latest.")
]
Policy = Annotated[
    str,
    opt("--policy POLICY", "Who leaves first: importance, lru, lfu, frequency-weighted or importance-age."),
]
MaxTokens = Annotated[int | None, opt("--max-tokens TOKENS", "Let the set hold so many tokens from here on.")]
Limit = Annotated[
    int | None, opt("--max-tokens TOKENS", "The longest text; without it, all that the set may hold.")
]
Question = Annotated[str, arg("[QUERY]", "What it is for; what has to do with it comes earlier.")]
StrategyName = Annotated[
    str, opt("--strategy NAME", "What is best: balanced, recent, important, frequent, clustered or smart.")
]
OverflowName = Annotated[
    str,
    opt(
        "--overflow RULE",
        "What doesn't fit is left out (skip), ends the text (stop), is shortened (degrade), or ends "
        "the text where even that doesn't fit (degrade_stop).",
    ),
]
OrderName = Annotated[str, opt("--order ORDER", "best_first, or reverse: the best last, near the question.")]
DecayHours = Annotated[float, opt("--decay-hours HOURS", "The age that halves what importance counts.")]
DecayShape = Annotated[str, opt("--decay SHAPE", "How it falls with age: hyperbolic, exponential or none.")]
AgeSince = Annotated[str, opt("--age SINCE", "Age since created_at, updated_at, accessed_at or entered_at.")]
Relevance = Annotated[
    float, opt("--relevance WEIGHT", "What the question weighs: from 0, nothing, to 1, everything.")
]
SpaceName = Annotated[str | None, opt("--space SPACE", "A set of this space, which its members share.")]


@contextmanager
def opened(
    call: Call, name: str, space: str | None = None, *, writes: bool = False, now: str | None = None
) -> Iterator[tuple[Engine | Space, WorkingSet]]:
    """A set, and whose it is: the agent's or a space's."""
    with call.open(writes=writes, now=now) as engine:
        owner = engine if space is None else engine.space(space)
        yield owner, owner.working_set(name)


_LABEL = 60


@command("working add")
def _add(
    call: Call,
    targets: Targets,
    *,
    pinned: Annotated[bool, opt("--pinned", "Keep them from making room for others.")] = False,
    policy: Policy = "importance",
    age: AgeSince = "entered_at",
    max_tokens: MaxTokens = None,
    name: Name = "default",
    space: SpaceName = None,
) -> None:
    """What is held already is touched, and never doubled. What makes room stays stored."""
    with opened(call, name, space, writes=True) as (owner, held):
        if max_tokens is not None:
            held.resize(max_tokens)
        added = held.add_many(
            [id_of(owner, each) for each in targets], pinned=pinned, policy=policy, basis=age
        )
        now = figures_of(held)
    call.answer({**to_json(added), "set": now}, told_of(added) + fill(now))


@command("working show")
def _show(call: Call, *, name: Name = "default", space: SpaceName = None) -> None:
    with opened(call, name, space) as (_, held):
        items, now = held.items(), figures_of(held)
    if call.prints({"set": now, "items": items}):
        return
    print_text(fill(now))
    if items:
        rows = [
            (
                one.memory.id[-SHOWN_OF_ID:],
                f"{one.memory.importance:g}",
                f"{one.tokens:,}",
                str(one.touches),
                "pinned" if one.stays else "",
                label_of(one.memory, _LABEL),
            )
            for one in items
        ]
        print_table(("ID", "IMPORTANCE", "TOKENS", "TOUCHES", "", "MEMORY"), rows, right=(1, 2, 3))


def _moving(does: str, done: str) -> None:
    """Make the command that calls one method of a set with one memory."""

    @command(f"working {does}")
    def act(call: Call, target: Target, *, name: Name = "default", space: SpaceName = None) -> None:
        with opened(call, name, space, writes=True) as (owner, held):
            memory_id = split_id(id_of(owner, target))[0]
            getattr(held, does)(memory_id)
            now, entry = figures_of(held), next((one for one in held if one.memory.id == memory_id), None)
        call.answer(
            {"id": memory_id, "item": entry, "set": now}, f"{memory_id[-SHOWN_OF_ID:]} {done}. {fill(now)}"
        )


for _does, _done in (("touch", "touched"), ("remove", "removed"), ("pin", "pinned"), ("unpin", "unpinned")):
    _moving(_does, _done)


@command("working clear")
def _clear(
    call: Call,
    *,
    keep_pinned: Annotated[bool, opt("--keep-pinned", "Leave what is pinned in it.")] = False,
    name: Name = "default",
    space: SpaceName = None,
) -> None:
    with opened(call, name, space, writes=True) as (_, held):
        left = held.clear(keep_pinned=keep_pinned)
        now = figures_of(held)
    call.answer({"left": left, "set": now}, f"{left} taken out. " + fill(now))


@command("working evict")
def _evict(
    call: Call,
    tokens: Annotated[int, arg("TOKENS", "How many tokens to free at least.")],
    *,
    policy: Policy = "importance",
    age: AgeSince = "entered_at",
    name: Name = "default",
    space: SpaceName = None,
) -> None:
    """No more leave than must, and what is pinned stays."""
    with opened(call, name, space, writes=True) as (_, held):
        eviction = held.evict(tokens, policy=policy, basis=age)
        now = figures_of(held)
    if call.prints({"eviction": eviction, "set": now}):
        return
    if eviction.shortfall:
        warn(
            f"{eviction.shortfall:,} of {tokens:,} tokens can't be freed: "
            "what is left is pinned, or nothing is."
        )
    print_text((eviction_line(eviction) or "None made room. ") + fill(now))


@command("working assemble")
def _assemble(
    call: Call,
    query: Question = "",
    *,
    strategy: StrategyName = "balanced",
    max_tokens: Limit = None,
    overflow: OverflowName = "skip",
    order: OrderName = "best_first",
    decay_hours: DecayHours = 1.0,
    decay: DecayShape = "hyperbolic",
    age: AgeSince = "created_at",
    relevance: Relevance = 0.5,
    explain: Annotated[bool, opt("--explain", "Show what is in, what is out, and why.")] = False,
    record: Record = False,
    now: Now = None,
    name: Name = "default",
    space: SpaceName = None,
) -> None:
    """It changes nothing; `working touch` says what was used."""
    with opened(call, name, space, writes=record, now=now) as (_, held):
        context = held.assemble(
            query,
            strategy=strategy,
            budget=max_tokens,
            overflow=overflow,
            order=order,
            relevance=relevance,
            decay=Decay(shape=cast("Any", decay), hours=decay_hours, basis=cast("Any", age)),
            record=record,
        )
    if call.prints(context):
        return
    print_text(context.explain() if explain else context.text)
    for note in context.trace.notes:
        warn(f"note: {note.text}")


@command("working events")
def _events(
    call: Call,
    *,
    since: SinceNumber = None,
    limit: Annotated[int | None, opt("--limit N", "Only the latest so many.", min=0)] = None,
    follow: Follow = False,
    name: Name = "default",
    space: SpaceName = None,
) -> None:
    """With --follow, what becomes of it from now on, or since the --since given; --limit then ends it."""
    with opened(call, name, space) as (_, held):
        if follow:
            follow_each(call, partial(held.follow, after=since), row=_row, limit=limit)
            return
        moves = held.changes(after=since or 0)
    moves = moves if limit is None else moves[len(moves) - min(limit, len(moves)) :]
    if call.prints({"events": moves}):
        return
    print_table(("NUMBER", "TIME", "BY", "EVENT", "ID"), [_row(move) for move in moves], right=(0,))


def _row(move: WorkingSetEvent) -> tuple[str, ...]:
    return (
        str(move.number),
        f"{move.at:%Y-%m-%d %H:%M:%S}",
        move.by,
        str(move.kind),
        (move.memory_id or "")[-SHOWN_OF_ID:],
    )
