"""Commits are a kind of their own: questions on history find them, and they crowd out nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

import germane
from germane import Engine
from germane.plans import ScopedPlan
from germane.testing.fakes import FixedClock, WordCounter

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
TOPICS = ("retry limit", "cache size", "token budget", "import order", "session key")


@pytest.fixture
def engine() -> Iterator[Engine]:
    clock = FixedClock(NOW, timedelta(seconds=1))
    with germane.open(":memory:", counter=WordCounter(), clock=clock) as opened:
        yield opened


def remember_notes(engine: Engine) -> list[str]:
    texts = [f"The {topic} is set in settings.toml and read once at the start." for topic in TOPICS]
    return [engine.remember(text, kind="note").id for text in texts]


def remember_commits(engine: Engine, count: int) -> list[str]:
    drafts = [
        {
            "content": f"Change the {TOPICS[number % len(TOPICS)]} to {number}",
            "kind": "commit",
            "tags": ("commit",),
            "created_at": NOW - timedelta(days=number),
            "metadata": {"day": f"day {number}", "author": "Ann", "short": f"c{number:06}"},
        }
        for number in range(count)
    ]
    return [one.memory.id for one in engine.remember_many(drafts)]


@pytest.mark.parametrize(
    "how", [ScopedPlan(), ScopedPlan(degrade=False), ScopedPlan(backfill=False), "scoped_estimate"]
)
@pytest.mark.parametrize("budget", [0, 30, 60, 90, 200, 2000])
def test_in_the_scoped_plans_commits_take_only_what_others_leave(how: ScopedPlan | str, budget: int) -> None:
    shown = []
    for commits in (0, 300):
        with germane.open(":memory:", embedder=None, counter=WordCounter()) as engine:
            remember_notes(engine)
            long = "A long record. " + "word " * 40
            engine.remember(long, kind="adr", scope="task:T-1")
            remember_commits(engine, commits)
            context = engine.assemble("", plan=how, task="T-1", budget=budget)
            assert context.tokens <= budget or how == "scoped_estimate"
            kinds = [item.memory.kind for item in context.items]
            assert kinds == sorted(kinds, key=lambda kind: kind == "commit")
            shown.append([(i.memory.content, i.level) for i in context.items if i.memory.kind != "commit"])
            if commits and budget == 2000:
                assert kinds.count("commit") > 100
    assert shown[0] == shown[1]


def test_more_commits_than_are_looked_at_hide_no_note() -> None:
    with germane.open(":memory:", embedder=None, counter=WordCounter()) as engine:
        for number in range(350):
            engine.remember(f"Note {number}", kind="note")
        remember_commits(engine, 1200)
        context = engine.assemble("", plan="scoped", budget=2000)
        assert sum(item.memory.kind == "note" for item in context.items) == 350


def test_an_ordinary_question_finds_other_kinds_first(engine: Engine) -> None:
    notes = remember_notes(engine)
    remember_commits(engine, 60)
    for topic, note in zip(TOPICS, notes, strict=True):
        found = engine.recall(f"What is the {topic}?", limit=5)
        assert found[0].memory.id == note
        context = engine.assemble(f"What is the {topic}?", budget=1000)
        assert note in [item.memory.id for item in context.items]
        ranked = [item for item in context.items if item.memory.kind in ("note", "commit")]
        assert ranked[0].memory.id == note


def test_questions_on_history_find_commits(engine: Engine) -> None:
    remember_notes(engine)
    remember_commits(engine, 60)
    for topic in TOPICS:
        for question in (f"When did we change the {topic}?", f"Which commit changed the {topic}?"):
            assert engine.recall(question)[0].kind == "commit"
            assert "commit" in [item.memory.kind for item in engine.assemble(question, budget=1000).items]


def test_a_commit_says_when_and_by_whom(engine: Engine) -> None:
    (commit,) = remember_commits(engine, 1)
    text = engine.get(commit).renditions.full.text
    assert text == "Change the retry limit to 0 (day 0, Ann, c000000)"


@pytest.mark.parametrize(
    ("question", "history"),
    [
        ("When did we change the retry limit?", True),
        ("when was the cache introduced", True),
        ("Who added the fence?", True),
        ("Which commits touched the parser?", True),
        ("What changed in the importer?", True),
        ("What did Bob change in the importer?", True),
        ("What did the cat eat?", False),
        ("What has been changed since May?", True),
        ("history of the working set", True),
        ("How has the ranking evolved?", True),
        ("What is the retry limit?", False),
        ("When is the meeting?", False),
        ("How do I change the retry limit?", False),
        ("Who is Ann?", False),
        ("", False),
    ],
)
def test_questions_on_history_are_distinguished_from_others(question: str, *, history: bool) -> None:
    assert _first_found(question) == ("commit" if history else "note")


def test_a_long_question_is_read_in_bounded_time() -> None:
    assert _first_found("when did who " * 50_000) == "note"


def _first_found(question: str) -> str:
    """The kind of what comes first of a commit and a note that are alike, and hold all of the question."""
    with germane.open(":memory:", embedder=None, clock=lambda: NOW) as engine:
        for kind in ("note", "commit"):
            engine.remember(f"Of this: {question[:200]}", kind=kind, created_at=NOW - timedelta(days=9))
        first, other = engine.recall(question)
        assert first.score > other.score
        return first.kind


def shown_without_commits(engine: Engine, question: str, budget: int) -> list[tuple[str, object]]:
    context = engine.assemble(question, budget=budget)
    assert context.tokens <= budget
    return [(one.memory.content, one.level) for one in context.items if one.memory.kind != "commit"]


@pytest.mark.parametrize("budget", [60, 150, 300, 500])
@pytest.mark.parametrize("question", ["What is the retry limit?", "Why is the cache slow after a restart?"])
def test_a_long_history_changes_nothing_else_in_an_ordinary_context(question: str, budget: int) -> None:
    shown = []
    for commits in (0, 3000):
        with germane.open(":memory:", counter=WordCounter(), clock=lambda: NOW) as engine:
            remember_notes(engine)
            engine.remember_many(
                {
                    "content": f"Case {number}: the cache was slow after the restart of host {number}, since "
                    f"its retry limit had been read from the wrong place. {'It was mended by hand. ' * 6}",
                    "kind": "episode",
                    "created_at": NOW - timedelta(days=400 + number),
                }
                for number in range(12)
            )
            remember_commits(engine, commits)
            shown.append(shown_without_commits(engine, question, budget))
    assert shown[0] == shown[1] != []


def test_an_ordinary_context_ends_with_a_few_commits_at_most(engine: Engine) -> None:
    notes = remember_notes(engine)
    remember_commits(engine, 300)
    context = engine.assemble("What is the retry limit?", budget=1000)
    kinds = [item.memory.kind for item in context.items]
    assert notes[0] == context.items[0].memory.id
    assert kinds == sorted(kinds, key=lambda kind: kind == "commit")
    assert kinds.count("commit") <= 2


def test_all_that_was_queried_of_a_small_store_stands_beside_its_commits(engine: Engine) -> None:
    notes = remember_notes(engine)
    remember_commits(engine, 10)
    context = engine.assemble("What is the retry limit?", budget=2000)
    assert set(notes) <= {item.memory.id for item in context.items}


@pytest.mark.parametrize(
    "question",
    ["Which commits changed the retry limit?", "Who changed the retry limit?", "When was the limit changed?"],
)
def test_a_question_on_history_shows_many_commits_and_leaves_tokens(engine: Engine, question: str) -> None:
    remember_notes(engine)
    for number in range(40):
        engine.remember(
            f"Meeting {number}: Ben told why the retry limit was changed, and by whom.", kind="episode"
        )
    remember_commits(engine, 300)
    context = engine.assemble(question, budget=600)
    commits = sum(item.memory.kind == "commit" for item in context.items)
    assert commits >= 6
    assert len(context.items) - commits >= 6


def test_what_changed_last_week_lists_the_commits_of_that_week(engine: Engine) -> None:
    remember_notes(engine)
    remember_commits(engine, 60)
    context = engine.assemble("What changed last week?", budget=1000)
    days = [item.memory.created_at for item in context.items if item.memory.kind == "commit"]
    assert len(days) == 7
    assert all(timedelta(days=5) < NOW - day < timedelta(days=13) for day in days)


def test_commits_are_found_by_their_author_and_name_each_fact_once(engine: Engine) -> None:
    engine.remember_many(
        {
            "content": f"Change the {topic} to {author.split()[0].lower()} {number}",
            "kind": "commit",
            "tags": ("commit",),
            "source": f"git:{number:06}{author[:3]:_>6}",
            "created_at": NOW - timedelta(days=number),
            "metadata": {
                "day": f"2026-10-{number + 10}",
                "author": author,
                "short": f"{number:06}{author[:3]:_>6}",
            },
        }
        for author in ("Ann Peel", "Bob Ray", "Cy Dee")
        for number, topic in enumerate(TOPICS)
    )
    context = engine.assemble("commits by Bob", budget=300)
    authors = [item.memory.metadata["author"] for item in context.items]
    assert authors[:5] == ["Bob Ray"] * 5
    first = context.items[0]
    (line,) = [line for line in context.text.splitlines() if first.memory.content in line]
    for fact in ("author", "day", "short"):
        assert line.count(str(first.memory.metadata[fact])) == 1


@pytest.mark.parametrize(
    "question",
    ["Which commits by Bob changed the retry limit?", "commits by bob ray", "What did Bob change lately?"],
)
def test_the_commits_of_a_named_author_come_before_those_of_others(engine: Engine, question: str) -> None:
    engine.remember_many(
        {
            "content": f"Change the {TOPICS[number % 2]} for case {number}",
            "kind": "commit",
            "created_at": NOW - timedelta(days=number),
            "metadata": {"day": f"2026-10-{number + 10}", "author": author, "short": f"{number:012}"},
        }
        for place, author in enumerate(("Ann Peel", "Bob Ray", "Cy Dee"))
        for number in range(8 * place, 8 * place + 8)
    )
    shown = engine.assemble(question, budget=400).items
    assert [item.memory.metadata["author"] for item in shown][:4] == ["Bob Ray"] * 4
