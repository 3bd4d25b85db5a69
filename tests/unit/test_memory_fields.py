"""Keys, sessions, validity and expiry as callers of the engine and the command line meet them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import germane
from commandline import run
from germane.errors import InvalidInput, NotFound
from germane.importers import export_jsonl, import_source
from germane.stores import copy_store
from germane.testing.fakes import FixedClock, HashEmbedder

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def engine(clock: FixedClock) -> Iterator[germane.Engine]:
    with germane.open(":memory:", agent="newton", embedder=None, clock=clock) as opened:
        yield opened


class TestKeys:
    def test_the_memory_of_a_key_is_revised(self, engine: germane.Engine) -> None:
        first = engine.remember("Lives in Rome.", key="home", session="s-1", importance=7, kind="fact")
        second = engine.remember("Lives in Oslo.", key="home", kind="fact")
        assert (second.id, second.version) == (first.id, 2)
        assert (second.importance, second.session) == (7, "s-1")
        assert engine.get(key="home") == second
        assert [each.content for each in engine.history(first.id)] == ["Lives in Rome.", "Lives in Oslo."]
        assert engine.count() == 1

    def test_the_same_text_again_is_counted(self, engine: germane.Engine) -> None:
        engine.remember("Lives in Rome.", key="home")
        again = engine.remember("Lives in Rome.", key="home")
        assert (again.version, again.seen_count) == (1, 2)
        assert engine.remember("Lives in Rome.").id != again.id
        assert engine.remember("Lives in Rome.", key="birthplace").id != again.id

    def test_a_text_of_before_becomes_the_current_one_again(self, engine: germane.Engine) -> None:
        for text in ("Lives in Rome.", "Lives in Oslo.", "Lives in Rome."):
            engine.remember(text, key="home", kind="fact")
        home = engine.get(key="home")
        assert (home.content, home.version) == ("Lives in Rome.", 3)

    def test_a_fact_that_replaces_one_with_a_key_has_the_key(self, clock: FixedClock) -> None:
        embedder = HashEmbedder()
        with germane.open(":memory:", embedder=embedder, clock=clock) as engine:
            first = engine.remember("The limit of the pool is 40 MB.", kind="fact", subject="pool", key="max")
            second = engine.remember(
                "The limit of the pool is 50 MB.", kind="fact", subject="pool", reconcile=True
            )
            assert (second.id, second.key) == (first.id, "max")
            third = engine.remember("The limit is 60 MB now.", kind="fact", subject="pool", key="max")
            assert (third.id, third.version) == (first.id, 3)

    def test_one_that_was_forgotten_is_current_again(self, engine: germane.Engine) -> None:
        memory = engine.remember("Lives in Rome.", key="home")
        engine.forget(memory.id)
        after = engine.remember("Lives in Oslo.", key="home")
        assert (after.id, after.version, after.status) == (memory.id, 2, "active")
        engine.purge(memory.id, confirm=True)
        with pytest.raises(NotFound):
            engine.get(key="home")
        assert engine.remember("Lives in Bonn.", key="home").version == 1

    def test_several_drafts_may_have_one_key(self, engine: germane.Engine) -> None:
        drafts = [germane.Draft(content=f"Step {number}.", key="step") for number in range(3)]
        results = engine.remember_many([*drafts, "Something else."])
        assert [each.what for each in results] == ["new", "revised", "revised", "new"]
        assert engine.get(key="step").content == "Step 2."

    def test_each_user_has_keys_of_their_own(self, engine: germane.Engine) -> None:
        engine.remember("Answers in English.", key="language")
        alice, bob = engine.for_user("alice"), engine.for_user("bob")
        assert alice.get(key="language").content == "Answers in English."
        alice.remember("Answers in Dutch.", key="language")
        assert alice.get(key="language").content == "Answers in Dutch."
        assert bob.get(key="language").content == "Answers in English."
        assert engine.get(key="language").content == "Answers in English."

    def test_maintain_merges_no_memory_with_a_key(self, engine: germane.Engine) -> None:
        engine.remember("Lives in Rome.", key="home", kind="fact")
        engine.remember("Lives in Rome.", kind="fact")
        engine.maintain()
        assert engine.get(key="home").version == 1

    @pytest.mark.parametrize("given", [{}, {"memory_id": "x", "key": "y"}])
    def test_get_takes_an_id_or_a_key(self, engine: germane.Engine, given: dict[str, Any]) -> None:
        with pytest.raises(InvalidInput, match="Give the id of a memory, or its key"):
            engine.get(**given)


class TestExpiry:
    @pytest.mark.parametrize("ttl", [60, 60.0, timedelta(minutes=1)])
    def test_a_time_to_live_counts_from_now(self, engine: germane.Engine, ttl: timedelta | float) -> None:
        assert engine.remember("Is in a meeting.", ttl=ttl).expires_at == NOW + timedelta(minutes=1)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"ttl": 0}, "above 0"),
            ({"ttl": timedelta(-1)}, "above 0"),
            ({"ttl": -1}, "0 or more"),
            ({"ttl": float("nan")}, "0 or more"),
            ({"ttl": 1e300}, "year 9999"),
            ({"ttl": 60, "expires_at": "2026-06"}, "Give one of them"),
            ({"expires_at": NOW}, "isn't after now"),
            ({"expires_at": "when it rains"}, "names no time"),
            ({"valid_from": "2026-03", "valid_until": "2026-02"}, "isn't after valid_from"),
            ({"key": " "}, "is empty"),
            ({"session": ""}, "is empty"),
        ],
    )
    def test_what_cannot_be_is_refused(
        self, engine: germane.Engine, given: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(InvalidInput, match=message):
            engine.remember("Is in a meeting.", **given)
        assert engine.count() == 0

    def test_what_has_expired_can_not_be_found_or_changed(
        self, engine: germane.Engine, clock: FixedClock
    ) -> None:
        memory = engine.remember("Is in a meeting.", ttl=60, key="doing")
        clock.advance(timedelta(minutes=1))
        for read in (engine.get, engine.history, engine.forget, engine.confirm):
            with pytest.raises(NotFound):
                read(memory.id)
        with pytest.raises(NotFound):
            engine.get(key="doing")
        assert engine.purge(memory.id, confirm=True) == 1

    def test_it_is_new_when_it_is_remembered_again(self, engine: germane.Engine, clock: FixedClock) -> None:
        memory = engine.remember("Is in a meeting.", ttl=60, key="doing")
        clock.advance(timedelta(minutes=1))
        again = engine.remember("Is in a meeting.", key="doing", ttl=60)
        assert again.id != memory.id
        assert engine.get(key="doing") == again

    def test_remembering_again_or_revising_renews_it(self, engine: germane.Engine, clock: FixedClock) -> None:
        memory = engine.remember("Is in a meeting.", ttl=60)
        clock.advance(timedelta(seconds=30))
        assert engine.remember("Is in a meeting.", ttl=60).version == 1
        clock.advance(timedelta(seconds=59))
        engine.revise(memory.id, ttl=timedelta(days=1))
        clock.advance(timedelta(minutes=2))
        assert len(engine.history(memory.id)) == 2

    def test_a_context_is_made_again_when_something_in_it_has_expired(
        self, engine: germane.Engine, clock: FixedClock
    ) -> None:
        engine.remember("The harbour is closed today.", ttl=60)
        context = engine.assemble("What of the harbour?")
        assert "harbour" in context.text
        assert not engine.refresh(context, "What of the harbour?").needed
        clock.advance(timedelta(minutes=1))
        result = engine.refresh(context, "What of the harbour?")
        assert (result.needed, result.reason) == (True, "expired")
        assert "closed" not in result.context.text

    def test_maintain_says_what_it_would_remove(self, engine: germane.Engine, clock: FixedClock) -> None:
        memory = engine.remember("Is in a meeting.", ttl=60)
        clock.advance(timedelta(minutes=1))
        (step,) = engine.maintain(dry_run=True).steps
        assert (step.task, step.memory_id) == ("expire", memory.id)
        assert engine.stats().memories == 1
        engine.maintain()
        assert engine.stats().memories == 0


def test_times_may_be_texts(engine: germane.Engine) -> None:
    memory = engine.remember("Lives in Rome.", valid_from="2024-03", valid_until="yesterday")
    assert memory.valid_from == datetime(2024, 3, 1, tzinfo=UTC)
    assert memory.valid_until == datetime(2026, 4, 30, tzinfo=UTC)


def test_a_later_beginning_ends_the_version_before(engine: germane.Engine) -> None:
    engine.remember("Lives in Rome.", kind="fact", key="home", valid_from="2020")
    engine.remember("Lives in Oslo.", kind="fact", key="home", valid_from="2024-03")
    home = engine.get(key="home")
    before = engine.get(f"{home.id}@1")
    assert before.valid_until == home.valid_from == datetime(2024, 3, 1, tzinfo=UTC)
    engine.revise(home.id, "Lives in Bonn.", valid_from="2025")
    assert engine.get(f"{home.id}@2").valid_until == datetime(2025, 1, 1, tzinfo=UTC)


class TestValidity:
    def test_what_holds_now_ranks_above_what_has_ended_or_not_begun(self, engine: germane.Engine) -> None:
        engine.remember("The office of the team is in Rome.", valid_until="2025")
        engine.remember("The office of the team is in Bonn.", valid_from="2027")
        engine.remember("The office of the team is in Oslo.", valid_from="2025", valid_until="2027")
        ranked = engine.recall("Where is the office of the team?").ranked
        assert ranked[0].memory.content == "The office of the team is in Oslo."
        assert ["validity" in one.parts for one in ranked] == [False, True, True]
        text = engine.assemble("Where is the office of the team?").text
        assert "in Oslo. [valid 2025-01-01 to 2027-01-01]" in text
        assert "in Rome. [valid until 2025-01-01]" in text
        assert "in Bonn. [valid from 2027-01-01]" in text

    @pytest.mark.parametrize(("year", "city"), [(2021, "Rome"), (2023, "Oslo"), (2026, "Bonn")])
    def test_a_question_about_a_time_finds_what_was_valid_then(
        self, engine: germane.Engine, year: int, city: str
    ) -> None:
        for start, place in (("2020", "Rome"), ("2022", "Oslo"), ("2024", "Bonn")):
            engine.remember(f"Ana lives in {place}.", kind="fact", key="home", valid_from=start)
        engine.remember("Ana likes to live near water.")
        question = f"Where did Ana live in {year}?"
        assert city in engine.recall(question).ranked[0].memory.content
        assert f"Ana lives in {city}." in engine.assemble(question).text
        assert city == "Bonn" or city not in engine.assemble("Where does Ana live?").text

    def test_former_versions_without_an_end_stay_out_of_it(self, engine: germane.Engine) -> None:
        memory = engine.remember("Ana lives in Romme.", kind="fact", valid_from="2020")
        engine.revise(memory.id, "Ana lives in Rome.")
        found = engine.recall("Where did Ana live in 2021?").ranked
        assert [one.memory.content for one in found] == ["Ana lives in Rome."]

    def test_a_filter_reads_a_time_in_words(self, engine: germane.Engine) -> None:
        engine.remember("On leave.", valid_from="yesterday", valid_until="2026-06")
        assert engine.count(germane.Filter(valid_at="2026-05-03")) == 1
        assert engine.count(germane.Filter(valid_at="last year")) == 0
        span = germane.TimeRange(since="last week", until="2026-05-03")
        assert engine.count(germane.Filter(valid_at=span)) == 1


def test_an_export_and_a_copy_have_all_fields(engine: germane.Engine, tmp_path: Path) -> None:
    path, copied = tmp_path / "export.jsonl", tmp_path / "copy.db"
    with germane.open(tmp_path / "one.db", embedder=None, clock=lambda: NOW) as one:
        memory = one.remember(
            "Lives in Rome.", session="s-1", key="home", valid_from="2020", valid_until="2030", ttl=3600
        )
        with path.open("w") as out:
            export_jsonl([memory], out)
    import_source(engine, str(path))
    assert engine.get(key="home") == memory.evolve(agent="newton")
    copy_store(tmp_path / "one.db", copied)
    with germane.open(copied, embedder=None, clock=lambda: NOW) as other:
        assert other.get(key="home") == memory


def test_the_command_line_sets_and_shows_the_fields(tmp_path: Path) -> None:
    def called(*words: str) -> Any:
        return run(*words, "--json", db=tmp_path / "s.db").json()

    options = ("--key", "home", "--session", "s-1", "--valid-from", "2020", "--ttl", "3600")
    memory = called("remember", "Lives in Rome.", *options)["memory"]
    assert (memory["key"], memory["session"]) == ("home", "s-1")
    assert memory["valid_from"] == "2020-01-01T00:00:00+00:00"
    assert memory["valid_until"] is None
    assert memory["expires_at"] > memory["created_at"]
    after = called("remember", "Lives in Oslo.", "--key", "home", "--valid-until", "2030")["memory"]
    assert (after["id"], after["version"]) == (memory["id"], 2)
    assert called("memory", "list", "--session", "s-1")["total"] == 1
    assert called("memory", "list", "--session", "s-2")["total"] == 0
