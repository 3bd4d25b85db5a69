"""What commands on working sets share: their options, the set that they name, and how they tell of it.

Level: integrations.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from germane.integrations.cli.command import Call
from germane.integrations.cli.options import arg, opt
from germane.integrations.shapes import to_json

if TYPE_CHECKING:
    from germane import Added, Engine, Eviction, Recalled, Space, WorkingSet

SHOWN_OF_ID = 8

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
Into = Annotated[
    str | None, opt("--into SET", "Let a working set take in what was found, as far as it fits.")
]


@contextmanager
def opened(
    call: Call, name: str, space: str | None = None, *, writes: bool = False, now: str | None = None
) -> Iterator[tuple[Engine | Space, WorkingSet]]:
    """A set, and whose it is: the agent's or a space's."""
    with call.open(writes=writes, now=now) as engine:
        owner = engine if space is None else engine.space(space)
        yield owner, owner.working_set(name)


def figures_of(held: WorkingSet) -> dict[str, Any]:
    """A set as JSON without its entries."""
    items, most = held.items(), held.max_tokens
    tokens = sum(one.tokens for one in items)
    return {
        "name": held.name,
        "owner": held.owner,
        "max_tokens": most,
        "tokens": tokens,
        "utilization": round(tokens / most, 6) if most else 0.0,
        "count": len(items),
    }


def enter(held: WorkingSet, recalled: Recalled) -> tuple[dict[str, Any], str]:
    """Let a set take in what was recalled; what came of it as JSON and as text."""
    added = held.add_recalled(recalled)
    now = figures_of(held)
    left_out = [memory.id for memory in added.left_out]
    text = told_of(added, "Entered", f", {len(left_out)} found no room" if left_out else "")
    return {**to_json(added), "left_out": left_out, "set": now}, text + fill(now)


def told_of(added: Added, what: str = "Added", more: str = "") -> str:
    """What adding did, for people."""
    touched = len(added.held) - len(added.new)
    return f"{what} {len(added.new)}, touched {touched}{more}. {room(added.eviction)}"


def room(eviction: Eviction) -> str:
    """Which memories were evicted, by the ends of their ids."""
    named = ", ".join(one.held.memory.id[-SHOWN_OF_ID:] for one in eviction.evicted)
    return f"{named} made room: {eviction.freed:,} tokens. " if named else ""


def fill(now: dict[str, Any]) -> str:
    """How full a set is, by its figures."""
    tokens, most = now["tokens"], now["max_tokens"]
    share = f" ({tokens / most:.0%})" if most else ""
    return f"The set holds {tokens:,} of {most:,} tokens{share}."
