"""A realistic agent's memory, to try germane on: `memory.jsonl`, and `questions.jsonl` to ask of it.

The memory is invented. It belongs to newton, a software engineering agent at a small company that builds
a memory service, and covers January to November 2026: 315 records of every built-in kind, in the order of
their times. Each line has the arguments of one `remember`. Each line of the questions has a question, its
topic, and in `expect` the numbers from 1 of the lines of the memory that answer it. The time of the questions
is 20 November 2026.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from germane import Draft, Engine

__all__ = [
    "DEMO_FRAME",
    "DEMO_NOW",
    "DEMO_QUESTION",
    "DemoQuestion",
    "demo_drafts",
    "demo_questions",
    "load_demo",
]

# The demo's memory and questions are part of the wheel.

DEMO_QUESTION = "Should we use Redis for caching in Newton?"
DEMO_FRAME = "decision"
DEMO_NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
"""The time of the demo's question, so that its output is the same on every day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoQuestion:
    """A question to the demo's memory. `expect` are the numbers from 1 of the lines that answer it."""

    question: str
    about: str
    expect: tuple[int, ...]


def load_demo(engine: Engine) -> int:
    """Store the demo's memory, and return the number of records that were new to the engine.

    Loading it again changes no answer, and forgotten memories stay forgotten.
    """
    return sum(done.created for done in engine.remember_many(demo_drafts(), revive=False))


def demo_drafts() -> tuple[Draft, ...]:
    """The records, oldest first."""
    return tuple(_draft(fields) for fields in _lines("memory.jsonl"))


def demo_questions() -> tuple[DemoQuestion, ...]:
    """The questions, each with the records that answer it."""
    return tuple(
        DemoQuestion(question=fields["question"], about=fields["about"], expect=tuple(fields["expect"]))
        for fields in _lines("questions.jsonl")
    )


def _draft(fields: dict[str, Any]) -> Draft:
    tags = tuple(fields.pop("tags", ()))
    return Draft(**{**fields, "tags": tags, "created_at": datetime.fromisoformat(fields["created_at"])})


def _lines(name: str) -> Iterator[dict[str, Any]]:
    # Split at line feeds only, since a text can contain all other line ends of Unicode.
    for line in files("germane.demo").joinpath(name).read_text(encoding="utf-8").split("\n"):
        if line.strip():
            yield json.loads(line)
