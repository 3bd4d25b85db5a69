"""working: what an agent holds in mind, from the command line.

Level: integrations.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from germane import Decay
from germane.integrations.cli.following import Follow, Since, follow_each
from germane.integrations.cli.holding import (
    SHOWN_OF_ID,
    AgeSince,
    DecayHours,
    DecayShape,
    Limit,
    MaxTokens,
    Name,
    OrderName,
    OverflowName,
    Policy,
    Question,
    Relevance,
    SpaceName,
    StrategyName,
    Targets,
    changing,
    fill,
    reading,
    room,
    tell_added,
    to_record,
)
from germane.integrations.cli.opening import DEFAULT_AGENT, DEFAULT_DATABASE, id_of, moment_of
from germane.integrations.cli.options import Agent, Database, Json, Now, Record, Target
from germane.integrations.cli.output import print_json, print_table, print_text, warn
from germane.integrations.shapes import context_shape
from germane.integrations.working_shapes import (
    added_shape,
    eviction_shape,
    held_shape,
    move_shape,
    working_set_shape,
)
from germane.model.memory import split_id

if TYPE_CHECKING:
    from germane import Move, WorkingSet

__all__ = ["COMMANDS"]

_LABEL = 60


def _add(
    targets: Targets,
    *,
    pinned: Annotated[bool, typer.Option("--pinned", help="Keep them from making room for others.")] = False,
    policy: Policy = "importance",
    age: AgeSince = "entered_at",
    max_tokens: MaxTokens = None,
    name: Name = "default",
    space: SpaceName = None,
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """Take memories into a working set; others make room if they must.

    What is held already is touched, and never doubled. What makes room stays stored.
    """
    with changing(database, agent, name, space) as (owner, held):
        if max_tokens is not None:
            held.resize(max_tokens)
        added = held.add_many(
            [id_of(owner, each) for each in targets], pinned=pinned, policy=policy, basis=age
        )
        now = working_set_shape(held)
    if as_json:
        print_json({**added_shape(added), "set": now})
        return
    tell_added(added, now)


def _show(
    *,
    name: Name = "default",
    space: SpaceName = None,
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """What a working set holds, the latest last."""
    with reading(database, agent, name, space) as held:
        items, now = held.items(), working_set_shape(held)
    if as_json:
        print_json({"set": now, "held": [held_shape(one) for one in items]})
        return
    print_text(fill(now["tokens"], now["max_tokens"]))
    if items:
        rows = [
            (
                one.memory.id[-SHOWN_OF_ID:],
                f"{one.memory.importance:g}",
                f"{one.tokens:,}",
                str(one.touches),
                "pinned" if one.stays else "",
                _label(one.memory.renditions.micro.text),
            )
            for one in items
        ]
        print_table(("ID", "IMPORTANCE", "TOKENS", "TOUCHES", "", "MEMORY"), rows, right=(1, 2, 3))


def _moving(done: str, move: Callable[[WorkingSet, str], object], *, says: str) -> Callable[..., None]:
    """A command that does one thing to one memory of a set."""

    def command(
        target: Target,
        *,
        name: Name = "default",
        space: SpaceName = None,
        database: Database = DEFAULT_DATABASE,
        agent: Agent = DEFAULT_AGENT,
        as_json: Json = False,
    ) -> None:
        with changing(database, agent, name, space) as (owner, held):
            memory_id = split_id(id_of(owner, target))[0]
            move(held, memory_id)
            _tell(held, memory_id, done, as_json=as_json)

    command.__doc__ = says
    return command


def _clear(
    *,
    keep_pinned: Annotated[bool, typer.Option("--keep-pinned", help="Leave what is pinned in it.")] = False,
    name: Name = "default",
    space: SpaceName = None,
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """Take everything out of a working set; it stays stored."""
    with changing(database, agent, name, space) as (_, held):
        left = held.clear(keep_pinned=keep_pinned)
        now = working_set_shape(held)
    if as_json:
        print_json({"left": left, "set": now})
    else:
        print_text(f"{left} taken out. " + fill(now["tokens"], now["max_tokens"]))


def _evict(
    tokens: Annotated[int, typer.Argument(metavar="TOKENS", help="How many tokens to free at least.")],
    *,
    policy: Policy = "importance",
    age: AgeSince = "entered_at",
    name: Name = "default",
    space: SpaceName = None,
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """Make room: the least important leave first, and stay stored.

    No more leave than must, and what is pinned stays.
    """
    with changing(database, agent, name, space) as (_, held):
        eviction = held.evict(tokens, policy=policy, basis=age)
        now = working_set_shape(held)
    if as_json:
        print_json({"eviction": eviction_shape(eviction), "set": now})
        return
    if eviction.shortfall:
        warn(
            f"{eviction.shortfall:,} of {tokens:,} tokens can't be freed: "
            "what is left is pinned, or nothing is."
        )
    print_text((room(eviction) or "None made room. ") + fill(now["tokens"], now["max_tokens"]))


def _assemble(
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
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what is in, what is out, and why.")
    ] = False,
    record: Record = False,
    now: Now = None,
    name: Name = "default",
    space: SpaceName = None,
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """What a working set holds as one text, the best first.

    It changes nothing; `working touch` says what was used.
    """
    opened = to_record if record else reading
    with opened(database, agent, name, space, now=moment_of(now, name="--now")) as held:
        context = held.assemble(
            query,
            strategy=strategy,
            max_tokens=max_tokens,
            overflow=overflow,
            order=order,
            relevance=relevance,
            decay=Decay(shape=cast("Any", decay), hours=decay_hours, basis=cast("Any", age)),
            record=record,
        )
    if as_json:
        print_json(context_shape(context))
        return
    print_text(context.explain() if explain else context.text)
    for note in context.trace.notes:
        warn(f"note: {note.text}")


def _events(
    *,
    since: Since = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=0, help="Only the latest so many.")
    ] = None,
    follow: Follow = False,
    name: Name = "default",
    space: SpaceName = None,
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """What became of a working set, by whom and when.

    With --follow, what becomes of it from now on, or since the --since given; --limit then ends it.
    """
    with reading(database, agent, name, space) as held:
        if follow:
            follow_each(
                partial(held.follow, since=since), shape=move_shape, row=_row, limit=limit, as_json=as_json
            )
            return
        moves = held.changes(since=since or 0)
    moves = moves if limit is None else moves[len(moves) - min(limit, len(moves)) :]
    if as_json:
        print_json({"events": [move_shape(move) for move in moves]})
        return
    print_table(("NUMBER", "TIME", "BY", "EVENT", "ID"), [_row(move) for move in moves], right=(0,))


def _row(move: Move) -> tuple[str, ...]:
    return (
        str(move.number),
        f"{move.at:%Y-%m-%d %H:%M:%S}",
        move.by,
        str(move.kind),
        (move.memory_id or "")[-SHOWN_OF_ID:],
    )


def _tell(held: WorkingSet, memory_id: str, done: str, *, as_json: bool) -> None:
    now = working_set_shape(held)
    if as_json:
        entry = next((one for one in held if one.memory.id == memory_id), None)
        print_json({"id": memory_id, "held": None if entry is None else held_shape(entry), "set": now})
    else:
        print_text(f"{memory_id[-SHOWN_OF_ID:]} {done}. " + fill(now["tokens"], now["max_tokens"]))


def _label(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LABEL else line[: _LABEL - 1].rstrip() + "…"


COMMANDS: dict[str, Callable[..., Any]] = {
    "working add": _add,
    "working show": _show,
    "working touch": _moving(
        "touched", lambda held, one: held.touch(one), says="Say that a held memory was used just now."
    ),
    "working remove": _moving(
        "removed",
        lambda held, one: held.remove(one),
        says="Take a memory out of a working set; it stays stored.",
    ),
    "working pin": _moving(
        "pinned", lambda held, one: held.pin(one), says="Keep a held memory from making room for others."
    ),
    "working unpin": _moving("unpinned", lambda held, one: held.unpin(one), says="Undo a pin."),
    "working clear": _clear,
    "working evict": _evict,
    "working assemble": _assemble,
    "working events": _events,
}
"""The commands of this file by name."""
