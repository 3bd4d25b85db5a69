"""What commands on working sets share: their options, the set that they name, and how they tell of it.

Level: integrations.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from germane.integrations.cli.opening import open_to_change, open_to_read
from germane.integrations.cli.output import print_text
from germane.integrations.shapes import Shape
from germane.integrations.working_shapes import added_shape, working_set_shape

if TYPE_CHECKING:
    from germane import Added, Engine, Eviction, Recalled, Space, WorkingSet

__all__ = [
    "SHOWN_OF_ID",
    "AgeSince",
    "DecayHours",
    "DecayShape",
    "Into",
    "Limit",
    "MaxTokens",
    "Name",
    "OrderName",
    "OverflowName",
    "Policy",
    "Question",
    "Relevance",
    "SpaceName",
    "StrategyName",
    "Targets",
    "changing",
    "enter",
    "fill",
    "reading",
    "room",
    "tell_added",
    "tell_entered",
    "to_record",
]

SHOWN_OF_ID = 8

Name = Annotated[str, typer.Option("--set", metavar="NAME", help="Which of the agent's working sets.")]
Targets = Annotated[
    list[str],
    typer.Argument(metavar="ID...", help="Memories, by id or its beginning or end; the last is the latest."),
]
Policy = Annotated[
    str,
    typer.Option(
        "--policy",
        metavar="POLICY",
        help="Who leaves first: importance, lru, lfu, frequency-weighted or importance-age.",
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
        help="What doesn't fit is left out (skip), ends the text (stop), is shortened (degrade), or ends the "
        "text where even that doesn't fit (degrade_stop).",
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
Relevance = Annotated[
    float,
    typer.Option(
        "--relevance", metavar="WEIGHT", help="What the question weighs: from 0, nothing, to 1, everything."
    ),
]
SpaceName = Annotated[
    str | None,
    typer.Option("--space", metavar="SPACE", help="A set of this space, which its members share."),
]
Into = Annotated[
    str | None,
    typer.Option(
        "--into", metavar="SET", help="Let a working set take in what was found, as far as it fits."
    ),
]


@contextmanager
def changing(
    database: str, agent: str, name: str, space: str | None = None, *, now: datetime | None = None
) -> Iterator[tuple[Engine | Space, WorkingSet]]:
    """A set to change, and whose it is: the agent's or a space's."""
    with open_to_change(database, agent, now=now) as engine:
        owner = engine if space is None else engine.space(space)
        yield owner, owner.working_set(name)


@contextmanager
def reading(
    database: str, agent: str, name: str, space: str | None = None, *, now: datetime | None = None
) -> Iterator[WorkingSet]:
    """A set to read."""
    with open_to_read(database, agent, now=now) as engine:
        owner = engine if space is None else engine.space(space)
        yield owner.working_set(name)


@contextmanager
def to_record(
    database: str, agent: str, name: str, space: str | None = None, *, now: datetime | None = None
) -> Iterator[WorkingSet]:
    """A set to read, in a store whose ledger can be written."""
    with changing(database, agent, name, space, now=now) as (_, held):
        yield held


def enter(held: WorkingSet, recalled: Recalled) -> Shape:
    """Let a set take in what was recalled; what came of it."""
    added = held.add_recalled(recalled)
    return {
        **added_shape(added),
        "left_out": [memory.id for memory in added.left_out],
        "set": working_set_shape(held),
    }


def tell_entered(entered: Shape) -> None:
    """The same for people."""
    held, now = entered["held"], entered["set"]
    new = sum(one["new"] for one in held)
    left_out = f", {len(entered['left_out'])} found no room" if entered["left_out"] else ""
    print_text(
        f"Entered {new}, touched {len(held) - new}{left_out}. "
        + _made_room([one["id"] for one in entered["eviction"]["evicted"]], entered["eviction"]["freed"])
        + fill(now["tokens"], now["max_tokens"])
    )


def tell_added(added: Added, now: Shape) -> None:
    """What adding did, for people."""
    touched = len(added.held) - len(added.new)
    print_text(
        f"Added {len(added.new)}, touched {touched}. "
        + room(added.eviction)
        + fill(now["tokens"], now["max_tokens"])
    )


def room(eviction: Eviction) -> str:
    """Who made room, by the ends of their ids."""
    return _made_room([one.held.memory.id for one in eviction.evicted], eviction.freed)


def fill(tokens: int, most: int) -> str:
    """How full a set is."""
    share = f" ({tokens / most:.0%})" if most else ""
    return f"The set holds {tokens:,} of {most:,} tokens{share}."


def _made_room(ids: list[str], freed: int) -> str:
    named = ", ".join(each[-SHOWN_OF_ID:] for each in ids)
    return f"{named} made room: {freed:,} tokens. " if ids else ""
