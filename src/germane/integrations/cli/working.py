"""working: what an agent holds in mind, from the command line.

Level: integrations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from germane import Decay
from germane.integrations.cli.opening import (
    DEFAULT_AGENT,
    DEFAULT_DATABASE,
    id_of,
    moment_of,
    open_to_change,
    open_to_read,
)
from germane.integrations.cli.options import Agent, Database, Json, Now, Target
from germane.integrations.cli.output import print_json, print_table, print_text, warn
from germane.integrations.shapes import context_shape
from germane.integrations.working_shapes import (
    added_shape,
    eviction_shape,
    held_shape,
    move_shape,
    working_set_shape,
)

if TYPE_CHECKING:
    from germane import Engine, Eviction, WorkingSet

__all__ = ["COMMANDS"]

_SHOWN_OF_ID = 8
_LABEL = 60

Name = Annotated[str, typer.Option("--set", metavar="NAME", help="Which of the agent's working sets.")]
Targets = Annotated[
    list[str],
    typer.Argument(metavar="ID...", help="Memories, by id or its beginning or end; the last is the latest."),
]
Policy = Annotated[
    str,
    typer.Option(
        "--policy", metavar="POLICY", help="Who leaves first: importance, lru, lfu or frequency-weighted."
    ),
]
MaxTokens = Annotated[
    int | None,
    typer.Option("--max-tokens", metavar="TOKENS", help="Let the set hold so many tokens from here on."),
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--max-tokens", metavar="TOKENS", help="The longest text; without it, all that the set may hold."
    ),
]
Question = Annotated[
    str, typer.Argument(metavar="[QUERY]", help="What it is for; what has to do with it comes earlier.")
]
StrategyName = Annotated[
    str,
    typer.Option(
        "--strategy",
        metavar="NAME",
        help="What is best: balanced, recent, important, frequent, clustered or smart.",
    ),
]
OverflowName = Annotated[
    str,
    typer.Option(
        "--overflow",
        metavar="RULE",
        help="What doesn't fit is left out (skip), ends the text (stop), or is shortened (degrade).",
    ),
]
OrderName = Annotated[
    str,
    typer.Option(
        "--order", metavar="ORDER", help="best_first, or reverse: the best last, near the question."
    ),
]
DecayHours = Annotated[
    float, typer.Option("--decay-hours", metavar="HOURS", help="The age that halves what importance counts.")
]
DecayShape = Annotated[
    str,
    typer.Option("--decay", metavar="SHAPE", help="How it falls with age: hyperbolic, exponential or none."),
]
AgeSince = Annotated[
    str,
    typer.Option(
        "--age", metavar="SINCE", help="Age since created_at, updated_at, accessed_at or entered_at."
    ),
]


def _add(
    targets: Targets,
    *,
    pinned: Annotated[bool, typer.Option("--pinned", help="Keep them from making room for others.")] = False,
    policy: Policy = "importance",
    max_tokens: MaxTokens = None,
    name: Name = "default",
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """Take memories into a working set; others make room if they must.

    What is held already is touched, and never doubled. What makes room stays stored.
    """
    with _changing(database, agent, name) as (engine, held):
        if max_tokens is not None:
            held.resize(max_tokens)
        added = held.add_many([id_of(engine, each) for each in targets], pinned=pinned, policy=policy)
        now = working_set_shape(held)
    if as_json:
        print_json({**added_shape(added), "set": now})
        return
    touched = len(added.held) - len(added.new)
    print_text(
        f"Added {len(added.new)}, touched {touched}. "
        + _room(added.eviction)
        + _fill(now["tokens"], now["max_tokens"])
    )


def _show(
    *,
    name: Name = "default",
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """What a working set holds, the latest last."""
    with open_to_read(database, agent) as engine:
        held = engine.working_set(name)
        items, now = held.items(), working_set_shape(held)
    if as_json:
        print_json({"set": now, "held": [held_shape(one) for one in items]})
        return
    print_text(_fill(now["tokens"], now["max_tokens"]))
    if items:
        rows = [
            (
                one.memory.id[-_SHOWN_OF_ID:],
                f"{one.memory.importance:g}",
                f"{one.tokens:,}",
                str(one.touches),
                "pinned" if one.stays else "",
                _label(one.memory.renditions.micro.text),
            )
            for one in items
        ]
        print_table(("ID", "IMPORTANCE", "TOKENS", "TOUCHES", "", "MEMORY"), rows, right=(1, 2, 3))


def _touch(
    target: Target,
    *,
    name: Name = "default",
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """Say that a held memory was used just now."""
    with _changing(database, agent, name) as (engine, held):
        memory_id = id_of(engine, target)
        held.touch(memory_id)
        _tell(held, memory_id, "touched", as_json=as_json)


def _remove(
    target: Target,
    *,
    name: Name = "default",
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """Take a memory out of a working set; it stays stored."""
    with _changing(database, agent, name) as (engine, held):
        memory_id = id_of(engine, target)
        held.remove(memory_id)
        _tell(held, memory_id, "removed", as_json=as_json)


def _pin(
    target: Target,
    *,
    name: Name = "default",
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """Keep a held memory from making room for others."""
    with _changing(database, agent, name) as (engine, held):
        memory_id = id_of(engine, target)
        held.pin(memory_id)
        _tell(held, memory_id, "pinned", as_json=as_json)


def _unpin(
    target: Target,
    *,
    name: Name = "default",
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """Undo a pin."""
    with _changing(database, agent, name) as (engine, held):
        memory_id = id_of(engine, target)
        held.unpin(memory_id)
        _tell(held, memory_id, "unpinned", as_json=as_json)


def _clear(
    *,
    keep_pinned: Annotated[bool, typer.Option("--keep-pinned", help="Leave what is pinned in it.")] = False,
    name: Name = "default",
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """Take everything out of a working set; it stays stored."""
    with _changing(database, agent, name) as (_, held):
        left = held.clear(keep_pinned=keep_pinned)
        now = working_set_shape(held)
    if as_json:
        print_json({"left": left, "set": now})
    else:
        print_text(f"{left} taken out. " + _fill(now["tokens"], now["max_tokens"]))


def _evict(
    tokens: Annotated[int, typer.Argument(metavar="TOKENS", help="How many tokens to free at least.")],
    *,
    policy: Policy = "importance",
    name: Name = "default",
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """Make room: the least important leave first, and stay stored.

    No more leave than must, and what is pinned stays.
    """
    with _changing(database, agent, name) as (_, held):
        eviction = held.evict(tokens, policy=policy)
        now = working_set_shape(held)
    if as_json:
        print_json({"eviction": eviction_shape(eviction), "set": now})
        return
    if eviction.shortfall:
        warn(
            f"{eviction.shortfall:,} of {tokens:,} tokens can't be freed: "
            "what is left is pinned, or nothing is."
        )
    print_text((_room(eviction) or "None made room. ") + _fill(now["tokens"], now["max_tokens"]))


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
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what is in, what is out, and why.")
    ] = False,
    now: Now = None,
    name: Name = "default",
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """What a working set holds as one text, the best first.

    It changes nothing; `working touch` says what was used.
    """
    with open_to_read(database, agent, now=moment_of(now, name="--now")) as engine:
        context = engine.working_set(name).assemble(
            query,
            strategy=strategy,
            max_tokens=max_tokens,
            overflow=overflow,
            order=order,
            decay=Decay(shape=cast("Any", decay), hours=decay_hours, basis=cast("Any", age)),
        )
    if as_json:
        print_json(context_shape(context))
        return
    print_text(context.explain() if explain else context.text)
    for note in context.trace.notes:
        warn(f"note: {note.text}")


def _events(
    *,
    since: Annotated[
        int, typer.Option("--since", metavar="NUMBER", help="Only those after this number.")
    ] = 0,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=0, help="Only the latest so many.")
    ] = None,
    name: Name = "default",
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """What became of a working set, by whom and when."""
    with open_to_read(database, agent) as engine:
        moves = engine.working_set(name).changes(since=since)
    moves = moves if limit is None else moves[len(moves) - min(limit, len(moves)) :]
    if as_json:
        print_json({"events": [move_shape(move) for move in moves]})
        return
    rows = [
        (
            str(move.number),
            f"{move.at:%Y-%m-%d %H:%M:%S}",
            move.by,
            str(move.kind),
            (move.memory_id or "")[-_SHOWN_OF_ID:],
        )
        for move in moves
    ]
    print_table(("NUMBER", "TIME", "BY", "EVENT", "ID"), rows, right=(0,))


@contextmanager
def _changing(database: Path, agent: str, name: str) -> Iterator[tuple[Engine, WorkingSet]]:
    with open_to_change(database, agent) as engine:
        yield engine, engine.working_set(name)


def _tell(held: WorkingSet, memory_id: str, done: str, *, as_json: bool) -> None:
    now = working_set_shape(held)
    if as_json:
        entry = next((one for one in held if one.memory.id == memory_id), None)
        print_json({"id": memory_id, "held": None if entry is None else held_shape(entry), "set": now})
    else:
        print_text(f"{memory_id[-_SHOWN_OF_ID:]} {done}. " + _fill(now["tokens"], now["max_tokens"]))


def _room(eviction: Eviction) -> str:
    """Who made room, by the ends of their ids."""
    ids = [one.held.memory.id[-_SHOWN_OF_ID:] for one in eviction.evicted]
    return f"{', '.join(ids)} made room: {eviction.freed:,} tokens. " if ids else ""


def _fill(tokens: int, most: int) -> str:
    share = f" ({tokens / most:.0%})" if most else ""
    return f"The set holds {tokens:,} of {most:,} tokens{share}."


def _label(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LABEL else line[: _LABEL - 1].rstrip() + "…"


COMMANDS: dict[str, Callable[..., Any]] = {
    "working add": _add,
    "working show": _show,
    "working touch": _touch,
    "working remove": _remove,
    "working pin": _pin,
    "working unpin": _unpin,
    "working clear": _clear,
    "working evict": _evict,
    "working assemble": _assemble,
    "working events": _events,
}
"""The commands of this file by name."""
