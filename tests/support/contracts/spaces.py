"""What a store promises of spaces: only members get in, in the very transaction, and all is logged."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest

import germane
from germane import Filter, Memory, Status
from germane.errors import (
    DuplicateMember,
    InvalidInput,
    LastActive,
    NotAllowed,
    NotFound,
    SpaceError,
    SpaceTaken,
    UnknownSpace,
)
from germane.protocols import Store
from germane.spaces import (
    Create,
    Demote,
    Disband,
    FailOver,
    Join,
    Leave,
    Member,
    Promote,
    Right,
    Role,
    SpaceAct,
    SpaceEvent,
    SpaceEventKind,
)
from germane.stores import Insert, Purge, Revise, SetStatus
from germane.testing.fakes import START, make_memory, make_revision
from support.stores import TablesStore, query_of

__all__ = ["SharingContract"]

TEAM = "space:team"
LATER = START + timedelta(days=1)


def joined(agent: str, rights: Right = Right.WRITE, role: Role = Role.ACTIVE, by: str = "") -> Join:
    """That an agent joins, by itself unless another one lets it in."""
    return Join(agent=agent, by=by or agent, at=LATER, rights=rights, role=role)


def team(store: TablesStore, *others: Join) -> None:
    """Make the space `team`, created by ada, with more members."""
    store.spaces.apply("team", Create(by="ada", at=START))
    for each in others:
        store.spaces.apply("team", each)


def put(store: TablesStore, agent: str, *texts: str) -> list[Memory]:
    """New memories of the space, written by a member."""
    memories = [make_memory(text, agent=TEAM) for text in texts]
    store.spaces.enter("team", agent).apply(TEAM, [Insert(memory=each) for each in memories])
    return memories


def log_of(
    store: TablesStore, agent: str = "ada", since: int = 0
) -> list[tuple[SpaceEventKind, str, str | None]]:
    """What happened, by whom, and to which memory or member."""
    events: tuple[SpaceEvent, ...] = store.spaces.events("team", agent, since=since)
    assert [event.number for event in events] == sorted({event.number for event in events})
    return [(event.what, event.by, event.memory_id or event.agent) for event in events]


def found(store: Store, agent: str, text: str) -> list[str]:
    """The ids of the memories that a search finds by the words of a text."""
    return [each.memory.id for each in store.search(agent, query_of(text)).slices[0]]


class SharingContract:
    """What the sub-store `spaces` does."""

    def test_whoever_creates_a_space_leads_it(self, store: TablesStore) -> None:
        made = store.spaces.apply("team", Create(by="ada", at=START, admits=Right.READ))
        assert made == store.spaces.get("team")
        assert made is not None
        first = Member(agent="ada", rights=Right.WRITE, role=Role.ACTIVE, joined_at=START, order=1)
        assert (made.members, made.admits, made.created_at) == ((first,), Right.READ, START)
        assert store.spaces.find("ada") == (made,)
        assert store.spaces.find("ben") == store.spaces.find("nobody") == ()

    def test_spaces_are_listed_by_pages(self, store: TablesStore) -> None:
        names = ["alpha", "beta", "gamma"]
        for name in reversed(names):
            store.spaces.apply(name, Create(by="ada", at=START))
        assert [each.name for each in store.spaces.find("ada")] == names
        assert [each.name for each in store.spaces.find("ada", limit=2)] == names[:2]
        assert [each.name for each in store.spaces.find("ada", after="beta")] == names[2:]
        assert store.spaces.find("ada", after="gamma") == store.spaces.find("ada", limit=0) == ()
        with pytest.raises(InvalidInput, match="negative"):
            store.spaces.find("ada", limit=-1)

    def test_what_the_rules_refuse_changes_nothing(self, store: TablesStore) -> None:
        team(store, joined("ben", Right.READ))
        before, number = store.spaces.get("team"), store.spaces.latest_event("team")
        refused: dict[type[SpaceError], SpaceAct] = {
            SpaceTaken: Create(by="cleo", at=LATER),
            DuplicateMember: joined("ben"),
            NotAllowed: joined("cleo", by="ben"),
            LastActive: Demote(agent="ada", by="ada", at=LATER),
        }
        for error, act in refused.items():
            with pytest.raises(error):
                store.spaces.apply("team", act)
        with pytest.raises(UnknownSpace):
            store.spaces.apply("elsewhere", joined("ada"))
        assert store.spaces.get("team") == before
        assert store.spaces.latest_event("team") == number
        assert store.spaces.get("elsewhere") is None

    def test_members_are_as_the_rules_have_them(self, store: TablesStore) -> None:
        team(store, joined("ben", role=Role.PASSIVE), joined("cleo", role=Role.PASSIVE), joined("dora"))
        store.spaces.apply("team", FailOver(agent="ada", by="cleo", at=LATER))
        store.spaces.apply("team", Promote(agent="cleo", by="ben", at=LATER))
        store.spaces.apply("team", Leave(agent="dora", by="dora", at=LATER))
        now = store.spaces.get("team")
        assert now is not None
        assert [(one.agent, one.role.value, one.order) for one in now.members] == [
            ("ben", "active", 2),
            ("cleo", "active", 3),
            ("ada", "passive", 5),
        ]
        assert [what.value for what, *_ in log_of(store)] == [
            *("create", "join", "join", "join", "fail_over", "promote", "promote", "leave")
        ]

    def test_a_space_is_nobodys_but_its_own(self, store: TablesStore) -> None:
        team(store, joined("ben"))
        (shared,) = put(store, "ada", "shared words")
        own = make_memory("shared words of ada", agent="ada")
        store.apply("ada", [Insert(memory=own)])
        inside = store.spaces.enter("team", "ben")
        assert inside.get(TEAM, [shared.id, own.id]) == (shared, None)
        assert found(inside, TEAM, "shared") == [shared.id]
        assert found(store, "ada", "shared") == [own.id]
        assert store.find("ben", Filter()) == ()
        assert inside.stats(TEAM).memories == 1

    def test_only_members_get_in(self, store: TablesStore) -> None:
        team(store, joined("ben", Right.READ), joined("cleo", role=Role.PASSIVE))
        (shared,) = put(store, "ada", "one")
        outside = store.spaces.enter("team", "dora")
        for read in (
            lambda: outside.get(TEAM, [shared.id]),
            lambda: outside.find(TEAM, Filter()),
            lambda: outside.search(TEAM, query_of("one")),
            lambda: outside.stats(TEAM),
            lambda: store.spaces.events("team", "dora"),
        ):
            with pytest.raises(NotAllowed, match="dora"):
                read()
        for agent in ("ben", "cleo", "dora"):
            with pytest.raises(NotAllowed, match=agent):
                put(store, agent, "two")
        for agent in ("ada", "ben", "cleo"):
            assert store.spaces.enter("team", agent).find(TEAM, Filter()) == (shared,)
        with pytest.raises(UnknownSpace):
            store.spaces.enter("elsewhere", "ada").find("space:elsewhere", Filter())

    def test_who_takes_over_may_write_and_who_failed_may_not(self, store: TablesStore) -> None:
        team(store, joined("ben", role=Role.PASSIVE))
        ada, ben = store.spaces.enter("team", "ada"), store.spaces.enter("team", "ben")
        store.spaces.apply("team", FailOver(agent="ada", by="ben", at=LATER))
        memory = make_memory("one", agent=TEAM)
        with pytest.raises(NotAllowed, match="passive"):
            ada.apply(TEAM, [Insert(memory=memory)])
        ben.apply(TEAM, [Insert(memory=memory)])
        assert ada.get(TEAM, [memory.id]) == (memory,)

    def test_every_member_sees_what_became_of_memories(self, store: TablesStore) -> None:
        team(store, joined("ben"), joined("cleo", Right.READ))
        since = store.spaces.latest_event("team")
        one, two = put(store, "ada", "one", "two")
        head = make_revision(one, "one anew")
        ben = store.spaces.enter("team", "ben")
        ben.apply(TEAM, [Revise(memory=head), SetStatus(memory_id=two.id, status=Status.FORGOTTEN, at=LATER)])
        put(store, "ada", "two")
        ben.apply(TEAM, [SetStatus(memory_id=two.id, status=Status.FORGOTTEN, at=LATER)])
        ben.apply(TEAM, [SetStatus(memory_id=two.id, status=Status.ACTIVE, at=LATER)])
        ben.apply(TEAM, [Purge(memory_id=head.id, at=LATER)])
        expected = [
            (SpaceEventKind.REMEMBER, "ada", one.id),
            (SpaceEventKind.REMEMBER, "ada", two.id),
            (SpaceEventKind.REVISE, "ben", head.id),
            (SpaceEventKind.FORGET, "ben", two.id),
            (SpaceEventKind.REPEAT, "ada", two.id),
            (SpaceEventKind.FORGET, "ben", two.id),
            (SpaceEventKind.RESTORE, "ben", two.id),
            (SpaceEventKind.PURGE, "ben", one.id),
        ]
        for agent in ("ada", "ben", "cleo"):
            assert log_of(store, agent, since) == expected
        revised = store.spaces.events("team", "ada", since=since)[2]
        assert (revised.former_id, revised.memory_id) == (one.version_id, one.id)
        last = store.spaces.latest_event("team")
        assert [event.number for event in store.spaces.events("team", "ada", since=last - 2)] == [
            last - 1,
            last,
        ]
        assert len(store.spaces.events("team", "ada", since=since, limit=3)) == 3

    def test_every_member_sees_what_became_of_working_sets(self, store: TablesStore) -> None:
        team(store, joined("ben"))
        one, two, three = put(store, "ada", "one", "two", "three")
        since = store.spaces.latest_event("team")
        hers, his = (
            germane.open(store, agent=agent, embedder=None).space("team").working_set()
            for agent in ("ada", "ben")
        )
        hers.add_many([one, two, three])
        assert [item.memory.id for item in his] == [one.id, two.id, three.id]
        assert [gone.item.memory.id for gone in his.evict(1, policy="lru").evicted] == [one.id]
        store.spaces.enter("team", "ben").apply(
            TEAM, [SetStatus(memory_id=two.id, status=Status.FORGOTTEN, at=LATER)]
        )
        assert his.clear() == 1
        assert log_of(store, "ada", since) == [
            *((SpaceEventKind.ADD, "ada", each.id) for each in (one, two, three)),
            (SpaceEventKind.EVICT, "ben", one.id),
            (SpaceEventKind.FORGET, "ben", two.id),
            (SpaceEventKind.CLEAR, "ben", three.id),
        ]
        events = store.spaces.events("team", "ben", since=since)
        assert {event.working_set for event in events} == {hers.name, None}
        assert hers.items() == ()

    def test_a_transaction_that_fails_tells_nothing(self, store: TablesStore) -> None:
        team(store)
        (one,) = put(store, "ada", "one")
        number = store.spaces.latest_event("team")
        with pytest.raises(NotFound):
            store.spaces.enter("team", "ada").apply(
                TEAM,
                [Insert(memory=make_memory("two", agent=TEAM)), Purge(memory_id="no such memory", at=LATER)],
            )
        assert store.spaces.latest_event("team") == number
        assert store.spaces.enter("team", "ada").find(TEAM, Filter()) == (one,)

    def test_a_space_that_was_disbanded_is_gone_with_all_in_it(self, store: TablesStore) -> None:
        team(store, joined("ben"))
        one, two = put(store, "ada", "one", "two")
        mine = make_memory("mine", agent="ada")
        store.apply("ada", [Insert(memory=mine)])
        number = store.spaces.latest_event("team")
        assert store.spaces.apply("team", Disband(by="ada", at=LATER)) is None
        assert store.spaces.get("team") is None
        assert store.spaces.find("ada") == ()
        assert store.spaces.latest_event("team") > number
        with pytest.raises(UnknownSpace):
            store.spaces.enter("team", "ben").get(TEAM, [one.id])
        assert store.find(TEAM, Filter(statuses=tuple(Status))) == ()
        assert store.find("ada", Filter()) == (mine,)
        store.spaces.apply("team", Create(by="cleo", at=LATER))
        assert store.spaces.enter("team", "cleo").get(TEAM, [one.id, two.id]) == (None, None)
        (event,) = store.spaces.events("team", "cleo")
        assert (event.what, event.number) == (SpaceEventKind.CREATE, store.spaces.latest_event("team"))
        assert event.number > number

    def test_spaces_are_apart(self, store: TablesStore) -> None:
        team(store)
        store.spaces.apply("other", Create(by="ben", at=START))
        (shared,) = put(store, "ada", "one")
        inside = store.spaces.enter("other", "ben")
        assert inside.get("space:other", [shared.id]) == (None,)
        assert [event.what for event in store.spaces.events("other", "ben")] == [SpaceEventKind.CREATE]
        with pytest.raises(NotAllowed):
            store.spaces.enter("other", "ada").find("space:other", Filter())

    def test_who_has_left_writes_no_more_however_close(self, store: TablesStore) -> None:
        team(store, joined("ben"), joined("cleo"))
        writers, rounds = ("ben", "cleo"), 40
        ready = Barrier(len(writers) + 1)

        def write(agent: str) -> int:
            ready.wait()
            for number in range(rounds):
                try:
                    put(store, agent, f"{agent} {number}")
                except NotAllowed:
                    return number
            return rounds

        with ThreadPoolExecutor(len(writers)) as pool:
            written = [pool.submit(write, agent) for agent in writers]
            ready.wait()
            for agent in writers:
                store.spaces.apply("team", Leave(agent=agent, by="ada", at=LATER))
            counts = {agent: each.result() for agent, each in zip(writers, written, strict=True)}
        story = log_of(store)
        for agent, count in counts.items():
            out = story.index((SpaceEventKind.LEAVE, "ada", agent))
            assert all(by != agent for _, by, _ in story[out:])
            assert sum(by == agent and what is SpaceEventKind.REMEMBER for what, by, _ in story) == count
