"""An agent's own memories and those of its spaces in one answer, each marked with its owner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

import germane
from germane import Engine, Space
from germane.errors import UnknownSpace
from germane.ledger import EmptyReason

NOW = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agents.db"


@pytest.fixture
def ada(path: Path) -> Iterator[Engine]:
    with germane.open(path, agent="ada", clock=lambda: NOW) as engine:
        engine.remember("The cat of the neighbours is called Milo.")
        engine.remember("Redis caches the sessions of the shop.", kind="fact")
        yield engine


@pytest.fixture
def team(ada: Engine) -> Space:
    space = ada.space("team", create=True)
    space.remember("Redis was chosen for the queue of the shop.", kind="decision")
    space.remember("The demo is on Tuesday.")
    return space


@pytest.mark.usefixtures("team")
def test_one_answer_holds_both_and_says_whose_each_is(ada: Engine) -> None:
    found = ada.recall("What is Redis used for in the shop?", spaces=["team"])

    assert {(one.memory.agent, one.memory.content.split()[0]) for one in found} == {
        ("ada", "Redis"),
        ("space:team", "Redis"),
    }
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert "team" in next(note.text for note in found.notes if note.code == "spaces")
    alone = ada.recall("What is Redis used for in the shop?")
    assert {one.memory.agent for one in alone} == {"ada"}
    assert all(note.code != "spaces" for note in alone.notes)


def test_what_a_space_holds_changes_no_signal_of_ones_own(ada: Engine, team: Space) -> None:
    def own() -> dict[str, Mapping[str, float]]:
        found = ada.recall("Redis sessions", spaces=["team"], limit=100, gate=False)
        return {one.memory.id: one.candidate.signals for one in found if one.memory.agent == "ada"}

    before = own()
    assert any("lexical" in signals for signals in before.values())
    team.remember_many([f"Sessions of case {number}, by Redis or not." for number in range(30)])
    assert own() == before


def test_with_an_empty_space_the_answer_is_ones_own(ada: Engine) -> None:
    ada.space("empty", create=True)
    alone = ada.recall("What does Redis cache?")
    together = ada.recall("What does Redis cache?", spaces=["empty"])

    assert [one.memory.id for one in together] == [one.memory.id for one in alone]
    for one, other in zip(together, alone, strict=True):
        assert one.parts == pytest.approx(other.parts)


def test_a_copy_and_its_original_stand_once_as_ones_own(ada: Engine, team: Space) -> None:
    own = ada.recall("Redis sessions")[0].memory
    copy = team.share(own.id)

    found = [one.id for one in ada.recall("Redis sessions", spaces=["team"])]
    assert own.id in found
    assert copy.id not in found
    context = ada.assemble("Redis sessions", spaces=["team"])
    assert [entry.memory_id for entry in context.trace.entries].count(copy.id) == 0


def test_a_context_of_both_fits_and_accounts_for_each(ada: Engine, team: Space) -> None:
    context = ada.assemble("What is Redis used for in the shop?", spaces=["team"], budget=300, gate=True)

    assert context.tokens <= 300
    assert "caches the sessions" in context.text
    assert "chosen for the queue" in context.text
    ids = [entry.memory_id for entry in context.trace.entries]
    assert len(ids) == len(set(ids))
    owners = {entry.memory_id: entry.agent for entry in context.trace.entries}
    assert set(owners.values()) == {"ada", "space:team"}
    assert all(owners[item.memory.id] == item.memory.agent for item in context.items)
    pinned = next(one for one in team.memories() if "demo" in one.content)
    assert "Tuesday" not in context.text
    assert "Tuesday" in ada.assemble("Redis", spaces=["team"], pins=[pinned.id], gate=True).text
    with pytest.raises(germane.NotFound):
        ada.assemble("Redis", pins=[pinned.id])
    again = ada.assemble("What is Redis used for in the shop?", spaces=["team"], budget=300, gate=True)
    assert again == context


def test_without_a_question_the_newest_of_all_come_first(ada: Engine, team: Space) -> None:
    newest = team.remember("The very last.")
    found = ada.recall("", spaces=["team"])
    assert found[0].memory.id == newest.id
    assert {one.memory.agent for one in found} == {"ada", "space:team"}
    assert len(ada.assemble(spaces=["team"]).items) == 5


def test_each_memory_is_queried_in_its_own_language(path: Path, ada: Engine) -> None:
    with germane.open(path, agent="carla", language="spanish") as carla:
        carla.space("equipo", create=True).remember("Las reuniones con Redis son los martes.")
    ada.space("equipo").join(rights="read")

    found = ada.recall("reunión Redis", spaces=["equipo"])
    assert {one.memory.agent for one in found} == {"ada", "space:equipo"}
    best = next(one for one in found if one.memory.agent == "space:equipo")
    assert best.parts["lexical"] > 0.5


@pytest.mark.usefixtures("team")
def test_only_members_gather_from_a_space(path: Path, ada: Engine) -> None:
    with germane.open(path, agent="ben") as ben:
        with pytest.raises(germane.NotAllowed, match="ben"):
            ben.recall("Redis", spaces=["team"])
        with pytest.raises(germane.NotAllowed, match="ben"):
            ben.assemble("Redis", spaces=["team"])
    with pytest.raises(UnknownSpace, match="nowhere"):
        ada.recall("Redis", spaces=["team", "nowhere"])
    with pytest.raises(germane.InvalidInput, match="one value"):
        ada.recall("Redis", spaces="team")
    with pytest.raises(germane.InvalidInput, match="working_set"):
        ada.recall("Redis", spaces=["team"], into=ada.working_set())


def test_an_empty_answer_says_why_for_all_of_them(path: Path) -> None:
    with germane.open(path, agent="ben") as ben:
        ben.space("team", create=True)
        assert ben.recall("Redis", spaces=["team"]).empty_reason is EmptyReason.NOTHING_STORED
        ben.space("team").remember("The demo is on Tuesday.", kind="decision")
        assert ben.recall("Redis", spaces=["team"], kinds=["fact"]).empty_reason is EmptyReason.FILTERED


def test_what_was_used_is_reported_to_each_owner(ada: Engine, team: Space) -> None:
    found = ada.recall("What is Redis used for in the shop?", spaces=["team"])
    own, shared = (
        next(one.memory for one in found if one.memory.agent == owner) for owner in ("ada", "space:team")
    )

    assert ada.feedback(found, [own]).counted == 1
    assert team.feedback(found, [shared]).counted == 1
    assert (ada.get(own.id).access_count, team.get(shared.id).access_count) == (1, 1)
    with pytest.raises(germane.NotFound):
        ada.feedback(found, [shared])


def test_what_was_learned_of_one_memory_weighs_no_others(ada: Engine, team: Space) -> None:
    ada.set_learning(on=True)
    question = "What is Redis used for in the shop?"
    alone = ada.recall(question, gate=False)
    ada.feedback(alone, [alone[1]])
    assert ada.recall(question, gate=False).weights

    together = ada.recall(question, gate=False, spaces=["team"])
    assert together.weights == {}
    assert ada.assemble(question, spaces=["team"]).trace.weights == {}
    assert team.set_learning().weights is None
