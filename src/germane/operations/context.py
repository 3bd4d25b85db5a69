"""What every operation works with: one agent's store, counter and kinds, and what is remembered
between calls.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias

from germane.errors import GermaneError, InvalidInput, StoreError, StoreUnavailable
from germane.forks import renewed
from germane.ids import IdSequence
from germane.kinds import Kinds
from germane.lifecycle import DecisionCalibration
from germane.model.context import TraceNote
from germane.model.learning import Example, OutcomeHistory, Weights
from germane.model.memory import Memory, Outcome, Status
from germane.model.plan import Frame, Plan
from germane.model.query import Candidate, Filter, LearningStatus, Order, Query, SearchResult, Slice
from germane.model.text import clear_at_purge, clear_text_caches, is_tenant, user_tenant
from germane.operations.expiry import UnexpiredStore
from germane.operations.inputs import Reranking
from germane.operations.passages import PassageCache
from germane.packing.lines import RememberedLines
from germane.protocols import (
    Clock,
    Embedder,
    FrameSelector,
    Store,
    Summarizer,
    TokenCounter,
)
from germane.ranking.learning import FEWEST, calibrated, fit_weights, leanings, signals_of, usefulness
from germane.stores.location import FEEDBACK, MAINTENANCE
from germane.tokens import CachedCounter

if TYPE_CHECKING:
    from germane.conversation.layout import Arrangement
    from germane.conversation.views import Tiers
    from germane.model.conversation import Provider
    from germane.operations.embedding import BackgroundEmbedding

# How work turned out with an agent's memories, as it stands at a moment.


class OutcomeCache:
    """The leanings of the latest outcomes seen, by agent. Threads may share it: at worst one reads twice.

    They are never stored: what a purge removed has no part in them from then on.
    """

    __slots__ = ("_evidence", "_leanings")

    def __init__(self) -> None:
        self._evidence: dict[str, OutcomeHistory] = {}
        self._leanings: dict[str, tuple[int, datetime, Mapping[str, float]]] = {}

    def of(self, store: Store, agent: str, *, now: datetime) -> Mapping[str, float]:
        """How each memory leans by its outcomes, from -1 to 1, as of the last full hour."""
        feedback = FEEDBACK.of(store)
        if feedback is None:
            return {}
        known = self._evidence.get(agent)
        evidence = feedback.outcomes(agent, known=None if known is None else known.stamp) or known
        if evidence is None:
            return {}
        self._evidence[agent] = evidence
        hour = now.replace(minute=0, second=0, microsecond=0)
        made = self._leanings.get(agent)
        if made is None or made[:2] != (evidence.stamp, hour):
            # Nothing fades within an hour that anybody could tell, so the same answer serves all of it.
            made = self._leanings[agent] = (
                evidence.stamp,
                hour,
                leanings(evidence.records, now=hour),
            )
        return made[2]


# How well an agent judges itself, read anew when its memory has changed.

_ALL: Final = 10**9
_SAY_NOTHING: Final = (Outcome.ONGOING, Outcome.PENDING, Outcome.ABANDONED)
_ANY: Final = Filter(statuses=())


class CalibrationCache:
    """The latest judgement, by agent. Threads may share it: at worst decisions are read twice.

    It is never stored, and holds while a search gives the stamp of the one that brought it. It counts the
    decisions that the caller's filter admits, whatever its time range and statuses; one by a filter that
    says whose or which they are holds for no other call.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, ...], DecisionCalibration]] = {}

    def sought(self, agent: str, kinds: Kinds, where: Filter) -> tuple[Slice, ...]:
        """What a search has to bring besides for `from_search`: all decisions that stand, archived ones
        included.

        Nothing where there are none, or the latest judgement may still hold: what else is searched for says
        whether it does.
        """
        if agent in self._known and _binds(where) is None:
            return ()
        decisions = _decisions(kinds, where)
        return () if decisions is None else (decisions,)

    def from_search(self, agent: str, found: SearchResult, place: int, where: Filter) -> DecisionCalibration:
        """The judgement by what the slice at that place brought.

        It is that of `engine.calibration()` where the filter excludes none.
        """
        shared = _binds(where) is None
        known = self._known.get(agent) if shared else None
        if known is not None and known[0] == found.stamp:
            return known[1]
        own = (one.memory for one in found.slices[place] if one.memory.agent == agent)
        judgement = calibrated(sorted(own, key=lambda memory: memory.ref))
        if found.stamp is not None and shared:
            self._known[agent] = found.stamp, judgement
        return judgement

    def of(
        self, session: AgentContext, where: Filter, *, found: SearchResult | None = None
    ) -> DecisionCalibration | Exception:
        """The judgement, or why there is none.

        It takes a search of its own unless what was `found` says that the latest still holds.
        """
        agent = session.agent
        known = self._known.get(agent) if _binds(where) is None else None
        if known is not None and found is not None and known[0] == found.stamp:
            return known[1]
        decisions = _decisions(session.kinds, where)
        if decisions is None:
            return calibrated(())
        try:
            return self.from_search(agent, session.store.search(agent, Query(slices=(decisions,))), 0, where)
        except Exception as error:  # noqa: BLE001 - A store of the caller's own may fail in any way; a note tells.
            return error


def _decisions(kinds: Kinds, where: Filter) -> Slice | None:
    deciding = tuple(kind.name for kind in kinds if kind.lifecycle == "decision")
    current = Filter(statuses=(Status.ACTIVE, Status.ARCHIVED), without=_SAY_NOTHING)
    # A search keeps in memory what it has read, where a listing reads all decisions every time.
    return (
        Slice(kinds=deciding, order=Order.NEWEST, where=current, also=_binds(where), limit=_ALL)
        if deciding
        else None
    )


def _binds(where: Filter) -> Filter | None:
    """What a filter says of whose or which memories these are; None where it says nothing of it."""
    remaining = replace(where, when=None, statuses=(), without=())
    return None if remaining == _ANY else remaining


# The weights that an agent has learned, fitted when its examples have changed.


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedValues:
    """What use has taught: the weights of the parts of scores, and how useful single memories were.

    Usefulness is counted always, weights are fitted while the agent learns.
    """

    weights: Weights | None = None
    usefulness: Mapping[str, float] = field(default_factory=dict)


_NOTHING = LearnedValues()


class WeightCache:
    """What the latest examples seen have taught. Threads may share it: at worst weights are fitted twice.

    It is never stored: what a purge removed has no part in it from then on.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: tuple[LearningStatus, LearnedValues] | None = None

    def of(self, store: Store, agent: str, state: LearningStatus | None = None) -> Weights | None:
        """The weights that apply to an agent's scores; None while learning is off or nothing is learned."""
        return self.taught(store, agent, state).weights

    def taught(self, store: Store, agent: str, state: LearningStatus | None = None) -> LearnedValues:
        """All that applies to an agent's scores, as of the `state` that a search saw, or as it is now."""
        known = self._known
        if known is not None and known[0] == state:
            return known[1]
        feedback = FEEDBACK.of(store)
        if feedback is None:
            return _NOTHING
        state = feedback.learning(agent, None) if state is None else state
        if known is None or known[0] != state:
            # Read after the stamp: newer examples than it says are fitted again, older ones never cached.
            examples = feedback.examples(agent) if state.stamp else ()
            fitted = fit_weights(_weighable(examples)) if state.on else None
            weights = fitted if fitted is not None and fitted.contexts else None
            taught = LearnedValues(weights=weights, usefulness=usefulness(examples))
            known = self._known = (state, taught)
        return known[1]


def _weighable(examples: Iterable[Example]) -> Iterator[Example]:
    """The examples with those of their parts that have weights; a working set's have none."""
    for example in examples:
        parts = signals_of(example.parts)
        if parts:
            yield replace(example, parts=parts)


# The language of an agent's words.

_ENGLISH = "english"


def settled_language(store: Store, agent: str, given: str | None) -> str:
    """The language that an agent's words are in from now on: the one given, or the one that the store keeps.

    Raises InvalidInput for a language without a stemmer, or that the store can't index.
    """
    maintenance = MAINTENANCE.of(store)
    if maintenance is not None:
        return maintenance.language(agent, given)
    if given not in {None, _ENGLISH}:
        raise InvalidInput(
            f"language={given!r} can't be had from {type(store).__name__}, which indexes in English. "
            "Leave the language out, or give the store a sub-store `maintenance`."
        )
    return _ENGLISH


class AgentLanguage:
    """The language of an agent's words, looked up in the store once, when it is first needed."""

    __slots__ = ("_agent", "_follows", "_given", "_name", "_store")

    def __init__(
        self, store: Store, agent: str, given: str | None = None, *, follows: AgentLanguage | None = None
    ) -> None:
        """`follows` is the language that an agent of one user takes over."""
        self._store = store
        self._agent = agent
        self._given = given
        self._follows = follows
        self._name: str | None = None

    @property
    def name(self) -> str:
        """Its Snowball name. Raises what the store raises, and InvalidInput for one without a stemmer."""
        if self._name is None:
            self._name = settled_language(self._store, self._agent, self._given)
            if self._follows is not None and self._follows.name != self._name:
                self._name = self._follows.name
                # A read-only store has nothing of this user in another language, or refuses to search it.
                with suppress(StoreUnavailable):
                    settled_language(self._store, self._agent, self._name)
        return self._name


# Kinds that a filter asks for and nobody knows: most often a slip, which finds nothing and says little.

_ANY_STATUS = tuple(Status)


def unknown_kinds(sessions: Sequence[AgentContext], where: Filter) -> tuple[TraceNote, ...]:
    """A note for each kind of a filter that is neither registered nor stored, with the one that is nearest.

    The stores are only queried for kinds that aren't registered. Where the filter says more of whose or
    which memories these are, only kinds of those are stored, and only registered ones are near.
    """
    among = replace(where, kinds=(), when=None, statuses=_ANY_STATUS, without=())
    unregistered = [kind for kind in dict.fromkeys(where.kinds) if kind not in sessions[0].kinds]
    unknown = [
        kind
        for kind, of_kind in ((kind, replace(among, kinds=(kind,))) for kind in unregistered)
        if not any(session.store.find(session.agent, of_kind, limit=1) for session in sessions)
    ]
    if not unknown:
        return ()
    known = {kind.name for kind in sessions[0].kinds}
    if among == Filter(statuses=_ANY_STATUS):
        known.update(*(session.store.stats(session.agent).by_kind for session in sessions))
    return tuple(
        TraceNote(
            code="unknown_kind",
            text=f"No memory is of kind {kind!r}, and no such kind is registered{_nearest(kind, known)}",
        )
        for kind in unknown
    )


def _nearest(kind: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - Only a slip needs it.

    near = get_close_matches(kind.casefold(), sorted(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else "."


# Searches a store so that what can't be found for one section leaves the others as they are.


def found_apart(store: Store, agent: str, query: Query) -> SearchResult:
    """What a search finds; where it fails, what each of its slices finds alone, in a snapshot each.

    `SearchResult.failed` holds the error of each slice that fails by itself. Raises the first error where all
    do, and whatever says that the question is at fault.
    """
    try:
        return store.search(agent, query)
    except Exception as error:  # A store of the caller's own may fail in any way.
        is_the_callers = isinstance(error, GermaneError) and not isinstance(error, StoreError)
        if is_the_callers or len(query.slices) == 1:
            raise
        found: list[SearchResult] = []
        failed: dict[int, Exception] = {}
        for place, part in enumerate(query.slices):
            try:
                found.append(store.search(agent, replace(query, slices=(part,))))
            except Exception as alone:  # noqa: BLE001 - As above; it is reported, or raised for what is vital.
                found.append(SearchResult(slices=((),), by_relevance=False))
                failed[place] = alone
        if len(failed) == len(query.slices):
            raise
        return SearchResult(
            slices=tuple(one.slices[0] for one in found),
            lexical_bound=max(one.lexical_bound for one in found),
            window_bound=max(one.window_bound for one in found),
            stored=max(one.stored for one in found),
            admitted=max(one.admitted for one in found),
            by_relevance=any(one.by_relevance for one in found),
            failed=failed,
        )


MANY_TERMS = 16
"""Terms of a question from which on what it names by an identifier may be outvoted before it is ranked."""


def found_with_named(store: Store, agent: str, query: Query) -> SearchResult:
    """What a search finds, and what holds an identifier of a long question verbatim.

    The hundred best by all words of a pasted text need not have the one memory that it names. Raises as
    `found_apart` does.
    """
    from germane.ranking.signals import identifiers_in, shares_of_identifiers  # noqa: PLC0415 - Few are long.
    from germane.retrieval.tokenizer import query_terms  # noqa: PLC0415 - As above.

    found = found_apart(store, agent, query)
    names = " ".join(identifiers_in(query.text))
    terms = query_terms(names, language=query.language or "english")
    if not terms:
        return found
    more = found_apart(store, agent, replace(query, text=names, terms=terms, informative=terms, vector=None))
    slices: list[Sequence[Candidate]] = []
    for part, candidates, others in zip(query.slices, found.slices, more.slices, strict=True):
        known = {candidate.memory.ref for candidate in candidates}
        new = [candidate for candidate in others if candidate.memory.ref not in known]
        shares = shares_of_identifiers([each.memory for each in new], names) if part.order is None else ()
        named = sorted([*candidates, *(new[place] for place in shares)], key=lambda each: each.memory.ref)
        slices.append(tuple(named) if shares else candidates)
    return replace(found, slices=tuple(slices))


def failures(plan: Plan, found: SearchResult, kinds: Kinds) -> Sequence[TraceNote]:
    """A note for each section that could not be searched.

    Raises the error of one whose memories may have to stand in the context, of what was pinned, and of the
    first where all failed: what nobody could look for must not be missing without a word.
    """
    sections = [section for section in plan.sections if section.gathers]
    strict = kinds.strict().keys()
    notes: list[TraceNote] = []
    for place, error in sorted(found.failed.items()):
        section = sections[place] if place < len(sections) else None
        alone = len(found.failed) >= len(sections)
        if section is None or alone or section.required or section.required_kinds:
            raise error
        if strict & set(section.kinds or kinds.by_name):
            raise error
        notes.append(
            TraceNote(
                code="section_failed",
                text=f"Section {section.name!r} could not be searched and is empty: "
                f"{type(error).__name__}: {error}",
            )
        )
    return notes


# The arrangements made last, so that a conversation that grows is arranged and counted once.
#
# It changes no result: an arrangement follows the messages that it is given, and what is hidden or removed
# leaves it then.

_MOST: Final = 16
_Key: TypeAlias = "tuple[str, str, Provider, str, Tiers]"


class Arrangements:
    """Arrangements of a few conversations, and a counter for each name. Threads may share it."""

    __slots__ = ("_counters", "_lock", "_made", "_process")

    def __init__(self) -> None:
        self._made: OrderedDict[_Key, Arrangement] = OrderedDict()
        self._counters: dict[str, tuple[TokenCounter, CachedCounter]] = {}
        self._lock = renewed(Lock())
        self._process = os.getpid()

    def of(
        self, agent: str, session: str | None, provider: Provider, counter: TokenCounter, tiers: Tiers
    ) -> Arrangement:
        """The arrangement of a conversation; without a session a new one, which nobody keeps."""
        from germane.conversation.layout import Arrangement  # noqa: PLC0415 - Most agents send nothing.

        counting = self._counting(counter)
        if session is None:
            return Arrangement(provider, counting, tiers)
        key = (agent, session, provider, counter.name, tiers)
        with self._lock:
            if self._process != os.getpid():
                # A thread of the parent may have been at work on any of them.
                self._made.clear()
                self._process = os.getpid()
            known = self._made.pop(key, None)
            if known is None or known.counter is not counting:
                known = Arrangement(provider, counting, tiers)
            self._made[key] = known
            while len(self._made) > _MOST:
                self._made.popitem(last=False)
            return known

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._made.clear()

    def _counting(self, counter: TokenCounter) -> CachedCounter:
        """The counter with a memory; the same one for the same counter."""
        if isinstance(counter, CachedCounter):
            return counter
        with self._lock:
            known = self._counters.get(counter.name)
            if known is None or known[0] is not counter:
                known = self._counters[counter.name] = (counter, CachedCounter(counter))
            return known[1]


class _Heard(dict[Hashable, Memory]):
    """Messages as candidates, which a purge drops."""

    def __init__(self) -> None:
        super().__init__()
        clear_at_purge(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentContext:
    """An agent's side of a store, which shows nothing that has expired. Each verb is given one by the engine.

    `set_aside` says whose vectors are in the store when no embedder of it is at hand, and what to do.
    `frames` are known beside the built-in ones; `frame_selector` chooses among all, if there is one.
    `lines` remembers how memories look in a context and what they cost there, by `counter`, and `passages`
    those of long memories, `heard` messages as candidates;
    `base` is the agent's own side where this is that of one of its users, which reads it as well; `member`
    is that of the member that uses a space.
    `weight_cache` what use has taught, `outcome_cache` how work turned out, `calibration_cache` how well the
    agent judges itself, `arrangements` conversations as they are sent. With `records`, assemblies go into
    the ledger unless a call says otherwise; `timer` tells the seconds for it.
    """

    agent: str
    store: Store
    counter: TokenCounter
    kinds: Kinds
    clock: Clock
    ids: IdSequence
    words: AgentLanguage
    embedder: Embedder | None = None
    set_aside: str = ""
    summarizer: Summarizer | None = None
    reranking: Reranking | None = None
    frames: tuple[Frame, ...] = ()
    frame_selector: FrameSelector | None = None
    lines: RememberedLines = field(default_factory=RememberedLines, repr=False, compare=False)
    passages: PassageCache = field(default_factory=PassageCache, repr=False, compare=False)
    weight_cache: WeightCache = field(default_factory=WeightCache, repr=False, compare=False)
    heard: _Heard = field(default_factory=_Heard, repr=False, compare=False)
    records: bool = False
    timer: Callable[[], float] = field(default=time.perf_counter, repr=False, compare=False)
    base: AgentContext | None = None
    member: AgentContext | None = None
    arrangements: Arrangements = field(default_factory=Arrangements, repr=False, compare=False)
    background: BackgroundEmbedding | None = field(default=None, repr=False, compare=False)
    outcome_cache: OutcomeCache = field(default_factory=OutcomeCache, repr=False, compare=False)
    calibration_cache: CalibrationCache = field(default_factory=CalibrationCache, repr=False, compare=False)

    def __post_init__(self) -> None:
        # By the clock of this side, also where another clock or store takes the place of the former.
        object.__setattr__(self, "store", UnexpiredStore(self.store, self.clock))

    def clear_texts(self) -> None:
        """Drop every text in the caches of this process, as after a purge."""
        for cache in (self.lines, self.passages, self.heard, self.arrangements):
            cache.clear()
        clear_text_caches()

    @property
    def sides(self) -> tuple[AgentContext, ...]:
        """What the agent reads: its own memories, and for one user those of the agent itself."""
        return (self,) if self.base is None else (self, self.base)

    def for_user(self, user: str) -> AgentContext:
        """The same agent for one user: what it stores is that user's, and it reads its own as well.

        Raises InvalidInput for what can't be a name, and where a user is bound already.
        """
        if self.base is not None or is_tenant(self.agent):
            raise InvalidInput(
                f"for_user({user!r}) can't be called here: {self.agent!r} is a user's or a space's. Call it "
                "on the engine of the agent itself."
            )
        tenant = user_tenant(user, self.agent)
        return replace(
            self,
            agent=tenant,
            base=self,
            words=AgentLanguage(self.store, tenant, follows=self.words),
            weight_cache=WeightCache(),
            outcome_cache=OutcomeCache(),
            calibration_cache=CalibrationCache(),
        )

    @property
    def language(self) -> str:
        """The language of the agent's words, by its Snowball name."""
        return self.words.name


# Writes into a plan's sections what the agent's own record says: how far its confidence is to be trusted.


def judged(
    session: AgentContext, found: SearchResult, sought: tuple[Slice, ...], *, where: Filter
) -> tuple[SearchResult, DecisionCalibration | Exception]:
    """What was found without the last slice where that was `sought` for the judgement; and the judgement."""
    if not sought:
        return found, session.calibration_cache.of(session, where, found=found)
    place = len(found.slices) - 1
    failed = {number: error for number, error in found.failed.items() if number != place}
    rest = replace(found, slices=found.slices[:place], failed=failed)
    if place in found.failed:
        return rest, found.failed[place]
    return rest, session.calibration_cache.from_search(session.agent, found, place, where)


def advised(
    plan: Plan, calibration: DecisionCalibration | Exception | None
) -> tuple[Plan, tuple[TraceNote, ...]]:
    """The plan with one sentence as the text of each section that `advises`.

    Where fewer than ten decisions have a confidence and an outcome there is nothing to say yet. Where the
    decisions couldn't be read the section stays without, and a note says so.
    """
    if isinstance(calibration, Exception):
        why = f"could not read how decisions turned out: {type(calibration).__name__}: {calibration}"
        return plan, tuple(
            TraceNote(code="section_failed", text=f"Section {section.name!r} {why}")
            for section in plan.sections
            if section.advises
        )
    if calibration is None or calibration.count < FEWEST:
        return plan, ()
    sections = tuple(
        replace(section, text=calibration.advice) if section.advises else section for section in plan.sections
    )
    return replace(plan, sections=sections), ()
