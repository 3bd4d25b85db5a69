"""What makes a turn of dialogue relevant: itself, what stands around it, its session, who said it.

Level: ranking (imports model and errors; never retrieval or stores). Pure.

Measured on labelled conversations, what surrounds a turn is worth more than any embedder. The
signals weigh alike: a fit of their weights came out near equal, and equal weights held on data
that no choice was made on. A turn's parts are halved, so that a turn of a conversation and a
memory that stands alone compare on one scale.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from germane.model.query import Candidate
from germane.ranking.fusion import floored_lexical, floored_semantic

__all__ = ["SPEAKER", "TURN_SIGNALS", "is_turn", "turn_parts"]

TURN_SIGNALS = ("window_lexical", "window_semantic")
"""The signals that only a turn of a session has."""

SPEAKER = 0.8
"""What it counts, beside signals of up to 1, that the one person whom the question names said a turn."""

_HALF = 0.5
_WORD = re.compile(r"\w+")


def turn_parts(
    candidates: Sequence[Candidate],
    alone: Sequence[dict[str, float]],
    *,
    window_bound: float,
    question: str,
) -> list[dict[str, float]]:
    """The parts of each candidate's score; `alone` holds those that each has by itself.

    A candidate without turn signals keeps its own parts. For a turn they are: `lexical`; `window`,
    the words around it; `semantic`, half its own and half its window's; `session`, the best turn of
    its session; and `speaker`, when the question names one person and that person said it.
    """
    top = {
        name: max((one.signals.get(name, 0.0) for one in candidates), default=0.0) for name in TURN_SIGNALS
    }
    best: dict[str, float] = {}
    for one, own in zip(candidates, alone, strict=True):
        if is_turn(one):
            session = one.memory.scope.value
            best[session] = max(best.get(session, 0.0), _HALF * sum(own.values()))
    named = _named_speaker(candidates, question)

    def parts(candidate: Candidate, own: dict[str, float]) -> dict[str, float]:
        if not is_turn(candidate):
            return own
        found = {name: _HALF * value for name, value in own.items()}
        signals = candidate.signals
        if "window_lexical" in signals:
            window = floored_lexical(signals["window_lexical"], top=top["window_lexical"], bound=window_bound)
            found["window"] = _HALF * window
        if "window_semantic" in signals:
            near = floored_semantic(signals["window_semantic"], top=top["window_semantic"])
            found["semantic"] = _HALF * (_HALF * own.get("semantic", 0.0) + _HALF * near)
        found["session"] = _HALF * best[candidate.memory.scope.value]
        if named is not None and speaker_of(candidate) == named:
            found["speaker"] = _HALF * SPEAKER
        return found

    return list(map(parts, candidates, alone))


def speaker_of(candidate: Candidate) -> str | None:
    """Who said a turn, as its metadata has it."""
    speaker = candidate.memory.metadata.get("speaker")
    return speaker if isinstance(speaker, str) else None


def is_turn(candidate: Candidate) -> bool:
    """Whether a candidate is a turn of dialogue, with the signals of the turns around it."""
    signals = candidate.signals
    return "window_lexical" in signals or "window_semantic" in signals


def _named_speaker(candidates: Sequence[Candidate], question: str) -> str | None:
    """The one speaker whom the question names, by the full name or its first word; None for several."""
    words = {word.casefold() for word in _WORD.findall(question)}
    speakers = {speaker for one in candidates if (speaker := speaker_of(one))}
    named = {
        speaker for speaker in speakers if (first := _WORD.search(speaker)) and first[0].casefold() in words
    }
    return named.pop() if len(named) == 1 else None
