"""Settles what an assembly is for: its frame, the plan for it, and its budget.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from germane.errors import InvalidInput, UnreadableSource
from germane.model.frame import AUTO, Frame, FrameChoice
from germane.model.names import DEFAULT_BUDGET, DEFAULT_FRAME
from germane.model.plan import Plan
from germane.model.trace import Note
from germane.plans.choosing import choose_frame
from germane.plans.complexity import complexity_of
from germane.plans.frames import frame_named, with_frames
from germane.plans.history import Past
from germane.plans.intent import Aim, Intent, read_intent
from germane.plans.layered import budgeted, layered
from germane.plans.newton import TOTAL, newton_exact
from germane.plans.registry import FRAMED, plan_for
from germane.protocols import FrameSelector
from germane.ranking.history import asks_for_history, rest_of_releases
from germane.retrieval.terms import query_terms
from germane.retrieval.when import LONGEST_QUESTION
from germane.verbs.checks import checked_count
from germane.verbs.session import Session

__all__ = ["Framed", "Framing", "choice_of", "framed", "frames_of", "guidance_of", "own_frames", "wants"]

Framing: TypeAlias = str | Frame | FrameSelector
"""A frame by its name, as it is, or by who chooses it; "auto" is words, or the engine's own selector."""

_NOTHING_SAID = {Aim.GREET: "A greeting", Aim.ACKNOWLEDGE: "An acknowledgement"}


def guidance_of(frame: Framing | None) -> bool | str:
    """Whether a frame's own words are shown where the caller says nothing of them.

    Those of a frame that was named are shown if there is room for them, and no note says where there isn't.
    """
    return "named" if frame is not None and frame != AUTO else False


@dataclass(frozen=True, slots=True, kw_only=True)
class Framed:
    """A plan with its budget; the frame and the intent where it was built for any."""

    plan: Plan
    budget: int
    choice: FrameChoice | None = None
    intent: Intent | None = None
    notes: tuple[Note, ...] = ()

    @property
    def domain(self) -> tuple[str, ...]:
        """What the frame is about."""
        return () if self.choice is None else self.choice.frame.domain

    @property
    def looks_back(self) -> bool:
        """Whether what happened of late is asked for, and no topic is named."""
        return self.intent is not None and self.intent.plain

    @property
    def searches(self) -> bool:
        """Whether there is anything to look for."""
        return self.intent is None or self.intent.asks


def frames_of(session: Session) -> tuple[Frame, ...]:
    """The built-in frames, and those that the agent's engine was opened with."""
    return with_frames(session.frames)


def own_frames(frames: Iterable[Frame] | str | Path) -> tuple[Frame, ...]:
    """The frames of a TOML file, or these.

    Raises UnreadableSource for a file that can't be read, and InvalidInput for what is no frame.
    """
    if isinstance(frames, str | Path):
        from germane.plans.frame_files import frames_from_toml  # noqa: PLC0415 - Few engines have a file.

        try:
            frames = frames_from_toml(Path(frames).read_text(encoding="utf-8"))
        except InvalidInput as error:
            raise type(error)(f"{frames}: {error}") from error
        except (OSError, ValueError) as error:
            raise UnreadableSource(f"The frames in {str(frames)!r} can't be read: {error}.") from error
    several: tuple[object, ...] = tuple(frames)
    if wrong := [each for each in several if not isinstance(each, Frame)]:
        raise InvalidInput(
            f"frames holds {wrong[0]!r}. Give germane.Frame values, or the path of a TOML file."
        )
    return tuple(each for each in several if isinstance(each, Frame))


def framed(
    session: Session,
    text: str,
    *,
    plan: str | Plan,
    frame: Framing,
    budget: int | None,
    dated: bool,
    guidance: bool = False,
) -> Framed:
    """The plan for a text in its frame, with the budget that was asked for or else the frame's total.

    A text that looks back and names no topic gets what is latest. Where the frame is to be chosen, the text
    is read for more: a greeting looks for nothing, a look back lifts episodes, a hint at a kind shifts
    limits, and how much is asked scales the shares; none of it in "newton_exact". `dated` says that the
    text names a time. Raises InvalidInput or InvalidPlan.
    """
    if budget is not None:
        checked_count(budget, name="budget")
    if plan not in FRAMED:
        chosen = plan_for(plan, kinds=session.kinds, frame=DEFAULT_FRAME)
        return Framed(plan=chosen, budget=DEFAULT_BUDGET if budget is None else budget)
    choice, notes = choice_of(session, text, frame)
    if plan == "newton_exact":
        chosen = newton_exact(session.kinds, choice.frame)
        return Framed(plan=chosen, budget=TOTAL if budget is None else budget, choice=choice, notes=notes)
    if choice.by == "caller":
        intent = wants(session, text, dated=dated) if len(text) <= LONGEST_QUESTION else None
        # Who names no topic has nothing to look for by words, whatever the frame is.
        intent = intent if intent is not None and intent.plain else None
        total = choice.frame.budget if budget is None else budget
        how: dict[str, Any] = {"guidance": guidance, "past": _past(session, text, intent, dated=dated)}
        chosen = layered(session.kinds, choice.frame, intent=intent, total=total, **how)
        return Framed(plan=chosen, budget=total, choice=choice, intent=intent)
    intent = wants(session, text, dated=dated)
    complexity = complexity_of(text)
    total = budgeted(choice.frame, complexity=complexity, intent=intent).total
    total = total if budget is None else budget
    how = {"guidance": guidance, "past": _past(session, text, intent, dated=dated)}
    chosen = layered(session.kinds, choice.frame, complexity=complexity, intent=intent, total=total, **how)
    said = f"Taken for: {choice.frame.name} (by {choice.by}, confidence {choice.confidence:.2f})"
    hints = f", about {', '.join(intent.hints)}" if intent.hints else ""
    notes = (*notes, Note(code="frame", text=f"{said}; {intent.aim}{hints}; {complexity}."))
    if not intent.asks:
        what = _NOTHING_SAID[intent.aim]
        notes = (*notes, Note(code="nothing_asked", text=f"{what} names nothing to look for."))
    return Framed(plan=chosen, budget=total, choice=choice, intent=intent, notes=notes)


def _past(session: Session, text: str, intent: Intent | None, *, dated: bool) -> Past:
    """What a text asks of the past. A time that it names says which releases are meant."""
    rest = rest_of_releases(text)
    return Past(
        history=asks_for_history(text),
        looks_back=intent is not None and intent.looks_back,
        releases=rest is not None,
        newest=rest is not None and not dated and not query_terms(rest, language=session.language),
    )


def choice_of(session: Session, text: str, frame: Framing) -> tuple[FrameChoice, tuple[Note, ...]]:
    """The frame for a text, and a note where a selector failed and words chose. Raises InvalidInput."""
    if isinstance(frame, Frame):
        return FrameChoice(frame=frame), ()
    if isinstance(frame, str) and frame != AUTO:
        return FrameChoice(frame=frame_named(frame, frames_of(session))), ()
    selector = session.frame_selector if isinstance(frame, str) else frame
    if not text.strip():
        return FrameChoice(
            frame=frame_named(DEFAULT_FRAME, frames_of(session)), confidence=0.0, by="words"
        ), ()
    if selector is None:
        return choose_frame(text, frames_of(session)), ()
    try:
        chosen = selector(text, frames_of(session))
        named = chosen if isinstance(chosen, Frame) else frame_named(chosen, frames_of(session))
    except Exception as error:  # noqa: BLE001 - A model may fail in any way; words choose then.
        note = Note(code="frame_by_words", text=f"The frame selector failed, so words chose. {error}")
        return choose_frame(text, frames_of(session)), (note,)
    return FrameChoice(frame=named, by="model"), ()


def wants(session: Session, text: str, *, dated: bool = False) -> Intent:
    """What a text wants, by words that count as informative in the agent's language."""
    return read_intent(
        text, informative=lambda rest: bool(query_terms(rest, language=session.language)), dated=dated
    )
