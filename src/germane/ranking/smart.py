"""Tells from its words whether a turn goes on with a conversation or asks for what lasts. Pure.

Level: ranking (imports model only; never retrieval or stores). No model is asked.

What goes on with a conversation, debugging included, needs what was said last. A question about
decisions, plans or principles needs what is important. Anything else, or both alike, needs a
balance. Whole words and phrases of English decide, so that punctuation and case don't: each that
stands in the text counts for its side once, a phrase instead of the words in it. The side with more
decides. Where neither has any, a turn of up to three words goes on with a conversation, and so does
one of up to eight with a word that only points back ("it", "that"). A text in another language has
no such words, and gets the balance unless it is that short.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

from germane.model.trace import Note

__all__ = ["Chosen", "Turn", "choose_strategy"]

Turn: TypeAlias = Literal["conversational", "strategic", "mixed"]

_STRATEGIES: Mapping[Turn, str] = MappingProxyType(
    {"conversational": "recent", "strategic": "important", "mixed": "balanced"}
)
_WORD = re.compile(r"\w+(?:'\w+)*")
_SHORT = 3
"""Words; a turn as short as this leans on the turns before it."""
_POINTS_BACK = 8
"""Words; in a longer text, what a pronoun means stands in the text itself."""


def _cues_in(text: str) -> frozenset[str]:
    return frozenset(" ".join(cue.split()) for cue in text.split(";"))


_TALK = _cues_in(
    """
    hi; hello; hey; good morning; good evening; thanks; thank you; ok; okay; yes; yep; yeah; no; nope; sure;
    great; cool; nice; perfect; sorry; please; continue; go on; go ahead; carry on; keep going; next one;
    again; once more; what about; how about; and now; right now; just now; a moment ago; a minute ago;
    you said; you just; you mean; you mentioned; i said; i mean; i meant; i just; we just; did you;
    do you remember; earlier; previous; previously; the last one; last message; last answer; last question;
    the first one; the second one; the other one; above; below; wait; hold on; undo; instead; shorter; longer;
    another one; in other words; what else; tell me more; more detail; say that; repeat; rephrase; still;
    already; error; errors; exception; traceback; stack trace; fails; failed; failing; failure; crash;
    crashes; crashed; broken; debug; bug; doesn't work; does not work; not working; isn't working; fix; try;
    retry; rerun; run; line; log; logs; output; typo; rename; test passes; tests pass
"""
)
_POINTING = _cues_in(
    "it; that; this; these; those; them; its; he; she; him; her; they; one; there; then; now; just"
)
_LASTING = _cues_in(
    """
    should we; should i; should our; shall we; do we want; are we going to; would it be better; is it worth;
    worth it; better to; which is better; decide; decided; decides; deciding; decision; decisions; choose;
    chose; chosen; choosing; choice; choices; plan; plans; planned; planning; roadmap; strategy; strategies;
    strategic; architecture; architectural; design; designs; trade off; trade offs; tradeoff; tradeoffs;
    pros and cons; prioritise; prioritize; priority; priorities; policy; policies; principle; principles;
    long term; long run; approach; approaches; recommend; recommendation; recommendations; option; options;
    alternative; alternatives; versus; vs; compare; comparison; evaluate; goal; goals; objective;
    objectives; requirement; requirements; constraint; constraints; vision; mission; invest; investment;
    hire; hiring; adopt; standardise; standardize; next quarter; this quarter; next year; this year; q1; q2;
    q3; q4; milestone; milestones; risk; risks; convention; conventions; guideline; guidelines; standard;
    standards; best way; best practice; best practices; commit to; stick with; move to; switch to;
    migrate to; why did we; why do we; rationale; reasons; summary; summarise; summarize; overview; key facts;
    lessons; invariant; invariants; build or buy; rule; rules; values; preferences
"""
)
_LONGEST = max(len(cue.split()) for cue in _TALK | _LASTING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The strategy for a turn, and the words of either side that decided on it.

    `leaning` are the words that only point back, or all those of a short turn, where nothing else
    decided.
    """

    turn: Turn
    talk: tuple[str, ...] = ()
    lasting: tuple[str, ...] = ()
    leaning: tuple[str, ...] = ()

    @property
    def strategy(self) -> str:
        """The strategy that serves such a turn: recent, important or balanced."""
        return _STRATEGIES[self.turn]

    @property
    def note(self) -> Note:
        """What the trace says: which strategy, and why."""
        return Note(code="smart", text=f"Ranked by the strategy {self.strategy}: {self._why}.")

    @property
    def _why(self) -> str:
        talk, lasting = _quoted(self.talk), _quoted(self.lasting)
        if self.turn == "conversational":
            against = f", more than {lasting} for what lasts" if lasting else ""
            return f"{talk or _quoted(self.leaning)} spoke for a conversation{against}"
        if self.turn == "strategic":
            against = f", more than {talk} for a conversation" if talk else ""
            return f"{lasting} spoke for what lasts{against}"
        if talk:
            return f"{talk} spoke for a conversation as much as {lasting} for what lasts"
        return "no word of the question spoke for a conversation or for what lasts"


def choose_strategy(text: str) -> Chosen:
    """What kind of turn a text is, and so the strategy that serves it. Any text gets an answer."""
    words = _WORD.findall(text.casefold().replace("’", "'"))
    found = tuple(dict.fromkeys(_cues(words)))
    talk = tuple(cue for cue in found if cue in _TALK)
    lasting = tuple(cue for cue in found if cue in _LASTING)
    leaning = () if found else _leaning(words)
    lead = len(talk) + len(leaning) - len(lasting)
    turn: Turn = "conversational" if lead > 0 else "strategic" if lead < 0 else "mixed"
    return Chosen(turn=turn, talk=talk, lasting=lasting, leaning=leaning)


def _cues(words: Sequence[str]) -> Iterable[str]:
    """The cues in the text, the longest that begins at each place, none within another."""
    place = 0
    while place < len(words):
        for length in range(min(_LONGEST, len(words) - place), 0, -1):
            cue = " ".join(words[place : place + length])
            if cue in _TALK or cue in _LASTING:
                yield cue
                break
        place += length


def _leaning(words: Sequence[str]) -> tuple[str, ...]:
    if len(words) <= _SHORT:
        return tuple(dict.fromkeys(words))
    if len(words) <= _POINTS_BACK:
        return tuple(dict.fromkeys(word for word in words if word in _POINTING))
    return ()


def _quoted(cues: Sequence[str]) -> str:
    return ", ".join(f'"{cue}"' for cue in cues)
