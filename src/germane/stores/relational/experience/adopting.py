"""Keeps what another store has kept of a memory: a showing, an outcome, an event of its life.

Level: stores (imports model and errors). Nothing is counted by it: what was counted came with the memory.
"""

from __future__ import annotations

from germane.model.change import Adopt
from germane.model.learning import Attested, Example
from germane.model.stage import LifeEvent
from germane.stores.relational.connection import Connection
from germane.stores.relational.experience.learning import keep_showing
from germane.stores.relational.experience.validating import keep_outcome
from germane.stores.relational.rows import microseconds, named

__all__ = ["adopt"]


def adopt(connection: Connection, agent: int, num: int, change: Adopt) -> bool:
    """Keep it unless it is known, and return whether it is new. Raises InvalidInput for what is no key."""
    kept = change.kept
    if isinstance(kept, Example):
        return keep_showing(connection, agent, num, kept, later=change.number)
    if isinstance(kept, Attested):
        return keep_outcome(connection, agent, num, kept)
    return _keep_event(connection, agent, num, kept, number=change.number)


def _keep_event(connection: Connection, agent: int, num: int, event: LifeEvent, *, number: int) -> bool:
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
