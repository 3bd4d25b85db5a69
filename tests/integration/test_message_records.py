"""The terms that are stored of messages: with each of them, gone with it, and never more than a saving."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import germane
from germane import StoreBusy
from germane.stores import PostgresStore, SqliteStore, copy_store
from support.contracts.conversations import matches
from support.databases import sql_at
from support.stores import terms_of

WORDS = "redis cache index Rechnungen Häuser tests walking 雨ですか getUserName path/to/file.cpp".split()  # noqa: SIM905 - Short.
QUESTIONS = ("redis tests of the walker", "Rechnung Haus", "user name in file.cpp", "雨")
RECORDS = "SELECT num, rules, length, hashes, frequencies FROM message_lex ORDER BY num"


def spoken(store: str, turns: int, *, language: str | None = None) -> str:
    """A conversation of two messages a turn, with a system message that no question finds."""
    with germane.open(store, agent="ada", embedder=None, language=language) as engine:
        talk = engine.conversation("chat")
        talk.append("system", "Speak of redis.")
        talk.extend(
            {"role": role, "content": f"{WORDS[turn % 10]} {WORDS[turn % 7]} {WORDS[turn % 3]} case-{turn}"}
            for turn in range(turns)
            for role in ("user", "assistant")
        )
    return store


def answers(store: str, *, language: str = "english", read_only: bool = False) -> list[Any]:
    """What a new process finds for each question: scores in their order, and what is shown."""
    with germane.open(store, agent="ada", embedder=None, language=language, read_only=read_only) as engine:
        views = [engine.conversation("chat").ranked(4, query=each) for each in QUESTIONS]
    with closing(opened(store, read_only=read_only)) as one:
        match = partial(matches, one.conversations, "ada", "chat")
        found = [match(terms_of(each, language=language)) for each in QUESTIONS]
    shown = [[message.text for message in each.messages] for each in views]
    return [(list(each.scores.items()), each.bound, texts) for each, texts in zip(found, shown, strict=True)]


def nothing(store: str) -> str:
    """The columns of a record without terms, as they are set."""
    empty = "''::bytea" if store.startswith("postgresql:") else "x''"
    return f"length = 0, hashes = {empty}, frequencies = {empty}"


def opened(store: str, *, read_only: bool = False) -> SqliteStore | PostgresStore:
    if store.startswith("postgresql:"):
        return PostgresStore(store, read_only=read_only)
    return SqliteStore(store, read_only=read_only)


def test_each_message_that_can_be_found_has_its_record(store: str) -> None:
    spoken(store, 3)
    rows = sql_at(store, RECORDS)
    assert len(rows) == 6
    assert sql_at(store, "SELECT count(*) FROM messages") == [(7,)]
    assert all(len(hashes) == 4 * len(often) for *_, hashes, often in rows)
    assert all(sum(often) == length >= 4 for _, _, length, _, often in rows)
    with germane.open(store, agent="ada", embedder=None) as engine:
        assert engine.doctor() == ()


def test_a_record_goes_with_its_message(store: str) -> None:
    spoken(store, 4)
    with germane.open(store, agent="ada", embedder=None) as engine:
        talk = engine.conversation("chat")
        first, second, third, _ = (group.messages[0].id for group in talk.groups())
        talk.remove(first)
        assert len(sql_at(store, RECORDS)) == 6
        talk.remove_message(talk.groups()[0].messages[1].id)
        assert len(sql_at(store, RECORDS)) == 5
        talk.purge(third, confirm=True)
        assert len(sql_at(store, RECORDS)) == 3
        talk.hide(second)
        assert len(sql_at(store, RECORDS)) == 3
        talk.purge(confirm=True)
    assert sql_at(store, RECORDS) == []


def test_what_an_older_version_contained_is_found_and_stored_when_it_is_requested(store: str) -> None:
    spoken(store, 60)
    expected, rows = answers(store), sql_at(store, RECORDS)
    sql_at(store, "DELETE FROM message_lex")
    assert answers(store) == expected
    assert sql_at(store, RECORDS) == rows
    # As where the one who stored them was interrupted: what is missing is added.
    sql_at(store, f"DELETE FROM message_lex WHERE num > {rows[9][0]}")
    assert answers(store) == expected
    assert sql_at(store, RECORDS) == rows


def test_a_few_are_made_sooner_than_stored(store: str) -> None:
    spoken(store, 60)
    expected, rows = answers(store), sql_at(store, RECORDS)
    sql_at(store, f"DELETE FROM message_lex WHERE num > {rows[-10][0]}")
    assert answers(store) == expected
    assert sql_at(store, RECORDS) == rows[:-9]


def test_a_question_stores_no_more_than_others_can_wait_for(tmp_path: Path) -> None:
    store = spoken(str(tmp_path / "agent.db"), 2700)
    expected, rows = answers(store), sql_at(store, RECORDS)
    sql_at(store, "DELETE FROM message_lex")
    with germane.open(store, agent="ada", embedder=None) as engine:
        talk = engine.conversation("chat")
        talk.ranked(4, query=QUESTIONS[0])
        assert sql_at(store, RECORDS) == rows[:5000]
        talk.ranked(4, query=QUESTIONS[1])
        assert sql_at(store, RECORDS) == rows
    assert answers(store) == expected


def test_records_that_other_rules_made_are_made_anew(store: str) -> None:
    spoken(store, 60)
    expected, rows = answers(store), sql_at(store, RECORDS)
    sql_at(store, f"UPDATE message_lex SET rules = rules + 1, {nothing(store)}")
    assert answers(store) == expected
    assert sql_at(store, RECORDS) == rows


def test_a_record_that_cannot_be_read_is_made_anew(store: str) -> None:
    spoken(store, 60)
    expected, rows = answers(store), sql_at(store, RECORDS)
    short = "'x'::bytea" if store.startswith("postgresql:") else "x'01'"
    sql_at(store, f"UPDATE message_lex SET frequencies = {short}")
    assert answers(store) == expected
    assert sql_at(store, RECORDS) == rows


def test_another_language_has_records_of_its_own(store: str, tmp_path: Path) -> None:
    spoken(store, 60)
    english, rows = answers(store), sql_at(store, RECORDS)
    other = spoken(str(tmp_path / "german.db"), 60, language="german")
    german = answers(store, language="german")
    again = answers(other, language="german")
    assert [(bound, shown) for _, bound, shown in german] == [(bound, shown) for _, bound, shown in again]
    assert [shown for *_, shown in german] != [shown for *_, shown in english]
    assert {row[1] for row in sql_at(store, RECORDS)} == {row[1] for row in sql_at(other, RECORDS)}
    assert {row[1] for row in sql_at(store, RECORDS)} != {row[1] for row in rows}


def test_an_open_engine_goes_on_in_another_language(store: str) -> None:
    spoken(store, 60)
    with germane.open(store, agent="ada", embedder=None) as engine:
        talk = engine.conversation("chat")
        before = talk.ranked(4, query="Rechnung")
        germane.open(store, agent="ada", embedder=None, language="german").close()
        assert talk.ranked(4, query="Rechnung").scores != before.scores
        talk.append("user", "Neue Rechnungen.")
    with germane.open(store, agent="ada", embedder=None) as engine:
        again = engine.conversation("chat")
        assert again.ranked(4, query="Rechnung").messages[-1].text == "Neue Rechnungen."


def test_a_store_that_is_only_read_makes_what_is_missing_and_stores_nothing(store: str) -> None:
    spoken(store, 60)
    expected = answers(store)
    sql_at(store, "DELETE FROM message_lex")
    assert answers(store, read_only=True) == expected
    assert sql_at(store, RECORDS) == []


def test_who_cannot_write_is_answered(tmp_path: Path) -> None:
    store = spoken(str(tmp_path / "agent.db"), 60)
    expected = answers(store)
    sql_at(store, "DELETE FROM message_lex")
    with closing(sqlite3.connect(store, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with closing(SqliteStore(store, timeout=0.05)) as one, germane.open(one, agent="ada") as engine:
            found = [matches(one.conversations, "ada", "chat", terms_of(each)) for each in QUESTIONS]
            with pytest.raises(StoreBusy):
                engine.conversation("chat").append("user", "redis")
    assert [list(each.scores.items()) for each in found] == [scores for scores, *_ in expected]
    assert sql_at(store, RECORDS) == []


def test_many_messages_of_another_process_are_read_by_their_records(store: str) -> None:
    spoken(store, 5)
    with germane.open(store, agent="ada", embedder=None) as engine:
        talk = engine.conversation("chat")
        talk.ranked(4, query=QUESTIONS[0])
        spoken(store, 60)
        # A record that lies shows that the search reads it.
        last = sql_at(store, "SELECT max(num) FROM messages")[0][0]
        sql_at(store, f"UPDATE message_lex SET {nothing(store)} WHERE num >= {last - 1}")
        assert "case-59" not in str(talk.ranked(2, query="case-59").messages[:-2])
        assert "case-58" in str(talk.ranked(2, query="case-58").messages[:-2])
        spoken(store, 61)
        sql_at(store, f"DELETE FROM message_lex WHERE num > {last}")
        assert "case-59" in str(talk.ranked(2, query="case-59").messages[:-2])
    assert len(sql_at(store, RECORDS)) == 2 * (5 + 60 + 61)


def test_a_copy_carries_records_and_is_the_same_without(tmp_path: Path, store: str) -> None:
    source = spoken(str(tmp_path / "source.db"), 60)
    expected = answers(source)
    copy_store(source, store)
    assert [row[1:] for row in sql_at(store, RECORDS)] == [row[1:] for row in sql_at(source, RECORDS)]
    assert answers(store) == expected
    sql_at(store, "DELETE FROM message_lex")
    assert copy_store(source, store).copied == 0
    assert answers(store) == expected
