"""Tells when a context no longer serves: one rule for each cause.

Level: plans (imports model). Pure. Each rule returns whether it asks for a refresh, and the reason if so.
"""

from __future__ import annotations

from typing import TypeAlias

from germane.model.frame import FrameChoice
from germane.model.refreshed import RefreshReason
from germane.plans.intent import ACKNOWLEDGEMENTS, GREETINGS, POLITE
from germane.plans.wording import has, said, taken_out, without

__all__ = [
    "LEAST_CONFIDENCE",
    "LEAST_INFORMATION",
    "LEAST_SIMILARITY",
    "Verdict",
    "beside_thanks",
    "decision_point",
    "frame_switch",
    "new_topic",
    "substance",
    "token_pressure",
]

Verdict: TypeAlias = tuple[bool, RefreshReason | None]

LEAST_SIMILARITY = 0.5
"""What is said has to have this much to do with a context for the context to serve."""

LEAST_INFORMATION = 6.0
"""Nats. What is said in words that are more common than that, such as "it works", is about no topic."""

LEAST_CONFIDENCE = 0.5
"""A frame that is chosen less surely than this is no reason to change it."""

_ABOUT_TO_ACT = (
    "go ahead|^proceed|let's do it|let's do this|let's go with|do it now|^ship it|^execute|^merge it"
    "|^deploy it|^apply it|^approve|^approved|make it so|i will go with|i'll go with"
    "|we go with|pull the trigger|^confirm"
)
_GENERAL = ("conversation", "question")
_NO: Verdict = (False, None)


def substance(text: str) -> str:
    """What is said beside that somebody is about to act, in the words as they stand."""
    return taken_out(_ABOUT_TO_ACT, text) if has(_ABOUT_TO_ACT, said(text)) else text


def beside_thanks(text: str) -> str:
    """The words of a text beside greetings, thanks and agreement."""
    return without((*GREETINGS, *ACKNOWLEDGEMENTS, *POLITE), said(text))


def frame_switch(current: str | None, choice: FrameChoice, *, similarity: float | None = None) -> Verdict:
    """Whether another frame was chosen, and surely enough. A context without a frame has none to leave.

    A question on the topic at hand belongs to whatever is being done, and so does a friendly word: these
    two frames are only switched to with another topic.
    """
    if current is None or choice.frame.name == current or choice.confidence < LEAST_CONFIDENCE:
        return _NO
    goes_on = similarity is None or similarity >= LEAST_SIMILARITY
    return _NO if choice.frame.name in _GENERAL and goes_on else (True, RefreshReason.FRAME)


def decision_point(text: str, *, current: str | None, acting: bool = False) -> Verdict:
    """Whether the agent is about to act: it says so, or is told to; and isn't in the decision frame yet."""
    acts = acting or has(_ABOUT_TO_ACT, said(text))
    return (True, RefreshReason.DECISION_POINT) if acts and current != "decision" else _NO


def new_topic(similarity: float | None) -> Verdict:
    """Whether what is said has less than half to do with the context; what says nothing is no topic."""
    return (True, RefreshReason.TOPIC) if similarity is not None and similarity < LEAST_SIMILARITY else _NO


def token_pressure(tokens: int, room: int | None) -> Verdict:
    """Whether a context is larger than the room that is left for it."""
    return (True, RefreshReason.PRESSURE) if room is not None and tokens > room else _NO
