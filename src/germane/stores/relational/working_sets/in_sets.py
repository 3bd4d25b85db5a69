"""What becomes of a memory in the working sets that hold it, when it is revised, forgotten or purged.

Level: stores (imports model and errors). Asked at every such change; what moves it stands in `moving`.
"""

from __future__ import annotations

from datetime import datetime

from germane.stores.relational.connection import Connection, Rows

__all__ = ["gone_from_sets", "revised_in_sets", "sets_holding"]


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
    from germane.model.holding import MoveKind  # noqa: PLC0415 - Most memories are in no set.
    from germane.stores.relational.working_sets.moving import Moving  # noqa: PLC0415 - Most memories are in no set.

    moving = Moving(connection, agent, by=agent)
    memory_id = moving.id_of(new)
    for working_set in with_it:
        moving.note(working_set, MoveKind.REVISE, memory_id, at=at, former=former)
        moving.run("replace_held", working_set=working_set, num=old, new=new)
    moving.finish()


def gone_from_sets(
    connection: Connection, agent: int, num: int, kind: str, *, at: datetime, holding: Rows | None = None
) -> None:
    """A memory that is forgotten or purged leaves every working set."""
    with_it = _numbers(holding or sets_holding(connection, agent, num))
    if not with_it:
        return
    from germane.model.holding import MoveKind  # noqa: PLC0415 - Most memories are in no set.
    from germane.stores.relational.working_sets.moving import Moving  # noqa: PLC0415 - Most memories are in no set.

    moving = Moving(connection, agent, by=agent)
    raw = moving.id_of(num)
    for working_set in with_it:
        moving.note(working_set, MoveKind(kind), raw, at=at)
        moving.run("remove_held", working_set=working_set, num=num)
    moving.finish()


def _numbers(holding: Rows) -> list[int]:
    return [working_set for (working_set,) in holding]
