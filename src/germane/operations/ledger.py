"""The ledger: look at recorded assemblies, compare and repeat them, and make figures of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from operator import attrgetter
from statistics import median
from typing import TYPE_CHECKING, Any

from germane.errors import AssemblyNotFound, GermaneError, InvalidInput, NotFound, PurgeNotConfirmed
from germane.ledger import (
    Assembly,
    AssemblyDiff,
    Day,
    LedgerEntry,
    LoggedChange,
    MemoryChange,
    MemoryChangeKind,
    Metrics,
    Replay,
    ValueChange,
)
from germane.model.context import Context, Ranked, TraceNote
from germane.model.conversation import MessageRole
from germane.model.memory import Memory, Stage, Status
from germane.model.plan import TaskInput
from germane.model.query import Filter, TimeRange
from germane.model.text import counted, is_space
from germane.model.validation import as_utc
from germane.operations.assemble import AssembleRequest, ItemDetails, assemble
from germane.operations.context import AgentContext
from germane.operations.frame import MessageFilter, PlanInput
from germane.operations.inputs import Reranking, checked_count, checked_time, checking_verbs
from germane.operations.past import copied
from germane.operations.recording import assembly_of
from germane.operations.refresh import CUT, cut_again
from germane.operations.search import entered_spaces
from germane.operations.working_set import (
    WORKING_SET,
    moved_since,
    reassemble_working_set,
    records_working_set,
)
from germane.stores.location import CONVERSATIONS, LEDGER
from germane.tokens import CachedCounter, get_counter

if TYPE_CHECKING:
    from germane.stores.relational.ledger import LedgerTables

_TELLING = {
    MemoryChangeKind.SEEN: "was repeated or used, or its counts moved",
    MemoryChangeKind.MOVED: "went to another status, so that nobody knows at which it stood",
    MemoryChangeKind.EMBEDDED: "got a vector, so that nobody knows what it had before",
}
_MOST_NAMED = 5


def ledger(session: AgentContext) -> Ledger:
    """The agent's ledger. Raises InvalidInput for a store that keeps none."""
    return Ledger(session, LEDGER.required(session.store))


def changes(session: AgentContext, *, after: int, limit: int | None) -> tuple[LoggedChange, ...]:
    """What happened to the agent's memories after a change, in order. Raises InvalidInput."""
    checked_count(after, name="after")
    if limit is not None:
        checked_count(limit, name="limit")
    return LEDGER.required(session.store).log(session.agent, since=after, limit=limit)


def latest_change(session: AgentContext) -> int:
    """The number of the latest change of the agent's memories; 0 where there is none."""
    return LEDGER.required(session.store).point(session.agent)["seq"]


@checking_verbs
class Ledger:
    """What was assembled and recorded for an agent. Made by `engine.ledger()`.

    It contains no text of a memory. A purged memory takes its entries with it, and the hash of each
    text that it stood in.
    """

    def __init__(self, session: AgentContext, store: LedgerTables) -> None:
        self._session = session
        self._store = store

    def __repr__(self) -> str:
        return f"<germane.Ledger agent={self._session.agent!r}>"

    def list(
        self, *, since: datetime | str | None = None, limit: int | None = 20, after: str | None = None
    ) -> tuple[Assembly, ...]:
        """The assemblies made at `since` or later, the latest first, at most `limit` (None: all).

        `after` is the id of the assembly that ended the page before. Raises AssemblyNotFound where it is
        gone, and InvalidInput.
        """
        start = None if since is None else checked_time(since, name="since", clock=self._session.clock)
        try:
            return self._store.find(self._session.agent, since=start, limit=limit, after=after)
        except NotFound as error:
            raise AssemblyNotFound(error.memory_id, self._session.agent) from None

    def show(self, assembly_id: str) -> Assembly:
        """One assembly with its entries. Raises AssemblyNotFound."""
        found = self._store.get(self._session.agent, assembly_id)
        if found is None:
            raise AssemblyNotFound(assembly_id, self._session.agent)
        return found

    def purge(
        self, assembly_id: str | None = None, *, before: datetime | str | None = None, confirm: bool = False
    ) -> int:
        """Delete one assembly, those made before a time, or all, and every trace of their questions.

        Returns how many went. It rewrites the file and can't be undone, so it needs `confirm=True`; metrics
        no longer count them. Raises AssemblyNotFound, PurgeNotConfirmed, or InvalidInput for an id and a
        time together.
        """
        if assembly_id is not None and before is not None:
            raise InvalidInput(
                "assembly_id and before were both given: give one of them, or neither for all."
            )
        end = None if before is None else checked_time(before, name="before", clock=self._session.clock)
        if assembly_id is not None:
            self.show(assembly_id)
        if confirm is not True:
            raise PurgeNotConfirmed(ledger=True)
        return self._store.purge(self._session.agent, assembly_id=assembly_id, before=end)

    def diff(self, first: str, second: str) -> AssemblyDiff:
        """What differs between two assemblies, from the first to the second. Raises AssemblyNotFound."""
        return difference(self.show(first), self.show(second))

    def replay(self, assembly_id: str, /, **given: Any) -> Replay:
        """Make an assembly again, with the store as it was then, and say whether the bytes are the same.

        Give again what isn't recorded: `plan`, `frame`, `scorer`, `conversation`, `counter` or `without`, as
        to `assemble`. The agent's memories of then are copied into memory for it, some seconds for each
        100,000.
        Raises AssemblyNotFound, or InvalidInput for what no assembly takes.
        """
        unknown = sorted(set(given) - {"plan", "frame", "scorer", "conversation", "counter", "without"})
        if unknown:
            raise InvalidInput(
                f"{', '.join(unknown)} can't be given to a replay: they stand in the record. Give plan, "
                "frame, scorer, conversation, counter or without."
            )
        assembly = self.show(assembly_id)
        alterations = self._store.changes_since(assembly.agent, assembly.points[assembly.agent])
        of_now = assembly.made_for == WORKING_SET and not records_working_set(assembly)
        moved = tuple(moved_since(self._session, assembly)) if of_now else ()

        def why(again: Assembly | None) -> tuple[str, ...]:
            messages = _moved_messages(self._session, assembly)
            return (*moved, *messages, *_why(assembly, again, alterations, given))

        try:
            context, again = _again(self._session, assembly, given)
        except GermaneError as error:
            reasons = (f"It can't be made again: {error}", *why(None))
            return Replay(assembly=assembly, same=False, context=None, why=reasons, alterations=alterations)
        same = assembly.sha256 is not None and assembly.sha256 == again.sha256
        return Replay(
            assembly=assembly,
            same=same,
            context=replace(context, ref=assembly.id),
            why=() if same else why(again),
            makers=_makers_changed(assembly, again),
            alterations=alterations,
            difference=difference(assembly, again),
        )


def difference(first: Assembly, second: Assembly) -> AssemblyDiff:
    """What differs from the first assembly to the second. Pure."""
    before = {entry.version_id: entry for entry in first.included}
    after = {entry.version_id: entry for entry in second.included}
    both = [one for one in before if one in after]
    ranks = [one for one in after if one in before]
    place = attrgetter("section", "level")
    altered = [one for one in both if place(before[one]) != place(after[one])]
    return AssemblyDiff(
        inputs=tuple(_input_changes(first, second)),
        entered=tuple(entry for one, entry in after.items() if one not in before),
        left=tuple(entry for one, entry in before.items() if one not in after),
        altered=tuple((before[one], after[one]) for one in altered),
        moved=tuple(
            one for one, other in zip(both, ranks, strict=True) if one != other and one not in altered
        ),
        same_text=first.sha256 is not None and first.sha256 == second.sha256,
    )


def _again(session: AgentContext, assembly: Assembly, given: dict[str, Any]) -> tuple[Context, Assembly]:
    """The context that the recorded question gives now in the store of then, and the record of it."""
    counter = session.counter if assembly.counter == session.counter.name else None
    if "counter" in given or counter is None:
        counter = CachedCounter(get_counter(given.get("counter", assembly.counter)))
    if assembly.made_for == WORKING_SET:
        return _replay_working_set(replace(session, counter=counter), assembly, given)
    if assembly.made_for == CUT:
        plan = given.get("plan", assembly.plan)
        with _all_past(session, assembly) as past:
            return cut_again(past, assembly, plan=plan, counter=counter)
    options = assembly.options
    details = {name: options[name] for name in ("dates", "sources", "ids") if name in options}
    request = AssembleRequest(
        query=assembly.question,
        where=assembly.where,
        counter=counter,
        how=PlanInput(
            plan=given.get("plan", assembly.plan),
            frame=given.get("frame", assembly.frame),
            guidance=options.get("guidance", False),
            budget=assembly.budget if assembly.given_budget else None,
        ),
        pins=[entry.memory_id for entry in assembly.entries if entry.pinned],
        without=given.get("without", ()),
        scorer=given.get("scorer"),
        conversation=given.get("conversation"),
        gate=options.get("gate"),
        messages=_messages_of(session, options.get("messages")),
        work=TaskInput(
            task=options.get("task"), paths=options.get("paths", ()), changed=options.get("changed")
        ),
        details=ItemDetails(**details),
    )
    with _all_past(session, assembly) as past:
        request = replace(request, spaces=tuple(past[1:]))
        context = assemble(past[0], request)
        return context, assembly_of(past[0], context, request, points=assembly.points)


def _messages_of(session: AgentContext, recorded: Mapping[str, Any] | None) -> MessageFilter:
    """The messages that took part in an assembly, as they are in the log now."""
    if recorded is None:
        return MessageFilter()
    without = frozenset((agent, name) for agent, name in recorded["without"])
    return MessageFilter(of=session.sides, sessions=without)


def _moved_messages(session: AgentContext, assembly: Assembly) -> Iterator[str]:
    """Why messages of conversations may not be those of then."""
    recorded = assembly.options.get("messages")
    points = {} if recorded is None else recorded["points"]
    for one in session.sides:
        log = CONVERSATIONS.of(one.store)
        if one.agent in points and (log is None or log.point(one.agent) != points[one.agent]):
            yield (
                f"Messages of the conversations of {one.agent!r} took part, and the log has changed since: "
                "messages aren't kept as they were."
            )


def _replay_working_set(
    session: AgentContext, assembly: Assembly, given: dict[str, Any]
) -> tuple[Context, Assembly]:
    """The same for a working set: its content then, in the store of then, as far as the record says it."""
    if not records_working_set(assembly):
        return reassemble_working_set(session, assembly, given.get("scorer"))
    with _past(session, assembly) as past:
        return reassemble_working_set(past, assembly, given.get("scorer"))


@contextmanager
def _all_past(session: AgentContext, assembly: Assembly) -> Iterator[Sequence[AgentContext]]:
    """The agent's session and those of the spaces that had a part, on the stores of then."""
    with ExitStack() as opened:
        yield [
            opened.enter_context(_past(one, assembly))
            for one in (session, *entered_spaces(session, assembly.spaces))
        ]


@contextmanager
def _past(session: AgentContext, assembly: Assembly) -> Iterator[AgentContext]:
    """The session on the store of then, which is closed at the end."""
    point = assembly.points[session.agent]
    reranking = _Recorded(assembly) if assembly.makers.get("reranker") else None
    with copied(session, point, assembly.at, reranking=reranking) as then:
        yield then


class _Recorded(Reranking):
    """The reranker of a recorded assembly, by the parts that it gave then: it may give others now."""

    def __init__(self, assembly: Assembly) -> None:
        self.name = assembly.makers["reranker"]
        given = {one.version_id: one.parts.get("reranker") for one in assembly.entries}
        self._given = {name: part for name, part in given.items() if part is not None}

    def of(
        self,
        question: str,  # noqa: ARG002 - The signature is the other's.
        ranked: Sequence[Ranked],
        **_: object,
    ) -> tuple[Mapping[str, float], tuple[TraceNote, ...]]:
        """What is recorded of these."""
        memories = [one.memory for one in ranked]
        return {one.ref: self._given[one.version_id] for one in memories if one.version_id in self._given}, ()


def _input_changes(first: Assembly, second: Assembly) -> Iterator[ValueChange]:
    names = ("question", "plan", "frame", "budget", "counter", "where", "spaces", "at")
    for name in names:
        before, after = getattr(first, name), getattr(second, name)
        if before != after:
            yield ValueChange(name=name, before=_as_text(before), after=_as_text(after))


def _as_text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _makers_changed(assembly: Assembly, again: Assembly) -> tuple[ValueChange, ...]:
    made = {**assembly.makers, "counter": assembly.counter}
    now = {**again.makers, "counter": again.counter}
    return tuple(
        ValueChange(name=name, before=made.get(name, ""), after=now.get(name, ""))
        for name in sorted(made.keys() | now.keys())
        if made.get(name, "") != now.get(name, "")
    )


def _why(
    assembly: Assembly, again: Assembly | None, alterations: Sequence[MemoryChange], given: dict[str, Any]
) -> Iterator[str]:
    """What may have changed the bytes of a replay, the most certain cause first."""
    gone = sum(1 for each in alterations if each.what is MemoryChangeKind.PURGED)
    if assembly.sha256 is None:
        yield (
            "A memory that stood in it was purged, and the hash of the text with it, so nothing can prove "
            "that any bytes are the same."
        )
    elif gone:
        yield f"Purged since: {counted(gone, 'memory')}. They had their part in what words count."
    missing = [name for name in assembly.unkept if name not in given]
    if missing:
        yield f"It was made with what the ledger can't keep: give replay its {', '.join(missing)} again."
    for each in _makers_changed(assembly, again) if again is not None else ():
        yield f"Its {each.name} was {each.before or 'none'}, and is {each.after or 'none'} now."
    if any(each.what is MemoryChangeKind.REINDEXED for each in alterations):
        yield "All memories were indexed anew since, by another tokenizer or language."
    for what, says in _TELLING.items():
        ids = list(dict.fromkeys(each.memory_id or "" for each in alterations if each.what is what))
        if ids:
            more = f" and {len(ids) - _MOST_NAMED:,} more" if len(ids) > _MOST_NAMED else ""
            yield f"Since then this {says}: {', '.join(ids[:_MOST_NAMED])}{more}."
    if not assembly.settled:
        yield "Somebody wrote to the store while it was made."


# metrics: how well contexts do, from the ledger, from feedback and from what is stored.
#
# docs/explanation/metrics.md defines each figure; what it says and what stands here are one.

DEFAULT_DAYS = 30

_EARLIEST = datetime.min.replace(tzinfo=UTC)
_SIMILAR = ("lexical", "semantic")
_MOST_DAYS = 3660
"""Ten years: more days than that are a slip of the pen, and would be a long list."""


def metrics(session: AgentContext, *, since: datetime | str | None) -> Metrics:
    """The figures since then, 30 days ago unless given. Raises InvalidInput."""
    store = LEDGER.required(session.store)
    until = as_utc(session.clock(), name="clock")
    days = min(timedelta(days=DEFAULT_DAYS), until - _EARLIEST)
    start = until - days if since is None else checked_time(since, name="since", clock=lambda: until)
    if not timedelta(0) < until - start <= timedelta(days=_MOST_DAYS):
        raise InvalidInput(
            f"since={start.isoformat()} has to lie before now ({until.isoformat()}), by {_MOST_DAYS:,} days "
            "at most."
        )
    recorded = [one for one in store.find(session.agent, since=start) if one.at <= until]
    # A working set shows its content for every question, and its limit is no budget to be used.
    assemblies = [one for one in recorded if one.made_for != WORKING_SET]
    added = _stored(session, Filter(when=TimeRange(since=start, until=until), statuses=tuple(Status)))
    kinds = tuple(kind.name for kind in session.kinds if kind.lifecycle == "fact")
    facts = _stored(session, Filter(kinds=kinds)) if kinds else ()
    turns = _turns(session, start, until)
    cold = [one.seconds for one in assemblies if one.cold and one.seconds is not None]
    firsts = [memory for memory in added if memory.version == 1]
    return Metrics(
        since=start,
        until=until,
        relevance=_relevance(assemblies),
        budget_use=_budget_use(assemblies),
        refreshes_per_turn=len(assemblies) / turns if turns else None,
        recall_precision=_precision(recorded),
        cold_start=median(cold) if cold else None,
        memory_growth=len(firsts) / ((until - start) / timedelta(days=1)),
        fact_confirmation=_mean(
            [float(one.stage in (Stage.CONFIRMED, Stage.CORE) or one.seen_count > 1) for one in facts]
        ),
        assemblies=len(assemblies),
        with_feedback=sum(map(_has_feedback, recorded)),
        cold=len(cold),
        turns=turns,
        facts=len(facts),
        per_day=tuple(_per_day(start, until, assemblies, firsts)),
    )


def _relevance(assemblies: Iterable[Assembly]) -> float | None:
    """The mean over contexts of the mean similarity of what relevance brought into them."""
    means = [
        _mean([one for one in map(_similarity, assembly.included) if one is not None])
        for assembly in assemblies
    ]
    return _mean([one for one in means if one is not None])


def _similarity(entry: LedgerEntry) -> float | None:
    """How well a memory matches the question in words or in meaning, the better of the two, from 0 to 1."""
    parts = [entry.parts[name] for name in _SIMILAR if name in entry.parts]
    return min(1.0, max(0.0, *parts)) if parts else None


def _budget_use(assemblies: Iterable[Assembly]) -> float | None:
    return _mean([one.tokens / one.budget for one in assemblies if one.budget])


def _precision(assemblies: Iterable[Assembly]) -> float | None:
    """The share of what stood in the contexts that feedback spoke of which was used, all memories alike."""
    shown = [entry for assembly in assemblies if _has_feedback(assembly) for entry in assembly.included]
    return _mean([float(entry.used is True) for entry in shown])


def _has_feedback(assembly: Assembly) -> bool:
    return any(entry.used is not None for entry in assembly.entries)


def _stored(session: AgentContext, where: Filter) -> tuple[Memory, ...]:
    return session.store.find(session.agent, where)


def _turns(session: AgentContext, since: datetime, until: datetime) -> int:
    """How often the user spoke in the agent's conversations; a message without a time is of no time."""
    log = CONVERSATIONS.of(session.store)
    if log is None or is_space(session.agent):
        return 0
    messages = (
        message
        for info in log.sessions(session.agent)
        if info.last_at is None or info.last_at >= since
        for message in log.messages(session.agent, info.session, hidden=True)
    )
    return sum(
        1
        for message in messages
        if message.role == MessageRole.USER
        and message.created_at is not None
        and since <= message.created_at <= until
    )


def _per_day(
    start: datetime, until: datetime, assemblies: Sequence[Assembly], added: Sequence[Memory]
) -> Iterable[Day]:
    made: dict[date, list[Assembly]] = {}
    for assembly in assemblies:
        made.setdefault(_date(assembly.at), []).append(assembly)
    stored = Counter(_date(memory.created_at) for memory in added)
    first, last = _date(start), _date(until)
    for day in (first + timedelta(days=number) for number in range((last - first).days + 1)):
        these = made.get(day, [])
        yield Day(
            date=day,
            assemblies=len(these),
            added=stored[day],
            relevance=_relevance(these),
            budget_use=_budget_use(these),
            recall_precision=_precision(these),
        )


def _date(moment: datetime) -> date:
    return moment.astimezone(UTC).date()


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
