"""What is written when one version of a memory follows another: the version, and what it means to both lives.

Level: verbs.
"""

from __future__ import annotations

from datetime import datetime

from germane.lifecycle import carries, first_stage, next_standing, stage_of, status_at
from germane.model.change import Change, Revise
from germane.model.living import Live, Reword
from germane.model.memory import Memory, Outcome, Status
from germane.model.stage import Cause, Sign, Standing
from germane.model.vector import Vector
from germane.protocols import Living
from germane.verbs.outdated import marks
from germane.verbs.session import Session

__all__ = ["store_version"]


def store_version(
    session: Session,
    old: Memory,
    new: Memory,
    vector: Vector | None,
    *,
    cause: Cause = Cause.REVISED,
    at: datetime | None = None,
) -> Memory:
    """Store `new` as the version after `old`, and return it as it is stored; all in one transaction.

    `at` is the moment of storing, where the times of `new` are those of its source.
    A version that says the same, and any of a procedure, a censor or a decision, goes on with the life of
    the one before; a fact that says something else begins anew, and what quotes the former one is marked.
    Raises StaleRevision or InvalidInput.
    """
    lifecycle = session.kinds.of(new).lifecycle
    goes_on = carries(lifecycle, old, new)
    stage = stage_of(lifecycle, old) if goes_on else None
    if stage is None or status_at(stage) is not Status.ACTIVE:
        stage = first_stage(lifecycle, old.outcome if goes_on else new.outcome)
    changes: list[Change] = [Revise(memory=new.evolve(stage=stage), vector=vector, carries=goes_on, at=at)]
    if isinstance(session.store, Living):
        changes += _lived(session, old, new, goes_on=goes_on, cause=cause, at=at or new.updated_at)
        if session.kinds.of(old).lifecycle == "fact" and old.content != new.content:
            changes += [Reword(memory=marked) for _, marked in marks(session, old)]
    applied = session.store.apply(session.agent, changes)
    stored = [each.memory for each in applied if each.memory and each.memory.version_id == new.version_id]
    return stored[-1]


def _lived(
    session: Session, old: Memory, new: Memory, *, goes_on: bool, cause: Cause, at: datetime
) -> list[Live]:
    found: list[Live] = []
    before = session.kinds.of(old).lifecycle
    standing = Standing(stage=stage_of(before, old))
    if next_standing(before, standing, Sign.SUPERSEDE, memory=old, at=at) is not None:
        found.append(
            Live(
                memory_id=old.version_id,
                lifecycle=before,
                sign=Sign.SUPERSEDE,
                cause=cause,
                at=at,
                other=new.version_id,
            )
        )
    if goes_on and before == "decision" and new.outcome is not old.outcome:
        sign = Sign.AWAIT if new.outcome in (None, Outcome.PENDING) else Sign.REVIEW
        found.append(
            Live(
                memory_id=new.id,
                lifecycle=before,
                sign=sign,
                cause=Cause.OUTCOME,
                at=at,
                other=old.version_id,
            )
        )
    return found
