"""feedback, observe, outcome and experience: what was used of what was shown, and how work turned out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TypeAlias

import numpy as np

from germane.errors import InvalidInput, NotFound
from germane.ids import by_short_id
from germane.ledger import Assembly
from germane.model.change import (
    Applied,
    ImportUsage,
    RecordOutcome,
    RecordRun,
    RecordUse,
    UsageHistory,
    UsageRecord,
    version_of,
)
from germane.model.context import Context, Entry, Item, Ranked
from germane.model.extraction import LearningRun
from germane.model.learning import (
    Example,
    Feedback,
    Impressions,
    LearningReport,
    ObserveResult,
    OutcomeResult,
)
from germane.model.memory import LifecycleEvent, Memory, Outcome, split_id
from germane.model.validation import as_utc, checked_flag, checked_text, checked_word, checked_words
from germane.operations.context import AgentContext
from germane.operations.search import RecallResult
from germane.ranking.learning import NAMED, SHOWN, signals_of
from germane.retrieval.quality import english_idf
from germane.retrieval.tokenizer import query_terms, term_hash
from germane.stores.location import FEEDBACK, LEARNING, LIFECYCLE
from germane.working_sets import WorkingSetItem

Named: TypeAlias = str | Memory | Item | Ranked | WorkingSetItem
"""A memory named by its id, or by itself as a context, a recall or a working set shows it."""


def feedback(
    session: AgentContext,
    context: Context | RecallResult | Assembly | Impressions,
    *,
    used: Iterable[Named],
    ignored: Iterable[Named] | None = None,
) -> Feedback:
    """Count which memories of a context or a recall were used, and learn from it where that is switched on.

    What was shown and isn't among `used` counts as ignored, unless `ignored` says what was; the rest
    is then left open. All of it is written in one transaction. Saying it again for the same context
    counts nothing twice, and what was used once stays used. For one user only that user's memories count, not
    the agent's own. Raises InvalidInput for a memory that
    wasn't shown or is named as both, and NotFound for a used one that was purged since.
    """
    shown = shown_of(context)
    used_ids = ids_shown(used, shown, name="used")
    ignored_ids = [one for one in shown.parts if one not in used_ids]
    if ignored is not None:
        ignored_ids = ids_shown(ignored, shown, name="ignored")
    if both := [one for one in ignored_ids if one in used_ids]:
        raise InvalidInput(f"Memory {both[0]!r} is named as used and as ignored. Name it once.")
    now = as_utc(session.clock(), name="clock")
    if session.base is not None and used_ids:
        # What one user does with the agent's own memories must not show for another.
        shared = still_there(session.base, used_ids)
        used_ids = [one for one in used_ids if one not in shared]
    examples = FEEDBACK.of(session.store)
    learns = examples is not None and examples.learning(session.agent, None).on
    parts = {one: _learnable_parts(shown.parts[one]) for one in (*used_ids, *ignored_ids)}
    changes = [
        RecordUse(memory_id=one, context=shown.key, used=True, at=now, parts=parts[one]) for one in used_ids
    ]
    if examples is not None:
        changes += [
            RecordUse(memory_id=one, context=shown.key, used=False, at=now, parts=parts[one])
            for one in still_there(session, ignored_ids)
        ]
    changes, applied = _stored_uses(session, changes)
    if examples is not None:
        # Fitted here and now, so that no question has to wait for it.
        session.weight_cache.of(session.store, session.agent)
    return Feedback(
        used=tuple(each.memory for each in applied[: len(used_ids)] if each.memory is not None),
        counted=sum(each.created for each in applied),
        examples=sum(1 for each in changes if each.parts) if learns else 0,
    )


def shown_of(context: Context | RecallResult | Assembly | Impressions) -> Impressions:
    """What a context or a recall showed, with the parts of scores as they were before any weights."""
    if isinstance(context, Impressions):
        return context
    if isinstance(context, Assembly):
        return _recorded(context)
    if isinstance(context, Context):
        trace = context.trace
        return Impressions.of(
            "context",
            question=trace.question.text,
            now=trace.now,
            # A message of a conversation has no counts.
            parts={_version(entry): entry.parts for entry in trace.included if entry.version},
            weights=trace.weights,
            levels={
                _version(entry): entry.level for entry in trace.included if entry.level and entry.version
            },
        )
    if isinstance(context, RecallResult):
        return Impressions.of(
            "recall",
            question=context.question.text,
            now=context.now,
            parts={one.memory.version_id: one.parts for one in context if not one.memory.is_message},
            weights=context.weights,
        )
    raise InvalidInput(
        f"{type(context).__name__} showed no memories. Pass what `assemble` or `recall` returned, or an "
        "assembly of the ledger."
    )


def _recorded(assembly: Assembly) -> Impressions:
    # Of weights the ledger keeps a hash alone, so what was weighed by them tells of uses and no more.
    weighed = bool(assembly.makers.get("weights"))
    memories = [entry for entry in assembly.included if not entry.is_message]
    return Impressions(
        key=assembly.key,
        parts={entry.version_id: {} if weighed else entry.parts for entry in memories},
        levels={entry.version_id: entry.level for entry in memories if entry.level},
    )


def set_learning(session: AgentContext, on: bool | None) -> LearningReport:
    """Switch learning on or off for the agent, or with None leave it; returns what is learned.

    Raises InvalidInput when the store can't keep examples.
    """
    if on is not None:
        checked_flag(on, name="on")
    feedback = FEEDBACK.required(session.store) if on else FEEDBACK.of(session.store)
    if feedback is None:
        return LearningReport(on=False, weights=None, examples=0)
    state = feedback.learning(session.agent, on)
    return LearningReport(
        on=state.on,
        weights=session.weight_cache.of(session.store, session.agent),
        examples=sum(1 for one in feedback.examples(session.agent) if one.parts),
    )


def reset_learning(session: AgentContext) -> int:
    """Remove all that was learned, and return from how many examples; uses stay counted."""
    feedback = FEEDBACK.of(session.store)
    return feedback.reset(session.agent) if feedback else 0


def _stored_uses(
    session: AgentContext, changes: list[RecordUse]
) -> tuple[list[RecordUse], Sequence[Applied]]:
    """Store what was used and ignored, without what another writer purges meanwhile and wasn't used."""
    while True:
        try:
            return changes, session.store.apply(session.agent, changes)
        except NotFound as purged:
            left = [each for each in changes if each.used or each.memory_id != purged.memory_id]
            if len(left) == len(changes):
                raise
            changes = left


def _learnable_parts(parts: Mapping[str, float]) -> Mapping[str, float] | None:
    """The stored parts of a score: those that have weights, or the importance that ordered a working set."""
    importance = {name: part for name, part in parts.items() if name == "importance"}
    return signals_of(parts) or importance or None


def ids_shown(named: Iterable[Named], shown: Impressions, *, name: str) -> list[str]:
    """The names by which `shown` has what is named, by short ids too, each once.

    Raises InvalidInput for what wasn't shown, and for a short id of several that were.
    """
    if isinstance(named, Memory | Item | Ranked | WorkingSetItem):
        raise InvalidInput(f"{name} is one memory; pass a sequence of them, such as [memory].")
    given = named if isinstance(named, str) else [_id_of(one) for one in named]
    # Of two versions of a memory its id names the later one.
    versions = {split_id(one)[0]: one for one in sorted(shown.parts, key=split_id)}
    ids: dict[str, None] = {}
    for text in checked_words(given, name=name):
        one = by_short_id(text, versions, "memories that were shown")
        version = one if one in shown.parts else versions.get(split_id(one)[0])
        if version is None:
            raise InvalidInput(
                f"Memory {split_id(one)[0]!r:.60} isn't among the {len(shown.parts)} that were shown, so "
                f"nothing is known of its use. Name in {name} only memories of this context."
            )
        ids[version] = None
    return list(ids)


def _id_of(named: Named) -> str:
    if isinstance(named, Item | Ranked | WorkingSetItem):
        return named.memory.version_id
    return named.version_id if isinstance(named, Memory) else named


def _version(entry: Entry) -> str:
    return f"{split_id(entry.memory_id)[0]}@{entry.version}"


def still_there(session: AgentContext, ids: Sequence[str]) -> Mapping[str, Memory]:
    """Those that nobody has purged since, by their names; that one was ignored is no reason to fail."""
    found = session.store.get(session.agent, ids)
    return {one: memory for one, memory in zip(ids, found, strict=True) if memory is not None}


# observe: which of the memories that were shown an answer draws on, by the telling words that it has.
#
# Containment, not likeness: a memory may be much longer or shorter than what an answer says of it. Each
# sentence of what was shown is looked for by itself, and the best one counts, since an answer takes from a
# long memory what it needs. A word counts its inverse document frequency in English; a word of the question
# counts little, for an answer says it whether or not it was shown anything; and a word of several memories
# is shared among them.

USED_FROM = 0.25
"""The share of a sentence's information from which it counts as drawn on: see docs/explanation/metrics.md."""

_LEAST = 7.0
"""Nats that have to be in common: one rare word, or two that are less so."""

_QUERY = 0.25
"""What a word of the question counts of what it would otherwise."""

_USUAL = 6.5
"""What a word counts in a language whose words nobody has counted."""

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")


def observe(
    session: AgentContext,
    context: Context | RecallResult | Assembly | Impressions,
    response: str,
    *,
    count: bool,
    question: str | None = None,
) -> ObserveResult:
    """Which memories an answer draws on, passed to `feedback` where `count` is set. Raises InvalidInput.

    Memories of a space are found but not counted: the space counts its own uses.
    """
    checked_flag(count, name="count")
    answer = checked_text(response, name="response")
    query = _question(context) if question is None else checked_text(question, name="question")
    shown = shown_of(context)
    texts, owned = _texts(session, context, shown)
    scores = contained(texts, answer, question=query, language=session.language)
    used = tuple(one for one, score in scores.items() if score >= USED_FROM)
    has_terms = bool(query_terms(answer, language=session.language))
    recorded = None
    if count and has_terms and owned:
        recorded = feedback(session, shown, used=[one for one in used if one in owned])
    return ObserveResult(used=used, scores=scores, feedback=recorded)


def contained(
    texts: Mapping[str, str], answer: str, *, question: str = "", language: str = "english"
) -> dict[str, float]:
    """How much of what each text says stands in the answer, from 0 to 1. Pure."""
    sentences = {
        name: [frozenset(query_terms(part, language=language)) for part in _SENTENCE.split(text)]
        for name, text in texts.items()
    }
    answer_terms = frozenset(query_terms(answer, language=language))
    question_terms = frozenset(query_terms(question, language=language))
    shared: dict[str, int] = {}
    for parts in sentences.values():
        for term in frozenset().union(*parts):
            shared[term] = shared.get(term, 0) + 1
    weights = _weights(sorted(shared), language)
    for term in weights:
        weights[term] *= (_QUERY if term in question_terms else 1.0) / shared[term]
    return {
        name: max((_share(part, answer_terms, weights) for part in parts), default=0.0)
        for name, parts in sentences.items()
    }


def _share(terms: frozenset[str], answer_terms: frozenset[str], weights: Mapping[str, float]) -> float:
    """The share of a sentence's information that the answer contains; 0 if that is too little to count."""
    common = sum(weights[term] for term in sorted(terms & answer_terms))
    return common / sum(weights[term] for term in sorted(terms)) if common >= _LEAST else 0.0


def _weights(terms: Sequence[str], language: str) -> dict[str, float]:
    if language != "english":
        return dict.fromkeys(terms, _USUAL)
    hashes = np.array([term_hash(term) for term in terms], dtype=np.uint32)
    return dict(zip(terms, english_idf().of(hashes).tolist(), strict=True)) if terms else {}


def _question(context: Context | RecallResult | Assembly | Impressions) -> str:
    if isinstance(context, Context):
        return context.trace.question.text
    if isinstance(context, Impressions):
        return ""
    return context.question if isinstance(context, Assembly) else context.question.text


def _texts(
    session: AgentContext, context: Context | RecallResult | Assembly | Impressions, shown: Impressions
) -> tuple[dict[str, str], set[str]]:
    """What was shown of each memory, for an answer can draw on nothing else, and which are the agent's own.

    Where only ids and levels were recorded, the store has the texts; a memory that was purged has none.
    """
    if isinstance(context, Context):
        memories = [item.memory for item in context.items]
    elif isinstance(context, RecallResult):
        memories = [one.memory for one in context]
    else:
        found = session.store.get(session.agent, list(shown.parts))
        memories = [one for one in found if one is not None]
    levels = {name: shown.levels.get(name) for name in shown.parts}
    memories = [one for one in memories if not one.is_message]
    texts = {}
    for one in memories:
        level = levels.get(one.version_id, levels.get(one.id))
        texts[one.ref] = one.content if level is None else one.renditions.at(level).text
    return texts, {one.ref for one in memories if one.agent == session.agent}


# outcome: say how work turned out with what a context showed.

_WORTH = {Outcome.SUCCESS: 1.0, Outcome.PARTIAL: 0.5, Outcome.FAILURE: 0.0}


def outcome(
    session: AgentContext,
    context: Context | RecallResult | Assembly | Impressions,
    result: Outcome | str,
    *,
    memories: Iterable[Named] | None = None,
) -> OutcomeResult:
    """Note how work turned out with the memories that a context showed, or those of them that are named.

    A procedure that is named counts a success or a failure. For the same context, the latest report
    counts, and none counts twice. Raises InvalidInput for an outcome that says nothing yet, a memory that
    wasn't shown, or a store that keeps none.
    """
    checked = checked_word(Outcome, result, name="outcome")
    if checked not in _WORTH:
        known = ", ".join(map(str, _WORTH))
        raise InvalidInput(f"outcome={str(checked)!r} says neither success nor failure. Say one of {known}.")
    FEEDBACK.required(session.store)
    shown = shown_of(context)
    now = as_utc(session.clock(), name="clock")
    ids = list(shown.parts) if memories is None else ids_shown(memories, shown, name="memories")
    weight = SHOWN if memories is None else NAMED
    changes = [
        RecordOutcome(
            memory_id=name,
            context=shown.key,
            worth=_WORTH[checked],
            weight=weight,
            at=now,
            lifecycle=session.kinds.of(one).lifecycle,
        )
        for name, one in still_there(session, ids).items()
    ]
    applied = session.store.apply(session.agent, changes)
    return OutcomeResult(memories=len(changes), updated=sum(each.created for each in applied))


# experience, adopt_experience: what an agent has gone through with its memories, out and in again.

_BATCH = 1000
"""Records per transaction: large enough to be fast, small enough to let other writers in."""


def usage_history(session: AgentContext) -> UsageHistory:
    """All that the store keeps of it; what the store can't keep is empty."""
    feedback, lifecycle = FEEDBACK.of(session.store), LIFECYCLE.of(session.store)
    agent, runs = session.agent, LEARNING.of(session.store)
    learns = feedback is not None and feedback.learning(agent, None).on
    examples = feedback.examples(agent) if feedback else ()
    evidence = feedback.outcomes(agent) if feedback else None
    attested = () if evidence is None else evidence.records
    return UsageHistory(
        learns=learns,
        showings=tuple(sorted(examples, key=lambda one: (one.given, one.context, one.memory_id))),
        outcomes=tuple(sorted(attested, key=lambda one: (one.at, one.context, one.memory_id))),
        events=lifecycle.events(agent) if lifecycle else (),
        runs=tuple(reversed(runs.runs(agent))) if runs else (),
    )


def import_usage_history(session: AgentContext, given: UsageHistory) -> int:
    """Store another store's usage history and return how many entries are new; none changes a counter.

    What speaks of a memory that isn't here is passed over, and what is known here stays as it is: so giving
    it again changes nothing. Learning is switched on where it was on there and no use was reported here.
    """
    _settle_learning(session, given)
    new = sum(_apply_imports(session, batch) for batch in _batches(_changes(session, given)))
    return new + _import_runs(session, given.runs)


def _import_runs(session: AgentContext, runs: Sequence[LearningRun]) -> int:
    """Store the runs that aren't known. They mark no message as read, since no message comes with them."""
    log = LEARNING.of(session.store)
    new = [each for each in runs if log is not None and log.get(session.agent, each.id) is None]
    for each in new:
        session.store.apply(session.agent, [RecordRun(run=each.evolve(since=0, through=0))])
    return len(new)


def _settle_learning(session: AgentContext, given: UsageHistory) -> None:
    feedback = FEEDBACK.of(session.store)
    if given.learns and feedback is not None:
        state = feedback.learning(session.agent, None)
        if not state.on and not state.stamp:
            feedback.learning(session.agent, on=True)


def _changes(session: AgentContext, given: UsageHistory) -> Iterator[ImportUsage]:
    """What the store can keep; each event with the number of those like it, a showing with its distance."""
    records: list[Iterable[UsageRecord]] = []
    if FEEDBACK.of(session.store):
        records += [given.showings, given.outcomes]
    if LIFECYCLE.of(session.store):
        records.append(given.events)
    alike: Counter[tuple[object, ...]] = Counter()
    latest: int | None = None
    for one in chain.from_iterable(records):
        number = 1
        if isinstance(one, Example):
            number = 1 if latest is None else max(1, one.given - latest)
            latest = one.given
        elif isinstance(one, LifecycleEvent):
            key = (version_of(one), one.sign, one.before, one.after, one.cause, one.at)
            alike[key] += 1
            number = alike[key]
        yield ImportUsage(record=one, number=number)


def _apply_imports(session: AgentContext, changes: Sequence[ImportUsage]) -> int:
    ids = list(dict.fromkeys(version_of(one.record) for one in changes))
    found = session.store.get(session.agent, ids)
    there = {one for one, memory in zip(ids, found, strict=True) if memory is not None}
    applied = session.store.apply(session.agent, [one for one in changes if version_of(one.record) in there])
    return sum(each.created for each in applied)


def _batches(changes: Iterator[ImportUsage]) -> Iterator[list[ImportUsage]]:
    while batch := list(islice(changes, _BATCH)):
        yield batch
