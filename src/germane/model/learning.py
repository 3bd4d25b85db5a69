"""What is learned from use: what a context showed, what became of it, and how far confidence is to be
trusted.

No text of a memory or a question stands in any of these.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from germane.errors import InvalidInput
from germane.model.memory import Level, Memory, split_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Impressions:
    """What a context or a recall showed: its key, and by memory the unweighted parts of each score.

    A memory is named by its id, or the version that was shown by `id@n`. `levels` says at which level each
    memory stood; one that it doesn't name stood there whole. `Context`, `RecallResult` and a recorded
    `Assembly` are read by themselves; `Impressions.of` makes one where only their JSON is left.
    """

    key: str
    parts: Mapping[str, Mapping[str, float]]
    levels: Mapping[str, Level] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        kind: str,
        *,
        question: str,
        now: datetime,
        parts: Mapping[str, Mapping[str, float]],
        weights: Mapping[str, float],
        levels: Mapping[str, Level] | None = None,
    ) -> Self:
        """What a "context" or a "recall" showed at a moment, its parts as they were before any weights."""
        unweighed = {
            memory_id: {name: part / weights.get(name, 1.0) for name, part in of_one.items()}
            for memory_id, of_one in parts.items()
        }
        key = context_key(kind, question=question, now=now, ids=parts)
        return cls(key=key, parts=unweighed, levels=levels or {})

    @classmethod
    def from_json(cls, shape: Any) -> tuple[Self, str]:
        """What the JSON of a context, a trace or a recall says was shown, and its question.

        Raises InvalidInput for other JSON.
        """
        try:
            recalled = "results" in shape
            account = shape if recalled else shape["trace"]
            if recalled:
                parts = {each["memory"]["id"]: each["parts"] for each in shape["results"]}
            else:
                parts = {each["id"]: each["parts"] for each in account["entries"] if each["included"]}
            question = str(account["question"]["text"])
            made = cls.of(
                "recall" if recalled else "context",
                question=account["question"]["text"],
                now=datetime.fromisoformat(account["now"]),
                parts=parts,
                weights=account["weights"],
                levels={
                    each["id"]: Level(each["level"])
                    for each in account.get("entries", ())
                    if each["included"]
                },
            )
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidInput(
                f"This JSON doesn't say what was shown ({error!r}). Pass what `germane assemble --json` or "
                "`germane recall --json` printed."
            ) from error
        return made, question


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One memory that a context showed, the unweighted parts of its score, and whether it was used.

    It has no parts if learning was off when it was reported: then it says how useful the memory was, and
    nothing of the weights of scores. `given` numbers an agent's reports of use, later ones higher.
    """

    context: str
    memory_id: str
    used: bool
    parts: Mapping[str, float]
    given: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What each part of a score is multiplied by; a part without a weight counts as it is.

    `contexts` and `examples` say how many of them the weights come from.
    """

    values: Mapping[str, float]
    contexts: int
    examples: int

    def of(self, part: str) -> float:
        """The weight of a part."""
        return self.values.get(part, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningReport:
    """What an agent has learned from use.

    `weights` are those that apply, None where the parts of a score count as they are: while
    learning is off, and until a context with both used and unused memories was reported.
    `examples` counts what is stored, whether learning is on or not.
    """

    on: bool
    weights: Weights | None
    examples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """What a feedback changed: the used memories as they are stored now, in the order given.

    `counted` says how many of them were not known to be used in this context before; `examples`
    how many shown memories are stored to learn from, 0 while learning is off.
    """

    used: tuple[Memory, ...]
    counted: int
    examples: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRecord:
    """How work turned out with one memory that a context showed (see `RecordOutcome`)."""

    context: str
    memory_id: str
    worth: float
    weight: float
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeHistory:
    """All that is known of how work turned out; `stamp` moves whenever any of it does."""

    stamp: int
    records: tuple[OutcomeRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeResult:
    """What reporting an outcome changed: how many memories it concerns, and for how many it was new."""

    memories: int
    updated: int


def context_key(kind: str, *, question: str, now: datetime, ids: Iterable[str]) -> str:
    """A name for what was shown, 32 hexadecimal digits: the same for the same at the same time.

    It is made of the kind ("context" or "recall"), the question's words, the moment and the ids in
    any order, whichever versions they name, hashed, so that nothing of them can be read from it.
    """
    memories = sorted(split_id(one)[0] for one in ids)
    named = json.dumps([kind, question, now.isoformat(), memories])
    return hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:32]


# Which memories an answer draws on, as far as its words tell.


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserveResult:
    """What an answer was found to draw on.

    `used` are ids of memories, in the order in which they were shown; `scores` has for each memory shown
    how much of what it says stands in the answer, from 0 to 1. `feedback` is what counting it changed; None
    where nothing was counted.
    """

    used: tuple[str, ...]
    scores: Mapping[str, float] = field(default_factory=dict)
    feedback: Feedback | None = None
