"""Spaces as an agent has them: joined, left, written in by right, and apart from everybody's own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

import germane
from germane import Draft, Engine, Space
from germane.errors import (
    DuplicateMember,
    LastActive,
    NotAMember,
    PurgeNotConfirmed,
    SpaceTaken,
    UnknownSpace,
)
from germane.protocols import Store
from germane.spaces import Right, Role, SpaceEventKind
from germane.stores import SqliteStore
from germane.testing.fakes import HashEmbedder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agents.db"


@pytest.fixture
def ada(path: Path) -> Iterator[Engine]:
    with germane.open(path, agent="ada") as engine:
        yield engine


@pytest.fixture
def ben(path: Path) -> Iterator[Engine]:
    with germane.open(path, agent="ben") as engine:
        yield engine


@pytest.fixture
def team(ada: Engine) -> Space:
    return ada.space("team", create=True)


def members_of(space: Space) -> list[tuple[str, str, str]]:
    return [(one.agent, one.rights.value, one.role.value) for one in space.members()]


def test_what_one_puts_in_another_finds(ada: Engine, ben: Engine, team: Space) -> None:
    memory = team.remember("The demo is on Tuesday.", kind="decision")
    ben.space("team").join()
    theirs = ben.space("team")

    assert theirs.get(memory.id) == memory
    assert [one.id for one in theirs.recall("When is the demo?")] == [memory.id]
    assert "Tuesday" in theirs.assemble("demo").text
    assert theirs.forget(memory.id).status is germane.Status.FORGOTTEN
    assert len(team.recall("demo")) == 0
    assert (memory.agent, theirs.agent, theirs.member) == ("space:team", "space:team", "ben")
    assert len(ada.memories()) == len(ben.memories()) == 0


def test_nothing_is_shared_that_was_not_put_in(ada: Engine, ben: Engine, team: Space) -> None:
    own = ada.remember("Ada's key is in the drawer.")
    ben.space("team").join()

    assert len(ben.space("team").recall("key drawer", gate=False)) == 0
    assert len(ben.recall("key drawer", gate=False)) == 0
    with pytest.raises(germane.NotFound):
        ben.space("team").get(own.id)
    with pytest.raises(germane.NotFound):
        team.get(own.id)


def test_a_shared_memory_is_a_copy(ada: Engine, ben: Engine, team: Space) -> None:
    own = ada.remember(
        "Deploys are on Monday.", kind="procedure", tags=["ops:deploy"], importance=7, pinned=True
    )
    copy = team.share(own.id)
    again = team.share(own.id)

    assert (copy.content, copy.kind, copy.tags, copy.importance) == (
        own.content,
        own.kind,
        own.tags,
        own.importance,
    )
    assert (copy.pinned, copy.version, copy.agent, copy.created_at) == (
        False,
        1,
        "space:team",
        own.created_at,
    )
    assert copy.id != own.id
    assert (again.id, again.seen_count) == (copy.id, 2)
    ben.space("team").join()
    ben.space("team").revise(copy.id, "Deploys are on Friday.")
    assert ada.get(own.id).content == "Deploys are on Monday."
    assert team.share(own.id).version == 3, "said anew, it stands again"


def test_what_is_gone_is_not_shared(ada: Engine, team: Space) -> None:
    memory = ada.remember("One.")
    head = ada.revise(memory.id, "Two.")
    ada.forget(memory.id)
    with pytest.raises(germane.InvalidInput, match="restore"):
        team.share(head.id)
    with pytest.raises(germane.NotFound):
        team.share("nothing")
    assert team.stats().memories == 0


def test_a_reader_reads(ben: Engine, team: Space) -> None:
    memory = team.remember("One thing.")
    space = ben.space("team")
    space.join(rights="read")
    own = ben.remember("Another thing.")

    assert space.get(memory.id) == memory
    for write in (
        lambda: space.remember("Two."),
        lambda: space.remember_many(["Two.", "Three."]),
        lambda: space.share(own.id),
        lambda: space.revise(memory.id, "Two."),
        lambda: space.forget(memory.id),
        lambda: space.purge(memory.id, confirm=True),
        lambda: space.join("cleo"),
        lambda: space.leave("ada"),
        lambda: space.demote("ada"),
        lambda: space.fail_over("ada"),
        lambda: space.disband(confirm=True),
    ):
        with pytest.raises(germane.NotAllowed, match=r"ben.*team"):
            write()
    assert team.memories() == (memory,)
    assert members_of(team) == [("ada", "write", "active"), ("ben", "read", "active")]


def test_a_stranger_can_do_nothing_but_join(ben: Engine, team: Space) -> None:
    memory = team.remember("One thing.")
    space = ben.space("team")
    for use in (
        lambda: space.get(memory.id),
        lambda: space.recall("thing"),
        lambda: space.assemble("thing"),
        lambda: space.remember("Two."),
        space.members,
        space.events,
        space.stats,
        lambda: space.leave("ada"),
    ):
        with pytest.raises(germane.NotAllowed, match="ben"):
            use()
    space.join()
    assert space.get(memory.id) == memory
    assert [info.name for info in ben.spaces()] == ["team"]
    space.leave()
    assert ben.spaces() == ()
    with pytest.raises(germane.NotAllowed):
        space.get(memory.id)


def test_who_fails_is_replaced_by_who_waits_longest(ada: Engine, ben: Engine, team: Space) -> None:
    team.join("cleo", role="passive")
    team.join("ben", role="passive")
    stands_by = ben.space("team")
    with pytest.raises(germane.NotAllowed, match="passive"):
        stands_by.remember("Too early.")

    now = stands_by.fail_over("ada")

    assert [(one.agent, one.role) for one in now.members] == [
        ("cleo", Role.ACTIVE),
        ("ben", Role.PASSIVE),
        ("ada", Role.PASSIVE),
    ]
    with pytest.raises(germane.InvalidInput, match="passive already"):
        stands_by.fail_over("ada")
    with pytest.raises(germane.NotAllowed, match="passive"):
        team.remember("Too late.")
    assert now == stands_by.info()
    assert ada.spaces() == (now,)


def test_leaving_and_demoting_hand_over(ben: Engine, team: Space) -> None:
    team.join("ben", role="passive")
    team.demote()
    theirs = ben.space("team")
    theirs.remember("Ben writes now.")
    theirs.leave()
    assert members_of(team) == [("ada", "write", "active")]
    with pytest.raises(LastActive, match="team"):
        team.demote()
    with pytest.raises(LastActive, match="disband"):
        team.leave()
    assert members_of(team) == [("ada", "write", "active")]


def test_errors_name_the_value_and_the_remedy(ada: Engine, ben: Engine, team: Space) -> None:
    with pytest.raises(UnknownSpace, match=r"'nowhere'.*create=True"):
        ada.space("nowhere")
    with pytest.raises(SpaceTaken, match=r"'team'.*join\(\)"):
        ben.space("team", create=True)
    with pytest.raises(DuplicateMember, match=r"'ada'.*'team'"):
        team.join()
    with pytest.raises(NotAMember, match=r"'dora'.*'team'"):
        team.promote("dora")
    with pytest.raises(germane.InvalidInput, match="passive"):
        team.join("dora", rights="read", role="passive")
    with pytest.raises(germane.InvalidInput, match="read, write"):
        team.join("dora", rights="everything")
    with pytest.raises(germane.InvalidInput, match="active, passive"):
        team.join("dora", role="leader")
    with pytest.raises(PurgeNotConfirmed, match=r"'team'.*confirm=True"):
        team.disband()
    with pytest.raises(germane.InvalidInput, match="after"):
        team.events(after=-1)
    assert members_of(team) == [("ada", "write", "active")]


@pytest.mark.parametrize("name", ["", " team", "team\n", "a" * 201, 7, None, "a\x00b"])
def test_what_names_no_space(ada: Engine, name: str) -> None:
    with pytest.raises(germane.InvalidInput, match=r"(space|name)="):
        ada.space(name, create=True)
    assert ada.spaces() == ()


@pytest.mark.parametrize("name", ["team", "Ünïcode ☂", "a" * 200, "project/x:y", "space:team", "' OR 1=1 --"])
def test_what_names_a_space(ada: Engine, name: str) -> None:
    space = ada.space(name, create=True)
    memory = space.remember("One.")
    assert (space.name, space.memories()) == (name, (memory,))
    assert ada.space(name, create=True).get(memory.id) == memory


def test_no_agent_takes_the_name_of_a_space(path: Path, team: Space) -> None:
    with pytest.raises(germane.InvalidInput, match="those of spaces"):
        germane.open(path, agent="space:team")
    with pytest.raises(germane.InvalidInput, match="those of spaces"):
        team.join("space:team")
    with pytest.raises(germane.InvalidInput, match="empty"):
        team.join(" ")


def test_a_space_admits_whom_its_maker_named(ada: Engine, ben: Engine) -> None:
    ada.space("readers", create=True, admits="read")
    closed = ada.space("closed", create=True, admits=None)
    with pytest.raises(germane.NotAllowed, match="no more than read"):
        ben.space("readers").join()
    ben.space("readers").join(rights="read")
    for rights in Right:
        with pytest.raises(germane.NotAllowed, match="let itself in"):
            ben.space("closed").join(rights=rights)
    closed.join("ben")
    ben.space("closed").remember("Let in.")
    assert [info.name for info in ben.spaces()] == ["closed", "readers"]


def test_disbanding_leaves_nothing(ada: Engine, ben: Engine, path: Path, team: Space) -> None:
    ben.space("team").join()
    ben.space("team").remember("Zanzibar is the word.")
    own = ada.remember("Ada's own.")
    team.disband(confirm=True)

    for each in (ada, ben):
        assert each.spaces() == ()
        with pytest.raises(UnknownSpace):
            each.space("team")
    with pytest.raises(UnknownSpace):
        team.remember("Too late.")
    assert ada.memories() == (own,)
    ada.close()
    ben.close()
    assert b"Zanzibar" not in path.read_bytes()
    assert not path.with_name("agents.db-wal").exists()


def test_events_tell_who_did_what(ben: Engine, team: Space) -> None:
    ben.space("team").join()
    first, second = (one.memory for one in team.remember_many(["One.", Draft(content="Two.")]))
    ben.space("team").forget(first.id)

    events = ben.space("team").events()

    assert [(event.number, event.what, event.by, event.memory_id or event.agent) for event in events] == [
        (1, SpaceEventKind.CREATE, "ada", "ada"),
        (2, SpaceEventKind.JOIN, "ben", "ben"),
        (3, SpaceEventKind.REMEMBER, "ada", first.id),
        (4, SpaceEventKind.REMEMBER, "ada", second.id),
        (5, SpaceEventKind.FORGET, "ben", first.id),
    ]
    assert team.events(after=2, limit=2) == events[2:4]
    assert [event.at is None for event in events] == [False, False, True, True, True]


def test_a_space_survives_a_restart(path: Path) -> None:
    with germane.open(path, agent="ada") as engine:
        memory = engine.space("team", create=True).remember("One.")
    with germane.open(path, agent="ada", read_only=True) as engine:
        assert engine.space("team").get(memory.id) == memory
        with pytest.raises(germane.StoreUnavailable, match="read_only"):
            engine.space("team").remember("Two.")
        with pytest.raises(germane.StoreUnavailable, match="read_only"):
            engine.space("other", create=True)


def test_a_space_speaks_the_language_of_who_made_it(path: Path, ben: Engine) -> None:
    with germane.open(path, agent="carla", language="spanish") as carla:
        carla.space("equipo", create=True).remember("Las reuniones son los martes.")
    ben.space("equipo").join()
    assert ben.space("equipo").stats().language == "spanish"
    assert len(ben.space("equipo").recall("reunión")) == 1


def test_a_store_in_memory_has_spaces() -> None:
    with germane.open(":memory:", agent="ada") as engine:
        space = engine.space("team", create=True)
        memory = space.share(engine.remember("One.").id)
        assert space.memories() == (memory,)
        assert [info.name for info in engine.spaces()] == ["team"]


class PlainStore:
    """What a store has to do, and nothing that only some can."""

    def __init__(self, store: Store) -> None:
        for name in ("apply", "get", "find", "search", "stats", "close"):
            setattr(self, name, getattr(store, name))


def test_a_store_without_spaces_says_so() -> None:
    with germane.open(cast("Store", PlainStore(SqliteStore(":memory:"))), agent="ada") as engine:
        assert engine.spaces() == ()
        with pytest.raises(germane.InvalidInput, match="keeps no spaces"):
            engine.space("team", create=True)


def test_a_space_learns_what_its_members_use(ben: Engine, team: Space) -> None:
    memory = team.remember("The demo is on Tuesday.")
    ben.space("team").join()
    theirs = ben.space("team")
    assert theirs.feedback(theirs.recall("demo"), used=[memory.id]).counted == 1
    assert team.get(memory.id).access_count == 1


class SlowEmbedder(HashEmbedder):
    """One whose vectors nothing waits for."""

    eager = False


def test_what_a_slow_embedder_holds_up_is_embedded_in_a_space_as_well(path: Path) -> None:
    with germane.open(path, agent="ada", embedder=SlowEmbedder()) as ada:
        space = ada.space("team", create=True)
        space.join("ben", rights="read")
        space.remember_many(["One thing.", "Another thing."])
        end = time.monotonic() + 30
        while space.stats().pending and time.monotonic() < end:
            time.sleep(0.005)
        assert (space.stats().pending, space.stats().vectors) == (0, 2)
    with germane.open(path, agent="ben", embedder=SlowEmbedder()) as ben:
        assert ben.space("team").stats().vectors == 2
