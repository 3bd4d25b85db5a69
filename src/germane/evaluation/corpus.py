"""What a retriever is given, and what is expected of it.

Level: evaluation. Values and protocols only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeAlias

from germane.evaluation.metrics import Needle
from germane.evaluation.records import Records
from germane.model.draft import Draft
from germane.protocols import Embedder, TokenCounter

__all__ = ["Corpus", "Order", "Reader", "Retriever", "Stored"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A store that is there already, and whose memories are asked about. It is only read."""

    database: str | Path
    agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """One conversation, oldest turn first; `ids`, `turns` and `drafts` stand side by side.

    A draft is the turn as germane imports it, a text of `texts` the turn with its day, as every
    other retriever is given it. `now` is a moment after the last turn: when the questions are asked.
    With `stored` the memories are in that store already: their own ids are `ids`, and there are no
    drafts. With `records` each reader imports these, and `keys` tells its memories apart (see `record_key`).
    """

    ids: tuple[str, ...]
    turns: tuple[Needle, ...]
    drafts: tuple[Draft, ...]
    now: datetime
    counter: TokenCounter
    embedder: Embedder | None = None
    stored: Stored | None = None
    records: Records | None = None
    keys: tuple[tuple[str, str | None, str], ...] = ()

    @property
    def texts(self) -> list[str]:
        """Each turn as "day speaker: what was said"."""
        return [f"{turn.day} {turn.said}".lstrip() for turn in self.turns]


class Reader(Protocol):
    """Answers questions about one corpus."""

    def recall(self, question: str, limit: int) -> Sequence[str]:
        """The ids of the `limit` best memories, best first; fewer where it finds fewer."""
        ...

    def assemble(self, question: str, budget: int) -> str:
        """The context for a question: text that should keep within `budget` tokens."""
        ...

    def close(self) -> None:
        """Release what the reader holds."""
        ...


Retriever: TypeAlias = Callable[[Corpus], Reader]
Order: TypeAlias = Callable[[str], Sequence[int]]
"""For a question, the places of memories in the corpus, best first."""
