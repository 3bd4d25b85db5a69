"""Every verb of an engine as an act with a comparable result, for tests of who sees what."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from germane import Draft, Engine, Filter, GermaneError, Memory, Status
from germane.encoding import to_json
from germane.importers import export_jsonl
from germane.testing.fakes import START

__all__ = ["ACTS", "Person", "TickingClock"]

WORDS: Final = (
    "redis cache",
    "tea in the garden",
    "billing on port 5433",
    "the deploy of friday",
    "a blue lamp",
)
KINDS: Final = ("note", "fact", "decision", "procedure", "constraint", "episode")
_NOBODYS: Final = "00000000-0000-7000-8000-000000000000"
EVERY: Final = Filter(statuses=tuple(Status))


class TickingClock:
    """A clock that is a minute later at each reading."""

    def __init__(self) -> None:
        self._now = START

    def __call__(self) -> datetime:
        self._now += timedelta(minutes=1)
        return self._now


class Person:
    """Someone who acts on an engine by numbers; what was stored is remembered for the acts that follow."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.engine = engine
        self.name = name
        self.ids: list[str] = []
        self.context: Any = None
        self.results: list[str] = []

    def does(self, act: str, number: int) -> None:
        """One act, and its result as text: what it returned, or the error that it raised."""
        try:
            result = ACTS[act](self, number)
        except GermaneError as error:
            result = [type(error).__name__, str(error)]
        # The size of the whole store is shown to the agent alone.
        hidden = {"cold_start", "location", "seconds"} | ({"bytes"} if self.engine.user is None else set())
        self.results.append(f"{act} {number}: {_without(to_json(result), hidden)!r}")

    def text(self, number: int) -> str:
        """A text with words that all use and one that only this person does."""
        return f"{self.name} {number} wrote about {WORDS[number % len(WORDS)]} and {self.name}{number % 7}."

    def id(self, number: int) -> str:
        """The id of something that this person stored, now and then of something of the agent's own."""
        if self.engine.user is not None and number % 4 == 3:
            own = [each.id for each in self.engine.memories(order="oldest") if each.user is None]
            if own:
                return own[number % len(own)]
        return self.ids[number % len(self.ids)] if self.ids else _NOBODYS

    def keep(self, *memories: Memory) -> Sequence[Memory]:
        """Remember the ids for the acts that follow."""
        self.ids += [each.id for each in memories if each.id not in self.ids]
        return memories


def _without(value: Any, hidden: Collection[str]) -> Any:
    """A result without these fields, which differ from run to run or are shown on purpose."""
    if isinstance(value, Mapping):
        return {name: _without(each, hidden) for name, each in value.items() if name not in hidden}
    return [_without(each, hidden) for each in value] if isinstance(value, list | tuple) else value


def _remember(who: Person, number: int) -> Any:
    kind = KINDS[number % len(KINDS)]
    return who.keep(
        who.engine.remember(who.text(number), kind=kind, tags=[f"t:{number % 3}"], confidence=0.8)
    )


def _remember_many(who: Person, number: int) -> Any:
    drafts = [Draft(content=who.text(number + each), kind="fact", subject=f"s{each}") for each in range(3)]
    results = who.engine.remember_many(drafts, reconcile=bool(number % 2))
    who.keep(*(each.memory for each in results))
    return results


def _shared_words(who: Person, number: int) -> Any:
    """The very same text as others store, which is a duplicate for none of them."""
    return who.keep(who.engine.remember(f"The standup is at {number % 4} o'clock.", kind="fact"))


def _assemble(who: Person, number: int) -> Any:
    plan = "scoped" if number % 3 == 2 else "layered"
    given: dict[str, Any] = {"task": "T-1"} if plan == "scoped" else {}
    who.context = who.engine.assemble(
        WORDS[number % len(WORDS)], budget=400 + 50 * (number % 5), plan=plan, record=True, **given
    )
    return [who.context, who.context.text]


def _feedback(who: Person, number: int) -> Any:
    if who.context is None:
        return None
    shown = [each.memory_id for each in who.context.trace.included]
    return who.engine.feedback(who.context, used=shown[: number % 3])


def _outcome(who: Person, number: int) -> Any:
    result = ("success", "failure", "partial")[number % 3]
    return None if who.context is None else who.engine.outcome(who.context, result)


def _observe(who: Person, number: int) -> Any:
    return None if who.context is None else who.engine.observe(who.context, who.text(number))


def _refresh(who: Person, number: int) -> Any:
    refreshed = who.engine.refresh(who.context, WORDS[number % len(WORDS)], budget=500)
    if refreshed.needed:
        who.context = refreshed.context
    return refreshed


def _request(who: Person, number: int) -> Any:
    talk = who.engine.conversation(f"talk {number % 2}")
    talk.append("user", who.text(number))
    made = who.engine.request(talk, memory="layered", window=20_000, reserve=1000, record=True)
    talk.append("assistant", f"An answer to {who.name} about {WORDS[number % len(WORDS)]}.")
    return [made.messages, made.system, talk.messages()]


def _compact(who: Person, number: int) -> Any:
    talk = who.engine.conversation(f"talk {number % 2}")
    return who.engine.compact(talk, who.engine.compaction(talk, budget=40, keep=1))


def _working_set(who: Person, number: int) -> Any:
    desk = who.engine.working_set(f"desk {number % 2}", max_tokens=300)
    desk.add(who.id(number))
    return [desk.items(), desk.tokens, desk.changes(), desk.assemble(record=True).text]


def _ledger(who: Person, number: int) -> Any:
    ledger = who.engine.ledger()
    recorded = ledger.list(limit=None)
    shown = [ledger.show(each.id) for each in recorded[:2]]
    replay = ledger.replay(recorded[number % len(recorded)].id) if recorded else None
    made = None if replay is None else [replay.same, replay.why, replay.context and replay.context.text]
    return [len(recorded), shown, made]


def _export(who: Person, _: int) -> Any:
    out = io.StringIO()
    history = who.engine.usage_history()
    every = who.engine.memories(EVERY, order="oldest")
    own = [each for each in every if each.user == who.engine.user]
    states = dict(
        zip([one.ref for one in own], who.engine.lifecycle_states([one.ref for one in own]), strict=True)
    )
    export_jsonl(own, out, lifecycle_states=states, usage_history=history)
    return [out.getvalue(), history]


def _import(who: Person, number: int) -> Any:
    """What everybody imports has the same ids for all."""
    from germane.testing.fakes import make_memory  # noqa: PLC0415 - Few acts need it.

    given = make_memory(f"Handbook {number % 3}: water the plants.")
    results = who.engine.import_memories([given])
    who.keep(*(each.memory for each in results))
    return [results, who.engine.import_usage_history(who.engine.usage_history())]


def _space(who: Person, number: int) -> Any:
    space = who.engine.space(f"space of {who.name}", create=True)
    memory = space.remember(who.text(number))
    found = who.engine.recall(WORDS[number % len(WORDS)], spaces=[space.name])
    return [
        memory,
        space.memories(),
        space.count(),
        found,
        space.events(),
        who.engine.spaces(),
        space.stats(),
    ]


def _session(who: Person, number: int) -> Any:
    conversation = who.engine.conversation(f"session {number % 2}")
    conversation.append("user", who.text(number))
    conversation.append("assistant", f"Noted. ### STATE\n{who.text(number)}")
    if number % 3 == 0:
        conversation.state = who.text(number + 1)
    found = conversation.summary()
    if number % 4 == 0:
        conversation.undo()
    return [
        found.evolve(memory=None),
        conversation.state,
        conversation.ranked(2, query=WORDS[number % len(WORDS)]).messages,
        who.engine.sessions(),
        who.engine.recall(WORDS[number % len(WORDS)], conversations=True),
    ]


def _as_of(who: Person, number: int) -> Any:
    then = who.engine.get(who.id(number)).updated_at
    return [
        who.engine.memories(as_of=then),
        who.engine.count(as_of=then),
        who.engine.recall(WORDS[number % len(WORDS)], as_of=then, conversations=True),
        who.engine.assemble(WORDS[number % len(WORDS)], budget=500, as_of=then).text,
    ]


def _reads(who: Person, number: int) -> Any:
    engine = who.engine
    return [
        engine.memories(order=("newest", "oldest", "important")[number % 3], limit=9),
        [engine.count(), engine.count(EVERY), engine.count(Filter(where="confidence < 1"))],
        engine.recall(who.name, where=Filter(where="confidence < 1"), gate=False),
        engine.stats(),
        engine.doctor(),
        engine.events(),
        engine.sessions(),
        engine.filter_warnings(Filter(kinds=("faxt",))),
        engine.calibration(),
        engine.metrics(),
        engine.usage_history(),
        engine.set_learning(),
        engine.about(who.name),
    ]


def _one(who: Person, number: int) -> Any:
    engine, name = who.engine, who.id(number)
    states = engine.lifecycle_state(name)
    return [engine.get(name), engine.history(name), engine.expand(name), states, engine.events(name)]


ACTS: Final[Mapping[str, Callable[[Person, int], Any]]] = {
    "remember": _remember,
    "remember_many": _remember_many,
    "remember the same": _shared_words,
    "import": _import,
    "revise": lambda who, number: who.engine.revise(who.id(number), who.text(number + 50)),
    "supersede": lambda who, number: who.engine.supersede(who.id(number), {"content": who.text(number + 80)}),
    "forget": lambda who, number: who.engine.forget(who.id(number)),
    "restore": lambda who, number: who.engine.restore(who.id(number)),
    "purge": lambda who, number: who.engine.purge(who.id(number), confirm=True),
    "confirm": lambda who, number: who.engine.confirm(who.id(number)),
    "contradict": lambda who, number: who.engine.contradict(who.id(number)),
    "review": lambda who, number: who.engine.review(who.id(number), "success"),
    "record_trigger": lambda who, number: who.engine.record_trigger(who.id(number)),
    "retire": lambda who, number: who.engine.retire(who.id(number)),
    "recall": lambda who, number: who.engine.recall(
        WORDS[number % len(WORDS)], ranker=("relevance", "hybrid")[number % 2], gate=bool(number % 3)
    ),
    "recall into": lambda who, number: who.engine.recall(
        WORDS[number % len(WORDS)], into=who.engine.working_set("desk 0")
    ),
    "assemble": _assemble,
    "feedback": _feedback,
    "outcome": _outcome,
    "observe": _observe,
    "refresh": _refresh,
    "request": _request,
    "compact": _compact,
    "working set": _working_set,
    "ledger": _ledger,
    "export": _export,
    "session": _session,
    "as of": _as_of,
    "space": _space,
    "set_learning": lambda who, number: who.engine.set_learning(bool(number % 4)),
    "reset_learning": lambda who, _: who.engine.reset_learning(),
    "maintain": lambda who, number: who.engine.maintain(dry_run=not number % 3),
    "embed_pending": lambda who, _: who.engine.embed_pending(),
    "read everything": _reads,
    "read one": _one,
}
"""The acts by name: each takes who acts and a number that varies it."""
