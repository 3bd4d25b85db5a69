"""Whatever is done to a space, by whomever: somebody can write in it, and its log tells who is in it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from germane.errors import DuplicateMember, InvalidInput, LastActive, NotAllowed, NotAMember, SpaceError
from germane.spaces import (
    Create,
    Decided,
    Demote,
    Disband,
    FailOver,
    Join,
    Leave,
    Promote,
    Right,
    Role,
    SpaceAct,
    SpaceEventKind,
    SpaceInfo,
    admit,
    decide,
)
from support.examples import examples

START = datetime(2026, 1, 5, tzinfo=UTC)
AGENTS = ("ada", "ben", "cleo", "dora", "emil")
agents = st.sampled_from(AGENTS)


class Membership(RuleBasedStateMachine):
    """Acts of anybody on anybody; what the rules refuse leaves the space as it was."""

    @initialize(by=agents, admits=st.sampled_from([None, *Right]))
    def create(self, by: str, admits: Right | None) -> None:
        self.now = START
        self.roles: dict[str, Role] = {}
        self.rights: dict[str, Right] = {by: Right.WRITE}
        self.space: SpaceInfo = self.checked(decide("team", None, Create(by=by, at=self.now, admits=admits)))

    @rule(agent=agents, by=agents, rights=st.sampled_from(Right), role=st.sampled_from(Role))
    def join(self, agent: str, by: str, rights: Right, role: Role) -> None:
        known = self.space.member(agent) is not None
        error = self.act(Join(agent=agent, by=by, at=self.tick(), rights=rights, role=role))
        assert isinstance(error, DuplicateMember) == known
        if error is None:
            self.rights[agent] = rights
            assert rights is Right.WRITE or role is Role.ACTIVE
            assert self.leads(by) or (agent == by and self.space.admits in (rights, Right.WRITE))

    @rule(agent=agents, by=agents)
    def leave(self, agent: str, by: str) -> None:
        before = self.space
        error = self.act(Leave(agent=agent, by=by, at=self.tick()))
        if error is None:
            assert self.space.member(agent) is None
            assert agent == by or self.led(before, by)
        elif agent == by:
            assert isinstance(error, NotAMember | LastActive)

    @rule(agent=agents, by=agents)
    def promote(self, agent: str, by: str) -> None:
        before = self.space
        error = self.act(Promote(agent=agent, by=by, at=self.tick()))
        if error is None:
            assert self.led(before, by)
            assert self.leads(agent)

    @rule(agent=agents, by=agents)
    def demote(self, agent: str, by: str) -> None:
        before = self.space
        error = self.act(Demote(agent=agent, by=by, at=self.tick()))
        if error is None:
            assert agent == by or self.led(before, by)
            assert not self.leads(agent)
        waiting = [one for one in before.members if one.role is Role.PASSIVE]
        if isinstance(error, LastActive):
            assert waiting == []

    @rule(agent=agents, by=agents)
    def fail_over(self, agent: str, by: str) -> None:
        before = self.space
        waiting = [one.agent for one in before.members if one.role is Role.PASSIVE]
        error = self.act(FailOver(agent=agent, by=by, at=self.tick()))
        if error is None:
            assert self.led(before, agent)
            assert not self.leads(agent)
            assert self.space.members[-1].agent == agent
            assert all(self.leads(one) == (one == waiting[0]) for one in waiting)

    @rule(by=agents)
    def disband(self, by: str) -> None:
        if self.leads(by):
            assert decide("team", self.space, Disband(by=by, at=self.tick())).space is None
        else:
            assert isinstance(self.act(Disband(by=by, at=self.tick())), NotAllowed)

    @rule(agent=agents, right=st.sampled_from(Right))
    def enter(self, agent: str, right: Right) -> None:
        member = self.space.member(agent)
        may = member is not None and (right is Right.READ or self.leads(agent))
        try:
            admit(self.space, agent, right)
        except NotAllowed:
            assert not may
        else:
            assert may

    @invariant()
    def somebody_can_write(self) -> None:
        assert any(one.leads for one in self.space.members)
        assert all(one.rights is Right.WRITE for one in self.space.members if one.role is Role.PASSIVE)

    @invariant()
    def members_stand_once_and_in_their_order(self) -> None:
        orders = [one.order for one in self.space.members]
        assert orders == sorted(set(orders))
        assert len({one.agent for one in self.space.members}) == len(orders)
        assert max(orders) <= self.space.joined

    @invariant()
    def the_log_tells_who_is_in_it(self) -> None:
        assert {one.agent: one.role for one in self.space.members} == self.roles

    def act(self, act: SpaceAct) -> Exception | None:
        before = self.space
        try:
            self.space = self.checked(decide("team", before, act))
        except (SpaceError, InvalidInput) as error:
            assert self.space is before
            assert "team" in str(error)
            return error
        return None

    def checked(self, decided: Decided) -> SpaceInfo:
        """The space that was decided, after its events are added to what the log tells."""
        space = decided.space
        assert space is not None
        for what, agent in decided.events:
            if what is SpaceEventKind.LEAVE:
                del self.roles[agent]
            elif what in (SpaceEventKind.DEMOTE, SpaceEventKind.FAIL_OVER):
                self.roles[agent] = Role.PASSIVE
            elif what is SpaceEventKind.JOIN:
                joined = space.member(agent)
                assert joined is not None
                self.roles[agent] = joined.role
            else:
                self.roles[agent] = Role.ACTIVE
        return space

    def leads(self, agent: str) -> bool:
        return self.led(self.space, agent)

    @staticmethod
    def led(space: SpaceInfo, agent: str) -> bool:
        member = space.member(agent)
        return member is not None and member.leads

    def tick(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


TestMembership = Membership.TestCase
TestMembership.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
