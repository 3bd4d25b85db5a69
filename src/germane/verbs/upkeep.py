"""maintain: age, settle, merge and mark what is due, a transaction for each step.

Level: verbs. What is due follows from what is stored, so an upkeep that was interrupted anywhere goes on
where it stopped, by being called again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput, NotFound, StaleRevision
from germane.lifecycle import NEARLY_IDENTICAL, next_standing, stage_of
from germane.model.living import Merge, Reword
from germane.model.memory import Memory, Status, Trust, as_utc
from germane.model.query import Filter, Order
from germane.model.stage import Cause, Sign, Stage, Standing
from germane.model.upkeep import Upkeep, UpkeepStep, UpkeepTask
from germane.ranking.alike import could_be_same, normalised
from germane.verbs.checks import checked_flag
from germane.verbs.embed import embed_texts
from germane.verbs.living import lives_of, move
from germane.verbs.outdated import marks, with_mark
from germane.verbs.session import Session

__all__ = ["Told", "maintain"]

Told: TypeAlias = Callable[[int, int, UpkeepStep | None], None]
"""Is told after each step how many are done, of how many, and which it was; first of all with 0 and None."""

_PAGE: Final = 1000
_BLOCK: Final = 1024
_SIGNS: Final = {"episode": Sign.AGE, "fact": Sign.SETTLE, "procedure": Sign.SETTLE, "censor": Sign.SETTLE}
_TRUST: Final = {trust: place for place, trust in enumerate(Trust)}


def maintain(session: Session, *, dry_run: bool = False, progress: Told | None = None) -> Upkeep:
    """Do what is due, or with `dry_run` only say what it is.

    Raises InvalidInput for a store that keeps no lives, and EmbeddingFailed before anything is done.
    """
    checked_flag(dry_run, name="dry_run")
    lives_of(session)
    now = as_utc(session.clock(), name="clock")
    steps = (*_moves(session, now), *_merges(session), *_marks(session))
    done = 0
    if progress is not None:
        progress(0, len(steps), None)
    for number, step in enumerate(() if dry_run else steps, 1):
        done += _do(session, step, now)
        if progress is not None:
            progress(number, len(steps), step)
    return Upkeep(steps=steps, done=done, dry_run=dry_run, flagged=tuple(_flagged(session)))


def _do(session: Session, step: UpkeepStep, now: datetime) -> bool:
    """Do a step if it is still due; whether it was."""
    memory = session.store.get(session.agent, [step.memory_id])[0]
    if memory is None or memory.status not in (Status.ACTIVE, Status.ARCHIVED):
        return False
    lifecycle = session.kinds.of(memory).lifecycle
    try:
        if step.task is UpkeepTask.MERGE and step.other is not None:
            into = session.store.get(session.agent, [step.other])[0]
            if into is None or into.status is not Status.ACTIVE:
                return False
            merge = Merge(memory_id=memory.id, into=step.other, lifecycle=lifecycle, at=now)
            session.store.apply(session.agent, [merge])
        elif step.task is UpkeepTask.MARK and step.other is not None:
            session.store.apply(session.agent, [Reword(memory=with_mark(session, memory, step.other))])
        else:
            move(session, memory, _SIGNS[lifecycle], cause=Cause.UPKEEP)
    except (NotFound, StaleRevision, InvalidInput):
        # Somebody else was here first. What is due after that, the next upkeep finds.
        return False
    return True


def _moves(session: Session, now: datetime) -> Iterator[UpkeepStep]:
    """What age or counts would move. What is pinned doesn't age."""
    for lifecycle, sign in _SIGNS.items():
        for memory, standing in _standing_of(session, lifecycle):
            if sign is Sign.AGE and memory.pinned:
                continue
            after = next_standing(lifecycle, standing, sign, memory=memory, at=now)
            if after is not None and after.stage is not standing.stage:
                task = UpkeepTask.AGE if sign is Sign.AGE else UpkeepTask.SETTLE
                yield UpkeepStep(task=task, memory_id=memory.id, before=standing.stage, after=after.stage)


def _merges(session: Session) -> Iterator[UpkeepStep]:
    """Facts of one kind, subject and scope that say the same, each with the one that stands for it."""
    groups: dict[tuple[str, str, str], list[tuple[Memory, Standing]]] = {}
    for memory, standing in _standing_of(session, "fact"):
        about = (memory.kind, (memory.subject or "").casefold(), str(memory.scope))
        groups.setdefault(about, []).append((memory, standing))
    for group in groups.values():
        # Whoever comes first stands for the others: pinned, most trusted, most confirmed, oldest.
        group.sort(key=_precedence)
        for kept, others in _same(session, [memory for memory, _ in group]):
            for other in others:
                yield UpkeepStep(
                    task=UpkeepTask.MERGE,
                    memory_id=other.id,
                    before=stage_of("fact", other),
                    after=Stage.SUPERSEDED,
                    other=kept.id,
                )


def _marks(session: Session) -> Iterator[UpkeepStep]:
    """Memories that quote a superseded fact and don't say so."""
    kinds = _kinds(session, "fact")
    for page in _pages(session, Filter(kinds=kinds, statuses=(Status.SUPERSEDED,))):
        for fact in page:
            after = fact.superseded_by
            successor = after and session.store.get(session.agent, [after])[0]
            if successor and normalised(successor.content) == normalised(fact.content):
                continue  # The same is said still.
            if successor and successor.id != fact.id:
                continue  # A duplicate, which holds as it ever did.
            for memory, _ in marks(session, fact):
                yield UpkeepStep(task=UpkeepTask.MARK, memory_id=memory.id, other=fact.version_id)


def _same(session: Session, group: Sequence[Memory]) -> Iterator[tuple[Memory, list[Memory]]]:
    """Of memories in order, those that stand, each with the later ones that say the same."""
    if len(group) < 2:  # noqa: PLR2004 - One alone has no duplicate.
        return
    vectors = _matrix(session, group)
    texts = [normalised(memory.content) for memory in group]
    alike: dict[str, list[int]] = {}
    for place, text in enumerate(texts):
        alike.setdefault(text, []).append(place)
    taken: set[int] = set()
    for place, memory in enumerate(group):
        if place in taken:
            continue
        near = () if vectors is None else _near(vectors, place)
        said = {other for other in near if could_be_same(memory.content, group[other].content)}
        same = sorted(other for other in said.union(alike[texts[place]]) - taken if other > place)
        taken.update(same)
        if same:
            yield memory, [group[other] for other in same]


def _near(vectors: NDArray[np.float32], place: int) -> list[int]:
    later = vectors[place + 1 :] @ vectors[place]
    found: list[int] = (np.flatnonzero(later > NEARLY_IDENTICAL) + place + 1).tolist()
    return found


def _matrix(session: Session, group: Sequence[Memory]) -> NDArray[np.float32] | None:
    """A row for each memory; zeros for one without meaning to the embedder. None without an embedder."""
    embedder = session.embedder
    if embedder is None:
        return None
    rows = np.zeros((len(group), embedder.dimension), dtype=np.float32)
    for start in range(0, len(group), _BLOCK):
        texts = [memory.content for memory in group[start : start + _BLOCK]]
        for offset, vector in enumerate(embed_texts(embedder, texts)):
            if vector is not None:
                rows[start + offset] = vector
    return rows


def _flagged(session: Session) -> Iterator[str]:
    for memory, standing in _standing_of(session, "procedure"):
        if standing.stage is Stage.INEFFECTIVE:
            yield memory.id


def _standing_of(session: Session, lifecycle: str) -> Iterator[tuple[Memory, Standing]]:
    """The active memories of a lifecycle, oldest first, each with how it stands."""
    store = lives_of(session)
    for page in _pages(session, Filter(kinds=_kinds(session, lifecycle))):
        known = store.standings(session.agent, [memory.id for memory in page])
        for memory, standing in zip(page, known, strict=True):
            stage = stage_of(lifecycle, memory)
            yield memory, replace(standing or Standing(stage=stage), stage=stage)


def _pages(session: Session, where: Filter) -> Iterator[tuple[Memory, ...]]:
    if not where.kinds:
        return
    after: str | None = None
    while page := session.store.find(session.agent, where, order=Order.OLDEST, limit=_PAGE, after=after):
        yield page
        after = page[-1].ref


def _kinds(session: Session, lifecycle: str) -> tuple[str, ...]:
    return tuple(kind.name for kind in session.kinds if kind.lifecycle == lifecycle)


def _precedence(one: tuple[Memory, Standing]) -> tuple[bool, int, int, datetime, str]:
    memory, standing = one
    return (not memory.pinned, _TRUST[memory.trust], -standing.confirmations, memory.created_at, memory.id)
