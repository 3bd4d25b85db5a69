"""What a store promises of spaces: only members get in, in the very transaction, and all is told."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest

from germane.errors import (
    DuplicateMember,
    LastActive,
    NotAllowed,
    NotFound,
    SpaceError,
    SpaceTaken,
    UnknownSpace,
)
from germane.model.change import Insert, Purge, Revise, SetStatus
from germane.model.memory import Memory, Status
from germane.model.query import Filter
from germane.model.space import (
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
from germane.model.text import DEFAULT_SET, tenant_of
from germane.protocols import SpaceStore, Store, WorkingSetStore
from germane.testing.contract_search import ask, ids
from germane.testing.fakes import START, make_memory, make_revision
from germane.working_sets import AddItem, Clear
from germane.working_sets import RemoveItem as Out

__all__ = ["SharingContract"]

TEAM = tenant_of("team")
LATER = START + timedelta(days=1)


def sharing(store: Store) -> SpaceStore:
    """The store as one that keeps spaces, or no test."""
    if not isinstance(store, SpaceStore):
        pytest.skip("This store keeps no spaces.")
    return store


def joined(agent: str, rights: Right = Right.WRITE, role: Role = Role.ACTIVE, by: str = "") -> Join:
    """That an agent joins, by itself unless another one lets it in."""
    return Join(agent=agent, by=by or agent, at=LATER, rights=rights, role=role)


def team(store: Store, *others: Join) -> SpaceStore:
    """A store with the space `team`, created by ada, and more members."""
    shares = sharing(store)
    shares.settle_space("team", Create(by="ada", at=START))
    for each in others:
        shares.settle_space("team", each)
    return shares


def put(store: SpaceStore, agent: str, *texts: str) -> list[Memory]:
    """New memories of the space, written by a member."""
    memories = [make_memory(text, agent=TEAM) for text in texts]
    store.entered("team", agent).apply(TEAM, [Insert(memory=each) for each in memories])
    return memories


def told(
    store: SpaceStore, agent: str = "ada", since: int = 0
) -> list[tuple[SpaceEventKind, str, str | None]]:
    """What happened, by whom, and to which memory or member."""
    events: tuple[SpaceEvent, ...] = store.events("team", agent, since=since)
    assert [event.number for event in events] == sorted({event.number for event in events})
    return [(event.what, event.by, event.memory_id or event.agent) for event in events]


class SharingContract:
    """Spaces, for a store that is `SpaceStore`."""

    def test_whoever_creates_a_space_leads_it(self, store: Store) -> None:
        shares = sharing(store)
        made = shares.settle_space("team", Create(by="ada", at=START, admits=Right.READ))
        assert made == shares.space("team")
        assert made is not None
        first = Member(agent="ada", rights=Right.WRITE, role=Role.ACTIVE, joined_at=START, order=1)
        assert (made.members, made.admits, made.created_at) == ((first,), Right.READ, START)
        assert shares.spaces("ada") == (made,)
        assert shares.spaces("ben") == shares.spaces("nobody") == ()

    def test_what_the_rules_refuse_changes_nothing(self, store: Store) -> None:
        shares = team(store, joined("ben", Right.READ))
        before, number = shares.space("team"), shares.latest_event("team")
        refused: dict[type[SpaceError], SpaceAct] = {
            SpaceTaken: Create(by="cleo", at=LATER),
            DuplicateMember: joined("ben"),
            NotAllowed: joined("cleo", by="ben"),
            LastActive: Demote(agent="ada", by="ada", at=LATER),
        }
        for error, act in refused.items():
            with pytest.raises(error):
                shares.settle_space("team", act)
        with pytest.raises(UnknownSpace):
            shares.settle_space("elsewhere", joined("ada"))
        assert shares.space("team") == before
        assert shares.latest_event("team") == number
        assert shares.space("elsewhere") is None

    def test_members_are_kept_as_the_rules_have_them(self, store: Store) -> None:
        shares = team(
            store, joined("ben", role=Role.PASSIVE), joined("cleo", role=Role.PASSIVE), joined("dora")
        )
        shares.settle_space("team", FailOver(agent="ada", by="cleo", at=LATER))
        shares.settle_space("team", Promote(agent="cleo", by="ben", at=LATER))
        shares.settle_space("team", Leave(agent="dora", by="dora", at=LATER))
        now = shares.space("team")
        assert now is not None
        assert [(one.agent, one.role.value, one.order) for one in now.members] == [
            ("ben", "active", 2),
            ("cleo", "active", 3),
            ("ada", "passive", 5),
        ]
        assert [what.value for what, *_ in told(shares)] == [
            *("create", "join", "join", "join", "fail_over", "promote", "promote", "leave")
        ]

    def test_a_space_is_nobodys_but_its_own(self, store: Store) -> None:
        shares = team(store, joined("ben"))
        (shared,) = put(shares, "ada", "shared words")
        own = make_memory("shared words of ada", agent="ada")
        store.apply("ada", [Insert(memory=own)])
        inside = shares.entered("team", "ben")
        assert inside.get(TEAM, [shared.id, own.id]) == (shared, None)
        assert ids(inside.search(TEAM, ask("shared")).slices[0]) == [shared.id]
        assert ids(store.search("ada", ask("shared")).slices[0]) == [own.id]
        assert store.find("ben", Filter()) == ()
        assert inside.stats(TEAM).memories == 1

    def test_only_members_get_in(self, store: Store) -> None:
        shares = team(store, joined("ben", Right.READ), joined("cleo", role=Role.PASSIVE))
        (shared,) = put(shares, "ada", "one")
        outside = shares.entered("team", "dora")
        for read in (
            lambda: outside.get(TEAM, [shared.id]),
            lambda: outside.find(TEAM, Filter()),
            lambda: outside.search(TEAM, ask("one")),
            lambda: outside.stats(TEAM),
            lambda: shares.events("team", "dora"),
        ):
            with pytest.raises(NotAllowed, match="dora"):
                read()
        for agent in ("ben", "cleo", "dora"):
            with pytest.raises(NotAllowed, match=agent):
                put(shares, agent, "two")
        for agent in ("ada", "ben", "cleo"):
            assert shares.entered("team", agent).find(TEAM, Filter()) == (shared,)
        with pytest.raises(UnknownSpace):
            shares.entered("elsewhere", "ada").find(tenant_of("elsewhere"), Filter())

    def test_who_takes_over_may_write_and_who_failed_may_not(self, store: Store) -> None:
        shares = team(store, joined("ben", role=Role.PASSIVE))
        ada, ben = shares.entered("team", "ada"), shares.entered("team", "ben")
        shares.settle_space("team", FailOver(agent="ada", by="ben", at=LATER))
        memory = make_memory("one", agent=TEAM)
        with pytest.raises(NotAllowed, match="passive"):
            ada.apply(TEAM, [Insert(memory=memory)])
        ben.apply(TEAM, [Insert(memory=memory)])
        assert ada.get(TEAM, [memory.id]) == (memory,)

    def test_every_member_is_told_what_became_of_memories(self, store: Store) -> None:
        shares = team(store, joined("ben"), joined("cleo", Right.READ))
        since = shares.latest_event("team")
        one, two = put(shares, "ada", "one", "two")
        head = make_revision(one, "one anew")
        ben = shares.entered("team", "ben")
        ben.apply(TEAM, [Revise(memory=head), SetStatus(memory_id=two.id, status=Status.FORGOTTEN, at=LATER)])
        put(shares, "ada", "two")
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
            assert told(shares, agent, since) == expected
        revised = shares.events("team", "ada", since=since)[2]
        assert (revised.former_id, revised.memory_id) == (one.version_id, one.id)
        last = shares.latest_event("team")
        assert [event.number for event in shares.events("team", "ada", since=last - 2)] == [last - 1, last]
        assert len(shares.events("team", "ada", since=since, limit=3)) == 3

    def test_every_member_is_told_what_became_of_working_sets(self, store: Store) -> None:
        shares = team(store, joined("ben"))
        one, two, three = put(shares, "ada", "one", "two", "three")
        since = shares.latest_event("team")
        ada, ben = shares.entered("team", "ada"), shares.entered("team", "ben")
        if not isinstance(ada, WorkingSetStore) or not isinstance(ben, WorkingSetStore):
            pytest.skip("This store keeps no working sets.")
        for each in (one, two, three):
            ada.hold(TEAM, DEFAULT_SET, [AddItem(memory_id=each.id, at=LATER)])
        assert [item.memory.id for item in ben.stored_working_set(TEAM, DEFAULT_SET).items] == [
            one.id,
            two.id,
            three.id,
        ]
        ben.hold(TEAM, DEFAULT_SET, [Out(memory_id=one.id, at=LATER, evicted=True)])
        shares.entered("team", "ben").apply(
            TEAM, [SetStatus(memory_id=two.id, status=Status.FORGOTTEN, at=LATER)]
        )
        ben.hold(TEAM, DEFAULT_SET, [Clear(at=LATER)])
        assert told(shares, "ada", since) == [
            *((SpaceEventKind.ADD, "ada", each.id) for each in (one, two, three)),
            (SpaceEventKind.EVICT, "ben", one.id),
            (SpaceEventKind.FORGET, "ben", two.id),
            (SpaceEventKind.CLEAR, "ben", three.id),
        ]
        assert {event.working_set for event in shares.events("team", "ben", since=since)} == {
            DEFAULT_SET,
            None,
        }
        assert ada.stored_working_set(TEAM, DEFAULT_SET).items == ()

    def test_a_transaction_that_fails_tells_nothing(self, store: Store) -> None:
        shares = team(store)
        (one,) = put(shares, "ada", "one")
        number = shares.latest_event("team")
        with pytest.raises(NotFound):
            shares.entered("team", "ada").apply(
                TEAM,
                [Insert(memory=make_memory("two", agent=TEAM)), Purge(memory_id="no such memory", at=LATER)],
            )
        assert shares.latest_event("team") == number
        assert shares.entered("team", "ada").find(TEAM, Filter()) == (one,)

    def test_a_space_that_was_disbanded_is_gone_with_all_in_it(self, store: Store) -> None:
        shares = team(store, joined("ben"))
        one, two = put(shares, "ada", "one", "two")
        mine = make_memory("mine", agent="ada")
        store.apply("ada", [Insert(memory=mine)])
        number = shares.latest_event("team")
        assert shares.settle_space("team", Disband(by="ada", at=LATER)) is None
        assert shares.space("team") is None
        assert shares.spaces("ada") == ()
        assert shares.latest_event("team") > number
        with pytest.raises(UnknownSpace):
            shares.entered("team", "ben").get(TEAM, [one.id])
        assert store.find(TEAM, Filter(statuses=tuple(Status))) == ()
        assert store.find("ada", Filter()) == (mine,)
        shares.settle_space("team", Create(by="cleo", at=LATER))
        assert shares.entered("team", "cleo").get(TEAM, [one.id, two.id]) == (None, None)
        (event,) = shares.events("team", "cleo")
        assert (event.what, event.number) == (SpaceEventKind.CREATE, shares.latest_event("team"))
        assert event.number > number

    def test_spaces_are_apart(self, store: Store) -> None:
        shares = team(store)
        shares.settle_space("other", Create(by="ben", at=START))
        (shared,) = put(shares, "ada", "one")
        inside = shares.entered("other", "ben")
        assert inside.get(tenant_of("other"), [shared.id]) == (None,)
        assert [event.what for event in shares.events("other", "ben")] == [SpaceEventKind.CREATE]
        with pytest.raises(NotAllowed):
            shares.entered("other", "ada").find(tenant_of("other"), Filter())

    def test_who_has_left_writes_no_more_however_close(self, store: Store) -> None:
        shares = team(store, joined("ben"), joined("cleo"))
        writers, rounds = ("ben", "cleo"), 40
        ready = Barrier(len(writers) + 1)

        def write(agent: str) -> int:
            ready.wait()
            for number in range(rounds):
                try:
                    put(shares, agent, f"{agent} {number}")
                except NotAllowed:
                    return number
            return rounds

        with ThreadPoolExecutor(len(writers)) as pool:
            written = [pool.submit(write, agent) for agent in writers]
            ready.wait()
            for agent in writers:
                shares.settle_space("team", Leave(agent=agent, by="ada", at=LATER))
            counts = {agent: each.result() for agent, each in zip(writers, written, strict=True)}
        story = told(shares)
        for agent, count in counts.items():
            out = story.index((SpaceEventKind.LEAVE, "ada", agent))
            assert all(by != agent for _, by, _ in story[out:])
            assert sum(by == agent and what is SpaceEventKind.REMEMBER for what, by, _ in story) == count
