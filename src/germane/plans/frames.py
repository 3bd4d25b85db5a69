"""Frames: what the agent is doing now, in words that a model reads and priorities that a plan uses.

Level: plans. Pure data.

The priorities of the decision frame are those of the note on context management; what no frame
names has 0.5 there, and so here.
"""

from __future__ import annotations

from germane.errors import InvalidInput
from germane.model.plan import Frame

__all__ = ["DEFAULT_FRAME", "FRAMES", "frame_named"]

DEFAULT_FRAME = "task"

FRAMES: tuple[Frame, ...] = (
    Frame(
        name="conversation",
        description="Talking with someone; no task is under way.",
        questions=("What was said before about this?", "What does this person prefer?"),
        priorities=(("facts", 0.8), ("decisions", 0.5), ("episodes", 0.6), ("procedures", 0.2)),
    ),
    Frame(
        name="question",
        description="Answering a question from what is known.",
        questions=("What is known for certain?", "Where does that knowledge come from?"),
        priorities=(("facts", 1.0), ("decisions", 0.7), ("episodes", 0.5), ("procedures", 0.4)),
    ),
    Frame(
        name="task",
        description="Carrying out a piece of work.",
        questions=("What is the next step?", "Which rules apply here?", "How was it done last time?"),
        priorities=(("procedures", 0.9), ("decisions", 0.8), ("facts", 0.7), ("episodes", 0.5)),
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
    ),
    Frame(
        name="debug",
        description="Finding out why something does not work.",
        questions=("What changed last?", "Was this seen before?", "What would prove the suspicion wrong?"),
        priorities=(("procedures", 1.0), ("facts", 0.8), ("episodes", 0.7), ("decisions", 0.5)),
    ),
    Frame(
        name="creative",
        description="Looking for something new.",
        questions=("What has been tried?", "Which limits are real, and which are habits?"),
        priorities=(("episodes", 0.8), ("facts", 0.7), ("decisions", 0.4), ("procedures", 0.2)),
    ),
)
"""The frames that every engine knows, from the most general on."""


def frame_named(name: str) -> Frame:
    """The frame of that name. Raises InvalidInput, which names the known ones."""
    for frame in FRAMES:
        if frame.name == name:
            return frame
    known = ", ".join(frame.name for frame in FRAMES)
    raise InvalidInput(f"Unknown frame {name!r}. Known frames: {known}. Or pass a germane.Frame of your own.")
