"""Lifecycles: the stages of a memory, what moves it from one to the next, and upkeep.

Pure: one table for each lifecycle, and one function that reads it. A kind names its lifecycle;
"permanent" and "focus" have no stages. The stages and numbers follow the note on context management that
the layered plan comes from, where it leaves one open, as is said here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from germane.errors import InvalidInput
from germane.model.memory import (
    Cause,
    LifecycleEvent,
    LifecycleSignal,
    LifecycleState,
    Memory,
    Outcome,
    QualityFlag,
    Stage,
    Status,
    counted,
    uncounted,
)
from germane.model.validation import checked_fields

__all__ = [
    "Cause",
    "DecisionCalibration",
    "LifecycleEvent",
    "LifecycleSignal",
    "LifecycleState",
    "QualityFlag",
    "Reconcile",
    "Stage",
    "Upkeep",
    "UpkeepStep",
    "UpkeepTask",
]

CORE_AT: Final = 3
"""Confirmations that make a fact a core one."""
NEARLY_IDENTICAL: Final = 0.95
"""Cosine above which two facts say the same."""
SAME_SUBJECT: Final = 0.80
"""Cosine above which a fact replaces another of the same subject."""
CONTRADICTED: Final = 0.2
"""What a contradiction takes from the confidence of a fact, down to 0."""
SUMMARIZED_AFTER: Final = timedelta(days=30)
"""The age from which an episode isn't recent any more."""
ARCHIVED_AFTER: Final = timedelta(days=90)
"""The age beyond which an episode is archived."""
OUTCOMES_NEEDED: Final = 5
"""Outcomes from which a procedure is judged."""
ESCALATES_AT: Final = 3
"""The trigger at which a constraint that warns begins to block."""
RETIRES_AT: Final = 5
"""Triggers from which a constraint is retired whose triggers were false alarms for more than a half."""


class UpkeepTask(StrEnum):
    """What one step of upkeep is for."""

    AGE = "age"  # An episode isn't recent any more, or is archived.
    SETTLE = "settle"  # What was counted moves a fact, a procedure or a constraint.
    MERGE = "merge"  # Two facts say the same; one stands for both.
    MARK = "mark"  # A memory quotes what has been superseded, and says so from now on.


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepStep:
    """One step: the memory, and its stage before and after where that changes.

    `other` is the memory that stands for it, or the superseded one that it quotes.
    """

    task: UpkeepTask
    memory_id: str
    before: Stage | None = None
    after: Stage | None = None
    other: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """What upkeep did, or would do: its steps, how many of them are `done`, and what wants a look.

    A step isn't done where somebody else changed its memory meanwhile; the next upkeep looks again.
    `flagged` are the procedures that mostly fail.
    """

    steps: tuple[UpkeepStep, ...]
    done: int
    dry_run: bool
    flagged: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields(confirm=(0, 1), supersede=(0, 1))
class Reconcile:
    """From which cosine on a new fact confirms one that says the same, or replaces one of its subject."""

    confirm: float = 0.95
    supersede: float = 0.80


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionCalibration:
    """The confidence of decisions beside what became of them.

    `count` is how many have both; `brier` the mean squared error, from 0 (best) to 1; `bias` the mean of
    confidence minus outcome, above 0 for the over-confident; `success` the share that came true. They are
    None without any decision. `advice` says it in one sentence, which can stand in a context.
    """

    count: int
    brier: float | None
    bias: float | None
    success: float | None
    advice: str


class TransitionInputs(NamedTuple):
    """What the condition of a move may look at: all that is counted, the sign's own count included."""

    state: LifecycleState
    age: timedelta
    warns: bool
    replaced: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A row of a table: the sign, the stages that it is for, the stage that it leads to, and if what.

    `to` None leaves the stage as it is. The first row that fits counts. `says` words the condition.
    """

    on: LifecycleSignal
    of: tuple[Stage, ...]
    to: Stage | None
    when: Callable[[TransitionInputs], bool] | None = None
    says: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifecycle:
    """A lifecycle by its name: where it starts, its stages in order, and its moves."""

    name: str
    start: Stage
    stages: tuple[Stage, ...]
    moves: tuple[Transition, ...]


def step(
    lifecycle: str,
    state: LifecycleState,
    sign: LifecycleSignal,
    *,
    memory: Memory,
    at: datetime,
    instead_of: LifecycleSignal | None = None,
) -> LifecycleState:
    """How the memory stands after a sign. Raises InvalidInput where the lifecycle has no such move."""
    after = next_state(lifecycle, state, sign, memory=memory, at=at, instead_of=instead_of)
    if after is None:
        known = LIFECYCLES.get(lifecycle)
        if known is None:
            raise InvalidInput(
                f"Memory {memory.id!r} is of kind {memory.kind!r}, which has no stages, so nothing moves it "
                f"by {sign.value!r}. Give its kind a lifecycle: germane.Kind(..., lifecycle='fact')."
            )
        raise InvalidInput(
            f"Memory {memory.id!r} is {state.stage}, and a {lifecycle} has no move from there by "
            f"{sign.value!r}. It can be moved by {', '.join(_signs_at(known, state.stage))}."
        )
    return after


def next_state(
    lifecycle: str,
    state: LifecycleState,
    sign: LifecycleSignal,
    *,
    memory: Memory,
    at: datetime,
    instead_of: LifecycleSignal | None = None,
) -> LifecycleState | None:
    """How the memory stands after a sign; None where the lifecycle has no such move.

    `instead_of` is an outcome told before that this one corrects: its count is taken back.
    """
    known = LIFECYCLES.get(lifecycle)
    if known is None or state.stage is None:
        return None
    now = counted(uncounted(state, instead_of), sign, at=at)
    weighed = TransitionInputs(
        state=now,
        age=at - max(memory.created_at, now.renewed_at or memory.created_at),
        warns=memory.metadata.get("action", "warn") not in ("block", "absolute"),
        replaced=memory.superseded_by is not None,
    )
    for move in known.moves:
        fits = move.on is sign and state.stage in move.of
        if fits and (move.when is None or move.when(weighed)):
            return replace(now, stage=move.to or state.stage)
    return None


def first_stage(lifecycle: str, outcome: Outcome | None) -> Stage | None:
    """Where a memory starts that is stored now; a decision by the outcome that it already has."""
    known = LIFECYCLES.get(lifecycle)
    if known is DECISION and outcome is not None:
        return Stage.PENDING if outcome is Outcome.PENDING else Stage.REVIEWED
    return known.start if known else None


def stage_of(lifecycle: str, memory: Memory) -> Stage | None:
    """The stage of a stored memory. One that was stored before there were stages stands where it started."""
    known = LIFECYCLES.get(lifecycle)
    if known is None:
        return None
    if memory.stage in known.stages:
        return memory.stage
    if known is FACT and memory.status is Status.SUPERSEDED:
        return Stage.SUPERSEDED
    if known is EPISODE and memory.status is Status.ARCHIVED:
        return Stage.ARCHIVED
    return first_stage(lifecycle, memory.outcome)


def status_at(stage: Stage) -> Status:
    """Whether memories of a stage are found: archived ones on request, those out of use never."""
    return _STATUS.get(stage, Status.ACTIVE)


def carries(lifecycle: str, old: Memory, new: Memory) -> bool:
    """Whether a version goes on with the life of the one before: a fact that says something else doesn't."""
    if old.kind != new.kind or lifecycle not in LIFECYCLES:
        return False
    return lifecycle != "fact" or old.content == new.content


def is_withdrawn(memory: Memory) -> bool:
    """Whether a decision record says by its own status that it is superseded, rejected or deprecated."""
    return memory.kind in _RECORDS and _WITHDRAWN.match(str(memory.metadata.get("status", ""))) is not None


def is_obsolete(memory: Memory) -> bool:
    """Whether a memory no longer holds: a newer version or its own status says so."""
    return memory.status is Status.SUPERSEDED or is_withdrawn(memory)


def obsolete_label(memory: Memory) -> str:
    """What a reader has to know of a memory that no longer holds; empty for one that does.

    Such as "superseded", "rejected", or "superseded by ADR-12" where the record names its successor.
    """
    said = _WITHDRAWN.match(str(memory.metadata.get("status", ""))) if memory.kind in _RECORDS else None
    if said is None:
        return "superseded" if memory.status is Status.SUPERSEDED else ""
    by = (said[2] or "").strip(" .*_`[]")
    return f"{said[1].lower()} by {by}" if by else said[1].lower()


def replaces(newer: Memory, older: Memory) -> bool:
    """Whether a memory stands in the place of another: as its newer version, or as the record it names."""
    if older.superseded_by is not None and older.superseded_by in (newer.id, newer.version_id):
        return True
    if older.id == newer.id and older.version < newer.version:
        return True
    if newer.kind != older.kind or "number" not in newer.metadata:
        return False
    named = re.search(r" by \D*(\d+)", obsolete_label(older))
    number = newer.metadata["number"]
    return named is not None and isinstance(number, int) and int(named[1]) == number


def effectiveness(state: LifecycleState) -> float | None:
    """How well a procedure works, from 0 to 1, by Laplace's rule: (s + 1) / (s + f + 2); None untried."""
    tried = state.successes + state.failures
    return (state.successes + 1) / (tried + 2) if tried else None


def _signs_at(lifecycle: Lifecycle, stage: Stage | None) -> list[str]:
    found = dict.fromkeys(move.on.value for move in lifecycle.moves if stage in move.of)
    return [repr(each) for each in found] or ["nothing"]


def _is_core(weighed: TransitionInputs) -> bool:
    return weighed.state.confirmations >= CORE_AT


def _was_confirmed(weighed: TransitionInputs) -> bool:
    return weighed.state.confirmations > 0


def _is_replaced(weighed: TransitionInputs) -> bool:
    return weighed.replaced


# Whole numbers, so that exactly 0.4 and exactly 0.6 lie between: (s + 1) / (n + 2) > 3/5, < 2/5.
def _works(weighed: TransitionInputs) -> bool:
    tried = weighed.state.successes + weighed.state.failures
    return tried >= OUTCOMES_NEEDED and 5 * (weighed.state.successes + 1) > 3 * (tried + 2)


def _fails(weighed: TransitionInputs) -> bool:
    tried = weighed.state.successes + weighed.state.failures
    return tried >= OUTCOMES_NEEDED and 5 * (weighed.state.successes + 1) < 2 * (tried + 2)


def _is_wrong_too_often(weighed: TransitionInputs) -> bool:
    standing = weighed.state
    return standing.triggers >= RETIRES_AT and 2 * standing.false_alarms > standing.triggers


def _escalates(weighed: TransitionInputs) -> bool:
    # A false alarm is no reason to be stricter.
    standing = weighed.state
    return weighed.warns and standing.triggers - standing.false_alarms >= ESCALATES_AT


def _is_old(weighed: TransitionInputs) -> bool:
    return weighed.age > ARCHIVED_AFTER


def _is_not_recent(weighed: TransitionInputs) -> bool:
    return weighed.age >= SUMMARIZED_AFTER


_KNOWN = (Stage.NEW, Stage.CONFIRMED, Stage.CORE)
_CORE_SAYS = f"at {CORE_AT} confirmations or more"
_OUT_SAYS = f"false alarms are more than half of {RETIRES_AT} triggers or more"
_HARDENS_SAYS = f"it warns, and was triggered {ESCALATES_AT} times without false alarm"
_WORKS_SAYS = f"above 0.6 after {OUTCOMES_NEEDED} outcomes or more"
_FAILS_SAYS = f"below 0.4 after {OUTCOMES_NEEDED} outcomes or more"

FACT: Final = Lifecycle(
    name="fact",
    start=Stage.NEW,
    stages=(Stage.NEW, Stage.CONFIRMED, Stage.CORE, Stage.SUPERSEDED, Stage.INACTIVE),
    moves=(
        Transition(on=LifecycleSignal.CONFIRM, of=_KNOWN[:2], to=Stage.CORE, when=_is_core, says=_CORE_SAYS),
        Transition(on=LifecycleSignal.CONFIRM, of=_KNOWN[:2], to=Stage.CONFIRMED),
        Transition(on=LifecycleSignal.CONFIRM, of=(Stage.CORE,), to=None),
        Transition(on=LifecycleSignal.PROMOTE, of=_KNOWN, to=Stage.CORE),
        Transition(
            on=LifecycleSignal.CONTRADICT, of=_KNOWN, to=None, says=f"confidence falls by {CONTRADICTED}"
        ),
        Transition(on=LifecycleSignal.SUPERSEDE, of=(*_KNOWN, Stage.INACTIVE), to=Stage.SUPERSEDED),
        Transition(on=LifecycleSignal.SETTLE, of=_KNOWN[:2], to=Stage.CORE, when=_is_core, says=_CORE_SAYS),
        Transition(on=LifecycleSignal.RETIRE, of=(*_KNOWN, Stage.SUPERSEDED), to=Stage.INACTIVE),
        Transition(
            on=LifecycleSignal.RESTORE,
            of=(Stage.INACTIVE,),
            to=Stage.SUPERSEDED,
            when=_is_replaced,
            says="a newer one replaces it",
        ),
        Transition(
            on=LifecycleSignal.RESTORE, of=(Stage.INACTIVE,), to=Stage.CORE, when=_is_core, says=_CORE_SAYS
        ),
        Transition(
            on=LifecycleSignal.RESTORE,
            of=(Stage.INACTIVE,),
            to=Stage.CONFIRMED,
            when=_was_confirmed,
            says="it was confirmed before",
        ),
        Transition(on=LifecycleSignal.RESTORE, of=(Stage.INACTIVE,), to=Stage.NEW),
    ),
)

EPISODE: Final = Lifecycle(
    name="episode",
    start=Stage.ACTIVE,
    stages=(Stage.ACTIVE, Stage.SUMMARIZED, Stage.ARCHIVED),
    moves=(
        Transition(
            on=LifecycleSignal.AGE,
            of=(Stage.ACTIVE, Stage.SUMMARIZED),
            to=Stage.ARCHIVED,
            when=_is_old,
            says=f"older than {ARCHIVED_AFTER.days} days",
        ),
        Transition(
            on=LifecycleSignal.AGE,
            of=(Stage.ACTIVE,),
            to=Stage.SUMMARIZED,
            when=_is_not_recent,
            says=f"{SUMMARIZED_AFTER.days} days old",
        ),
        Transition(on=LifecycleSignal.RETIRE, of=(Stage.ACTIVE, Stage.SUMMARIZED), to=Stage.ARCHIVED),
        Transition(on=LifecycleSignal.RESTORE, of=(Stage.ARCHIVED,), to=Stage.ACTIVE),
    ),
)

_IN_USE = (Stage.ACTIVE, Stage.EFFECTIVE, Stage.INEFFECTIVE)


def _outcome_moves(sign: LifecycleSignal, of: tuple[Stage, ...]) -> tuple[Transition, ...]:
    return (
        Transition(on=sign, of=of, to=Stage.EFFECTIVE, when=_works, says=_WORKS_SAYS),
        Transition(on=sign, of=of, to=Stage.INEFFECTIVE, when=_fails, says=_FAILS_SAYS),
        Transition(on=sign, of=of, to=Stage.ACTIVE),
    )


PROCEDURE: Final = Lifecycle(
    name="procedure",
    start=Stage.ACTIVE,
    stages=(*_IN_USE, Stage.RETIRED),
    moves=(
        *_outcome_moves(LifecycleSignal.SUCCEED, _IN_USE),
        *_outcome_moves(LifecycleSignal.FAIL, _IN_USE),
        *_outcome_moves(LifecycleSignal.SETTLE, _IN_USE),
        *_outcome_moves(LifecycleSignal.RESTORE, (Stage.RETIRED,)),
        Transition(on=LifecycleSignal.RETIRE, of=_IN_USE, to=Stage.RETIRED),
    ),
)

_WATCHING = (Stage.CREATED, Stage.ACTIVE)
_STATE_PARTS = (*_WATCHING, Stage.ESCALATED)


_RETIRES = tuple(
    Transition(on=sign, of=_STATE_PARTS, to=Stage.RETIRED, when=_is_wrong_too_often, says=_OUT_SAYS)
    for sign in (LifecycleSignal.TRIGGER, LifecycleSignal.FALSE_ALARM, LifecycleSignal.SETTLE)
)
# A false alarm lets nothing escalate.
_HARDENS = tuple(
    Transition(on=sign, of=_WATCHING, to=Stage.ESCALATED, when=_escalates, says=_HARDENS_SAYS)
    for sign in (LifecycleSignal.TRIGGER, LifecycleSignal.SETTLE)
)

CONSTRAINT: Final = Lifecycle(
    name="constraint",
    start=Stage.CREATED,
    stages=(*_STATE_PARTS, Stage.RETIRED),
    moves=(
        *_RETIRES,
        *_HARDENS,
        Transition(on=LifecycleSignal.TRIGGER, of=_WATCHING, to=Stage.ACTIVE),
        Transition(on=LifecycleSignal.TRIGGER, of=(Stage.ESCALATED,), to=None),
        Transition(on=LifecycleSignal.FALSE_ALARM, of=_WATCHING, to=Stage.ACTIVE),
        Transition(on=LifecycleSignal.FALSE_ALARM, of=(Stage.ESCALATED,), to=None),
        Transition(on=LifecycleSignal.RETIRE, of=_STATE_PARTS, to=Stage.RETIRED),
        Transition(on=LifecycleSignal.RESTORE, of=(Stage.RETIRED,), to=Stage.CREATED),
    ),
)

_ANY_DECISION = (Stage.RECORDED, Stage.PENDING, Stage.REVIEWED)

DECISION: Final = Lifecycle(
    name="decision",
    start=Stage.RECORDED,
    stages=_ANY_DECISION,
    moves=(
        Transition(on=LifecycleSignal.AWAIT, of=_ANY_DECISION, to=Stage.PENDING),
        Transition(on=LifecycleSignal.REVIEW, of=_ANY_DECISION, to=Stage.REVIEWED),
    ),
)

LIFECYCLES: Mapping[str, Lifecycle] = MappingProxyType(
    {each.name: each for each in (FACT, EPISODE, PROCEDURE, CONSTRAINT, DECISION)}
)
"""The lifecycles that have stages, by name."""

UNSTAGED: Final = ("permanent", "focus")
"""What a kind may name besides these: its memories stay as they are."""

_RECORDS: Final = frozenset({"adr", "decision"})
_WITHDRAWN = re.compile(
    r"\W*(superseded|rejected|deprecated|withdrawn|obsolete)\b(?:\s+by\s+([^,;(·\n]{1,40}))?", re.IGNORECASE
)
_STATUS = {
    Stage.SUPERSEDED: Status.SUPERSEDED,
    Stage.ARCHIVED: Status.ARCHIVED,
    Stage.INACTIVE: Status.FORGOTTEN,
    Stage.RETIRED: Status.FORGOTTEN,
}
