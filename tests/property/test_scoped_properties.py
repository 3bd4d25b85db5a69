"""What the scoped plan promises, over random artifacts, shares and budgets."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import assume, given, settings
from hypothesis import strategies as st

import germane
from germane import Context, Draft, Level, Reason
from germane.plans import ScopedPlan
from germane.testing.fakes import FixedClock, WordCounter
from support.examples import examples

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
KINDS = ("adr", "pattern", "iplan", "module", "decision", "dependency", "changelog", "note", "fact")
SCOPES = ("global", "task:T-1", "task:T-2", "path:src", "path:src/auth", "path:*.py", "path:lib")
PLACES = {"global": ("global",), "task": ("task:T-1",), "path": ("path:src", "path:src/auth", "path:*.py")}
WORDS = ("redis", "cache", "token", "login", "sign", "queue", "deploy", "schema")

_ESTIMATE = ScopedPlan(
    name="scoped_estimate", backfill=False, degrade=False, relevance=False, stale_after_days=0, estimate=True
)


@st.composite
def artifacts(draw: st.DrawFn) -> list[Draft]:
    """Artifacts that differ in their first word, so that none is a duplicate."""
    return [
        Draft(
            content=" ".join([f"a{number}", *draw(st.lists(st.sampled_from(WORDS), max_size=25))]),
            kind=draw(st.sampled_from(KINDS)),
            scope=draw(st.sampled_from(SCOPES)),
        )
        for number in range(draw(st.integers(0, 14)))
    ]


@st.composite
def hows(draw: st.DrawFn) -> ScopedPlan:
    cuts = sorted(draw(st.lists(st.integers(0, 100), min_size=2, max_size=2)))
    parts = (cuts[0], cuts[1] - cuts[0], 100 - cuts[1])
    names = draw(st.permutations(["global", "task", "path"]))
    return replace(
        draw(st.sampled_from([ScopedPlan(), _ESTIMATE])),
        shares={name: part / 100 for name, part in zip(names, parts, strict=True)},
        roll_over=draw(st.booleans()),
        backfill=draw(st.booleans()),
    )


def assembled(
    drafts: Sequence[Draft], how: ScopedPlan, budget: int, *, query: str = "", seed: int | None = None
) -> Context:
    """The context of a store that holds these, stored in the order of a seed, each at a time of its own."""
    clock = FixedClock(NOW - timedelta(days=400), timedelta(0))
    order = list(range(len(drafts)))
    if seed is not None:
        random.Random(seed).shuffle(order)  # noqa: S311 - A test has to repeat.
    start = NOW - timedelta(days=400)
    with germane.open(
        ":memory:",
        embedder=None,
        clock=lambda: clock(),  # noqa: PLW0108 - The clock is another one later.
        counter=WordCounter(),
    ) as engine:
        for number in order:
            clock = FixedClock(start + timedelta(days=number))
            engine.remember_many([drafts[number]])
        clock = FixedClock(NOW)
        counter = "bytes_div_4_floor" if how.estimate else None
        return engine.assemble(
            query, plan=how, task="T-1", paths=["src/auth/x.py"], budget=budget, counter=counter
        )


@settings(max_examples=examples(150), deadline=None)
@given(artifacts(), hows(), st.integers(0, 200), st.sampled_from(["", "login token", "schema"]))
def test_the_sum_over_what_is_included_never_exceeds_the_budget(
    drafts: list[Draft], how: ScopedPlan, budget: int, query: str
) -> None:
    context = assembled(drafts, how, budget, query=query)
    assert sum(entry.tokens for entry in context.trace.included) <= budget
    assert sum(section.used for section in context.trace.sections) <= budget
    assert sum(section.share for section in context.trace.sections) == budget
    if not how.estimate:
        assert context.tokens <= budget
    inside = {scope for scopes in PLACES.values() for scope in scopes}
    assert sorted(entry.memory_id for entry in context.trace.entries) == sorted(
        {entry.memory_id for entry in context.trace.entries}
    )
    assert len(context.trace.entries) == sum(draft.scope in inside for draft in drafts)


@settings(max_examples=examples(100), deadline=None)
@given(artifacts(), hows(), st.integers(0, 200), st.integers(0, 1000), st.sampled_from(["", "login token"]))
def test_the_order_of_storing_changes_nothing(
    drafts: list[Draft], how: ScopedPlan, budget: int, seed: int, query: str
) -> None:
    one, other = (assembled(drafts, how, budget, query=query, seed=each) for each in (None, seed))
    assert one.text == other.text
    assert [(entry.label, entry.reason, entry.level) for entry in one.trace.entries] == [
        (entry.label, entry.reason, entry.level) for entry in other.trace.entries
    ]


@settings(max_examples=examples(150), deadline=None)
@given(artifacts(), hows(), st.integers(0, 200))
def test_no_artifact_displaces_one_before_it_that_would_have_fitted(
    drafts: list[Draft], how: ScopedPlan, budget: int
) -> None:
    how = replace(how, backfill=False, degrade=False)
    context = assembled(drafts, how, budget)
    given_of = {use.name: use.share + use.flowed for use in context.trace.sections}
    heading = {use.name: 0 if how.estimate else len(use.heading.split()) for use in context.trace.sections}
    used = dict.fromkeys(given_of, 0)
    for entry in context.trace.entries:
        cost = entry.tokens + (heading[entry.section] if not used[entry.section] else 0)
        if how.estimate:
            cost = entry.tokens
        fits = used[entry.section] + cost <= given_of[entry.section]
        # In rank order each is in exactly when it fits beside those before it, whatever comes after.
        assert entry.included is fits
        assert entry.reason is (None if fits else Reason.OVER_BUDGET)
        used[entry.section] += cost if fits else 0


@settings(max_examples=examples(100), deadline=None)
@given(artifacts(), artifacts(), hows(), st.integers(0, 200), st.sampled_from(sorted(PLACES)))
def test_without_roll_over_no_scope_changes_another(
    drafts: list[Draft], others: list[Draft], how: ScopedPlan, budget: int, name: str
) -> None:
    how = replace(how, roll_over=False, backfill=False)
    mine = [draft for draft in drafts if draft.scope in PLACES[name]]
    # Some of these say the same as what stands here, and take nothing from it for that.
    theirs = [draft for draft in others if draft.scope not in PLACES[name]]
    assume(mine)

    def shown(context: Context) -> list[tuple[str, Level | None, int]]:
        entries = [entry for entry in context.trace.entries if entry.section == name]
        return [(entry.label, entry.level, entry.short_by) for entry in entries]

    assert shown(assembled(mine, how, budget)) == shown(assembled([*mine, *theirs], how, budget))


@settings(max_examples=examples(100), deadline=None)
@given(artifacts(), hows(), st.integers(0, 200))
def test_backfill_only_adds(drafts: list[Draft], how: ScopedPlan, budget: int) -> None:
    without = assembled(drafts, replace(how, backfill=False), budget)
    context = assembled(drafts, replace(how, backfill=True), budget)
    assert {entry.label for entry in without.trace.included} <= {
        entry.label for entry in context.trace.included
    }
