"""remember, revise, supersede, forget, restore and purge, as they are called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from germane.errors import InvalidInput, PurgeNotConfirmed, StaleRevision
from germane.lifecycle import Reconcile, is_trusted_less, least_trust
from germane.model.change import Applied, Purge, SetStatus
from germane.model.memory import Cause, Draft, LifecycleSignal, Memory, RememberResult, Status, Trust
from germane.model.query import Filter, Query, Slice
from germane.model.validation import (
    as_utc,
    checked_flag,
    checked_id,
    checked_sequence,
    checked_word,
)
from germane.operations.context import AgentContext
from germane.operations.drafts import (
    Quality,
    checked_values,
    content_hash_of,
    draft_of,
    given_in,
    keep,
    memory_of,
    renew_renditions,
    screened,
    updated,
    upsert,
    weighed,
)
from germane.operations.expiry import check_validity, times_of
from germane.operations.inputs import (
    checked_count,
    embed_texts,
    vectors_to_store,
)
from germane.operations.lifecycle import move, restored
from germane.operations.read import (
    as_trusted_as_its_sources,
    checked_quotations,
    current,
    get_many,
    head_of,
    store_version,
    whole_id,
)
from germane.provenance import QUARANTINE, quarantine_of
from germane.ranking.similarity import could_be_same, normalised
from germane.retrieval.tokenizer import query_terms


def remember_many(
    session: AgentContext,
    drafts: Iterable[Draft | str | Mapping[str, Any]],
    *,
    revive: bool = True,
    reconcile: bool | Reconcile = False,
    quality: Quality = "mark",
    screens: bool = True,
    allow_secrets: bool = False,
) -> tuple[RememberResult, ...]:
    """Store drafts in order. All of them are checked before the first is stored.

    With `reconcile` each is stored by itself, so that it meets those before it. With `screens` what looks
    like an instruction to a model or like a secret goes to quarantine. Raises InvalidInput, UnknownKind or
    NotWorthKeeping.
    """
    rules = rules_of(reconcile)
    now = as_utc(session.clock(), name="clock")
    made, given = _memories(session, list(drafts), now)
    judged = weighed(session, made, quality)
    memories = checked_quotations(session, [memory for memory, _ in judged])
    memories = [screened(each, secrets=not allow_secrets) for each in memories] if screens else memories
    store = partial(_stored_one, session, rules=rules, revive=revive, given=given, now=now)
    if rules is None and all(memory.key is None for memory in memories):
        stored = keep(session, memories, revive=revive, given=given, at=now)
    else:
        stored = tuple(map(store, memories))
    return tuple(
        replace(one, quality_flag=doubt) if doubt else one
        for one, (_, doubt) in zip(stored, judged, strict=True)
    )


def _stored_one(
    session: AgentContext,
    memory: Memory,
    *,
    rules: Reconcile | None,
    revive: bool,
    given: Mapping[str, frozenset[str]],
    now: datetime,
) -> RememberResult:
    """What became of one memory: its key says which one it replaces, or else the rules do."""
    fields = given.get(memory.id, frozenset())
    if QUARANTINE in memory.metadata:
        return keep(session, [memory], revive=False, at=now)[0]
    if memory.key is not None:
        return upsert(session, memory, revive=revive, given=fields, at=now)
    met = None if rules is None else _reconciled(session, memory, rules, given, now)
    return met or keep(session, [memory], revive=revive, given=given, at=now)[0]


def _reconciled(
    session: AgentContext,
    memory: Memory,
    rules: Reconcile,
    given: Mapping[str, frozenset[str]],
    now: datetime,
) -> RememberResult | None:
    """What became of a fact that meets a known one; a confirmed one gets what is new as well."""
    met = reconciled(session, memory, rules)
    if met is None or met.created:
        return met
    return updated(session, met, memory, given.get(memory.id, frozenset()), now)


def _memories(
    session: AgentContext, drafts: Sequence[Draft | str | Mapping[str, Any]], now: datetime
) -> tuple[list[Memory], dict[str, frozenset[str]]]:
    """The memories that drafts become, and by id the fields that were given of each.

    Where there are several, an error names the place of the draft.
    """
    made: list[Memory] = []
    given: dict[str, frozenset[str]] = {}
    for place, each in enumerate(drafts):
        try:
            draft = draft_of(each)
            made.append(memory_of(session, draft, now=now))
            if fields := given_in(draft):
                given[made[-1].id] = fields
        except InvalidInput as error:
            if len(drafts) > 1:
                error.args = (f"drafts[{place}]: {error}", *error.args[1:])
            raise
    return made, given


# What a new fact does to those that are known: it confirms the one that says the same, or replaces one.
#
# Requested by `remember(..., reconcile=True)`. Vectors alone can't tell the limits of 40 and of 50 MB
# apart, so nothing counts as the same whose numbers or negations differ.

_LOOKED_AT = 20


def rules_of(reconcile: bool | Reconcile) -> Reconcile | None:
    """The rules that a caller asks for; None for none. Raises InvalidInput."""
    if isinstance(reconcile, Reconcile):
        return reconcile
    if not isinstance(reconcile, bool):
        raise InvalidInput(
            f"reconcile={reconcile!r} is no rule. Pass True, False or a germane.lifecycle.Reconcile."
        )
    return Reconcile() if reconcile else None


def reconciled(session: AgentContext, memory: Memory, rules: Reconcile) -> RememberResult | None:
    """What became of a fact that confirms or replaces a known one; None for one that does neither.

    Who is trusted less replaces nobody: what an external source says of a subject stands beside it.
    """
    if session.kinds.of(memory).lifecycle != "fact":
        return None
    known = _near(session, memory)
    for other, cosine in known:
        if _about_one(memory, other) and _says_the_same(memory, other, cosine, rules):
            after = move(session, other, LifecycleSignal.CONFIRM, cause=Cause.ALIKE)
            return RememberResult(memory=after, created=False)
    for other, cosine in known:
        named = memory.subject is not None and other.subject is not None
        if named and _about_one(memory, other) and cosine > rules.supersede:
            if is_trusted_less(memory, other):
                continue
            new = memory.evolve(
                id=other.id,
                version=other.version + 1,
                key=other.key,
                expires_at=memory.expires_at or other.expires_at,
            )
            new = new if other.key is None else new.evolve(content_hash=content_hash_of(new))
            vector = vectors_to_store(session.embedder, [new.content])[0]
            after = store_version(session, other, new, vector, cause=Cause.SUBJECT)
            return RememberResult(memory=after, created=True)
    return None


def _near(session: AgentContext, memory: Memory) -> list[tuple[Memory, float]]:
    """The active facts of kind and scope that are most like it, the most alike first, with their cosines.

    What says the very same is left to the store, which recognises it.
    """
    vector = embed_texts(session.embedder, [memory.content])[0]
    query = Query(
        text=memory.content,
        terms=query_terms(memory.content, language=session.language),
        vector=vector,
        filter=Filter(kinds=(memory.kind,), scopes=(memory.scope,)),
        slices=(Slice(limit=_LOOKED_AT),),
    )
    found = session.store.search(session.agent, query).slices[0]
    others = [each.memory for each in found]
    if any(other.content_hash == memory.content_hash for other in others):
        return []
    vectors = embed_texts(session.embedder, [other.content for other in others])
    near = [
        (other, 0.0 if vector is None or row is None else float(vector @ row))
        for other, row in zip(others, vectors, strict=True)
    ]
    return sorted(near, key=lambda each: (-each[1], each[0].id))


def _about_one(memory: Memory, other: Memory) -> bool:
    """Whether both are about one subject, as far as they name any."""
    return memory.subject is None or (other.subject or "").casefold() == memory.subject.casefold()


def _says_the_same(memory: Memory, other: Memory, cosine: float, rules: Reconcile) -> bool:
    if normalised(memory.content) == normalised(other.content):
        return True
    return cosine > rules.confirm and could_be_same(memory.content, other.content)


# revise, supersede, forget, restore, purge: what becomes of a memory after it was stored.


def revise(
    session: AgentContext,
    memory_id: str,
    *,
    expected: int | None = None,
    force: bool = False,
    **changes: Any,
) -> Memory:
    """Store the next version of a memory with other fields; the one before stays as history.

    A field that is None stays as it was. A text that goes to quarantine is stored as a memory of its own, and
    becomes the next version when it is released; with `force` none does. Raises NotFound, InvalidInput, or
    StaleRevision when another version than the `expected` is current, or somebody else revises it at the same
    time.
    """
    now = as_utc(session.clock(), name="clock")
    old = _expected(session, memory_id, expected, before="you revise it")
    checked = {**checked_values(changes), **times_of(changes, now=now)}
    check_validity(checked.get("valid_from", old.valid_from), checked.get("valid_until", old.valid_until))
    if not checked:
        raise InvalidInput(f"revise({memory_id!r}) changes nothing: name at least one field to change.")
    new = renew_renditions(
        session,
        old.unused(
            **checked,
            status=Status.ACTIVE,
            version=old.version + 1,
            updated_at=now,
            created_at=now,
            superseded_by=None,
        ),
    )
    if not checked.keys().isdisjoint(("content", "subject")):
        new = new.evolve(content_hash=content_hash_of(new))
    if "metadata" in checked:
        new = as_trusted_as_its_sources(session, new)
    if not checked_flag(force, name="force") and (apart := _set_apart(new, old)) is not None:
        alone = apart.evolve(id=session.ids.next(now), version=1)
        return keep(session, [alone], revive=False, at=now)[0].memory
    vector = vectors_to_store(session.embedder, [new.content])[0]
    return store_version(session, old, new, vector)


def supersede(
    session: AgentContext, memory_id: str, draft: Draft | Mapping[str, Any], *, expected: int | None = None
) -> Memory:
    """Store a draft as the next version of a memory; what it leaves open stays as it was.

    A draft that goes to quarantine is stored as a memory of its own, and replaces the other one when it is
    released. Raises NotFound, InvalidInput, or StaleRevision, as `revise` does.
    """
    now = as_utc(session.clock(), name="clock")
    old = _expected(session, memory_id, expected, before="it is superseded")
    given = draft_of(draft)
    _check_trust(old, None if given.trust is None else checked_word(Trust, given.trust, name="trust"))
    whole = replace(
        given,
        importance=old.importance if given.importance is None else given.importance,
        confidence=old.confidence if given.confidence is None else given.confidence,
        outcome=old.outcome if given.outcome is None else given.outcome,
        trust=old.trust if given.trust is None else given.trust,
        pinned=old.pinned or given.pinned,
        session=old.session if given.session is None else given.session,
        key=old.key if given.key is None else given.key,
    )
    made = memory_of(session, whole, now=now)
    if (apart := _set_apart(made, old)) is not None:
        return keep(session, [apart], revive=False, at=now)[0].memory
    new = made.evolve(id=old.id, version=old.version + 1)
    new = new.evolve(expires_at=new.expires_at or old.expires_at)
    vector = vectors_to_store(session.embedder, [new.content])[0]
    return store_version(session, old, new, vector, at=now)


def _set_apart(new: Memory, old: Memory) -> Memory | None:
    """The next version of a memory as it goes to quarantine; None where it says nothing suspicious.

    What the version before says already was let pass.
    """
    apart = screened(new, replaces=old.id)
    is_new = set(quarantine_of(apart)).difference(quarantine_of(screened(old)))
    return apart if is_new else None


def forget_many(session: AgentContext, memory_ids: Iterable[str]) -> tuple[Memory, ...]:
    """Keep memories out of everything, in one transaction: all of them or none. Raises NotFound."""
    at = as_utc(session.clock(), name="clock")
    ids = _ids(session, memory_ids)
    changes = [
        SetStatus(memory_id=head_of(session, memory).id, status=Status.FORGOTTEN, at=at)
        for memory in get_many(session, ids)
    ]
    return tuple(map(_stored, session.store.apply(session.agent, changes))) if changes else ()


def restore(session: AgentContext, memory_id: str) -> Memory:
    """Undo a forget, a retirement or an archiving.

    Raises NotFound, or InvalidInput when the memory is in use or superseded.
    """
    memory = current(session, memory_id)
    if rules := quarantine_of(memory):
        raise InvalidInput(
            f"Memory {memory_id!r} is in quarantine ({', '.join(rules)}). Look at it, and release it with "
            "`quarantine().release()` or `germane quarantine release`."
        )
    if memory.status not in (Status.FORGOTTEN, Status.ARCHIVED):
        raise InvalidInput(
            f"Memory {memory_id!r} is {memory.status}; only a forgotten or an archived one can be restored."
        )
    if (again := restored(session, memory)) is not None:
        return again
    return _set_status(session, memory.id, Status.SUPERSEDED if memory.superseded_by else Status.ACTIVE)


def purge_many(session: AgentContext, memory_ids: Iterable[str], *, confirm: bool) -> int:
    """Remove memories and all their versions, in one transaction; returns how many versions went.

    Raises PurgeNotConfirmed unless `confirm` is true, and NotFound, without having removed any.
    """
    if confirm is not True:
        raise PurgeNotConfirmed
    at = as_utc(session.clock(), name="clock")
    changes = [Purge(memory_id=memory_id, at=at) for memory_id in _ids(session, memory_ids)]
    purged = sum(each.purged for each in session.store.apply(session.agent, changes)) if changes else 0
    session.clear_texts()
    return purged


def _expected(session: AgentContext, memory_id: str, expected: int | None, *, before: str) -> Memory:
    """The current version of a memory. Raises StaleRevision where that isn't the one expected.

    Raises InvalidInput for a forgotten memory, which has to be restored `before` what is wanted.
    """
    memory = current(session, memory_id)
    if expected is not None and checked_count(expected, name="expected", least=1) != memory.version:
        raise StaleRevision(f"{memory.id}@{expected}", memory.version_id)
    if memory.status is Status.FORGOTTEN:
        raise InvalidInput(f"Memory {memory_id!r} is forgotten; restore it before {before}.")
    return memory


def _check_trust(old: Memory, trust: Trust | None) -> None:
    """Raise InvalidInput for a next version of more trust, which only somebody who vouches for it gives."""
    if trust is not None and least_trust((trust, old.trust)) is not trust:
        raise InvalidInput(
            f"trust={trust.value!r} is more than the {old.trust.value!r} of memory {old.id!r}, and no "
            "revision raises trust. Let somebody vouch for it: confirm(..., vouched_by='user') or 'operator'."
        )


def _ids(session: AgentContext, memory_ids: Iterable[str]) -> tuple[str, ...]:
    """Each whole id once."""
    given = checked_sequence(memory_ids, name="memory_ids")
    return tuple(dict.fromkeys(whole_id(session, checked_id(each)) for each in given))


def _set_status(session: AgentContext, memory_id: str, status: Status) -> Memory:
    at = as_utc(session.clock(), name="clock")
    change = SetStatus(memory_id=checked_id(memory_id), status=status, at=at)
    return _stored(session.store.apply(session.agent, [change])[0])


def _stored(applied: Applied) -> Memory:
    if applied.memory is None:  # These changes always leave a memory; a store that breaks this is broken.
        raise AssertionError("The store's answer has no memory.")
    return applied.memory
