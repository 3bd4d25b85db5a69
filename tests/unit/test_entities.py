"""about and same_name: whose names are one, what is known of whom, and what stays apart."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

import germane
from germane import Engine
from germane.errors import InvalidInput
from germane.extractors import EntityReport, ProposalOutcome
from germane.testing.fakes import FixedClock

START = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(START)


@pytest.fixture
def engine(clock: FixedClock) -> Iterator[Engine]:
    with germane.open(":memory:", agent="ada", clock=clock) as engine:
        yield engine


def store(engine: Engine, *facts: str, session: str | None = None, subject: str | None = "user") -> None:
    for fact in facts:
        engine.remember(fact, kind="fact", session=session, subject=subject)


def known(report: EntityReport) -> dict[str, list[str]]:
    """The current facts that are about each entity, by its first name."""
    return {
        one.name: [each.memory.content for each in one.facts if each.current and not each.mentioned]
        for one in report.entities
    }


def names(report: EntityReport) -> list[tuple[str, ...]]:
    return [each.names for each in report.entities]


@pytest.mark.parametrize(
    ("text", "name", "other"),
    [
        ("The user's sister Anna lives in Rome.", "my sister", "Anna"),
        ("The user's sister's name is Anna.", "the user's sister", "Anna"),
        ("Anna is the user's sister.", "My sister", "anna"),
        ("Anna, the user's sister, lives in Rome.", "my sister", "Anna"),
        ("The user's sister, Anna, lives in Rome.", "my sister", "Anna"),
        ("My sister Anna lives in Rome.", "my sister", "Anna"),
        ("The user's mom is called Ute.", "my mother", "Ute"),
        ("Carol's husband is named Tom.", "Carol's husband", "Tom"),
        ("The user's name is Bob.", "me", "Bob"),
        ("Call me Bob.", "the user", "Bob"),
        ("Robert goes by Rob.", "Rob", "Robert"),
        ("Anna Kowalska is also known as Ania.", "Ania", "Anna Kowalska"),
    ],
)
def test_names_that_a_memory_states_to_be_one_are_merged(
    engine: Engine, text: str, name: str, other: str
) -> None:
    (memory,) = engine.remember_many([{"content": text, "kind": "fact"}])
    by_name, by_other = engine.about(name), engine.about(other)
    assert names(by_name) == names(by_other)
    (one,) = by_name.entities
    assert len(one.names) == 2
    assert [each.memories for each in one.merges] == [(memory.memory.id,)]
    assert [each.memory.content for each in by_name] == [text]


@pytest.mark.parametrize(
    "text",
    [
        "Anna is not the user's sister.",
        "Maybe Anna is the user's sister.",
        "Anna was the user's sister.",
        "Anna is the user's sister's friend.",
        "The user met Anna, the user's sister, and Eva.",
        "The user's friend Anna lives in Rome.",
        "In Rome, the user's sister, a nurse, met Anna.",
        "Anna's name is Latin for grace.",
        "Anna goes by Q3.",
        "The user's sister is called Stubborn by Anna.",
        "Anna is the user's boss's sister.",
        "The user saw the user's sister on Monday.",
    ],
)
def test_nothing_is_merged_that_no_memory_states(engine: Engine, text: str) -> None:
    store(engine, text, "Anna loves tea.")
    assert names(engine.about("Anna")) == [("Anna",)]
    assert not any(each.merges for each in engine.about("my sister").entities)


def test_facts_come_in_order_of_time_with_their_sources(engine: Engine, clock: FixedClock) -> None:
    chat = engine.conversation("chat")
    first = chat.append("user", "My sister Anna lives in Rome.")
    engine.learn_from(chat)
    clock.advance(timedelta(days=30))
    second = chat.append("user", "My sister loves hiking.")
    engine.learn_from(chat)
    (anna,) = engine.about("Anna").entities
    assert [each.memory.content for each in anna.facts] == [
        "The user's sister Anna lives in Rome.",
        "The user's sister loves hiking.",
    ]
    assert [(each.quotes[0].message, each.quotes[0].text) for each in anna.facts] == [
        (first.id, "My sister Anna lives in Rome."),
        (second.id, "My sister loves hiking."),
    ]
    assert [each.since for each in anna.facts] == [START, START + timedelta(days=30)]
    assert [each.memory.content for each in engine.about("Anna", as_of=START)] == [
        "The user's sister Anna lives in Rome."
    ]
    cut = engine.about("Anna", limit=1)
    assert [each.memory.content for each in cut] == ["The user's sister loves hiking."]
    assert cut.notes == ("The earliest facts were left out: 1.",)


def test_a_former_version_is_not_current(engine: Engine, clock: FixedClock) -> None:
    chat = engine.conversation("chat")
    chat.append("user", "My name is Bob. I live in Nagoya.")
    engine.learn_from(chat)
    clock.advance(timedelta(days=30))
    chat.append("user", "I moved to Osaka.")
    engine.learn_from(chat)
    (bob,) = engine.about("Bob").entities
    homes = [
        (each.memory.content, each.current, each.until)
        for each in bob.facts
        if "lives" in each.memory.content
    ]
    assert homes == [
        ("The user lives in Nagoya.", False, START + timedelta(days=30)),
        ("The user moved to Osaka and lives there.", True, None),
    ]
    assert bob.names == ("Bob", "the user")
    then = engine.about("Bob", as_of=START + timedelta(days=1))
    assert [each.current for each in then if "Nagoya" in each.memory.content] == [True]


def test_a_short_form_is_its_one_long_form_in_a_session(engine: Engine) -> None:
    store(engine, "Anna K. works as a nurse.", "Anna has a boat.", session="chat")
    report = engine.about("Anna")
    assert names(report) == [("Anna K.", "Anna")]
    assert known(report) == {"Anna K.": ["Anna K. works as a nurse.", "Anna has a boat."]}
    assert report.entities[0].merges[0].reason == "It stands beside its short form in session chat."
    assert names(engine.about("my sister")) == []


def test_anna_and_anna_k_and_my_sister_are_one(engine: Engine) -> None:
    store(engine, "The user's sister Anna lives in Rome.", "Anna K. has a boat.", session="chat")
    store(engine, "The user's sister loves tea.", session="other")
    reports = [engine.about(name) for name in ("Anna", "Anna K.", "my sister")]
    assert names(reports[0]) == [("Anna K.", "Anna", "the user's sister")]
    assert [list(each) for each in reports] == [list(reports[0])] * 3
    assert len(list(reports[0])) == 3


def test_a_short_form_without_evidence_stays_apart_with_a_note(engine: Engine) -> None:
    store(engine, "Anna Kowalska works as a nurse.", session="one")
    store(engine, "Anna has a boat.", session="two")
    report = engine.about("Anna")
    assert names(report) == [("Anna",)]
    assert report.notes == ("Anna may be Anna Kowalska: no statement and no shared session says so.",)


def test_a_short_form_of_two_names_is_resolved_by_its_session(engine: Engine) -> None:
    store(engine, "Anna Kowalska works as a nurse.", "Anna has a boat.", session="one")
    store(engine, "Anna Meier works as a pilot.", "Anna has a goat.", session="two")
    store(engine, "Anna has a moat.", session="three")
    report = engine.about("Anna")
    assert known(report) == {
        "Anna Kowalska": ["Anna Kowalska works as a nurse.", "Anna has a boat."],
        "Anna Meier": ["Anna Meier works as a pilot.", "Anna has a goat."],
    }
    assert [each.memory.content for each in report.unclear] == ["Anna has a moat."]
    assert report.notes == ("Anna may be Anna Kowalska, Anna Meier.",)
    assert known(engine.about("Anna Meier")) == {"Anna Meier": known(report)["Anna Meier"]}


def test_names_that_stand_in_one_statement_are_two(engine: Engine) -> None:
    store(engine, "Anna and Anna K. went to Rome.", "Anna K. works as a nurse.", session="chat")
    assert names(engine.about("Anna K.")) == [("Anna K.",)]


def test_products_with_a_common_first_word_are_not_merged(engine: Engine) -> None:
    store(engine, "Google is a company.", "Google Maps shows the way.", session="chat", subject=None)
    assert names(engine.about("Google")) == [("Google",)]


def test_one_name_of_a_sister_and_a_boss_stays_apart(engine: Engine) -> None:
    store(
        engine, "The user's sister Anna lives in Rome.", "The user's boss Anna hates tea.", "Anna has a boat."
    )
    report = engine.about("Anna")
    assert known(report) == {
        "the user's boss": ["The user's boss Anna hates tea."],
        "the user's sister": ["The user's sister Anna lives in Rome."],
    }
    assert [each.memory.content for each in report.unclear] == ["Anna has a boat."]
    assert report.notes == ("Anna is the name of the user's boss and of the user's sister.",)


def test_a_relation_with_several_names_stays_open(engine: Engine) -> None:
    store(engine, "The user's son Tom plays chess.", "The user's son Ben sings.", "The user's son has a dog.")
    report = engine.about("Tom")
    assert known(report) == {"Tom": ["The user's son Tom plays chess."]}
    assert [each.memory.content for each in report.unclear] == ["The user's son has a dog."]
    assert engine.about("my son").notes == ("The user's son may be Ben, Tom. It has several names.",)


def test_one_of_two_sisters_is_not_the_sister(engine: Engine) -> None:
    store(
        engine,
        "The user has two sisters.",
        "The user's sister Anna lives in Rome.",
        "The user's sister sings.",
    )
    assert known(engine.about("Anna")) == {"Anna": ["The user's sister Anna lives in Rome."]}
    store(engine, "The user's older brother Tom sings.", "The user's younger brother Ben sings.")
    assert names(engine.about("Tom")) == [("Tom", "the user's older brother")]


def test_the_relations_of_somebody_who_is_the_user_are_the_users(engine: Engine) -> None:
    store(engine, "The user's name is Bob.", "Bob's sister Anna lives in Rome.", "The user's sister sings.")
    assert names(engine.about("Bob's sister")) == [("Anna", "the user's sister")]
    assert len(list(engine.about("my sister"))) == 2


def test_what_an_external_source_says_merges_nothing(engine: Engine) -> None:
    engine.remember("Mallory is the user's boss.", kind="fact", trust="external")
    store(engine, "The user's boss approves payments.")
    assert names(engine.about("my boss")) == [("the user's boss",)]


def test_a_decision_merges_names_and_unlearn_undoes_it(engine: Engine) -> None:
    store(engine, "Anna has a boat.", "Annie sings.")
    before = engine.about("Anna"), engine.about("Annie")
    run = engine.same_name("Annie", "Anna", reason="Her mother says so.")
    report = engine.about("Anna")
    assert names(report) == [("Anna", "Annie")]
    (merge,) = report.entities[0].merges
    assert (merge.reason, merge.decided, merge.memories) == (
        "Her mother says so.",
        True,
        (run.decisions[0].memory,),
    )
    assert engine.learning_runs(memory_id=merge.memories[0]) == (run,)
    assert engine.learning_runs()[0].extractor == "by hand"
    engine.unlearn(run.id)
    assert (engine.about("Anna"), engine.about("Annie")) == before


def test_a_decision_parts_names_that_a_memory_merges(engine: Engine, clock: FixedClock) -> None:
    store(engine, "The user's sister Anna lives in Rome.", "The user's sister Anna K. sings.")
    assert names(engine.about("Anna")) == [("Anna K.", "Anna", "the user's sister")]
    apart = engine.same_name("Anna", "Anna K.", same=False)
    assert names(engine.about("Anna")) == [("Anna",)]
    assert "It has several names." in engine.about("my sister").notes[0]
    clock.advance(timedelta(days=1))
    again = engine.same_name("Anna K.", "Anna")
    assert again.decisions[0].outcome is ProposalOutcome.REVISED
    assert names(engine.about("Anna")) == [("Anna K.", "Anna", "the user's sister")]
    assert engine.same_name("Anna K.", "Anna").decisions[0].outcome is ProposalOutcome.NOTHING
    engine.unlearn(again.id)
    assert names(engine.about("Anna")) == [("Anna",)]
    engine.unlearn(apart.id)
    assert names(engine.about("Anna")) == [("Anna K.", "Anna", "the user's sister")]


def test_what_is_purged_forgotten_or_expired_takes_its_merges_along(
    engine: Engine, clock: FixedClock
) -> None:
    fact = engine.remember("The user's sister Anna lives in Rome.", kind="fact", ttl=60)
    store(engine, "Anna sings.", "The user's sister reads.")
    assert len(list(engine.about("Anna"))) == 3
    engine.forget(fact.id)
    assert names(engine.about("Anna")) == [("Anna",)]
    engine.restore(fact.id)
    assert len(list(engine.about("Anna"))) == 3
    clock.advance(timedelta(seconds=61))
    assert [each.memory.content for each in engine.about("Anna")] == ["Anna sings."]
    merge = engine.same_name("Anna", "my sister")
    assert len(list(engine.about("Anna"))) == 2
    engine.purge(merge.decisions[0].memory or "", confirm=True)
    assert [each.memory.content for each in engine.about("Anna")] == ["Anna sings."]


def test_a_thing_is_found_in_lower_case_too(engine: Engine) -> None:
    store(
        engine,
        "The billing service runs at noon.",
        "Bills are paid.",
        "Old: billing service v2.",
        subject=None,
    )
    assert [each.memory.content for each in engine.about("Billing Service")] == [
        "The billing service runs at noon.",
        "Old: billing service v2.",
    ]
    store(engine, "Anna Meier has a boat.", "Santa anna is far.", session="chat")
    assert [each.memory.content for each in engine.about("anna") if not each.mentioned] == []
    store(engine, "山田さんは田中さんの上司だ。", subject=None)
    assert len(list(engine.about("田中"))) == 1


def test_subjects_in_any_script_are_names(engine: Engine) -> None:
    engine.remember("大阪に住んでいる。", kind="fact", subject="田中")
    engine.remember("Anna mag Tee.", kind="fact", subject="Anna")
    assert [each.memory.content for each in engine.about("田中")] == ["大阪に住んでいる。"]
    assert [each.memory.content for each in engine.about("ANNA")] == ["Anna mag Tee."]


def test_a_user_sees_the_agents_facts_and_decides_alone(engine: Engine) -> None:
    store(engine, "Anna sings.", "Annie reads.", subject=None)
    alice, bob = engine.for_user("alice"), engine.for_user("bob")
    store(alice, "The user's sister Anna lives in Rome.")
    alice.same_name("Anna", "Annie")
    assert names(alice.about("Anna")) == [("Anna", "Annie", "the user's sister")]
    assert len(list(alice.about("Anna"))) == 3
    assert names(bob.about("Anna")) == names(engine.about("Anna")) == [("Anna",)]
    assert not bob.about("my sister")


def test_nonsense_is_refused_and_the_unknown_is_empty(engine: Engine) -> None:
    assert not engine.about("Anna")
    assert engine.about("Anna").notes == ()
    for given in ("", " ", " ,; "):
        with pytest.raises(InvalidInput, match="name"):
            engine.about(given)
    with pytest.raises(InvalidInput, match="limit"):
        engine.about("Anna", limit=0)
    with pytest.raises(InvalidInput, match="same name"):
        engine.same_name("my sister", "The user's sister")
    assert engine.learning_runs() == ()


def test_a_server_gives_the_same_report(postgres_store: str, engine: Engine, clock: FixedClock) -> None:
    with germane.open(postgres_store, agent="ada", clock=clock) as other:
        reports = []
        for each in (engine, other):
            chat = each.conversation("chat")
            chat.append("user", "My name is Bob. My sister Anna lives in Rome.")
            each.learn_from(chat)
            store(each, "Anna K. has a boat.", session="chat")
            decided = each.same_name("Anna", "Annie", reason="A nickname.")
            named = [(one.names, len(one.facts)) for one in each.about("annie").entities]
            each.unlearn(decided.id)
            left = [(one.names, len(one.facts)) for one in each.about("Bob's sister", as_of=START).entities]
            reports.append((named, left, [fact.quotes[0].text for fact in each.about("me") if fact.quotes]))
        assert reports[0] == reports[1]
        assert reports[0][0] == [(("Anna K.", "Anna", "Annie", "the user's sister"), 2)]
