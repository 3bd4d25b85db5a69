"""Chooses a frame by what was said.

Level: plans (imports model and errors). Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from germane.errors import InvalidInput
from germane.model.frame import Frame, FrameChoice
from germane.plans.wording import has, said

__all__ = ["choose_frame"]


def choose_frame(text: str, frames: Sequence[Frame]) -> FrameChoice:
    """The frame with the most patterns in a text; of several the one of the greatest precedence.

    Of frames that are alike in that too the first is taken. Where no pattern is found it is the frame of
    the least precedence, with confidence 0. Raises InvalidInput for no frames.
    """
    if not frames:
        raise InvalidInput("There is no frame to choose from. Give at least one.")
    words = said(text)
    scores = [sum(has(pattern, words) for pattern in frame.patterns) for frame in frames]
    found = sum(scores)
    if not found:
        return FrameChoice(frame=min(frames, key=lambda one: one.precedence), confidence=0.0, by="words")
    best = max(range(len(frames)), key=lambda place: (scores[place], frames[place].precedence, -place))
    return FrameChoice(frame=frames[best], confidence=scores[best] / found, by="words")
