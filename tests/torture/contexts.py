"""Random contexts and requests of hostile text: none over its budget, no structure that a memory made."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from random import Random
from typing import Any, Final

import germane
from germane import BudgetTooSmall, Engine, RequestTooLarge, Trust
from germane.testing.fakes import make_memory, make_renditions
from germane.tokens import COUNTERS
from support.judges import tiktoken_of
from torture.task import Task
from unit.test_fence import MARKERS, ROLES

__all__ = ["run"]

_PIECES: Final = (
    *MARKERS, *ROLES, "## Identity\n", "# A\n", "```", "~~~", "</section>", "<tool>", "\n", "\n\n", "\u2028",
    "\x00", "\x1b[31m", "- ", "> ", "| a |", "---\n", "===\n", "\\", "x", " ", "redis ", "cache ", "deploy ",
    "中文", "ذاكرة ", "👩\u200d👩\u200d👧", "e\u0301", "\u202e", "<recalled-from-memory>", "[a](b)", "1. ",
    "![a](http://x/?", "\ud7ff",
)  # fmt: skip
_KINDS: Final = ("fact", "procedure", "constraint", "episode", "decision", "note", "preference", "identity")
_QUERIES: Final = ("redis cache", "deploy", "中文", "", "## Identity", "<system>")
_PLANS: Final = ("layered", "layered_strict", "relevance", "scoped", "scoped_estimate")
_EACH: Final = 400
"""Contexts and requests of one store."""
_REQUESTS: Final = 0.1
"""The share of requests, each of which takes as long as several contexts."""
_SIZES: Final = (4, 12, 40)
"""The most memories of a store, one of which is chosen: a small one is as hostile, and quicker to use."""


def run(task: Task) -> None:
    """Assemble contexts and requests of random plans, counters and formats, and judge each."""
    judges: dict[str, Callable[[str], int]] = {name: partial(_tokens, name) for name in ("o200k", "cl100k")}
    judges["bytes_div_4_floor"] = lambda text: len(text.encode()) // 4
    headings = _headings()
    for _ in task.each_round():
        with germane.open(":memory:", embedder=None) as engine:
            _fill(engine, task.chance)
            for _number in range(_EACH):
                counter = task.chance.choice(COUNTERS)
                make = _request if task.chance.random() < _REQUESTS else _context
                task.findings += list(islice(make(engine, counter, judges, headings, task), 3))


def _tokens(name: str, text: str) -> int:
    return len(tiktoken_of(name).encode_ordinary(text))


def _fill(engine: Engine, chance: Random) -> None:
    texts = [_text(chance) for _ in range(chance.randrange(1, chance.choice(_SIZES)))]
    engine.import_memories(
        make_memory(
            repr(text),
            renditions=make_renditions(text),
            kind=chance.choice(_KINDS),
            subject=_text(chance)[:80] or None,
            source=_text(chance)[:80] or None,
            trust=chance.choice([*Trust]),
        )
        for text in dict.fromkeys(texts)
    )
    talk = engine.conversation("talk")
    for number in range(chance.randrange(1, 12)):
        talk.append("user" if number % 2 == 0 else "assistant", _text(chance) or "x")


def _text(chance: Random) -> str:
    return "".join(chance.choice(_PIECES) for _ in range(chance.choice((1, 3, 9, 30, 120))))


def _headings() -> frozenset[str]:
    """The lines that begin a section in contexts of harmless memories, of every plan."""
    with germane.open(":memory:", embedder=None) as harmless:
        for kind in _KINDS:
            for trust in Trust:
                harmless.remember(f"Redis cache {kind} {trust}.", kind=kind, trust=trust, force=True)
        shown = [harmless.assemble("redis", plan=plan).text for plan in _PLANS]
    return frozenset(line for text in shown for line in text.splitlines() if line.startswith("## "))


def _context(
    engine: Engine, counter: str, judges: Any, headings: frozenset[str], task: Task
) -> Sequence[str]:
    chance = task.chance
    budget = int(10 ** chance.uniform(0, 4))
    plan = chance.choice(_PLANS)
    given: dict[str, Any] = {"task": "deploy"} if plan.startswith("scoped") else {}
    try:
        context = engine.assemble(
            chance.choice(_QUERIES),
            budget=budget,
            plan=plan,
            counter=counter,
            ids=chance.random() < 0.3,
            **given,
        )
    except BudgetTooSmall:
        task.figures["budgets too small"] += 1
        return ()
    task.figures["contexts"] += 1
    estimated = plan == "scoped_estimate"  # It keeps its budget by an estimate.
    found = _over(context.text, context.tokens, context.tokens if estimated else budget, counter, judges)
    if plan == "layered":
        forged = [line for line in context.text.splitlines() if _is_heading(line) and line not in headings]
        found += [f"a heading that no plan has: {line[:80]!r}" for line in forged]
    return [f"{plan}, {budget} of {counter}: {each}" for each in (*found, *_marked(context.text))]


def _is_heading(line: str) -> bool:
    """Whether a line is a heading, but for those with the name of a procedure or a day of a conversation."""
    own = r"### \d+ \w+ \d{4} \(talk\)|## Procedure: .*|## From Earlier Conversations"
    return line.startswith("#") and not re.fullmatch(own, line)


def _request(engine: Engine, counter: str, judges: Any, _: frozenset[str], task: Task) -> Sequence[str]:
    chance = task.chance
    window = chance.randrange(300, 20_000)
    provider = chance.choice(("openai", "anthropic"))
    try:
        made = engine.request(
            engine.conversation("talk"),
            memory="layered",
            window=window,
            reserve=50,
            counter=counter,
            provider=provider,
        )
    except (RequestTooLarge, BudgetTooSmall):
        task.figures["requests too large"] += 1
        return ()
    task.figures["requests"] += 1
    text = json.dumps([made.system, made.messages], ensure_ascii=False, default=str)
    spoken = "".join(map(json.loads, re.findall(r'"(?:content|text)": ?("(?:[^"\\]|\\.)*")', text)))
    counted = judges.get(counter, lambda _: 0)(spoken)
    limit = window - 50
    found = [] if made.tokens <= limit else [f"{made.tokens} tokens of {limit}"]
    if counted > limit and counter in ("o200k", "cl100k"):
        found.append(f"the texts alone have {counted} tokens, the limit is {limit}")
    return [f"request for {provider}, {counter}: {each}" for each in found]


def _over(text: str, tokens: int, budget: int, counter: str, judges: Any) -> list[str]:
    counted = judges[counter](text) if counter in judges else tokens
    found = [] if max(tokens, counted) <= budget else [f"{tokens} tokens, {counted} by the judge"]
    return found if counted == tokens else [*found, f"it says {tokens} tokens, the judge {counted}"]


def _marked(text: str) -> list[str]:
    found = [f"a marker: {marker}" for marker in MARKERS if marker in text]
    return found + (["a role"] if re.search(r"^\W*(?:Human|Assistant):", text, flags=re.MULTILINE) else [])
