"""confirm, contradict, outcome, triggered, retire, standings, events: what happens in the life of a memory.

Level: verbs. The rules stand in `germane.lifecycle`, and the store asks them in its transactions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from germane.errors import InvalidInput, NotFound, StaleRevision
from germane.lifecycle import stage_of
from germane.model.living import Live
from germane.model.memory import Memory, Outcome, Status, as_utc
from germane.model.stage import Cause, LifeEvent, Sign, Standing
from germane.protocols import Living
from germane.renditions import OUTCOMES
from germane.verbs.checks import checked_count, checked_flag, checked_text, checked_word, checked_words
from germane.verbs.embed import vectors_to_store
from germane.verbs.read import current, get, head_of
from germane.verbs.remember import renew_renditions
from germane.verbs.session import Session
from germane.verbs.versions import store_version

__all__ = [
    "confirm",
    "contradict",
    "events",
    "lives_of",
    "move",
    "outcome_of",
    "restored",
    "retire",
    "standing",
    "standings",
    "triggered",
]

_TRIES: Final = 20
"""Somebody else may revise a censor while its next version is made; nobody does so twenty times in a row."""


def confirm(session: Session, memory_id: str, *, core: bool = False) -> Memory:
    """Count that a fact was met again, or with `core` make it a core one by hand.

    Raises NotFound, or InvalidInput for what can't be confirmed.
    """
    sign = Sign.PROMOTE if checked_flag(core, name="core") else Sign.CONFIRM
    return move(session, _in_use(session, memory_id), sign)


def contradict(session: Session, memory_id: str, *, by: str | None = None) -> Memory:
    """Lower the confidence of a fact by 0.2, since something speaks against it: the memory `by`, if given.

    Raises NotFound, or InvalidInput for what can't be contradicted.
    """
    other = None if by is None else current(session, by)
    memory = _in_use(session, memory_id)
    if other is not None and other.id == memory.id:
        raise InvalidInput(f"Memory {memory_id!r} can't contradict itself. Name another one in by.")
    named = None if other is None else other.version_id
    return move(session, memory, Sign.CONTRADICT, other=named)


def outcome_of(
    session: Session, memory_id: str, outcome: Outcome | str, *, result: str | None = None
) -> Memory:
    """Say how a decision turned out, or whether a procedure worked this time.

    A decision gets a next version, with the outcome and `result` in it. A procedure counts a success or
    a failure. Raises NotFound, or InvalidInput for other kinds and for what a procedure can't count.
    """
    word = checked_word(Outcome, outcome, name="outcome")
    memory = _in_use(session, memory_id)
    lifecycle = session.kinds.of(memory).lifecycle
    if lifecycle == "decision":
        return _reviewed(session, memory, word, result)
    if lifecycle != "procedure":
        raise InvalidInput(
            f"Memory {memory_id!r} is of kind {memory.kind!r}, which has no outcomes. "
            "Decisions and procedures have; others can be revised with outcome=...."
        )
    if word not in (Outcome.SUCCESS, Outcome.FAILURE) or result is not None:
        raise InvalidInput(
            f"A procedure counts successes and failures, and can't keep outcome={word.value!r} with "
            f"result={result!r}. Pass 'success' or 'failure' and no result."
        )
    sign = Sign.SUCCEED if word is Outcome.SUCCESS else Sign.FAIL
    return move(session, memory, sign, cause=Cause.OUTCOME)


def triggered(session: Session, memory_id: str, *, false_positive: bool = False) -> Memory:
    """Count that a censor was triggered, and whether that was a false alarm.

    The third trigger that was none lets a censor that warns block, as its next version; one whose
    triggers were false alarms for more than a half, of five or more, is retired. Raises NotFound, or
    InvalidInput for what is no censor in use.
    """
    sign = Sign.FALSE_ALARM if checked_flag(false_positive, name="false_positive") else Sign.TRIGGER
    for left in reversed(range(_TRIES)):
        memory = _in_use(session, memory_id)
        try:
            return move(session, memory, sign)
        except StaleRevision:
            if not left:
                raise
    raise AssertionError("The last try returns or raises.")


def retire(session: Session, memory_id: str) -> Memory:
    """Take a fact, a procedure or a censor out of use, or archive an episode; `restore` undoes it.

    Raises NotFound, or InvalidInput: decisions, for instance, are kept.
    """
    return move(session, _in_use(session, memory_id), Sign.RETIRE)


def restored(session: Session, memory: Memory) -> Memory | None:
    """The memory in use again; None where it was not its life that took it out of use."""
    lifecycle = session.kinds.of(memory).lifecycle
    out = str(stage_of(lifecycle, memory)) in ("inactive", "retired", "archived")
    if not out or not isinstance(session.store, Living):
        return None
    return move(session, memory, Sign.RESTORE)


def standing(session: Session, memory_id: str) -> Standing:
    """The stage of a memory now, whichever version is named, and what is counted. Raises NotFound."""
    return standings(session, [current(session, memory_id).id])[0]


def standings(session: Session, ids: Sequence[str]) -> tuple[Standing, ...]:
    """The stages of memories, or of versions `id@n`, and what is counted of them, in the order asked.

    Raises NotFound.
    """
    asked = checked_words(ids, name="ids")
    memories = session.store.get(session.agent, asked)
    counted = lives_of(session).standings(session.agent, asked)
    return tuple(
        _standing(session, memory_id, memory, kept)
        for memory_id, memory, kept in zip(asked, memories, counted, strict=True)
    )


def _standing(session: Session, memory_id: str, memory: Memory | None, kept: Standing | None) -> Standing:
    if memory is None:
        raise NotFound(memory_id, session.agent)
    stage = stage_of(session.kinds.of(memory).lifecycle, memory)
    return replace(kept or Standing(stage=stage), stage=stage)


def events(
    session: Session, memory_id: str | None = None, *, since: int = 0, limit: int | None = None
) -> tuple[LifeEvent, ...]:
    """What happened to a memory in all its versions, or to every memory, oldest first. Raises NotFound."""
    checked_count(since, name="since")
    if limit is not None:
        checked_count(limit, name="limit")
    if memory_id is not None:
        checked_text(memory_id, name="memory_id")
    return lives_of(session).life_events(session.agent, memory_id, since=since, limit=limit)


def move(
    session: Session, memory: Memory, sign: Sign, *, cause: Cause = Cause.ASKED, other: str | None = None
) -> Memory:
    """Let a sign take effect on a memory; it comes back as it is stored then.

    Raises InvalidInput where its lifecycle has no such move, and StaleRevision where it escalates and
    somebody else has revised it.
    """
    lives_of(session)
    now = as_utc(session.clock(), name="clock")
    escalated = _blocking(session, memory) if sign in (Sign.TRIGGER, Sign.SETTLE) else None
    vector = None
    if escalated is not None:
        escalated = escalated.evolve(updated_at=now)
        vector = vectors_to_store(session.embedder, [memory.content])[0]
    change = Live(
        memory_id=memory.id,
        lifecycle=session.kinds.of(memory).lifecycle,
        sign=sign,
        cause=cause,
        at=now,
        other=other,
        escalated=escalated,
        vector=vector,
    )
    after = session.store.apply(session.agent, [change])[0].memory
    if after is None:  # A sign always leaves a memory; a store that breaks this is broken.
        raise AssertionError("The store's answer to a sign has no memory.")
    return after


def lives_of(session: Session) -> Living:
    """The store as one that keeps lives. Raises InvalidInput for one that doesn't."""
    if not isinstance(session.store, Living):
        raise InvalidInput(
            f"{type(session.store).__name__} keeps no lives of memories. Use a SQLite store, or give it the "
            "methods of germane.Living."
        )
    return session.store


def _reviewed(session: Session, memory: Memory, outcome: Outcome, result: str | None) -> Memory:
    now = as_utc(session.clock(), name="clock")
    metadata = dict(memory.metadata)
    if result is not None:
        metadata["result"] = checked_text(result, name="result")
    if outcome is memory.outcome and metadata == memory.metadata:
        return memory
    if OUTCOMES in metadata and outcome is not memory.outcome:
        metadata[OUTCOMES] = [*metadata[OUTCOMES], str(outcome)]
    new = renew_renditions(
        session,
        memory.evolve(
            version=memory.version + 1,
            updated_at=now,
            outcome=outcome,
            metadata=MappingProxyType(metadata),
        ),
    )
    return store_version(session, memory, new, vectors_to_store(session.embedder, [new.content])[0])


def _blocking(session: Session, memory: Memory) -> Memory | None:
    """The next version of a censor that warns, blocking; None for anything else."""
    is_censor = session.kinds.of(memory).lifecycle == "censor"
    if not is_censor or memory.metadata.get("action", "warn") in ("block", "absolute"):
        return None
    return renew_renditions(
        session,
        memory.evolve(
            version=memory.version + 1,
            metadata=MappingProxyType({**memory.metadata, "action": "block"}),
        ),
    )


def _in_use(session: Session, memory_id: str) -> Memory:
    """The current version of a memory that is in use, or of the one that it was merged into."""
    memory = head_of(session, get(session, memory_id))
    if memory.status is Status.FORGOTTEN:
        raise InvalidInput(
            f"Memory {memory.id!r} is {memory.stage or memory.status} and out of use. Restore it first."
        )
    return memory
