"""Frames: what an agent is doing now; the built-in ones, those of a TOML file, and the choice among them.

Pure data.

Totals, shares and the priorities of the decision frame are those of the note on context management;
what no frame names has 0.5 there, and so here. Of two frames that are meant as much, the one whose
mistake costs more is chosen: an error that nobody looks into, before a decision taken as a task.

Frames of one's own, written in TOML.

Pure: it reads a text and no file.

    [frame.review]
    description = "Reading what somebody else has written."
    questions = ["What does it change?", "What does it break?"]
    patterns = ["^review|pull request*|diff", "approve*"]
    precedence = 6
    domain = ["review"]
    budget = 6000

    [frame.review.priorities]
    procedures = 1.0

    [frame.review.shares]
    decisions = 1500
    facts = 1000
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from germane.errors import InvalidInput
from germane.model.plan import DEFAULT_SHARES, Frame, FrameChoice
from germane.plans.intent import has, normalized_words

_Shares = tuple[tuple[str, int], ...]


def _shares(decisions: int, facts: int, procedures: int, episodes: int) -> _Shares:
    return ("decisions", decisions), ("facts", facts), ("procedures", procedures), ("episodes", episodes)


_QUERY = (
    "what|who|whom|whose|when|where|which|how|^is|^are|^was|^were|^do|^does|^did|^has|^have|^can|^could"
    "|what's|who's|where's|tell me|remind me|?"
)
_IMPERATIVES = (
    "add",
    "apply",
    "build",
    "bump",
    "change",
    "clean",
    "configure",
    "convert",
    "copy",
    "create",
    "delete",
    "deploy",
    "document",
    "draft",
    "extract",
    "finish",
    "fix",
    "generate",
    "implement",
    "import",
    "install",
    "make",
    "merge",
    "migrate",
    "move",
    "prepare",
    "publish",
    "refactor",
    "release",
    "remove",
    "rename",
    "replace",
    "review",
    "rewrite",
    "run",
    "send",
    "set up",
    "split",
    "test",
    "translate",
    "update",
    "upgrade",
    "write",
)

FRAMES: tuple[Frame, ...] = (
    Frame(
        name="conversation",
        description="Talking with someone; no task is under way.",
        questions=("What was said before about this?", "What does this person prefer?"),
        priorities=(("facts", 0.8), ("decisions", 0.5), ("episodes", 0.6), ("procedures", 0.2)),
        patterns=(
            "^hi|^hello|^hey|^good morning|^good afternoon|^good evening|^dear",
            "how are you|how is it going|how's it going|what's up|nice to meet you|how was your",
            "thanks|thank you|^ok|^okay|^bye|see you|good night|^great|^cool|^nice|haha|lol",
        ),
        precedence=0,
        domain=("people",),
        budget=3000,
        shares=_shares(500, 500, 0, 0),
    ),
    Frame(
        name="question",
        description="Answering a question from what is known.",
        questions=("What is known for certain?", "Where does that knowledge come from?"),
        priorities=(("facts", 1.0), ("decisions", 0.7), ("episodes", 0.5), ("procedures", 0.4)),
        patterns=(
            _QUERY,
            "explain*|describe*|define*|difference between|meaning of|how many|how much|how long|how often",
        ),
        precedence=1,
        domain=("knowledge",),
        budget=6000,
        shares=_shares(1000, 1500, 500, 500),
    ),
    Frame(
        name="task",
        description="Carrying out a piece of work.",
        questions=("What is the next step?", "Which rules apply here?", "How was it done last time?"),
        priorities=(("procedures", 0.9), ("decisions", 0.8), ("facts", 0.7), ("episodes", 0.5)),
        patterns=(
            "|".join(
                phrase for verb in _IMPERATIVES for phrase in (f"^{verb}", f"please {verb}", f"you {verb}")
            ),
            "please|can you|could you|let's|we need to|i need to|you need to|help me|next step*|todo",
        ),
        precedence=3,
        domain=("development", "delivery"),
        budget=8000,
        shares=DEFAULT_SHARES,
    ),
    Frame(
        name="decision",
        description="Choosing between alternatives whose consequences last.",
        questions=(
            "What is to be optimised?",
            "What was decided before, and how did it turn out?",
            "Which constraints hold?",
        ),
        priorities=(("decisions", 1.0), ("procedures", 0.8), ("facts", 0.6), ("episodes", 0.4)),
        patterns=(
            "should we|should i|shall we|ought we|is it worth|would it be better|do we want",
            "decide|deciding|decision|decisions|choose|choosing|choice|choices|pick between|settle on",
            (
                "versus|vs|alternative*|instead of|rather than|compare*|comparing|trade-off*|tradeoff*"
                "|pros and cons|better to|recommend*"
            ),
            "architecture*|architectural|strategy|migrate to|switch to|move to|adopt*",
        ),
        precedence=4,
        domain=("architecture", "infrastructure"),
        budget=12_000,
        shares=_shares(3000, 2000, 2000, 1000),
    ),
    Frame(
        name="debug",
        description="Finding out why something does not work.",
        questions=("What changed last?", "Was this seen before?", "What would prove the suspicion wrong?"),
        priorities=(("procedures", 1.0), ("facts", 0.8), ("episodes", 0.7), ("decisions", 0.5)),
        patterns=(
            (
                "error*|exception*|traceback*|stack trace*|fail|fails|failed|failing|failure*|crash*|timeout*"
                "|timed out|broken|breaks|hang|hangs|hanging|leak|leaks|leaking|flaky"
            ),
            (
                "wrong|incorrect*|unexpected*|not working|doesn't work|does not work|isn't working"
                "|won't start|stopped working|no longer works|can't connect|cannot connect"
            ),
            "bug|bugs|debug*|regression*|root cause*|reproduce*|diagnos*|troubleshoot*|investigat*",
            (
                "why is|why are|why does|why do|why did|why isn't|why aren't|why doesn't|why don't|why didn't"
                "|why won't|why can't"
            ),
        ),
        precedence=5,
        domain=("debugging", "operations"),
        budget=10_000,
        shares=_shares(1500, 1000, 2500, 1000),
    ),
    Frame(
        name="creative",
        description="Looking for something new.",
        questions=("What has been tried?", "Which limits are real, and which are habits?"),
        priorities=(("episodes", 0.8), ("facts", 0.7), ("decisions", 0.4), ("procedures", 0.2)),
        patterns=(
            "brainstorm*|ideas|idea for|imagine*|invent*|creative*|what if|come up with|think of|dream up",
            "name for|names for|slogan*|tagline*|story|stories|poem*|headline*|logo*|metaphor*",
        ),
        precedence=2,
        domain=("design", "writing"),
        budget=6000,
        shares=_shares(1000, 1500, 500, 500),
    ),
)
"""The frames that every engine knows, from the most general on."""


def with_frames(more: Iterable[Frame]) -> tuple[Frame, ...]:
    """The built-in frames and these; one of a known name stands in its place."""
    return tuple({frame.name: frame for frame in (*FRAMES, *more)}.values())


def frame_named(name: str, frames: Sequence[Frame] = FRAMES) -> Frame:
    """The frame of that name. Raises InvalidInput, which names the known ones."""
    for frame in frames:
        if frame.name == name:
            return frame
    known = ", ".join(frame.name for frame in frames)
    raise InvalidInput(
        f"Unknown frame {name!r}. Known frames: {known}; 'auto' chooses one. "
        "Or pass a germane.Frame of your own."
    )


_TEXTS = ("questions", "patterns", "domain", "learned_tags")
_TABLES = ("priorities", "shares")
_NUMBERS = ("precedence", "budget")


def frames_from_toml(text: str) -> tuple[Frame, ...]:
    """The frames of a TOML text, in its order.

    Each is a table `[frame.NAME]` with the fields of `Frame`; only a description is needed. Raises
    InvalidInput for what is no TOML, an unknown field, or a value that a frame can't have, and
    InvalidPlan for tokens below 0.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"The frames can't be read as TOML: {error}.") from error
    frames = document.pop("frame", {})
    if document or not isinstance(frames, dict):
        raise InvalidInput(
            "A file of frames has tables [frame.NAME] and nothing else; it has "
            f"{sorted(document) or frames!r}."
        )
    return tuple(_frame(name, fields) for name, fields in frames.items())


def _frame(name: str, fields: Any) -> Frame:
    if not isinstance(fields, Mapping):
        raise InvalidInput(f"frame.{name} is {fields!r}; write a table [frame.{name}].")
    known = {"description", *_TEXTS, *_TABLES, *_NUMBERS}
    if unknown := sorted(set(fields) - known):
        raise InvalidInput(
            f"frame.{name} has a field {unknown[0]!r}. Known fields: {', '.join(sorted(known))}."
        )
    values = {field: _value(name, field, value) for field, value in fields.items()}
    return Frame(name=name, **{"description": "", **values})


def _value(name: str, field: str, value: Any) -> Any:
    if field in _TEXTS and isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    if field in _TABLES and isinstance(value, dict) and all(map(_is_number, value.values())):
        return tuple(value.items())
    if field in _NUMBERS and isinstance(value, int) and not isinstance(value, bool):
        return value
    if field == "description" and isinstance(value, str):
        return value
    wanted = {
        "description": "a text",
        **dict.fromkeys(_TEXTS, "a list of texts"),
        **dict.fromkeys(_TABLES, "a table of numbers"),
        **dict.fromkeys(_NUMBERS, "a whole number"),
    }
    raise InvalidInput(f"frame.{name}.{field} is {value!r}; it has to be {wanted[field]}.")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# Chooses a frame by the text.


def choose_frame(text: str, frames: Sequence[Frame]) -> FrameChoice:
    """The frame with the most patterns in a text; of several the one of the greatest precedence.

    Of frames that are alike in that too the first is taken. Where no pattern is found it is the frame of
    the least precedence, with confidence 0. Raises InvalidInput for no frames.
    """
    if not frames:
        raise InvalidInput("There is no frame to choose from. Give at least one.")
    words = normalized_words(text)
    scores = [sum(has(pattern, words) for pattern in frame.patterns) for frame in frames]
    found = sum(scores)
    if not found:
        return FrameChoice(frame=min(frames, key=lambda one: one.precedence), confidence=0.0, by="words")
    best = max(range(len(frames)), key=lambda place: (scores[place], frames[place].precedence, -place))
    return FrameChoice(frame=frames[best], confidence=scores[best] / found, by="words")
