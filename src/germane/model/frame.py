"""What an agent is doing: frames, and how one was chosen.

Level: model (imports errors only).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from germane.errors import InvalidInput, InvalidPlan
from germane.model.forms import checked_fields

__all__ = ["AUTO", "DEFAULT_SHARES", "Chooser", "Frame", "FrameChoice"]

AUTO = "auto"
"""Where a frame is asked for by name: choose it by what is said."""

DEFAULT_SHARES = (("decisions", 2000), ("facts", 1500), ("procedures", 1500), ("episodes", 1000))
"""Tokens for each section that relevance fills, of a total of 8,000 (note on context management)."""

_DEFAULT_BUDGET = 8000
_NAME = re.compile(r"\w[\w -]{0,39}")
_ALTERNATIVE = re.compile(r"\?|\^?[\w'-]+\*?(?: [\w'-]+\*?)*")

Chooser: TypeAlias = Literal["words", "model", "caller"]
"""Who chose a frame: the patterns of the frames, a model at the door for one, or whoever asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields()
class Frame:
    """What the agent is doing now: shown in the frame section, and what the layered plan is built by.

    `priorities` say, from 0 to 1 by section, who gets left-over tokens first; 0.5 unless named. `budget`
    is the total in tokens where none is asked for, and `shares` are the tokens of the sections that
    relevance fills; they shrink in proportion where the total can't hold them beside what is always
    there. Memories whose metadata name a `domain` of the frame's count a little more.

    `patterns` tell the frame by what is said. Each is a list of phrases parted by "|", and counts once
    if any of them stands there: whole words, case aside; "fail*" is any word that begins so, "^fix" one
    that begins a sentence or a part of one, "?" a question mark. Of frames with as many patterns the one
    of the greater `precedence` is chosen. Raises InvalidInput for a name, pattern or priority that can't
    be one, and InvalidPlan for a budget below 1 or a share below 0.
    """

    name: str
    description: str
    questions: tuple[str, ...] = ()
    priorities: tuple[tuple[str, float], ...] = ()
    patterns: tuple[str, ...] = ()
    precedence: int = 0
    domain: tuple[str, ...] = ()
    budget: int = _DEFAULT_BUDGET
    shares: tuple[tuple[str, int], ...] = DEFAULT_SHARES

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name == AUTO:
            raise InvalidInput(
                f"Frame name {self.name!r} can't be used: take up to 40 letters, digits, spaces, '-' and "
                f"'_', such as 'review', and not {AUTO!r}, which asks for a choice."
            )
        wrong = [
            each
            for pattern in self.patterns
            for each in pattern.split("|")
            if not _ALTERNATIVE.fullmatch(each)
        ]
        if wrong:
            raise InvalidInput(
                f"Frame {self.name!r} has the pattern {wrong[0]!r}, which says nothing: write phrases parted "
                "by '|', such as 'error*|stack trace|^fix'."
            )
        _check_doubled(self.name, (name for name, _ in self.priorities))
        _check_doubled(self.name, (name for name, _ in self.shares))
        for section, priority in self.priorities:
            if not 0 <= priority <= 1:
                raise InvalidInput(
                    f"Frame {self.name!r} gives {section!r} the priority {priority}. "
                    "Take a number from 0 to 1."
                )
        for section, tokens in (("the total", self.budget - 1), *self.shares):
            if tokens < 0:
                raise InvalidPlan(
                    f"Frame {self.name!r} has too few tokens for {section}. A budget is 1 or more, a share 0 "
                    "or more."
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameChoice:
    """A frame, who chose it, and how surely, from 0 to 1.

    By words, `confidence` is the part of all patterns found, of all frames, that are this frame's: 1 where
    nothing speaks for another, 0 where nothing speaks for any and the most general one stands in.
    """

    frame: Frame
    confidence: float = 1.0
    by: Chooser = "caller"


def _check_doubled(frame: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidInput(f"Frame {frame!r} names section {name!r} twice. Name each once.")
        seen.add(name)
