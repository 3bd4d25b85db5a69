"""What becomes of memories in tables: stages, uses, outcomes, and their place in working sets.

What is counted decides where a memory stands, so the rules are asked in the very transaction that counts.
No text is kept: words, numbers and times.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from germane.errors import InvalidInput, NotFound
from germane.lifecycle import CONTRADICTED, next_state, stage_of, status_at, step
from germane.model.change import ApplySignal, ImportUsage, RecordOutcome
from germane.model.learning import Example, LearningStatus, OutcomeHistory, OutcomeRecord
from germane.model.memory import (
    Cause,
    LifecycleEvent,
    LifecycleSignal,
    LifecycleState,
    Memory,
    Stage,
    Status,
    sign_of_outcome,
)
from germane.stores.relational.tables import (
    Connection,
    Connections,
    Rows,
    id_text,
    microseconds,
    moment,
    named,
    ref_of,
)
from germane.stores.sql.tables import AgentRow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from germane.model.change import RecordUse

__all__ = [
    "MOST_OUTCOMES",
    "MOST_USES",
    "LifecycleTables",
    "OutcomeEffect",
    "apply_signal",
    "evidence_of",
    "examples_of",
    "gone_from_sets",
    "import_usage",
    "keep_counts",
    "keep_outcome",
    "keep_showing",
    "key_of",
    "record_outcome",
    "record_use",
    "reset_learning",
    "revised_in_sets",
    "set_learning",
    "sets_holding",
    "sign_of_repetition",
    "signal_of_outcome",
    "stamp_of",
]

_DIGITS = 9
_COUNTS = ("confirmations", "successes", "failures", "triggers", "false_alarms")


class LifecycleTables:
    """The lives of the memories of one store, by these connections, each as `Lives` says."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def lifecycle_states(self, agent: str, ids: Sequence[str]) -> tuple[LifecycleState | None, ...]:
        """How memories stand, in the order asked; None where there is no such memory."""
        with self._connections.reading(agent) as connection:
            number = _number(connection, agent)
            nums = [connection.run("num", {"agent": number, **named(each)}) for each in ids]
            return tuple(_state_row(connection, number, each.fetchone()) for each in nums)

    def life_events(
        self, agent: str, memory_id: str | None = None, *, since: int = 0, limit: int | None = None
    ) -> tuple[LifecycleEvent, ...]:
        """What happened to a memory, or to every memory, after the event `since`, in order."""
        if limit is not None and limit < 0:
            raise InvalidInput(f"limit={limit} is negative. Use 0 or more, or None for all.")
        with self._connections.reading(agent) as connection:
            number = _number(connection, agent)
            nums = None if memory_id is None else _versions(connection, number, agent, memory_id)
            values = {
                "agent": number,
                "since": since,
                "nums": None if nums is None else json.dumps(nums),
                "limit": -1 if limit is None else limit,
            }
            return tuple(_event(row) for row in connection.run("life_events", values))


def apply_signal(
    connection: Connection,
    agent: int,
    num: int,
    memory: Memory,
    change: ApplySignal,
    *,
    by: str,
    other: int | None,
) -> LifecycleState:
    """Let a sign take effect on a memory: its stage, its counts, its status, and the log.

    Raises InvalidInput where its lifecycle has no such move.
    """
    before = _before(connection, agent, num, memory, change.lifecycle)
    after = step(
        change.lifecycle, before, change.sign, memory=memory, at=change.at, instead_of=change.instead_of
    )
    if before.stage is None or after.stage is None:  # `step` has raised for a kind without stages.
        raise AssertionError("A memory without stages was moved.")
    moved = status_at(after.stage) is not status_at(before.stage)
    status = status_at(after.stage) if moved else memory.status
    if moved and status is Status.FORGOTTEN:
        gone_from_sets(connection, agent, num, "forget", at=change.at)
    confidence = memory.confidence
    if change.sign is LifecycleSignal.CONTRADICT:
        confidence = max(0.0, round(confidence - CONTRADICTED, _DIGITS))
    values = {"agent": agent, "num": num}
    staged = {"stage": after.stage.value, "status": status.value, "confidence": confidence}
    connection.run("set_stage", {**values, **staged})
    if replace(after, stage=before.stage) != before:
        keep_counts(connection, agent, num, after)
    event = {
        "sign": change.sign.value,
        "before": before.stage.value,
        "after": after.stage.value,
        "cause": change.cause.value,
        "by": by,
        "other": other,
        "at": microseconds(change.at, name="at"),
    }
    connection.run("count_life_event", {"agent": agent})
    connection.run("insert_life_event", {**values, **event})
    return after


def signal_of_outcome(
    connection: Connection,
    agent: int,
    num: int,
    memory: Memory,
    *,
    change: RecordOutcome,
    told: OutcomeEffect,
) -> ApplySignal | None:
    """What an attested outcome does to the memory that stands for the one named; None for nothing.

    A procedure that is out of use counts no outcomes.
    """
    lived = ApplySignal(
        memory_id=memory.id,
        lifecycle=change.lifecycle,
        sign=told.sign or LifecycleSignal.SETTLE,
        cause=Cause.OUTCOME,
        at=change.at,
        instead_of=told.former,
    )
    before = _before(connection, agent, num, memory, change.lifecycle)
    after = next_state(
        change.lifecycle, before, lived.sign, memory=memory, at=change.at, instead_of=told.former
    )
    return None if after is None else lived


def keep_counts(connection: Connection, agent: int, num: int, state: LifecycleState) -> None:
    """Store what is counted of a memory."""
    renewed = state.renewed_at and microseconds(state.renewed_at, name="renewed_at")
    counts = {name: getattr(state, name) for name in _COUNTS}
    connection.run("set_life", {"agent": agent, "num": num, **counts, "renewed_at": renewed})


def sign_of_repetition(lifecycle: str, memory: Memory) -> LifecycleSignal | None:
    """What it means to a stored memory that somebody says it anew; None where it means nothing."""
    stage = stage_of(lifecycle, memory)
    for sign in (LifecycleSignal.RESTORE, LifecycleSignal.CONFIRM):
        standing = LifecycleState(stage=stage)
        if next_state(lifecycle, standing, sign, memory=memory, at=memory.updated_at) is not None:
            return sign
    return None


def _before(connection: Connection, agent: int, num: int, memory: Memory, lifecycle: str) -> LifecycleState:
    found = _state_row(connection, agent, (num,))
    standing = found or LifecycleState(stage=None)
    return replace(standing, stage=stage_of(lifecycle, memory))


def _number(connection: Connection, agent: str) -> int:
    row = connection.run("agent", {"name": agent}).fetchone()
    return AgentRow._make(row).agent if row else 0


def _state_row(connection: Connection, agent: int, num: tuple[int] | None) -> LifecycleState | None:
    if num is None:
        return None
    row = connection.run("standing", {"agent": agent, "num": num[0]}).fetchone()
    if row is None:
        return None
    stage, *counts, renewed_at = row
    return LifecycleState(
        stage=None if stage is None else Stage(stage),
        **{name: count or 0 for name, count in zip(_COUNTS, counts, strict=True)},
        renewed_at=None if renewed_at is None else moment(renewed_at),
    )


def _versions(connection: Connection, agent: int, name: str, memory_id: str) -> list[int]:
    nums = [num for num, *_ in connection.run("versions", {"agent": agent, **named(memory_id)})]
    if not nums:
        raise NotFound(memory_id, name)
    return nums


def _event(row: tuple[Any, ...]) -> LifecycleEvent:
    number, raw, version, sign, before, after, cause, by, other, at = row
    return LifecycleEvent(
        number=number,
        memory_id=id_text(raw),
        version=version,
        sign=LifecycleSignal(sign),
        before=Stage(before),
        after=Stage(after),
        cause=Cause(cause),
        by=by,
        at=moment(at),
        other=None if other is None else id_text(other),
    )


# Keeps what became of memories that were shown: uses counted once, and examples to learn from.
#
# No text is kept: hashes, numbers and the parts of scores.

MOST_USES: Final = 5000
"""Judgements kept for an agent: some hundreds of contexts, and fitted in a few milliseconds."""

_NO_PARTS: Final = "{}"
"""What is kept of a score while the agent doesn't learn: that a memory was shown, and nothing of why."""

_USE_DIGITS: Final = 6
_KEY_BYTES: Final = 16
_AGENT_BITS: Final = 40
"""Nobody is told anything so many times that it would reach into the agent's number."""


def record_use(connection: Connection, agent: int, num: int, change: RecordUse) -> bool:
    """Store one judgement; returns whether it tells of a use that wasn't known.

    Raises InvalidInput for a context that is no key, or parts that are no numbers.
    """
    learns = _state_of(connection, agent).on
    _, counts = _keep(connection, agent, num, change, change.parts if learns else None)
    if counts:
        at = microseconds(change.at, name="at")
        connection.run("use_memory", {"agent": agent, "num": num, "at": at})
    return counts


def keep_showing(connection: Connection, agent: int, num: int, showing: Example, *, later: int) -> bool:
    """Store what another store was told of a memory in a context; returns whether any of it is new.

    It is told by so many numbers `later` than the latest; further apart than what is kept, none matters.
    """
    new, _ = _keep(connection, agent, num, showing, showing.parts, later=min(later, MOST_USES))
    return new


def stamp_of(agent: int, told: int) -> int:
    """A name for what an agent was told so many times, 0 for nothing.

    An agent that is removed and begins anew is another one, and has no stamp in common with it.
    """
    return (agent << _AGENT_BITS) + told if told else 0


def set_learning(connection: Connection, agent: int, *, on: bool) -> None:
    """Switch an agent's learning on or off; its examples stay."""
    connection.run("set_learning", {"agent": agent, "on": int(on)})


def examples_of(connection: Connection, agent: int) -> tuple[Example, ...]:
    """The agent's judgements, by context and then by memory; those without parts tell of use alone."""
    return tuple(
        Example(
            context=context.hex(),
            memory_id=ref_of(*version),
            used=bool(used),
            parts=json.loads(parts),
            given=given,
        )
        for context, *version, used, parts, given in connection.run("examples", {"agent": agent})
    )


def reset_learning(connection: Connection, agent: int) -> int:
    """Remove the agent's examples and return how many there were; that uses were counted stays known."""
    (count,) = connection.run("count_examples", {"agent": agent}).fetchone()
    connection.run("remove_unused", {"agent": agent})
    connection.run("remove_parts", {"agent": agent})
    connection.run("count_judgement", {"agent": agent, "by": 1})
    return int(count)


def key_of(context: str) -> bytes:
    """The bytes of a context's key. Raises InvalidInput for what is none."""
    try:
        key = bytes.fromhex(context)
    except (TypeError, ValueError):
        key = b""
    if len(key) != _KEY_BYTES:
        raise InvalidInput(
            f"context={context!r} is no key of a context: give {2 * _KEY_BYTES} hexadecimal digits, as "
            "germane.model.learning.context_key makes them."
        )
    return key


def _state_of(connection: Connection, agent: int) -> LearningStatus:
    """Whether an agent learns; one that isn't known doesn't."""
    row = connection.run("learning", {"agent": agent}).fetchone()
    learns, judged = row or (False, 0)
    return LearningStatus(on=bool(learns), stamp=stamp_of(agent, judged))


def _keep(
    connection: Connection,
    agent: int,
    num: int,
    told: RecordUse | Example,
    parts: Mapping[str, float] | None,
    *,
    later: int = 1,
) -> tuple[bool, bool]:
    """Store what was told unless it is known; returns whether any of it is new, and whether a use is."""
    values = {"agent": agent, "num": num, "context": key_of(told.context)}
    packed = _packed(told.memory_id, parts) if parts else _NO_PARTS
    known = connection.run("judgement", values).fetchone()
    was_used, kept_parts = known or (False, None)
    counts = told.used and not was_used
    # What was kept to learn from stays; a showing of which nothing was kept may still become an example.
    if known and not counts and (kept_parts == packed or kept_parts not in (None, _NO_PARTS)):
        return False, False
    connection.run("count_judgement", {"agent": agent, "by": later})
    connection.run("insert_judgement", {**values, "used": int(told.used), "parts": packed})
    connection.run("remove_old_judgements", {"agent": agent, "most": MOST_USES})
    return True, counts


def _packed(memory_id: str, given: Mapping[str, float]) -> str:
    parts = {name: round(float(part), _USE_DIGITS) for name, part in sorted(given.items())}
    if not all(math.isfinite(part) for part in parts.values()):
        raise InvalidInput(
            f"The parts {dict(given)} of memory {memory_id!r} hold what is no number, "
            "so nothing can be learned from them. Give finite numbers."
        )
    return json.dumps(parts)


# Keeps how work turned out with memories that contexts showed.
#
# No text is kept: hashes and numbers.

MOST_OUTCOMES: Final = 5000
"""Outcomes kept for an agent, one for each memory of a context: some hundreds of contexts."""


class OutcomeEffect(NamedTuple):
    """What an outcome told: whether it is news, and what it and the one before it count in a life."""

    news: bool
    sign: LifecycleSignal | None = None
    former: LifecycleSignal | None = None

    @property
    def counts(self) -> bool:
        """Whether a life is another one by it."""
        return self.sign is not self.former


def record_outcome(connection: Connection, agent: int, num: int, change: RecordOutcome) -> OutcomeEffect:
    """Store one outcome; returns what it told.

    Raises InvalidInput for a context that is no key, or a worth or weight out of range.
    """
    known = _known(connection, agent, num, change)
    if known == (change.worth, change.weight):
        return OutcomeEffect(news=False)
    _outcome_keep(connection, agent, num, change)
    worth, weight = known or (0.5, 0.0)
    return OutcomeEffect(
        news=True,
        sign=sign_of_outcome(change.lifecycle, worth=change.worth, weight=change.weight),
        former=sign_of_outcome(change.lifecycle, worth=worth, weight=weight),
    )


def keep_outcome(connection: Connection, agent: int, num: int, outcome: OutcomeRecord) -> bool:
    """Store what another store was told of a memory in a context, unless something is known of it here.

    Returns whether it is new. Raises as `record_outcome` does.
    """
    if _known(connection, agent, num, outcome) is not None:
        return False
    _outcome_keep(connection, agent, num, outcome)
    return True


def evidence_of(connection: Connection, agent: int, known: int | None) -> OutcomeHistory | None:
    """What is attested for an agent, unless its stamp is the one that is known."""
    row = connection.run("attested", {"agent": agent}).fetchone()
    stamp = stamp_of(agent, row[0]) if row else 0
    if stamp == known:
        return None
    rows = connection.run("outcomes", {"agent": agent})
    return OutcomeHistory(
        stamp=stamp,
        records=tuple(
            OutcomeRecord(
                context=context.hex(), memory_id=ref_of(*version), worth=worth, weight=weight, at=moment(at)
            )
            for context, *version, worth, weight, at in rows
        ),
    )


def _known(
    connection: Connection, agent: int, num: int, told: RecordOutcome | OutcomeRecord
) -> tuple[float, float] | None:
    """The worth and the weight that are kept for a memory and a context."""
    if not (0 <= told.worth <= 1 and 0 < told.weight <= 1):
        raise InvalidInput(
            f"An outcome of worth {told.worth} and weight {told.weight} says nothing: worth is from 0 to "
            "1, and weight above 0 and at most 1."
        )
    values = {"agent": agent, "num": num, "context": key_of(told.context)}
    row = connection.run("outcome", values).fetchone()
    if row is None:
        return None
    worth, weight = row
    return float(worth), float(weight)


def _outcome_keep(connection: Connection, agent: int, num: int, told: RecordOutcome | OutcomeRecord) -> None:
    values = {"agent": agent, "num": num, "context": key_of(told.context)}
    at = microseconds(told.at, name="at")
    connection.run("count_outcome", {"agent": agent})
    connection.run("insert_outcome", {**values, "worth": told.worth, "weight": told.weight, "at": at})
    connection.run("remove_old_outcomes", {"agent": agent, "most": MOST_OUTCOMES})


# Keeps what another store has kept of a memory: a showing, an outcome, an event of its life.
#
# Nothing is counted by it: what was counted came with the memory.


def import_usage(connection: Connection, agent: int, num: int, change: ImportUsage) -> bool:
    """Keep it unless it is known, and return whether it is new. Raises InvalidInput for what is no key."""
    kept = change.record
    if isinstance(kept, Example):
        return keep_showing(connection, agent, num, kept, later=change.number)
    if isinstance(kept, OutcomeRecord):
        return keep_outcome(connection, agent, num, kept)
    return _keep_event(connection, agent, num, kept, number=change.number)


def _keep_event(connection: Connection, agent: int, num: int, event: LifecycleEvent, *, number: int) -> bool:
    values = {
        "agent": agent,
        "num": num,
        "sign": event.sign.value,
        "before": event.before.value,
        "after": event.after.value,
        "cause": event.cause.value,
        "at": microseconds(event.at, name="at"),
    }
    (known,) = connection.run("same_life_events", values).fetchone()
    if known >= number:
        return False
    other = None
    if event.other is not None:
        row = connection.run("num", {"agent": agent, **named(event.other)}).fetchone()
        (other,) = row or (None,)
    connection.run("count_life_event", {"agent": agent})
    connection.run("insert_life_event", {**values, "by": event.by, "other": other})
    return True


# What becomes of a memory in the working sets that hold it, when it is revised, forgotten or purged.
#
# Asked at every such change; what moves it stands in `moving`.


def sets_holding(connection: Connection, agent: int, num: int) -> Rows:
    """The working sets that hold a memory: asked for now, and looked at when there is something to do."""
    return connection.run("sets_holding", {"agent": agent, "num": num})


def revised_in_sets(
    connection: Connection, agent: int, old: int, new: int, *, former: bytes, holding: Rows, at: datetime
) -> None:
    """A memory's next version takes its place in every working set that holds it."""
    with_it = _numbers(holding)
    if not with_it:
        return
    from germane.stores.relational.working_sets import WorkingSetWriter  # noqa: PLC0415 - Most memories are in no set.
    from germane.working_sets import WorkingSetEventKind  # noqa: PLC0415 - Most memories are in no set.

    moving = WorkingSetWriter(connection, agent, by=agent)
    memory_id = moving.id_of(new)
    for working_set in with_it:
        moving.note(working_set, WorkingSetEventKind.REVISE, memory_id, at=at, former=former)
        moving.run("replace_held", working_set=working_set, num=old, new=new)
    moving.finish()


def gone_from_sets(
    connection: Connection, agent: int, num: int, kind: str, *, at: datetime, holding: Rows | None = None
) -> None:
    """A memory that is forgotten or purged leaves every working set."""
    with_it = _numbers(holding or sets_holding(connection, agent, num))
    if not with_it:
        return
    from germane.stores.relational.working_sets import WorkingSetWriter  # noqa: PLC0415 - Most memories are in no set.
    from germane.working_sets import WorkingSetEventKind  # noqa: PLC0415 - Most memories are in no set.

    moving = WorkingSetWriter(connection, agent, by=agent)
    raw = moving.id_of(num)
    for working_set in with_it:
        moving.note(working_set, WorkingSetEventKind(kind), raw, at=at)
        moving.run("remove_held", working_set=working_set, num=num)
    moving.finish()


def _numbers(holding: Rows) -> list[int]:
    return [working_set for (working_set,) in holding]
