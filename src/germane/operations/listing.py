"""The listing of a recall within a budget: as many memories as fit, each as long as the rest allows."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from germane.model.context import short_id
from germane.model.memory import Level, Memory, day_of
from germane.operations.context import AgentContext
from germane.operations.inputs import checked_count
from germane.operations.search import RecallResult
from germane.packing.render import inline
from germane.tokens import spendable

_LEVELS: Final = (Level.FULL, Level.SUMMARY)


def listed(session: AgentContext, found: RecallResult, budget: int) -> RecallResult:
    """The memories whose listing takes at most so many tokens by the session's counter, and the listing.

    The best come first and get their whole text first; shortened ones say so. A last line counts those that
    didn't fit. Raises InvalidInput for a negative budget.
    """
    most, count = spendable(checked_count(budget, name="budget"), session.counter), session.counter.count
    lines = [_line(one.memory, Level.MICRO) for one in found]
    costs = [count(f"{line}\n") for line in lines]
    chosen: list[int] = []
    free = most - (count(_left_over(len(found))) if sum(costs) > most else 0)
    for place, cost in enumerate(costs):
        if cost <= free:
            chosen.append(place)
            free -= cost
    for place in chosen:
        longer = (_line(found[place].memory, level) for level in _LEVELS)
        for line in longer:
            more = count(f"{line}\n") - costs[place]
            if more <= free:
                lines[place], free = line, free - more
                break
    while True:
        text = "\n".join(lines[place] for place in chosen)
        if len(chosen) < len(found):
            text = f"{text}\n{_left_over(len(found) - len(chosen))}".strip()
        tokens = count(text)
        if tokens <= most or not text:
            ranked = tuple(found.ranked[place] for place in chosen)
            return replace(found, ranked=ranked, text=text, tokens=tokens)
        if not chosen:
            # Not even the line that counts them fits.
            return replace(found, ranked=(), text="", tokens=0)
        chosen.pop()


def _line(memory: Memory, level: Level) -> str:
    text, name = inline(memory.renditions.at(level).text), short_id(memory.ref)
    if text != inline(memory.renditions.full.text):
        text = f"{text.rstrip(' …')} … (expand {name})"
    return f"[{name}] {memory.kind}, {day_of(memory)}: {text}"


def _left_over(number: int) -> str:
    return f"({number} more found; a larger budget shows them.)"
