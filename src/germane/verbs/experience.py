"""experience, adopt_experience: what an agent has gone through with its memories, out and in again.

Level: verbs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from germane.model.change import Adopt
from germane.model.experience import Experience, Experienced, version_of
from germane.model.learning import Example
from germane.model.stage import LifeEvent
from germane.protocols import Learning, Living, Validating
from germane.verbs.session import Session

__all__ = ["adopt_experience", "experience"]

_BATCH = 1000
"""Records per transaction: large enough to be fast, small enough to let other writers in."""


def experience(session: Session) -> Experience:
    """All that the store keeps of it; what the store can't keep is empty."""
    store, agent = session.store, session.agent
    learns = isinstance(store, Learning) and store.settle_learning(agent, None).on
    examples = store.examples(agent) if isinstance(store, Learning) else ()
    evidence = store.evidence(agent) if isinstance(store, Validating) else None
    attested = () if evidence is None else evidence.attested
    return Experience(
        learns=learns,
        showings=tuple(sorted(examples, key=lambda one: (one.given, one.context, one.memory_id))),
        outcomes=tuple(sorted(attested, key=lambda one: (one.at, one.context, one.memory_id))),
        events=store.life_events(agent) if isinstance(store, Living) else (),
    )


def adopt_experience(session: Session, given: Experience) -> int:
    """Keep what another store has kept, and return how much of it is new; nothing of it is counted anew.

    What speaks of a memory that isn't here is passed over, and what is known here stays as it is: so giving
    it again changes nothing. Learning is switched on where it was on there and nothing was told of use here.
    """
    _settle_learning(session, given)
    return sum(_adopted(session, batch) for batch in _batches(_changes(session, given)))


def _settle_learning(session: Session, given: Experience) -> None:
    store = session.store
    if given.learns and isinstance(store, Learning):
        state = store.settle_learning(session.agent, None)
        if not state.on and not state.stamp:
            store.settle_learning(session.agent, on=True)


def _changes(session: Session, given: Experience) -> Iterator[Adopt]:
    """What the store can keep; each event with the number of those like it, a showing with its distance."""
    store = session.store
    kept: list[Iterable[Experienced]] = []
    if isinstance(store, Learning):
        kept.append(given.showings)
    if isinstance(store, Validating):
        kept.append(given.outcomes)
    if isinstance(store, Living):
        kept.append(given.events)
    alike: Counter[tuple[object, ...]] = Counter()
    latest: int | None = None
    for one in chain.from_iterable(kept):
        number = 1
        if isinstance(one, Example):
            number = 1 if latest is None else max(1, one.given - latest)
            latest = one.given
        elif isinstance(one, LifeEvent):
            key = (version_of(one), one.sign, one.before, one.after, one.cause, one.at)
            alike[key] += 1
            number = alike[key]
        yield Adopt(kept=one, number=number)


def _adopted(session: Session, changes: Sequence[Adopt]) -> int:
    ids = list(dict.fromkeys(version_of(one.kept) for one in changes))
    found = session.store.get(session.agent, ids)
    there = {one for one, memory in zip(ids, found, strict=True) if memory is not None}
    applied = session.store.apply(session.agent, [one for one in changes if version_of(one.kept) in there])
    return sum(each.created for each in applied)


def _batches(changes: Iterator[Adopt]) -> Iterator[list[Adopt]]:
    while batch := list(islice(changes, _BATCH)):
        yield batch
