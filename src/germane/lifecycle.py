"""Lifecycles: the stages of a memory, what moves it from one to the next, and upkeep.

Pure: one table for each lifecycle, and one function that reads it. A kind names its lifecycle;
"permanent" and "focus" have no stages. The stages and numbers follow the note on context management that
the layered plan comes from, and where it leaves one open, the choices made here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
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
    Trust,
    counted,
    uncounted,
)
from germane.model.text import is_space
from germane.model.validation import checked_fields

__all__ = [
    "CalibrationBin",
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

_TRUSTS: Final = tuple(Trust)


def least_trust(several: Iterable[Trust]) -> Trust:
    """The least of these trusts, at least one: no more has what is derived from all their memories."""
    return max(several, key=_TRUSTS.index)


def most_trust(agent: str) -> Trust:
    """The highest trust that a memory of this agent, user or space can have: in a space, that of a peer."""
    return Trust.PEER if is_space(agent) else Trust.OWNER


def is_trusted_less(memory: Memory, other: Memory) -> bool:
    """Whether a memory has less trust than another one of the same owner.

    A space may have memories from before `Trust.PEER` existed; they count as a peer's.
    """
    trust = least_trust((other.trust, most_trust(other.agent)))
    return least_trust((memory.trust, trust)) is not trust


CORE_AT: Final = 3
"""Confirmations that make a fact a core one."""
NEARLY_IDENTICAL: Final = 0.95
"""Cosine above which two facts say the same."""
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
    EXPIRE = "expire"  # A memory has expired, and is purged with all its versions.
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
class CalibrationBin:
    """Decisions of about the same confidence, a tenth apart.

    `confidence` is their mean, `success` the share that came true, `count` how many they are.
    """

    confidence: float
    success: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionCalibration:
    """The confidence of decisions beside what became of them.

    `count` is how many have both; `brier` the mean squared error, from 0 (best) to 1; `bias` the mean of
    confidence minus outcome, above 0 for the over-confident; `success` the share that came true. They are
    None without any decision. `advice` says it in one sentence, which can stand in a context. `bins` are the
    points of the calibration curve, those of the least confidence first.
    """

    count: int
    brier: float | None
    bias: float | None
    success: float | None
    advice: str
    bins: tuple[CalibrationBin, ...] = ()


class TransitionInputs(NamedTuple):
    """What the condition of a transition reads: all counts, with the sign itself counted already."""

    state: LifecycleState
    age: timedelta
    warns: bool
    replaced: bool


class Transition(NamedTuple):
    """A row of a table: the sign, the stages that it is for, the stage that it leads to, and the condition.

    `to` None leaves the stage as it is. The first row that fits counts.
    """

    on: LifecycleSignal
    of: tuple[Stage, ...]
    to: Stage | None
    when: Callable[[TransitionInputs], bool] = lambda _: True


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
            f"{sign.value!r}. It can be moved by {_signs_at(known, state.stage)}."
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

    `instead_of` is an earlier outcome that this one corrects: its count is taken back.
    """
    known = LIFECYCLES.get(lifecycle)
    if known is None or state.stage is None:
        return None
    now = counted(uncounted(state, instead_of), sign, at=at)
    inputs = TransitionInputs(
        state=now,
        age=at - max(memory.created_at, now.renewed_at or memory.created_at),
        warns=memory.metadata.get("action", "warn") not in ("block", "absolute"),
        replaced=memory.superseded_by is not None,
    )
    for move in known.moves:
        if move.on is sign and state.stage in move.of and move.when(inputs):
            return replace(now, stage=move.to or state.stage)
    return None


_BY_OUTCOME: Final = {Outcome.ONGOING: Stage.RECORDED, Outcome.PENDING: Stage.PENDING}


def first_stage(lifecycle: str, outcome: Outcome | None) -> Stage | None:
    """Where a memory starts that is stored now; a decision by the outcome that it already has."""
    known = LIFECYCLES.get(lifecycle)
    if known is DECISION and outcome is not None:
        return _BY_OUTCOME.get(outcome, Stage.REVIEWED)
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


def withdrawal(memory: Memory) -> re.Match[str] | None:
    """The status by which a decision record says itself that it is superseded, rejected or deprecated."""
    if memory.kind not in _RECORDS:
        return None
    return _WITHDRAWN.match(str(memory.metadata.get("status", "")))


def is_obsolete(memory: Memory) -> bool:
    """Whether a memory no longer holds: a newer version or its own status says so."""
    return memory.status is Status.SUPERSEDED or withdrawal(memory) is not None


def obsolete_label(memory: Memory) -> str:
    """What a reader has to know of a memory that no longer holds; empty for one that does.

    Such as "superseded", "rejected", or "superseded by ADR-12" where the record names its successor. One that
    says when it holds has its period, such as "valid 2020-01-01 to 2024-03-01".
    """
    status = withdrawal(memory)
    if status is None and memory.is_dated:
        return _period(memory)
    if status is None:
        return "superseded" if memory.status is Status.SUPERSEDED else ""
    by = (status[2] or "").strip(" .*_`[]")
    return f"{status[1].lower()} by {by}" if by else status[1].lower()


def _period(memory: Memory) -> str:
    start, end = (each and f"{each:%Y-%m-%d}" for each in (memory.valid_from, memory.valid_until))
    if start and end:
        return f"valid {start} to {end}"
    return f"valid from {start}" if start else f"valid until {end}"


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


def _signs_at(lifecycle: Lifecycle, stage: Stage | None) -> str:
    signs = dict.fromkeys(repr(move.on.value) for move in lifecycle.moves if stage in move.of)
    return ", ".join(signs) or "nothing"


def _is_core(inputs: TransitionInputs) -> bool:
    return inputs.state.confirmations >= CORE_AT


# Whole numbers, so that exactly 0.4 and exactly 0.6 lie between: (s + 1) / (n + 2) > 3/5, < 2/5.
def _works(inputs: TransitionInputs) -> bool:
    tried = inputs.state.successes + inputs.state.failures
    return tried >= OUTCOMES_NEEDED and 5 * (inputs.state.successes + 1) > 3 * (tried + 2)


def _fails(inputs: TransitionInputs) -> bool:
    tried = inputs.state.successes + inputs.state.failures
    return tried >= OUTCOMES_NEEDED and 5 * (inputs.state.successes + 1) < 2 * (tried + 2)


def _is_wrong_too_often(inputs: TransitionInputs) -> bool:
    state = inputs.state
    return state.triggers >= RETIRES_AT and 2 * state.false_alarms > state.triggers


def _escalates(inputs: TransitionInputs) -> bool:
    # A false alarm is no reason to be stricter.
    return inputs.warns and inputs.state.triggers - inputs.state.false_alarms >= ESCALATES_AT


_KNOWN = (Stage.NEW, Stage.CONFIRMED, Stage.CORE)
_NOT_YET_CORE = (Stage.NEW, Stage.CONFIRMED)
_INACTIVE = (Stage.INACTIVE,)

FACT: Final = Lifecycle(
    name="fact",
    start=Stage.NEW,
    stages=(*_KNOWN, Stage.SUPERSEDED, Stage.INACTIVE),
    moves=(
        Transition(LifecycleSignal.CONFIRM, _NOT_YET_CORE, Stage.CORE, _is_core),
        Transition(LifecycleSignal.CONFIRM, _NOT_YET_CORE, Stage.CONFIRMED),
        Transition(LifecycleSignal.CONFIRM, (Stage.CORE,), None),
        Transition(LifecycleSignal.PROMOTE, _KNOWN, Stage.CORE),
        Transition(LifecycleSignal.CONTRADICT, _KNOWN, None),
        Transition(LifecycleSignal.SUPERSEDE, (*_KNOWN, Stage.INACTIVE), Stage.SUPERSEDED),
        Transition(LifecycleSignal.SETTLE, _NOT_YET_CORE, Stage.CORE, _is_core),
        Transition(LifecycleSignal.RETIRE, (*_KNOWN, Stage.SUPERSEDED), Stage.INACTIVE),
        Transition(LifecycleSignal.RESTORE, _INACTIVE, Stage.SUPERSEDED, lambda inputs: inputs.replaced),
        Transition(LifecycleSignal.RESTORE, _INACTIVE, Stage.CORE, _is_core),
        Transition(
            LifecycleSignal.RESTORE, _INACTIVE, Stage.CONFIRMED, lambda inputs: inputs.state.confirmations > 0
        ),
        Transition(LifecycleSignal.RESTORE, _INACTIVE, Stage.NEW),
    ),
)

_NOT_ARCHIVED = (Stage.ACTIVE, Stage.SUMMARIZED)

EPISODE: Final = Lifecycle(
    name="episode",
    start=Stage.ACTIVE,
    stages=(*_NOT_ARCHIVED, Stage.ARCHIVED),
    moves=(
        Transition(
            LifecycleSignal.AGE, _NOT_ARCHIVED, Stage.ARCHIVED, lambda inputs: inputs.age > ARCHIVED_AFTER
        ),
        Transition(
            LifecycleSignal.AGE,
            (Stage.ACTIVE,),
            Stage.SUMMARIZED,
            lambda inputs: inputs.age >= SUMMARIZED_AFTER,
        ),
        Transition(LifecycleSignal.RETIRE, _NOT_ARCHIVED, Stage.ARCHIVED),
        Transition(LifecycleSignal.RESTORE, (Stage.ARCHIVED,), Stage.ACTIVE),
    ),
)

_IN_USE = (Stage.ACTIVE, Stage.EFFECTIVE, Stage.INEFFECTIVE)


def _outcome_moves(sign: LifecycleSignal, of: tuple[Stage, ...]) -> tuple[Transition, ...]:
    return (
        Transition(sign, of, Stage.EFFECTIVE, _works),
        Transition(sign, of, Stage.INEFFECTIVE, _fails),
        Transition(sign, of, Stage.ACTIVE),
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
        Transition(LifecycleSignal.RETIRE, _IN_USE, Stage.RETIRED),
    ),
)

_WATCHING = (Stage.CREATED, Stage.ACTIVE)
_UNRETIRED = (*_WATCHING, Stage.ESCALATED)

_RETIRES = tuple(
    Transition(sign, _UNRETIRED, Stage.RETIRED, _is_wrong_too_often)
    for sign in (LifecycleSignal.TRIGGER, LifecycleSignal.FALSE_ALARM, LifecycleSignal.SETTLE)
)
# A false alarm lets nothing escalate.
_HARDENS = tuple(
    Transition(sign, _WATCHING, Stage.ESCALATED, _escalates)
    for sign in (LifecycleSignal.TRIGGER, LifecycleSignal.SETTLE)
)

CONSTRAINT: Final = Lifecycle(
    name="constraint",
    start=Stage.CREATED,
    stages=(*_UNRETIRED, Stage.RETIRED),
    moves=(
        *_RETIRES,
        *_HARDENS,
        Transition(LifecycleSignal.TRIGGER, _WATCHING, Stage.ACTIVE),
        Transition(LifecycleSignal.TRIGGER, (Stage.ESCALATED,), None),
        Transition(LifecycleSignal.FALSE_ALARM, _WATCHING, Stage.ACTIVE),
        Transition(LifecycleSignal.FALSE_ALARM, (Stage.ESCALATED,), None),
        Transition(LifecycleSignal.RETIRE, _UNRETIRED, Stage.RETIRED),
        Transition(LifecycleSignal.RESTORE, (Stage.RETIRED,), Stage.CREATED),
    ),
)

_ANY_DECISION = (Stage.RECORDED, Stage.PENDING, Stage.REVIEWED)

DECISION: Final = Lifecycle(
    name="decision",
    start=Stage.RECORDED,
    stages=_ANY_DECISION,
    moves=(
        Transition(LifecycleSignal.RESUME, _ANY_DECISION, Stage.RECORDED),
        Transition(LifecycleSignal.AWAIT, _ANY_DECISION, Stage.PENDING),
        Transition(LifecycleSignal.REVIEW, _ANY_DECISION, Stage.REVIEWED),
    ),
)

LIFECYCLES: Mapping[str, Lifecycle] = MappingProxyType(
    {each.name: each for each in (FACT, EPISODE, PROCEDURE, CONSTRAINT, DECISION)}
)
"""The lifecycles that have stages, by name."""

UNSTAGED: Final = ("permanent", "focus")
"""The lifecycles without stages: memories of such kinds stay as they are."""

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
