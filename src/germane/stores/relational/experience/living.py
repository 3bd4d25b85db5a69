"""Moves memories through their lives inside a write transaction, and tells of them.

Level: stores (imports the pure rules and model). What is counted decides where a memory stands, so the rules
are asked in the very transaction that counts. No text is kept: words, numbers and times.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from germane.errors import InvalidInput, NotFound
from germane.lifecycle import CONTRADICTED, next_standing, stage_of, status_at, step
from germane.model.change import Attest
from germane.model.living import Live
from germane.model.memory import Memory, Status
from germane.model.stage import Cause, LifeEvent, Sign, Stage, Standing
from germane.stores.relational.connection import Connection, Connections
from germane.stores.relational.experience.validating import Told
from germane.stores.relational.rows import id_text, microseconds, moment, named
from germane.stores.relational.working_sets.in_sets import gone_from_sets
from germane.stores.sql.tables import AgentRow

__all__ = ["LivedIn", "keep_counts", "live", "lived_by", "sign_of_repetition"]

_DIGITS = 9
_COUNTS = ("confirmations", "successes", "failures", "triggers", "false_alarms")


class LivedIn:
    """The lives of the memories of one store, by these connections, each as `Lives` says."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def standings(self, agent: str, ids: Sequence[str]) -> tuple[Standing | None, ...]:
        """How memories stand, in the order asked; None where there is no such memory."""
        with self._connections.reading(agent) as connection:
            number = _number(connection, agent)
            nums = [connection.run("num", {"agent": number, **named(each)}) for each in ids]
            return tuple(_standing(connection, number, each.fetchone()) for each in nums)

    def life_events(
        self, agent: str, memory_id: str | None = None, *, since: int = 0, limit: int | None = None
    ) -> tuple[LifeEvent, ...]:
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


def live(
    connection: Connection,
    agent: int,
    num: int,
    memory: Memory,
    change: Live,
    *,
    by: str,
    other: int | None,
) -> Standing:
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
    if change.sign is Sign.CONTRADICT:
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


def lived_by(
    connection: Connection, agent: int, num: int, memory: Memory, *, change: Attest, told: Told
) -> Live | None:
    """What an attested outcome does to the memory that stands for the one named; None for nothing.

    A procedure that is out of use counts no outcomes.
    """
    lived = Live(
        memory_id=memory.id,
        lifecycle=change.lifecycle,
        sign=told.sign or Sign.SETTLE,
        cause=Cause.OUTCOME,
        at=change.at,
        instead_of=told.former,
    )
    before = _before(connection, agent, num, memory, change.lifecycle)
    after = next_standing(
        change.lifecycle, before, lived.sign, memory=memory, at=change.at, instead_of=told.former
    )
    return None if after is None else lived


def keep_counts(connection: Connection, agent: int, num: int, standing: Standing) -> None:
    """Store what is counted of a memory."""
    renewed = standing.renewed_at and microseconds(standing.renewed_at, name="renewed_at")
    counts = {name: getattr(standing, name) for name in _COUNTS}
    connection.run("set_life", {"agent": agent, "num": num, **counts, "renewed_at": renewed})


def sign_of_repetition(lifecycle: str, memory: Memory) -> Sign | None:
    """What it means to a stored memory that somebody says it anew; None where it means nothing."""
    stage = stage_of(lifecycle, memory)
    for sign in (Sign.RESTORE, Sign.CONFIRM):
        standing = Standing(stage=stage)
        if next_standing(lifecycle, standing, sign, memory=memory, at=memory.updated_at) is not None:
            return sign
    return None


def _before(connection: Connection, agent: int, num: int, memory: Memory, lifecycle: str) -> Standing:
    found = _standing(connection, agent, (num,))
    standing = found or Standing(stage=None)
    return replace(standing, stage=stage_of(lifecycle, memory))


def _number(connection: Connection, agent: str) -> int:
    row = connection.run("agent", {"name": agent}).fetchone()
    return AgentRow._make(row).agent if row else 0


def _standing(connection: Connection, agent: int, num: tuple[int] | None) -> Standing | None:
    if num is None:
        return None
    row = connection.run("standing", {"agent": agent, "num": num[0]}).fetchone()
    if row is None:
        return None
    stage, *counts, renewed_at = row
    return Standing(
        stage=None if stage is None else Stage(stage),
        **{name: count or 0 for name, count in zip(_COUNTS, counts, strict=True)},
        renewed_at=None if renewed_at is None else moment(renewed_at),
    )


def _versions(connection: Connection, agent: int, name: str, memory_id: str) -> list[int]:
    nums = [num for num, *_ in connection.run("versions", {"agent": agent, **named(memory_id)})]
    if not nums:
        raise NotFound(memory_id, name)
    return nums


def _event(row: tuple[Any, ...]) -> LifeEvent:
    number, raw, version, sign, before, after, cause, by, other, at = row
    return LifeEvent(
        number=number,
        memory_id=id_text(raw),
        version=version,
        sign=Sign(sign),
        before=Stage(before),
        after=Stage(after),
        cause=Cause(cause),
        by=by,
        at=moment(at),
        other=None if other is None else id_text(other),
    )
