"""trace_back and revoke: where a memory comes from, and the removal of all that comes from a source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import chain

from germane.errors import InvalidInput, NotFound, PurgeNotConfirmed, StoreError, shown
from germane.ids import is_short
from germane.lifecycle import first_stage
from germane.model.change import Change, Purge, PurgeConversation
from germane.model.conversation import Message
from germane.model.extraction import Decision, LearningRun
from germane.model.memory import Cause, LifecycleState, Memory, Status, split_id
from germane.model.validation import as_utc, checked_text
from germane.operations.context import AgentContext
from germane.operations.drafts import inserts_of
from germane.operations.expiry import whole
from germane.operations.learning import learning_runs
from germane.operations.lifecycle import events
from germane.operations.read import EVERY, get, history, pages, whole_id
from germane.provenance import (
    CONVERSATION,
    Derivation,
    DerivationStep,
    LearningOrigin,
    QuotedMessage,
    Revocation,
    VersionOrigin,
    comes_from,
    derived,
    import_of,
    remaining_of,
    sources_of,
)
from germane.stores.location import CONVERSATIONS, LEARNING, LEDGER, LIFECYCLE


def trace_back(session: AgentContext, memory_id: str) -> Derivation:
    """The derivation of a memory, and of the memories that it was derived from. Raises NotFound."""
    first = get(session, memory_id)
    steps, gone, seen = [_step(session, first)], [], {first.id}
    for step in steps:  # It grows while it is gone through.
        for name in step.sources:
            if name in seen:
                continue
            seen.add(name)
            try:
                steps.append(_step(session, get(session, name)))
            except NotFound:
                gone.append(name)
    return Derivation(steps=tuple(steps), gone=tuple(gone))


def revoke(session: AgentContext, source: str, *, confirm: bool, dry_run: bool) -> Revocation:
    """Purge every version that comes from a source, and the conversation of that name, in one transaction.

    Raises PurgeNotConfirmed, NotFound where nothing comes from the source, and StoreError where anything of
    it can still be found afterwards.
    """
    if not checked_text(source, name="source").strip():
        raise InvalidInput(f"source={source!r} is empty. Name a source, a session, an import or a memory.")
    if confirm is not True and not dry_run:
        raise PurgeNotConfirmed
    wanted = whole_id(session, source) if is_short(source) else source
    now = as_utc(session.clock(), name="clock")
    versions = _versions(session)
    gone = derived(versions, lambda each: comes_from(each, wanted))
    messages = _messages(session, wanted)
    if not gone and not messages:
        raise NotFound(source, session.agent)
    before = {each.version_id: each for each in versions}
    remaining = [_as_current(session, each, before[each.version_id]) for each in remaining_of(versions, gone)]
    made = Revocation(
        source=source,
        versions=tuple(each.version_id for each in versions if each.version_id in gone),
        restored=tuple(
            each.id for each in remaining if before[each.version_id].superseded_by != each.superseded_by
        ),
        contexts=tuple(_contexts(session, gone, {each.id for each in messages})),
        messages=len(messages),
        dry_run=dry_run,
    )
    if not dry_run:
        _apply(session, made, remaining, _name_of(wanted) if messages else None, now)
        _verify(session, made, wanted)
    return made


def _step(session: AgentContext, memory: Memory) -> DerivationStep:
    versions = history(session, memory.id)
    runs = learning_runs(session, memory_id=memory.id) if LEARNING.of(session.store) else ()
    decisions = [(run, each) for run in runs for each in run.decisions if _concerns(each, memory)]
    return DerivationStep(
        memory=memory,
        versions=tuple(
            VersionOrigin(
                version=each.version,
                at=each.created_at,
                trust=each.trust,
                source=each.source,
                session=each.session,
            )
            for each in versions
        ),
        sources=tuple(dict.fromkeys(chain.from_iterable(map(sources_of, versions)))),
        merged=tuple(_merged(session, memory)),
        imported=import_of(memory),
        quotes=tuple(_quotes(session, decisions)),
        runs=tuple(
            LearningOrigin(
                run=run.id, extractor=run.extractor, at=run.at, outcome=each.outcome, reason=each.reason
            )
            for run, each in decisions
        ),
    )


def _concerns(decision: Decision, memory: Memory) -> bool:
    return decision.memory == memory.id and bool(decision.effects) and not decision.undone


def _merged(session: AgentContext, memory: Memory) -> Iterable[str]:
    if LIFECYCLE.of(session.store) is None or memory.agent != session.agent:
        return ()
    others = (each.other for each in events(session, memory.id) if each.cause is Cause.DUPLICATE)
    return dict.fromkeys(split_id(each)[0] for each in others if each is not None)


def _quotes(
    session: AgentContext, decisions: Iterable[tuple[LearningRun, Decision]]
) -> Iterator[QuotedMessage]:
    for run, decision in decisions:
        stored = {} if run.session is None else {each.id: each for each in _messages(session, run.session)}
        for quote in decision.proposal.quotes:
            message = stored.get(quote.message)
            yield QuotedMessage(
                message=quote.message,
                session=run.session or "",
                text=quote.text,
                role=None if message is None else message.role.value,
                at=None if message is None else message.created_at,
            )


def _name_of(source: str) -> str:
    return source.removeprefix(CONVERSATION)


def _messages(session: AgentContext, source: str) -> Sequence[Message]:
    """The messages of the conversation that a source names; none where it names no conversation."""
    log = CONVERSATIONS.of(session.store)
    return () if log is None else log.messages(session.agent, _name_of(source), hidden=True)


def _versions(session: AgentContext) -> list[Memory]:
    """All versions of all memories of the agent, those that have expired too."""
    return list(chain.from_iterable(pages(partial(whole(session.store).find, session.agent), EVERY)))


def _as_current(session: AgentContext, memory: Memory, before: Memory) -> Memory:
    """A version that is left, at the first stage of its kind where it wasn't current `before`."""
    if before.status is memory.status or memory.status is not Status.ACTIVE:
        return memory
    return memory.evolve(stage=first_stage(session.kinds.of(memory).lifecycle, memory.outcome))


def _contexts(session: AgentContext, gone: frozenset[str], messages: set[str]) -> Iterator[str]:
    """The recorded assemblies that showed a version or a message."""
    ledger = LEDGER.of(session.store)
    for assembly in () if ledger is None else ledger.find(session.agent):
        if any(
            each.memory_id in messages if each.is_message else each.version_id in gone
            for each in assembly.included
        ):
            yield assembly.id


def _apply(
    session: AgentContext,
    made: Revocation,
    remaining: Sequence[Memory],
    conversation: str | None,
    now: datetime,
) -> None:
    changes: list[Change] = [Purge(memory_id=each, at=now) for each in made.memories]
    changes += inserts_of(session, remaining, revive=False, lifecycle_states=_states(session, remaining))
    if conversation is not None:
        changes.append(PurgeConversation(session=conversation, at=now))
    session.store.apply(session.agent, changes)
    session.clear_texts()


def _states(session: AgentContext, remaining: Sequence[Memory]) -> dict[str, LifecycleState]:
    """What is counted of the lives of the current versions that are stored again."""
    table = LIFECYCLE.of(session.store)
    if table is None:
        return {}
    ids = [each.version_id for each in remaining if each.superseded_by is None]
    states = table.states(session.agent, ids)
    return {split_id(name)[0]: state for name, state in zip(ids, states, strict=True) if state is not None}


def _verify(session: AgentContext, made: Revocation, wanted: str) -> None:
    left = derived(_versions(session), lambda each: comes_from(each, wanted))
    if left or _messages(session, wanted):
        raise StoreError(
            f"{len(left)} versions that come from {shown(made.source)} were stored while it was revoked. "
            "Revoke it again."
        )
