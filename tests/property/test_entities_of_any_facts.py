"""Entities of any facts: undoing a decision restores reports, users never meet, order doesn't matter."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

import germane
from germane import Engine
from germane.extractors import EntityReport
from germane.testing.fakes import FixedClock

START = datetime(2026, 1, 5, 12, tzinfo=UTC)
NAMES = ("Anna", "Anna K.", "Anna Meier", "Bob", "Tom")
RELATIONS = ("sister", "older sister", "boss", "wife", "friend")
FORMS = (
    "The user's {relation} {name} lives in Rome.",
    "The user's {relation} sings.",
    "{name} is the user's {relation}.",
    "{name} has a boat.",
    "{name} works as a nurse.",
    "The user's name is {name}.",
    "{name} goes by {other}.",
    "{name} and {other} are two people.",
    "{name} met {other} in Oslo.",
)
FACTS = sorted(
    {
        form.format(name=name, other=other, relation=relation)
        for form, name, other, relation in product(FORMS, NAMES, NAMES, RELATIONS)
        if name != other
    }
)
QUERIES = (*NAMES, *(f"my {relation}" for relation in RELATIONS), "me")

Fact = tuple[str, str]
facts = st.lists(
    st.tuples(st.sampled_from(FACTS), st.sampled_from(["one", "two"])),
    max_size=10,
    unique_by=lambda each: each[0],
)
decisions = st.lists(
    st.tuples(st.sampled_from(QUERIES), st.sampled_from(QUERIES), st.booleans()), min_size=1, max_size=4
).map(lambda given: [each for each in given if each[0] != each[1]])


def remember(engine: Engine, given: Sequence[Fact]) -> None:
    engine.remember_many(
        [
            {"content": text, "kind": "fact", "subject": "user", "session": session, "created_at": START}
            for text, session in given
        ]
    )


def reports(engine: Engine) -> list[EntityReport]:
    return [engine.about(name) for name in QUERIES]


def without_ids(report: EntityReport) -> object:
    return [
        [
            (
                one.names,
                sorted((merge.names, merge.reason) for merge in one.merges),
                sorted((each.memory.content, each.current, each.mentioned) for each in one.facts),
            )
            for one in report.entities
        ],
        sorted(each.memory.content for each in report.unclear),
        report.notes,
    ]


@given(facts, decisions)
def test_undoing_decisions_restores_every_report(
    given: list[Fact], decided: list[tuple[str, str, bool]]
) -> None:
    clock = FixedClock(START)
    with germane.open(":memory:", clock=clock, embedder=None) as engine:
        remember(engine, given)
        stages = [reports(engine)]
        runs = []
        for name, other, same in decided:
            runs.append(engine.same_name(name, other, same=same))
            clock.advance(timedelta(hours=1))
            stages.append(reports(engine))
        for run, before in zip(reversed(runs), reversed(stages[:-1]), strict=True):
            if run.decisions[0].effects:
                engine.unlearn(run.id)
            assert [without_ids(each) for each in reports(engine)] == [without_ids(each) for each in before]


@given(facts, st.randoms())
def test_entities_do_not_depend_on_the_order_of_facts(given: list[Fact], random: object) -> None:
    shuffled = list(given)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # Hypothesis gives a Random.
    with (
        germane.open(":memory:", clock=FixedClock(START), embedder=None) as one,
        germane.open(":memory:", clock=FixedClock(START), embedder=None) as other,
    ):
        remember(one, given)
        remember(other, shuffled)
        assert [without_ids(each) for each in reports(one)] == [without_ids(each) for each in reports(other)]


@given(facts, facts, decisions)
def test_two_users_never_meet(
    of_alice: list[Fact], of_bob: list[Fact], decided: list[tuple[str, str, bool]]
) -> None:
    with germane.open(":memory:", clock=FixedClock(START), embedder=None) as engine:
        alice, bob = engine.for_user("alice"), engine.for_user("bob")
        remember(alice, of_alice)
        alone, nobody = reports(alice), reports(engine)
        remember(bob, of_bob)
        for name, other, same in decided:
            bob.same_name(name, other, same=same)
        assert reports(alice) == alone
        assert reports(engine) == nobody
        assert not any(nobody)


@given(facts)
def test_what_is_purged_or_forgotten_leaves_no_trace(given: list[Fact]) -> None:
    with germane.open(":memory:", clock=FixedClock(START), embedder=None) as engine:
        remember(engine, given[:5])
        before = reports(engine)
        remember(engine, given[5:])
        added = [each.id for each in engine.memories() if each.content in dict(given[5:])]
        for number, memory_id in enumerate(added):
            if number % 2:
                engine.forget(memory_id)
            else:
                engine.purge(memory_id, confirm=True)
        assert reports(engine) == before
