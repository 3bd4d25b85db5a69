"""What an assembly returns: the text, what stands in it, and why.

Level: model (imports errors only).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from germane.model.explanation import explain
from germane.model.memory import Level, Memory
from germane.model.trace import Trace

__all__ = ["Context", "Item"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A memory as it stands in a context: at one level, in one section.

    `text` is the rendered, fenced line; `tokens` what that line costs, its line end included.
    """

    memory: Memory
    section: str
    level: Level
    text: str
    tokens: int
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The result of an assembly. `tokens` is the count of `text` as it stands, headings and all.

    `items` may be written when they are first looked at; they equal a tuple of the same items.
    """

    text: str
    tokens: int
    items: Sequence[Item]
    trace: Trace

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        # The whole of it holds each candidate's texts: far more than anybody reads at a prompt.
        out = len(self.trace.excluded)
        return (
            f"<germane.Context {self.tokens:,} of {self.trace.budget:,} tokens by plan {self.trace.plan!r}, "
            f"{len(self.items)} memories in, {out} left out>"
        )

    def reused_prefix(self, previous: Context | None) -> int:
        """How many tokens of whole items stand at the beginning of the previous context as well.

        A provider's prompt cache can keep at most these and the headings between them.
        """
        if previous is None:
            return 0
        if self.text == previous.text:
            return self.tokens
        pairs = zip(self.text, previous.text, strict=False)
        same, place, tokens = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)), 0, 0
        for item in self.items:
            place = self.text.find(item.text, place) + len(item.text)
            if place < len(item.text) or place > same:
                break
            tokens += item.tokens
        return tokens

    def explain(self) -> str:
        """A table for people: what is in, at which level and why; what is out, why, and by how much."""
        return explain(self.trace, tokens=self.tokens)
