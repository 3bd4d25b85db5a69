"""What a store promises of spaces: only members get in, in the very transaction, and all is told."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest

from germane import Filter, Memory, Status
from germane.errors import (
    DuplicateMember,
    LastActive,
    NotAllowed,
    NotFound,
    SpaceError,
    SpaceTaken,
    UnknownSpace,
)
from germane.model.space import Create, Demote, Disband, FailOver, Join, Leave, Promote, SpaceAct
from germane.model.text import DEFAULT_SET, tenant_of
from germane.protocols import Store
from germane.spaces import Member, Right, Role, SpaceEvent, SpaceEventKind
from germane.stores import Insert, Purge, Revise, SetStatus
from germane.stores.relational.spaces import SpaceTables
from germane.stores.substores import SPACES, WORKING_SETS
from germane.testing.contract_search import ask, ids
from germane.testing.fakes import START, make_memory, make_revision
from germane.working_sets import AddItem, Clear
from germane.working_sets import RemoveItem as Out

__all__ = ["SharingContract"]

TEAM = tenant_of("team")
LATER = START + timedelta(days=1)


def joined(agent: str, rights: Right = Right.WRITE, role: Role = Role.ACTIVE, by: str = "") -> Join:
    """That an agent joins, by itself unless another one lets it in."""
    return Join(agent=agent, by=by or agent, at=LATER, rights=rights, role=role)


def team(store: Store, *others: Join) -> SpaceTables:
    """A store with the space `team`, created by ada, and more members."""
    shares = SPACES.required(store)
    shares.apply("team", Create(by="ada", at=START))
    for each in others:
        shares.apply("team", each)
    return shares


def put(store: SpaceTables, agent: str, *texts: str) -> list[Memory]:
    """New memories of the space, written by a member."""
    memories = [make_memory(text, agent=TEAM) for text in texts]
    store.enter("team", agent).apply(TEAM, [Insert(memory=each) for each in memories])
    return memories


def told(
    store: SpaceTables, agent: str = "ada", since: int = 0
) -> list[tuple[SpaceEventKind, str, str | None]]:
    """What happened, by whom, and to which memory or member."""
    events: tuple[SpaceEvent, ...] = store.events("team", agent, since=since)
    assert [event.number for event in events] == sorted({event.number for event in events})
    return [(event.what, event.by, event.memory_id or event.agent) for event in events]


class SharingContract:
    """What the sub-store `spaces` does."""

    def test_whoever_creates_a_space_leads_it(self, store: Store) -> None:
        shares = SPACES.required(store)
        made = shares.apply("team", Create(by="ada", at=START, admits=Right.READ))
        assert made == shares.get("team")
        assert made is not None
        first = Member(agent="ada", rights=Right.WRITE, role=Role.ACTIVE, joined_at=START, order=1)
        assert (made.members, made.admits, made.created_at) == ((first,), Right.READ, START)
        assert shares.find("ada") == (made,)
        assert shares.find("ben") == shares.find("nobody") == ()

    def test_what_the_rules_refuse_changes_nothing(self, store: Store) -> None:
        shares = team(store, joined("ben", Right.READ))
        before, number = shares.get("team"), shares.latest_event("team")
        refused: dict[type[SpaceError], SpaceAct] = {
            SpaceTaken: Create(by="cleo", at=LATER),
            DuplicateMember: joined("ben"),
            NotAllowed: joined("cleo", by="ben"),
            LastActive: Demote(agent="ada", by="ada", at=LATER),
        }
        for error, act in refused.items():
            with pytest.raises(error):
                shares.apply("team", act)
        with pytest.raises(UnknownSpace):
            shares.apply("elsewhere", joined("ada"))
        assert shares.get("team") == before
        assert shares.latest_event("team") == number
        assert shares.get("elsewhere") is None

    def test_members_are_kept_as_the_rules_have_them(self, store: Store) -> None:
        shares = team(
            store, joined("ben", role=Role.PASSIVE), joined("cleo", role=Role.PASSIVE), joined("dora")
        )
        shares.apply("team", FailOver(agent="ada", by="cleo", at=LATER))
        shares.apply("team", Promote(agent="cleo", by="ben", at=LATER))
        shares.apply("team", Leave(agent="dora", by="dora", at=LATER))
        now = shares.get("team")
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
        inside = shares.enter("team", "ben")
        assert inside.get(TEAM, [shared.id, own.id]) == (shared, None)
        assert ids(inside.search(TEAM, ask("shared")).slices[0]) == [shared.id]
        assert ids(store.search("ada", ask("shared")).slices[0]) == [own.id]
        assert store.find("ben", Filter()) == ()
        assert inside.stats(TEAM).memories == 1

    def test_only_members_get_in(self, store: Store) -> None:
        shares = team(store, joined("ben", Right.READ), joined("cleo", role=Role.PASSIVE))
        (shared,) = put(shares, "ada", "one")
        outside = shares.enter("team", "dora")
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
            assert shares.enter("team", agent).find(TEAM, Filter()) == (shared,)
        with pytest.raises(UnknownSpace):
            shares.enter("elsewhere", "ada").find(tenant_of("elsewhere"), Filter())

    def test_who_takes_over_may_write_and_who_failed_may_not(self, store: Store) -> None:
        shares = team(store, joined("ben", role=Role.PASSIVE))
        ada, ben = shares.enter("team", "ada"), shares.enter("team", "ben")
        shares.apply("team", FailOver(agent="ada", by="ben", at=LATER))
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
        ben = shares.enter("team", "ben")
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
        ada, ben = shares.enter("team", "ada"), shares.enter("team", "ben")
        hers, his = WORKING_SETS.required(ada), WORKING_SETS.required(ben)
        for each in (one, two, three):
            hers.apply(TEAM, DEFAULT_SET, [AddItem(memory_id=each.id, at=LATER)])
        assert [item.memory.id for item in his.get(TEAM, DEFAULT_SET).items] == [
            one.id,
            two.id,
            three.id,
        ]
        his.apply(TEAM, DEFAULT_SET, [Out(memory_id=one.id, at=LATER, evicted=True)])
        shares.enter("team", "ben").apply(
            TEAM, [SetStatus(memory_id=two.id, status=Status.FORGOTTEN, at=LATER)]
        )
        his.apply(TEAM, DEFAULT_SET, [Clear(at=LATER)])
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
        assert hers.get(TEAM, DEFAULT_SET).items == ()

    def test_a_transaction_that_fails_tells_nothing(self, store: Store) -> None:
        shares = team(store)
        (one,) = put(shares, "ada", "one")
        number = shares.latest_event("team")
        with pytest.raises(NotFound):
            shares.enter("team", "ada").apply(
                TEAM,
                [Insert(memory=make_memory("two", agent=TEAM)), Purge(memory_id="no such memory", at=LATER)],
            )
        assert shares.latest_event("team") == number
        assert shares.enter("team", "ada").find(TEAM, Filter()) == (one,)

    def test_a_space_that_was_disbanded_is_gone_with_all_in_it(self, store: Store) -> None:
        shares = team(store, joined("ben"))
        one, two = put(shares, "ada", "one", "two")
        mine = make_memory("mine", agent="ada")
        store.apply("ada", [Insert(memory=mine)])
        number = shares.latest_event("team")
        assert shares.apply("team", Disband(by="ada", at=LATER)) is None
        assert shares.get("team") is None
        assert shares.find("ada") == ()
        assert shares.latest_event("team") > number
        with pytest.raises(UnknownSpace):
            shares.enter("team", "ben").get(TEAM, [one.id])
        assert store.find(TEAM, Filter(statuses=tuple(Status))) == ()
        assert store.find("ada", Filter()) == (mine,)
        shares.apply("team", Create(by="cleo", at=LATER))
        assert shares.enter("team", "cleo").get(TEAM, [one.id, two.id]) == (None, None)
        (event,) = shares.events("team", "cleo")
        assert (event.what, event.number) == (SpaceEventKind.CREATE, shares.latest_event("team"))
        assert event.number > number

    def test_spaces_are_apart(self, store: Store) -> None:
        shares = team(store)
        shares.apply("other", Create(by="ben", at=START))
        (shared,) = put(shares, "ada", "one")
        inside = shares.enter("other", "ben")
        assert inside.get(tenant_of("other"), [shared.id]) == (None,)
        assert [event.what for event in shares.events("other", "ben")] == [SpaceEventKind.CREATE]
        with pytest.raises(NotAllowed):
            shares.enter("other", "ada").find(tenant_of("other"), Filter())

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
                shares.apply("team", Leave(agent=agent, by="ada", at=LATER))
            counts = {agent: each.result() for agent, each in zip(writers, written, strict=True)}
        story = told(shares)
        for agent, count in counts.items():
            out = story.index((SpaceEventKind.LEAVE, "ada", agent))
            assert all(by != agent for _, by, _ in story[out:])
            assert sum(by == agent and what is SpaceEventKind.REMEMBER for what, by, _ in story) == count
