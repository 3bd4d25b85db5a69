"""metrics: how well contexts do, from the ledger, from feedback and from what is stored.

Level: verbs. docs/explanation/metrics.md defines each figure; what it says and what stands here are one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from statistics import median

from germane.errors import InvalidInput
from germane.model.ledger import Assembly, LedgerEntry
from germane.model.memory import Memory, Status, as_utc
from germane.model.message import Role
from germane.model.metrics import Day, Metrics
from germane.model.query import Filter, TimeRange
from germane.model.stage import Stage
from germane.protocols import Conversing
from germane.spaces import is_tenant
from germane.verbs.checks import checked_time
from germane.verbs.held_recording import WORKING_SET
from germane.verbs.recording import recording_store
from germane.verbs.session import Session

__all__ = ["DEFAULT_DAYS", "metrics"]

DEFAULT_DAYS = 30

_EARLIEST = datetime.min.replace(tzinfo=UTC)
_SIMILAR = ("lexical", "semantic")
_MOST_DAYS = 3660
"""Ten years: more days than that are a slip of the pen, and would be a long list."""


def metrics(session: Session, *, since: datetime | str | None) -> Metrics:
    """The figures since then, 30 days ago unless given. Raises InvalidInput."""
    store = recording_store(session)
    until = as_utc(session.clock(), name="clock")
    days = min(timedelta(days=DEFAULT_DAYS), until - _EARLIEST)
    start = until - days if since is None else checked_time(since, name="since", clock=lambda: until)
    if not timedelta(0) < until - start <= timedelta(days=_MOST_DAYS):
        raise InvalidInput(
            f"since={start.isoformat()} has to lie before now ({until.isoformat()}), by {_MOST_DAYS:,} days "
            "at most."
        )
    recorded = [one for one in store.recordings(session.agent, since=start) if one.at <= until]
    # A working set shows what is held whatever was asked, and its limit is no budget to be used.
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
        fact_confirmation=_mean([float(_is_confirmed(one)) for one in facts]),
        assemblies=len(assemblies),
        judged=sum(map(_is_judged, recorded)),
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
    shown = [entry for assembly in assemblies if _is_judged(assembly) for entry in assembly.included]
    return _mean([float(entry.used is True) for entry in shown])


def _is_judged(assembly: Assembly) -> bool:
    return any(entry.used is not None for entry in assembly.entries)


def _is_confirmed(fact: Memory) -> bool:
    return fact.stage in (Stage.CONFIRMED, Stage.CORE) or fact.seen_count > 1


def _stored(session: Session, where: Filter) -> tuple[Memory, ...]:
    return session.store.find(session.agent, where)


def _turns(session: Session, since: datetime, until: datetime) -> int:
    """How often the user spoke in the agent's conversations; a message without a time is of no time."""
    store = session.store
    if not isinstance(store, Conversing) or is_tenant(session.agent):
        return 0
    messages = (
        message
        for info in store.conversations(session.agent)
        if info.last_at is None or info.last_at >= since
        for message in store.messages(session.agent, info.session, hidden=True)
    )
    return sum(
        1
        for message in messages
        if message.role == Role.USER
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
