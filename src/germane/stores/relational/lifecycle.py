"""Lifecycle in tables: stages, uses and outcomes of memories, and their places in working sets.

The counts decide the stage of a memory, so the rules are applied in the transaction that counts. No text is
stored: words, numbers and times.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from germane.errors import InvalidInput, NotFound
from germane.ids import id_text
from germane.lifecycle import CONTRADICTED, next_state, stage_of, status_at, step
from germane.model.learning import Example, OutcomeHistory, OutcomeRecord
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
from germane.model.query import LearningStatus
from germane.model.text import check_free_name
from germane.stores.relational.settings import agent_state
from germane.stores.relational.tables import (
    UNREADABLE,
    Connection,
    Connections,
    Rows,
    checked_limit,
    damaged,
    gated,
    microseconds,
    moment,
    named,
    number_of,
    ref_of,
    stamp_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from germane.model.change import ApplySignal, ImportUsage, RecordOutcome, RecordUse
    from germane.stores.relational.working_sets import WorkingSetWriter

_DIGITS = 9
_COUNTS = ("confirmations", "successes", "failures", "triggers", "false_alarms")


@gated
class LifecycleTables:
    """The stages of memories, and the log of what changed them.

    `Store.apply` writes them: it applies `ApplySignal`, `Merge` and `Reword` by the rules of
    `germane.lifecycle` inside the transaction, and logs an event for each. A purged memory takes its own
    events with it.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def states(self, agent: str, ids: Sequence[str]) -> tuple[LifecycleState | None, ...]:
        """The states of memories, in the order of `ids`; None where the agent has no memory of an id."""
        with self._connections.reading(agent) as connection:
            number = number_of(connection, agent)
            nums = list(_nums(connection, number, ids))
            stored = _states(connection, number, [num for num in nums if num is not None])
            return tuple(None if num is None else stored.get(num) for num in nums)

    def events(
        self, agent: str, memory_id: str | None = None, *, since: int = 0, limit: int | None = None
    ) -> tuple[LifecycleEvent, ...]:
        """What happened to all versions of a memory, or to every memory, after the event `since`, in order.

        Raises NotFound when the agent has no such memory.
        """
        most = checked_limit(limit)
        with self._connections.reading(agent) as connection:
            number = number_of(connection, agent)
            nums = None if memory_id is None else _versions(connection, number, agent, memory_id)
            values = {
                "agent": number,
                "since": since,
                "nums": None if nums is None else json.dumps(nums),
                "limit": most,
            }
            return tuple(_event(row) for row in connection.run("life_events", values))


@gated
class FeedbackTables:
    """Which memories were used, to learn from, and how work turned out with them.

    `Store.apply` writes both: it applies `RecordUse`, keeping examples while the agent learns, and
    `RecordOutcome`. At most 5,000 of each are stored for an agent, and the oldest are removed; a purge of a
    memory removes its own.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def learning(self, agent: str, on: bool | None) -> LearningStatus:
        """Switch an agent's learning on or off; with None leave it. Returns how it is now.

        Its examples stay when it is switched off.
        """
        if on is not None:
            check_free_name(agent, "agent")
            with self._connections.writing(agent) as connection:
                connection.run("add_agent", {"name": agent})
                connection.run("set_learning", {"agent": number_of(connection, agent), "on": int(on)})
        with self._connections.reading(agent) as connection:
            rows = connection.run("agent", {"name": agent})
            return agent_state(rows, self._connections.location).learning_status

    def examples(self, agent: str) -> tuple[Example, ...]:
        """The agent's examples, by context and then by memory, from one snapshot of the store.

        Those that were recorded while it didn't learn have no parts.
        """
        with self._connections.reading(agent) as connection:
            rows = connection.run("examples", {"agent": number_of(connection, agent)}).fetchall()
            # An encrypted store has them in another order.
            rows.sort(key=itemgetter(0))
        try:
            return tuple(
                Example(
                    context=context.hex(),
                    memory_id=ref_of(*version),
                    used=bool(used),
                    parts=json.loads(parts),
                    given=given,
                )
                for context, *version, used, parts, given in rows
            )
        except UNREADABLE as error:
            remedy = "remove what was learned (`germane context learning reset`)"
            raise damaged(f"What agent {agent!r} learned from feedback", error, remedy) from error

    def reset(self, agent: str) -> int:
        """Remove all examples of an agent, and return how many there were; uses stay counted."""
        with self._connections.writing(agent) as connection:
            number = number_of(connection, agent)
            (count,) = connection.run("count_examples", {"agent": number}).fetchone()
            connection.run("remove_unused", {"agent": number})
            connection.run("remove_parts", {"agent": number})
            connection.run("count_judgement", {"agent": number, "by": 1})
            return int(count)

    def outcomes(self, agent: str, *, known: int | None = None) -> OutcomeHistory | None:
        """How work turned out, by context and then by memory; None while its stamp is still `known`."""
        with self._connections.reading(agent) as connection:
            number = number_of(connection, agent)
            row = connection.run("attested", {"agent": number}).fetchone()
            stamp = stamp_of(number, row[0]) if row else 0
            if stamp == known:
                return None
            rows = sorted(connection.run("outcomes", {"agent": number}), key=itemgetter(0))
            return OutcomeHistory(
                stamp=stamp,
                records=tuple(
                    OutcomeRecord(
                        context=context.hex(),
                        memory_id=ref_of(*version),
                        worth=worth,
                        weight=weight,
                        at=moment(at),
                    )
                    for context, *version, worth, weight, at in rows
                ),
            )


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
    effect: OutcomeEffect,
) -> ApplySignal | None:
    """What an attested outcome does to the memory that stands for the one named; None for nothing.

    A procedure that is out of use counts no outcomes.
    """
    from germane.model.change import ApplySignal  # noqa: PLC0415 - Most processes only read.

    signal = ApplySignal(
        memory_id=memory.id,
        lifecycle=change.lifecycle,
        sign=effect.sign or LifecycleSignal.SETTLE,
        cause=Cause.OUTCOME,
        at=change.at,
        instead_of=effect.former,
    )
    before = _before(connection, agent, num, memory, change.lifecycle)
    after = next_state(
        change.lifecycle, before, signal.sign, memory=memory, at=change.at, instead_of=effect.former
    )
    return None if after is None else signal


def keep_counts(connection: Connection, agent: int, num: int, state: LifecycleState) -> None:
    """Store what is counted of a memory."""
    renewed = state.renewed_at and microseconds(state.renewed_at, name="renewed_at")
    counts = {name: getattr(state, name) for name in _COUNTS}
    connection.run("set_life", {"agent": agent, "num": num, **counts, "renewed_at": renewed})


def sign_of_repetition(lifecycle: str, memory: Memory) -> LifecycleSignal | None:
    """The signal for a stored memory that is remembered again; None where its lifecycle has none."""
    stage = stage_of(lifecycle, memory)
    for sign in (LifecycleSignal.RESTORE, LifecycleSignal.CONFIRM):
        state = LifecycleState(stage=stage)
        if next_state(lifecycle, state, sign, memory=memory, at=memory.updated_at) is not None:
            return sign
    return None


def _before(connection: Connection, agent: int, num: int, memory: Memory, lifecycle: str) -> LifecycleState:
    state = _states(connection, agent, [num]).get(num) or LifecycleState(stage=None)
    return replace(state, stage=stage_of(lifecycle, memory))


def _nums(connection: Connection, agent: int, ids: Sequence[str]) -> Iterator[int | None]:
    """The number of the row that each of these ids names; None for an id that names none."""
    found = (connection.run("num", {"agent": agent, **named(each)}) for each in ids)
    # A server gets all of them before the first is waited for. SQLite would compile each anew meanwhile.
    for rows in found if connection.dialect == "sqlite" else list(found):
        row = rows.fetchone()
        yield None if row is None else row[0]


def _states(connection: Connection, agent: int, nums: Sequence[int]) -> dict[int, LifecycleState]:
    """The states of the memories of these numbers."""
    found = {}
    for num, stage, *counts, renewed_at in connection.run(
        "standing", {"agent": agent, "nums": json.dumps(nums)}
    ):
        found[num] = LifecycleState(
            stage=None if stage is None else Stage(stage),
            **{name: count or 0 for name, count in zip(_COUNTS, counts, strict=True)},
            renewed_at=None if renewed_at is None else moment(renewed_at),
        )
    return found


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


# Uses of memories that were shown, each counted once, and examples to learn from: hashes, numbers and the
# parts of scores, and no text.

MOST_USES: Final = 5000
"""Uses stored for an agent: some hundreds of contexts, and fitted in a few milliseconds."""

_NO_PARTS: Final = "{}"
"""The parts that are stored while the agent doesn't learn."""

_USE_DIGITS: Final = 6
_KEY_BYTES: Final = 16


def record_use(connection: Connection, agent: int, num: int, change: RecordUse) -> bool:
    """Store one use or non-use; returns whether it is a use that wasn't known.

    Raises InvalidInput for a context that is no key, or parts that are no numbers.
    """
    learns = _state_of(connection, agent).on
    _, counts = _store_use(connection, agent, num, change, change.parts if learns else None)
    if counts:
        at = microseconds(change.at, name="at")
        connection.run("use_memory", {"agent": agent, "num": num, "at": at})
    return counts


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


def _store_use(
    connection: Connection,
    agent: int,
    num: int,
    use: RecordUse | Example,
    parts: Mapping[str, float] | None,
    *,
    later: int = 1,
) -> tuple[bool, bool]:
    """Store a use unless it is known; returns whether any of it is new, and whether it counts as a use."""
    values = {"agent": agent, "num": num, "context": key_of(use.context)}
    packed = _packed(use.memory_id, parts) if parts else _NO_PARTS
    known = connection.run("judgement", values).fetchone()
    was_used, stored_parts = known or (False, None)
    counts = use.used and not was_used
    # Stored parts stay; a use without parts may still become an example.
    if known and not counts and (stored_parts == packed or stored_parts not in (None, _NO_PARTS)):
        return False, False
    connection.run("count_judgement", {"agent": agent, "by": later})
    connection.run("insert_judgement", {**values, "used": int(use.used), "parts": packed})
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


# Outcomes: how work turned out with memories that contexts showed; hashes and numbers, and no text.

MOST_OUTCOMES: Final = 5000
"""Outcomes stored for an agent, one for each memory of a context: some hundreds of contexts."""


class OutcomeEffect(NamedTuple):
    """What an outcome changes: whether it is new, and the signals of it and of the one that it replaces."""

    is_new: bool
    sign: LifecycleSignal | None = None
    former: LifecycleSignal | None = None

    @property
    def counts(self) -> bool:
        """Whether it changes the counts of a lifecycle."""
        return self.sign is not self.former


def record_outcome(connection: Connection, agent: int, num: int, change: RecordOutcome) -> OutcomeEffect:
    """Store one outcome; returns its effect.

    Raises InvalidInput for a context that is no key, or a worth or weight out of range.
    """
    known = _stored_outcome(connection, agent, num, change)
    if known == (change.worth, change.weight):
        return OutcomeEffect(is_new=False)
    _store_outcome(connection, agent, num, change)
    worth, weight = known or (0.5, 0.0)
    return OutcomeEffect(
        is_new=True,
        sign=sign_of_outcome(change.lifecycle, worth=change.worth, weight=change.weight),
        former=sign_of_outcome(change.lifecycle, worth=worth, weight=weight),
    )


def _stored_outcome(
    connection: Connection, agent: int, num: int, outcome: RecordOutcome | OutcomeRecord
) -> tuple[float, float] | None:
    """The stored worth and weight for a memory and a context."""
    if not (0 <= outcome.worth <= 1 and 0 < outcome.weight <= 1):
        raise InvalidInput(
            f"An outcome of worth {outcome.worth} and weight {outcome.weight} says nothing: worth is from 0 "
            "to 1, and weight above 0 and at most 1."
        )
    values = {"agent": agent, "num": num, "context": key_of(outcome.context)}
    row = connection.run("outcome", values).fetchone()
    if row is None:
        return None
    worth, weight = row
    return float(worth), float(weight)


def _store_outcome(
    connection: Connection, agent: int, num: int, outcome: RecordOutcome | OutcomeRecord
) -> None:
    values = {"agent": agent, "num": num, "context": key_of(outcome.context)}
    at = microseconds(outcome.at, name="at")
    connection.run("count_outcome", {"agent": agent})
    connection.run("insert_outcome", {**values, "worth": outcome.worth, "weight": outcome.weight, "at": at})
    connection.run("remove_old_outcomes", {"agent": agent, "most": MOST_OUTCOMES})


# Imports: a use, an outcome or a lifecycle event from another store. Nothing is counted again, because the
# counts came with the memory.


def import_usage(connection: Connection, agent: int, num: int, change: ImportUsage) -> bool:
    """Keep it unless it is known, and return whether it is new. Raises InvalidInput for what is no key."""
    record = change.record
    if isinstance(record, Example):
        # Beyond the number of stored uses, the exact distance doesn't matter.
        later = min(change.number, MOST_USES)
        return _store_use(connection, agent, num, record, record.parts, later=later)[0]
    if isinstance(record, OutcomeRecord):
        if _stored_outcome(connection, agent, num, record) is not None:
            return False
        _store_outcome(connection, agent, num, record)
        return True
    return _keep_event(connection, agent, num, record, number=change.number)


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
        other = row[0] if row else None
    connection.run("count_life_event", {"agent": agent})
    connection.run("insert_life_event", {**values, "by": event.by, "other": other})
    return True


# A memory in the working sets that hold it, when it is revised, forgotten or purged.


def sets_holding(connection: Connection, agent: int, num: int) -> Rows:
    """Query the working sets that hold a memory; the rows are read when there is something to do."""
    return connection.run("sets_holding", {"agent": agent, "num": num})


def revised_in_sets(
    connection: Connection, agent: int, old: int, new: int, *, former: bytes, holding: Rows, at: datetime
) -> None:
    """Put a memory's next version in its place in every working set that holds it."""
    for writer, number, memory_id in _writing(connection, agent, new, holding):
        writer.note(number, "revise", memory_id, at=at, former=former)
        writer.run("replace_held", working_set=number, num=old, new=new)


def gone_from_sets(
    connection: Connection, agent: int, num: int, kind: str, *, at: datetime, holding: Rows | None = None
) -> None:
    """Remove a memory that is forgotten or purged from every working set that holds it."""
    holding = holding or sets_holding(connection, agent, num)
    for writer, number, memory_id in _writing(connection, agent, num, holding):
        writer.note(number, kind, memory_id, at=at)
        writer.run("remove_held", working_set=number, num=num)


def _writing(
    connection: Connection, agent: int, num: int, holding: Rows
) -> Iterator[tuple[WorkingSetWriter, int, bytes]]:
    """Each set that holds a memory, with its writer, which finishes after the last, and the memory's id."""
    if sets := [number for (number,) in holding]:
        from germane.stores.relational.working_sets import WorkingSetWriter  # noqa: PLC0415 - Most memories are in no set.

        writer = WorkingSetWriter(connection, agent, by=agent)
        memory_id = writer.id_of(num)
        yield from ((writer, number, memory_id) for number in sets)
        writer.finish()
