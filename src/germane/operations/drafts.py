"""From a draft to a memory: its renditions, whether it is worth keeping, and how it is stored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, get_args

from germane.errors import InvalidInput, NotFound, NotWorthKeeping, StaleRevision, StoreUnavailable
from germane.kinds import subject_of
from germane.ledger import Finding
from germane.lifecycle import NEARLY_IDENTICAL, first_stage, is_trusted_less, least_trust
from germane.model.change import Applied, Insert
from germane.model.memory import (
    LEARNED_TAGS,
    Draft,
    LifecycleState,
    Memory,
    Outcome,
    QualityFlag,
    RememberResult,
    Rendition,
    Renditions,
    Scope,
    Stage,
    Status,
    Trust,
    day_of,
)
from germane.model.query import Filter, Query, Slice, TimeRange
from germane.model.validation import (
    checked_flag,
    checked_moment,
    checked_number,
    checked_tags,
    checked_text,
    checked_word,
)
from germane.operations.context import AgentContext
from germane.operations.expiry import TIMES, times_of
from germane.operations.inputs import checked_content, checked_json, embed_texts, vectors_to_store
from germane.operations.read import (
    as_trusted_as_its_sources,
    by_key,
    get,
    head_of,
    mark_outdated,
    owned_by,
    store_version,
    stored_pages,
)
from germane.provenance import QUARANTINE, is_damaged
from germane.ranking.similarity import could_be_same, normalised
from germane.renditions import OUTCOMES, renditions_of, with_outcomes
from germane.retrieval.quality import quality_flag_of
from germane.retrieval.tokenizer import query_terms
from germane.tokens import uncached

_BATCH = 1000
"""Memories per transaction: large enough to be fast, small enough to let other writers in."""

# Made once: `json.dumps` makes one for each call that doesn't want ASCII.
_in_json = json.JSONEncoder(ensure_ascii=False).encode

_APPLIED = (
    *("tags", "outcome", "importance", "confidence", "trust", "pinned", "metadata"),
    *("valid_from", "valid_until"),
)
"""What saying a known text again may change."""

_TRIES = 100
"""Whenever a try fails, another writer of the same memory has succeeded, so only a crowd needs many."""

_NOTHING_GIVEN: Mapping[str, frozenset[str]] = MappingProxyType({})

_NO_LIFECYCLE_STATES: Mapping[str, LifecycleState] = MappingProxyType({})

_NO_TEXT = Rendition(text="", tokens=0)
_UNMADE = Renditions(micro=_NO_TEXT, summary=_NO_TEXT, full=_NO_TEXT, counter="")
"""In the place of renditions until they are made, from the memory's other fields."""


def keep(
    session: AgentContext,
    memories: Sequence[Memory],
    *,
    revive: bool = True,
    given: Mapping[str, frozenset[str]] = _NOTHING_GIVEN,
    at: datetime | None = None,
) -> tuple[RememberResult, ...]:
    """Store new memories as what somebody says now: what was forgotten or superseded stands again.

    `given` says by id which fields the caller has set; where the text is known, they are applied to it.
    Without `revive` they are what an import came across: what is known stays as it is. `at` is the moment of
    storing, where the times of the memories are those of their sources.
    """
    named = None if revive else {one for one, fields in given.items() if "created_at" in fields}
    inserts = partial(inserts_of, session, revive=revive, at=at, dated=named)
    stored = tuple(_stored(session, memories, inserts))
    if not revive:
        return stored
    # The same memory may stand in a batch several times, and is counted before it is updated.
    seen = {one.memory.version_id: one.memory.seen_count for one in stored}
    latest: dict[str, Memory] = {}
    results: list[RememberResult] = []
    for one, memory in zip(stored, memories, strict=True):
        if QUARANTINE in memory.metadata:
            results.append(one)
            continue
        fields = given.get(memory.id, frozenset())
        known = latest.get(one.memory.id) or one.memory.evolve(seen_count=seen[one.memory.version_id])
        now = replace(one, memory=known) if fields and not one.created else one
        results.append(_restate(session, now, memory, fields, at=at))
        latest[one.memory.id] = results[-1].memory if results[-1].updated else known
    return tuple(results)


def given_in(draft: Draft) -> frozenset[str]:
    """The fields of a draft that matter to a memory which says the same already."""
    fields = {name: getattr(draft, name) for name in (*_APPLIED, "created_at")}
    return frozenset(name for name, value in fields.items() if value is not False and value not in (None, {}))


def import_memories(
    session: AgentContext,
    memories: Iterable[Memory],
    *,
    lifecycle_states: Mapping[str, LifecycleState] | None = None,
) -> tuple[RememberResult, ...]:
    """Store whole memories as they are, ids, versions and times included: what an export holds.

    `lifecycle_states` says by `Memory.ref` what is counted of their lives. What is there already stays as it
    is. A `content_hash` that doesn't match the memory's other fields is computed anew.
    """
    owned = [
        screened(memory) if memory.trust is Trust.EXTERNAL and memory.superseded_by is None else memory
        for memory in (owned_by(session, _checked_texts(each)) for each in memories)
    ]
    by_version = {each.version_id: each for each in owned}
    owned = [_with_content_hash(session, each, by_version) for each in owned]
    inserts = partial(inserts_of, session, revive=False, lifecycle_states=lifecycle_states or {})
    return tuple(_stored(session, owned, inserts))


def draft_of(draft: Draft | str | Mapping[str, Any]) -> Draft:
    """A draft from any of the forms that are accepted: itself, a text, or a mapping of its fields."""
    if isinstance(draft, Draft):
        return draft
    if isinstance(draft, str):
        return Draft(content=draft)
    if not isinstance(draft, Mapping):
        raise InvalidInput(
            f"{type(draft).__name__} can't be remembered. "
            "Pass a text, a germane.Draft, or a mapping of its fields."
        )
    known = {field.name for field in fields(Draft)}
    unknown = sorted(set(draft) - known)
    if unknown or "content" not in draft:
        raise InvalidInput(
            f"A memory needs 'content' and may have {', '.join(sorted(known - {'content'}))}; "
            f"this one has {', '.join(map(repr, draft))}. Put anything else under 'metadata'."
        )
    return Draft(**draft)


def _checked_texts(memory: Memory) -> Memory:
    for name in ("kind", "content", "subject", "source", "session", "key"):
        if (value := getattr(memory, name)) is not None:
            checked_text(value, name=name)
    return memory


def _checked_name(value: object, *, name: str) -> str:
    text = checked_text(value, name=name)
    if not text.strip():
        raise InvalidInput(f"{name}={text!r} is empty. Give it a visible character, or leave it out.")
    return text


_CHECKS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "content": checked_content,
    "subject": partial(checked_text, name="subject"),
    "source": partial(checked_text, name="source"),
    "scope": Scope.parse,
    "outcome": partial(checked_word, Outcome, name="outcome"),
    "confidence": lambda value: checked_number(value, 0, 1, name="confidence"),
    "metadata": checked_json,
    "tags": checked_tags,
    "importance": lambda value: checked_number(value, 0, 10, name="importance"),
    "trust": partial(checked_word, Trust, name="trust"),
    "pinned": partial(checked_flag, name="pinned"),
    "session": partial(_checked_name, name="session"),
    "key": partial(_checked_name, name="key"),
}
"""What makes the value of each field that a caller gives one of a memory, or raises InvalidInput."""


def checked_values(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that aren't None, as a memory has them. Raises InvalidInput."""
    return {name: check(given[name]) for name, check in _CHECKS.items() if given.get(name) is not None}


def memory_of(session: AgentContext, draft: Draft, *, now: datetime) -> Memory:
    """The memory that a draft becomes. Raises InvalidInput or UnknownKind before anything is stored."""
    kind = session.kinds.require(draft.kind)
    given = checked_values({name: getattr(draft, name) for name in _CHECKS})
    if draft.subject is None:
        given["subject"] = subject_of(kind, given["content"])
    if kind.lifecycle == "constraint" and given.get("tags"):
        # Keys, since values of metadata are indexed, as the tags are already.
        noted = {LEARNED_TAGS: dict.fromkeys(given["tags"], True)}
        given["metadata"] = MappingProxyType(noted | dict(given.get("metadata", {})))
    given |= times_of({name: getattr(draft, name) for name in (*TIMES, "ttl")}, now=now)
    created, updated = _times(draft, now)
    memory = Memory(
        id=session.ids.next(now),
        agent=session.agent,
        kind=kind.name,
        renditions=_UNMADE,
        created_at=created,
        updated_at=updated,
        stage=first_stage(kind.lifecycle, given.get("outcome")),
        **given,
    )
    memory = as_trusted_as_its_sources(session, memory)
    return memory.evolve(renditions=_renditions(session, memory), content_hash=content_hash_of(memory))


def _times(draft: Draft, now: datetime) -> tuple[datetime, datetime]:
    """When a memory was created and last updated: by its source where that says so, and otherwise now."""
    stated = None if draft.updated_at is None else checked_moment(draft.updated_at, name="updated_at")
    if draft.created_at is None:
        return (now if stated is None else min(now, stated)), stated or now
    created = checked_moment(draft.created_at, name="created_at")
    if stated is not None and stated < created:
        raise InvalidInput(
            f"updated_at={stated.isoformat()} lies before created_at={created.isoformat()}. "
            "Swap them, or leave out updated_at."
        )
    return created, stated or created


def renew_renditions(session: AgentContext, memory: Memory) -> Memory:
    """The memory with renditions made anew from its other fields."""
    return memory.evolve(renditions=_renditions(session, memory))


def content_hash_of(memory: Memory, *more: str) -> str:
    """What makes two memories the same one: kind, content, subject, scope, source, key, and `more`."""
    key = () if memory.key is None else ("key", memory.key)
    parts = (memory.kind, memory.content, memory.subject, str(memory.scope), memory.source, *key, *more)
    return hashlib.sha256(_in_json(parts).encode()).hexdigest()[:32]


def content_findings(session: AgentContext) -> Iterator[Finding]:
    """The memories whose fields aren't those that their content hash was made of: what a disk has damaged."""
    try:
        for memory in chain.from_iterable(stored_pages(session, Filter(statuses=tuple(Status)))):
            if not is_damaged(memory) and not _is_as_stored(session, memory):
                yield Finding(
                    code="content",
                    text=f"Memory {memory.ref} isn't what was stored: its content, kind, subject, scope, "
                    "source or key was changed by something else than germane.",
                    remedy="Compare it with a backup, and revise it or purge it.",
                )
    except StoreUnavailable as error:
        yield Finding(code="content", text=str(error), remedy="Do what the text says, and check again.")


def _is_as_stored(
    session: AgentContext, memory: Memory, by_version: Mapping[str, Memory] = MappingProxyType({})
) -> bool:
    """Whether a memory has the content hash that fits it; versions in `by_version` needn't be stored."""
    if memory.content_hash in (content_hash_of(memory), content_hash_of(memory, day_of(memory))):
        return True
    if memory.supersedes is None:
        return False
    # A version with the content and the subject of the one before has its hash, whatever else was revised.
    before = by_version.get(memory.supersedes) or session.store.get(session.agent, [memory.supersedes])[0]
    same = ("content", "subject", "content_hash")
    return before is None or all(getattr(before, name) == getattr(memory, name) for name in same)


def _with_content_hash(session: AgentContext, memory: Memory, by_version: Mapping[str, Memory]) -> Memory:
    if _is_as_stored(session, memory, by_version):
        return memory
    return memory.evolve(content_hash=content_hash_of(memory))


def _stored(
    session: AgentContext,
    memories: Sequence[Memory],
    inserts: Callable[[Sequence[Memory]], Sequence[Insert]],
) -> Iterator[RememberResult]:
    for start in range(0, len(memories), _BATCH):
        applied = session.store.apply(session.agent, inserts(memories[start : start + _BATCH]))
        yield from map(_remembered, applied)


def inserts_of(
    session: AgentContext,
    memories: Sequence[Memory],
    *,
    revive: bool,
    lifecycle_states: Mapping[str, LifecycleState] = _NO_LIFECYCLE_STATES,
    at: datetime | None = None,
    dated: Collection[str] | None = None,
) -> list[Insert]:
    """What stores memories, each with its vector; `lifecycle_states` are by `Memory.ref`."""
    vectors = vectors_to_store(session.embedder, [memory.content for memory in memories])
    return [
        Insert(
            memory=memory,
            vector=vector,
            # What looks like an instruction doesn't come out of quarantine by being said again.
            revive=revive and QUARANTINE not in memory.metadata,
            lifecycle=session.kinds.of(memory).lifecycle,
            lifecycle_state=lifecycle_states.get(memory.ref),
            # An import says of which day a memory is, or else it is the same one on any day.
            dated=_dated(session, memory)
            if dated is None or memory.id in dated or "date" in memory.metadata
            else "",
            at=at,
        )
        for memory, vector in zip(memories, vectors, strict=True)
    ]


def upsert(
    session: AgentContext,
    memory: Memory,
    *,
    revive: bool,
    given: frozenset[str],
    at: datetime,
) -> RememberResult:
    """Store a memory with a key: as the next version of the current one of that key, if there is one.

    The same text again is counted. What isn't `given` of importance, confidence, outcome, trust, pin, session
    and expiry stays as it was. What another source says with less trust stands beside it, without the key. Of
    several writers of one key, each one's version follows another's, and what
    another one purges meanwhile is stored anew.
    """
    for left in reversed(range(_TRIES)):
        head = by_key(session, str(memory.key))
        try:
            if head is None or head.content_hash == memory.content_hash:
                return keep(session, [memory], revive=revive, given={memory.id: given}, at=at)[0]
            if head.status is Status.FORGOTTEN and not revive:
                return RememberResult(memory=head, created=False)
            lowers = "trust" in given and is_trusted_less(memory, head)
            if lowers and memory.source != head.source:
                beside = memory.evolve(key=None)
                beside = beside.evolve(content_hash=content_hash_of(beside))
                return keep(session, [beside], revive=revive, given={memory.id: given}, at=at)[0]
            again = _next_of(session, head, memory, given)
            vector = vectors_to_store(session.embedder, [again.content])[0]
            return RememberResult(memory=store_version(session, head, again, vector, at=at), created=True)
        except (StaleRevision, NotFound):
            # Somebody else was first, and got ahead.
            if not left:
                raise
        except InvalidInput:
            now = by_key(session, str(memory.key))
            if not left or (now and now.version_id) == (head and head.version_id):
                raise
    raise AssertionError("The last try returns or raises.")


def _next_of(session: AgentContext, head: Memory, memory: Memory, given: frozenset[str]) -> Memory:
    """The version after `head` that says what `memory` says."""
    stays = [name for name in ("importance", "confidence", "outcome", "trust") if name not in given]
    values = {name: getattr(head, name) for name in stays}
    after = memory.evolve(
        **values,
        id=head.id,
        version=head.version + 1,
        pinned=head.pinned or memory.pinned,
        session=memory.session or head.session,
        expires_at=memory.expires_at or head.expires_at,
    )
    return renew_renditions(session, after)


def _dated(session: AgentContext, memory: Memory) -> str:
    """The hash of an episode with its day, as another day makes it another one."""
    is_episode = session.kinds.of(memory).lifecycle == "episode"
    return content_hash_of(memory, day_of(memory)) if is_episode else ""


def _restate(
    session: AgentContext,
    remembered: RememberResult,
    given: Memory,
    fields: frozenset[str],
    *,
    at: datetime | None,
) -> RememberResult:
    """A superseded text that is stored again becomes the next version: its author means it now."""
    former = remembered.memory
    if former.status is not Status.SUPERSEDED:
        return remembered if remembered.created else updated(session, remembered, given, fields, at)
    try:
        head = head_of(session, former)
    except NotFound:
        return remembered
    if head.id != former.id:
        # It was merged into another memory that says the same, which still stands for both.
        return RememberResult(memory=head, created=False)
    again = given.evolve(
        id=head.id,
        version=head.version + 1,
        expires_at=given.expires_at or head.expires_at,
        trust=least_trust((former.trust, given.trust)),
    )
    vector = vectors_to_store(session.embedder, [again.content])[0]
    return RememberResult(memory=store_version(session, head, again, vector, at=at), created=True)


def updated(
    session: AgentContext,
    remembered: RememberResult,
    given: Memory,
    fields: frozenset[str],
    at: datetime | None,
) -> RememberResult:
    """A known memory with what is new in the fields that a caller has set, as its next version."""
    head = remembered.memory
    for left in reversed(range(_TRIES)):
        changes = _news(head, given, fields)
        if not changes:
            return replace(remembered, memory=head)
        next_version = head.evolve(
            **changes, version=head.version + 1, updated_at=max(head.updated_at, given.updated_at)
        )
        vector = vectors_to_store(session.embedder, [head.content])[0]
        try:
            stored = store_version(session, head, renew_renditions(session, next_version), vector, at=at)
        except StaleRevision:
            if not left:
                raise
            head = head_of(session, get(session, head.id))
        else:
            names = tuple(name for name in _APPLIED if name in changes and name in fields)
            return RememberResult(memory=stored, created=False, updated=names)
    raise AssertionError("The last try returns or raises.")


def _news(known: Memory, given: Memory, fields: frozenset[str]) -> dict[str, Any]:
    """What a memory says anew of a known one: further tags, outcomes and metadata, other numbers, another
    trust, a pin.
    """
    changes: dict[str, Any] = {name: getattr(given, name) for name in _APPLIED if name in fields}
    if "trust" in changes:
        # Whoever says it again doesn't vouch for where it came from.
        changes["trust"] = least_trust((known.trust, given.trust))
    if "tags" in changes:
        changes["tags"] = tuple(dict.fromkeys((*known.tags, *given.tags)))
    if "metadata" in changes:
        # What triggers have escalated isn't lowered by saying again what it was.
        stays = ("action",) if known.stage is Stage.ESCALATED else ()
        stated = {name: value for name, value in given.metadata.items() if name not in stays}
        changes["metadata"] = MappingProxyType({**known.metadata, **stated})
    changes = {name: value for name, value in changes.items() if value != getattr(known, name)}
    if "outcome" in changes and known.outcome is not None:
        before = known.metadata.get(OUTCOMES)
        listed = before if isinstance(before, list) and before else [known.outcome.value]
        metadata = {**changes.get("metadata", known.metadata), OUTCOMES: [*listed, str(given.outcome)]}
        changes["metadata"] = MappingProxyType(metadata)
    return changes


def _renditions(session: AgentContext, memory: Memory) -> Renditions:
    kind = session.kinds.of(memory)
    fields = {name: getattr(memory, name) for name in ("content", "subject", "outcome", "confidence")}
    values = {**memory.metadata, **fields}
    # Contexts don't count what is counted here, and it would push out what they do.
    made = renditions_of(kind, values, uncached(session.counter), session.summarizer)
    return mark_outdated(with_outcomes(made, kind, values, session.counter), memory.metadata, session.counter)


def _remembered(applied: Applied) -> RememberResult:
    if applied.memory is None:  # An insert always leaves a memory; a store that breaks this is broken.
        raise AssertionError("The store's answer to an insert has no memory.")
    return RememberResult(memory=applied.memory, created=applied.created)


# Whether what shall be remembered is worth it: it is marked with a reason, or refused with one.
#
# The patterns stand in `germane.retrieval.quality`; the store finds what is nearly known.

Quality: TypeAlias = Literal["mark", "refuse", "keep"]

QUALITY_FLAG: Final = "doubt"
"""The metadata that names why a memory may not be worth keeping."""

_RECENT: Final = timedelta(hours=48)
_LOOKED_AT: Final = 20
_SCORED: Final = frozenset({"fact", "episode", "decision"})


def weighed(
    session: AgentContext, memories: Sequence[Memory], quality: Quality
) -> list[tuple[Memory, QualityFlag | None]]:
    """Each memory, marked where there is doubt about it, and the doubt.

    Notes, facts, episodes and decisions are looked at; turns of dialogue are not. For near-duplicates an
    episode is looked at that is remembered by itself, or where doubtful ones are refused. Raises
    NotWorthKeeping with `quality="refuse"`, and InvalidInput.
    """
    if quality not in get_args(Quality):
        raise InvalidInput(f"quality={quality!r} is unknown: take one of {', '.join(get_args(Quality))}.")
    if quality == "keep":
        return [(memory, None) for memory in memories]
    found: list[tuple[Memory, QualityFlag | None]] = []
    asks = quality == "refuse" or len(memories) == 1
    for memory in memories:
        doubt = _quality_flag(session, memory, asks=asks)
        if doubt is None:
            found.append((memory, None))
            continue
        if quality == "refuse":
            raise NotWorthKeeping(memory.content, doubt.value)
        # The reason is a key, since values of metadata are indexed and would be found.
        flagged = MappingProxyType({**memory.metadata, QUALITY_FLAG: {doubt.value: True}})
        found.append((memory.evolve(metadata=flagged), doubt))
    return found


def _quality_flag(session: AgentContext, memory: Memory, *, asks: bool) -> QualityFlag | None:
    lifecycle = session.kinds.of(memory).lifecycle
    if memory.scope.name == "session" or (lifecycle not in _SCORED and memory.kind != "note"):
        return None
    # Under a subject, a number or a single word says something.
    doubt = quality_flag_of(memory.content) if memory.subject is None else None
    if doubt is None and asks and lifecycle == "episode" and _is_known(session, memory):
        return QualityFlag.NEAR_DUPLICATE
    return doubt


def _is_known(session: AgentContext, memory: Memory) -> bool:
    """Whether an episode of the two days before says nearly the same."""
    when = TimeRange(since=memory.created_at - _RECENT, until=memory.created_at + timedelta(microseconds=1))
    vector = embed_texts(session.embedder, [memory.content])[0]
    query = Query(
        text=memory.content,
        terms=query_terms(memory.content, language=session.language),
        vector=vector,
        filter=Filter(kinds=(memory.kind,), scopes=(memory.scope,), when=when),
        slices=(Slice(limit=_LOOKED_AT),),
    )
    others = [each.memory for each in session.store.search(session.agent, query).slices[0]]
    vectors = embed_texts(session.embedder, [other.content for other in others])
    for other, row in zip(others, vectors, strict=True):
        if content_hash_of(other) == memory.content_hash:
            # The very same is recognised and counted, and of another day it is another episode.
            return False
        alike = vector is not None and row is not None and float(vector @ row) > NEARLY_IDENTICAL
        same = alike and could_be_same(memory.content, other.content)
        if same or normalised(other.content) == normalised(memory.content):
            return True
    return False


# What looks like an instruction to a model, or like a secret, is stored in quarantine.


def screened(memory: Memory, *, replaces: str | None = None, secrets: bool = True) -> Memory:
    """The memory as it is to be stored: in quarantine where a rule marks its text.

    Texts of the owner and the agent are searched for secrets alone. What is in quarantine replaces nothing:
    `replaces` is the id of the memory that it follows once it is released.
    """
    from germane.retrieval.suspicion import SECRET, findings_of, secrets_in  # noqa: PLC0415 - Contexts don't need it.

    texts = [memory.content, memory.subject or "", *_texts(memory.metadata)]
    find = findings_of if memory.trust is Trust.EXTERNAL else secrets_in
    found = dict.fromkeys(rule for text in texts if text for rule in find(text))
    rules = [rule for rule in found if secrets or not rule.startswith(SECRET)]
    if not rules:
        return memory
    found_by = {"rules": rules, "replaces": replaces, "key": memory.key}
    noted = {QUARANTINE: {name: value for name, value in found_by.items() if value is not None}}
    apart = memory.evolve(
        status=Status.FORGOTTEN, key=None, metadata=MappingProxyType({**memory.metadata, **noted})
    )
    return apart if memory.key is None else apart.evolve(content_hash=content_hash_of(apart))


def _texts(metadata: Any) -> list[str]:
    """The texts that metadata adds to what templates show; names that begin with an underscore show none."""
    return [value for name, value in metadata.items() if isinstance(value, str) and not name.startswith("_")]
