"""Choosing under a budget: what stops, what is skipped, what is shown shorter, and where tokens flow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane import BudgetTooSmall, Level, Memory, Overflow, Plan, Ranked, Reason, RollOver, Section, Share
from germane.packing.fit import LadderOf, fit
from germane.packing.lines import LineCache, RenderedLine
from germane.packing.sections import Choice, Fitted
from germane.protocols import Candidate
from germane.renditions import Rendition, Renditions
from germane.testing.fakes import make_memory


def memory(name: str, *, summary: int, micro: int | None = None, kind: str = "fact") -> Memory:
    """A memory whose levels cost what is said; its text is its name and level."""
    micro = summary if micro is None else micro
    return make_memory(content=name, kind=kind).evolve(
        id=name,
        renditions=Renditions(
            micro=Rendition(text=f"{name} micro", tokens=micro),
            summary=Rendition(text=f"{name} summary", tokens=summary),
            full=Rendition(text=f"{name} full", tokens=summary),
            counter="given",
        ),
    )


def section(name: str, weight: int, overflow: Overflow = Overflow.SKIP, **options: Any) -> Section:
    return Section(
        name=name,
        heading=f"## {name}",
        kinds=(name,),
        share=Share(weight=weight),
        overflow=overflow,
        **options,
    )


def run(
    plan: Plan,
    ranked: Sequence[Sequence[Memory]],
    budget: int,
    *,
    required: Sequence[str] = (),
    heading: int = 0,
    ladder_of: LadderOf | None = None,
) -> Fitted:
    return fit(
        plan,
        [[Ranked(candidate=Candidate(memory=one), score=1.0) for one in part] for part in ranked],
        budget,
        requires=lambda part, one: part.required or one.id in required,
        line_of=lambda _, one, level: RenderedLine(
            level=level, text=one.renditions.at(level).text, tokens=one.renditions.at(level).tokens
        ),
        heading_cost=lambda _section, _memory: heading,
        text_cost=lambda part: len(part.text),
        at_least=lambda one, level: one.renditions.at(level).tokens - 1,
        line_cache_of=ladder_of,
    )


def shown(fitted: Fitted) -> list[str]:
    return [choice.line.text for block in fitted.blocks for choice in block.choices if choice.line]


def reasons(fitted: Fitted) -> dict[str, Reason | None]:
    return {choice.ranked.memory.id: choice.reason for block in fitted.blocks for choice in block.choices}


ONE_BIG = [memory("a", summary=4), memory("b", summary=9, micro=3), memory("c", summary=2)]


def plan_of(*sections: Section, roll_over: RollOver = RollOver.NONE) -> Plan:
    return Plan(name="test", sections=sections, roll_over=roll_over)


def test_stop_ends_at_the_first_that_does_not_fit() -> None:
    fitted = run(plan_of(section("s", 1, Overflow.STOP)), [ONE_BIG], 10)
    assert shown(fitted) == ["a summary"]
    assert reasons(fitted) == {"a": None, "b": Reason.OVER_BUDGET, "c": Reason.STOPPED}


def test_skip_goes_on_after_what_does_not_fit_and_says_by_how_much() -> None:
    fitted = run(plan_of(section("s", 1, Overflow.SKIP)), [ONE_BIG], 10)
    assert shown(fitted) == ["a summary", "c summary"]
    missed = fitted.blocks[0].choices[1]
    assert (missed.reason, missed.tokens, missed.short_by) == (Reason.OVER_BUDGET, 9, 3)


def test_degrade_shows_what_does_not_fit_at_a_shorter_level() -> None:
    fitted = run(plan_of(section("s", 1, Overflow.DEGRADE)), [ONE_BIG], 10)
    assert shown(fitted) == ["a summary", "b micro", "c summary"]


def test_degrade_stop_ends_where_no_level_fits() -> None:
    several = [*ONE_BIG[:2], memory("c", summary=9, micro=4), memory("d", summary=1)]
    fitted = run(plan_of(section("s", 1, Overflow.DEGRADE_STOP)), [several], 10)
    assert shown(fitted) == ["a summary", "b micro"]
    assert reasons(fitted) == {"a": None, "b": None, "c": Reason.OVER_BUDGET, "d": Reason.STOPPED}
    assert fitted.blocks[0].choices[2].short_by == 1
    # A micro that is longer than the summary is tried second all the same.
    longer = [memory("a", summary=9), memory("b", summary=2, micro=1), memory("c", summary=1, micro=3)]
    assert shown(run(plan_of(section("s", 1, Overflow.DEGRADE_STOP)), [longer], 10)) == [
        "a summary",
        "b micro",
    ]


def test_what_fits_exactly_fits() -> None:
    assert shown(run(plan_of(section("s", 1)), [[memory("a", summary=10)]], 10)) == ["a summary"]
    assert shown(run(plan_of(section("s", 1)), [[memory("a", summary=11)]], 10)) == []


def test_a_heading_is_paid_once_and_only_when_something_stands_under_it() -> None:
    both = [memory("a", summary=4), memory("b", summary=4)]
    assert shown(run(plan_of(section("s", 1)), [both], 10, heading=2)) == ["a summary", "b summary"]
    assert shown(run(plan_of(section("s", 1)), [both], 9, heading=2)) == ["a summary"]
    assert run(plan_of(section("s", 1)), [[]], 9, heading=2).blocks[0].used == 0


def test_what_a_section_leaves_rolls_over_to_the_next() -> None:
    first, second = [memory("a", summary=2)], [memory("b", summary=7)]
    halves = (section("s", 1), section("t", 1))
    assert shown(run(plan_of(*halves), [first, second], 10)) == ["a summary"]
    assert shown(run(plan_of(*halves, roll_over=RollOver.NEXT), [first, second], 10)) == [
        "a summary",
        "b summary",
    ]
    # Nothing flows backwards.
    assert shown(run(plan_of(*halves, roll_over=RollOver.NEXT), [second, first], 10)) == ["a summary"]


def test_left_over_tokens_go_to_the_highest_priority_first() -> None:
    plan = plan_of(
        section("s", 1, priority=0.1),
        section("t", 1, priority=0.9),
        section("u", 2),
        roll_over=RollOver.PRIORITY,
    )
    fitted = run(plan, [[memory("a", summary=6)], [memory("b", summary=6)], []], 8)
    assert shown(fitted) == ["b summary"]
    assert fitted.blocks[1].flowed == 4


def test_left_over_tokens_show_more_memories_before_longer_ones() -> None:
    plan = plan_of(section("s", 1, Overflow.DEGRADE), section("t", 1), roll_over=RollOver.PRIORITY)
    parts = [[memory("a", summary=8, micro=3), memory("b", summary=8, micro=3)], []]
    assert shown(run(plan, parts, 8)) == ["a micro", "b micro"]
    assert shown(run(plan, parts, 12)) == ["a summary", "b micro"]


def test_a_ceiling_holds_against_the_flow() -> None:
    capped = Section(name="s", heading="## s", kinds=("s",), share=Share(weight=1, ceiling=5))
    plan = plan_of(capped, section("t", 1), roll_over=RollOver.PRIORITY)
    fitted = run(plan, [[memory(n, summary=3) for n in "ab"], []], 20)
    assert shown(fitted) == ["a summary"]


def test_what_is_required_borrows_from_the_lowest_priority() -> None:
    plan = plan_of(
        section("s", 1, priority=1.0), section("t", 1, priority=0.5), section("u", 1, priority=0.1)
    )
    fitted = run(
        plan,
        [[memory("a", summary=9)], [memory("b", summary=4)], [memory("c", summary=4)]],
        15,
        required=["a"],
    )
    assert shown(fitted) == ["a summary", "b summary"]
    assert fitted.lent == 4


def test_what_is_required_and_does_not_fit_is_an_error_that_names_the_shortfall() -> None:
    with pytest.raises(BudgetTooSmall) as caught:
        run(plan_of(section("s", 1)), [[memory("a", summary=9, micro=7)]], 5, required=["a"])
    assert (caught.value.budget, caught.value.needed, caught.value.shortfall) == (5, 7, 2)
    assert caught.value.required == ("a",)


def test_what_is_required_comes_at_its_shortest_before_anything_is_dropped() -> None:
    degrading = section("s", 1, Overflow.DEGRADE, required=True)
    assert shown(
        run(plan_of(degrading), [[memory("a", summary=9, micro=4), memory("b", summary=9, micro=4)]], 14)
    ) == [
        "a summary",
        "b micro",
    ]


def test_the_same_text_stands_once() -> None:
    twin = memory("a", summary=3).evolve(id="twin")
    fitted = run(plan_of(section("s", 1)), [[memory("a", summary=3), twin]], 50)
    assert reasons(fitted) == {"a": None, "twin": Reason.DUPLICATE}


def test_a_section_shows_no_more_items_than_its_plan_allows() -> None:
    fitted = run(plan_of(section("s", 1, items=1)), [ONE_BIG], 50)
    assert reasons(fitted) == {"a": None, "b": Reason.LIMIT, "c": Reason.LIMIT}


costs = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), max_size=12)


@given(
    parts=st.lists(costs, min_size=1, max_size=4),
    budget=st.integers(0, 200),
    overflow=st.sampled_from(Overflow),
    roll_over=st.sampled_from(RollOver),
    heading=st.integers(0, 5),
)
def test_whatever_is_chosen_costs_no_more_than_the_budget_and_each_candidate_has_its_place(
    parts: list[list[tuple[int, int]]], budget: int, overflow: Overflow, roll_over: RollOver, heading: int
) -> None:
    ranked = [
        [memory(f"{row}-{column}", summary=a, micro=b) for column, (a, b) in enumerate(part)]
        for row, part in enumerate(parts)
    ]
    plan = plan_of(*(section(f"s{row}", row + 1, overflow) for row in range(len(parts))), roll_over=roll_over)
    fitted = run(plan, ranked, budget, heading=heading)
    spent = sum(
        sum(choice.line.tokens for choice in block.choices if choice.line) + heading * block.open
        for block in fitted.blocks
    )
    assert spent == sum(block.used for block in fitted.blocks) <= budget
    for block in fitted.blocks:
        for choice in block.choices:
            assert (choice.line is None) == (choice.reason is not None)
            if choice.reason is Reason.OVER_BUDGET:
                assert choice.short_by > 0


@given(parts=costs, budget=st.integers(0, 200))
def test_skip_never_leaves_out_what_would_still_fit(parts: list[tuple[int, int]], budget: int) -> None:
    ranked = [memory(str(column), summary=a, micro=b) for column, (a, b) in enumerate(parts)]
    block = run(plan_of(section("s", 1)), [ranked], budget).blocks[0]
    for choice in block.choices:
        if choice.reason is Reason.OVER_BUDGET:
            assert choice.ranked.memory.renditions.at(Level.SUMMARY).tokens > budget - block.used


@given(
    parts=costs,
    budgets=st.lists(st.integers(0, 60), min_size=2, max_size=4),
    overflow=st.sampled_from(Overflow),
    heading=st.integers(0, 5),
    items=st.sampled_from([None, 2]),
)
def test_what_is_known_of_lines_changes_no_choice(
    parts: list[tuple[int, int]],
    budgets: list[int],
    overflow: Overflow,
    heading: int,
    items: int | None,
) -> None:
    ranked = [memory(str(column % 7), summary=a, micro=b) for column, (a, b) in enumerate(parts)]
    plan = plan_of(section("s", 1, overflow, items=items))
    known: defaultdict[int, LineCache] = defaultdict(LineCache)
    for budget in budgets:
        alone = run(plan, [ranked], budget, heading=heading).blocks[0]
        helped = run(plan, [ranked], budget, heading=heading, ladder_of=lambda _, one: known[id(one)]).blocks[
            0
        ]
        assert [told(choice) for choice in helped.choices] == [told(choice) for choice in alone.choices]


def told(choice: Choice) -> tuple[RenderedLine | None, Reason | None, int, int]:
    return choice.line, choice.reason, choice.tokens, choice.short_by
