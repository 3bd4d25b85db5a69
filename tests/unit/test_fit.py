"""What stands in a context and at which length: the budget in shares, the choice, and what the lines cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import germane
from germane import (
    BudgetTooSmall,
    InvalidInput,
    InvalidPlan,
    Level,
    Memory,
    Overflow,
    Plan,
    Ranked,
    Reason,
    RollOver,
    Section,
    Share,
)
from germane.kinds import BUILT_IN
from germane.packing.fit import fit
from germane.packing.layout import assemble_list
from germane.packing.lines import (
    ContentCosts,
    Costs,
    Heading,
    LineCache,
    ListCosts,
    RememberedLines,
    RenderedLine,
)
from germane.packing.sections import Choice, Fitted, allocate
from germane.plans.layered import relevance, working
from germane.protocols import Candidate
from germane.renditions import Rendition, Renditions
from germane.testing.fakes import WordCounter, make_memory
from germane.tokens import get_counter

# Choosing under a budget: what stops, what is skipped, what is shown shorter, and where tokens flow.


def memory(name: str, *, summary: int, micro: int | None = None, kind: str = "fact") -> Memory:
    """A memory whose levels cost these tokens; its text is its name and level."""
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


class GivenCosts(Costs):
    """Lines that cost what the memories say, under headings of one cost; `known` are lines made before."""

    def __init__(self, heading: int, known: defaultdict[int, LineCache] | None) -> None:
        super().__init__(WordCounter(), BUILT_IN, RememberedLines())
        self._each, self._known = heading, known

    def line(self, section: Section, memory: Memory, level: Level) -> RenderedLine:  # noqa: ARG002 - As of all costs.
        made = memory.renditions.at(level)
        return RenderedLine(level=level, text=made.text, tokens=made.tokens, body=made.text)

    def line_cache(self, section: Section, memory: Memory) -> LineCache:  # noqa: ARG002 - As of all costs.
        return LineCache() if self._known is None else self._known[id(memory)]

    def excerpt(self, section: Section, memory: Memory, free_tokens: int) -> None:  # noqa: ARG002 - As of all costs.
        return None

    def at_least(self, memory: Memory, level: Level) -> int:
        return memory.renditions.at(level).tokens - 1

    def heading(self, section: Section, memory: Memory | None) -> Heading:  # noqa: ARG002 - As of all costs.
        return Heading("", self._each)

    def text(self, section: Section) -> int:
        return len(section.text)


def run(
    plan: Plan,
    ranked: Sequence[Sequence[Memory]],
    budget: int,
    *,
    required: Sequence[str] = (),
    heading: int = 0,
    known: defaultdict[int, LineCache] | None = None,
) -> Fitted:
    parts = zip(plan.sections, ranked, strict=True)
    return fit(
        plan,
        [[Ranked(candidate=Candidate(memory=one), score=1.0) for one in part] for part in ranked],
        budget,
        GivenCosts(heading, known),
        required=[one.ref for each, part in parts for one in part if each.required or one.id in required],
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
        sum(choice.line.tokens for choice in block.choices if choice.line)
        + heading * (block.shows_text or block.shown > 0)
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
        helped = run(plan, [ranked], budget, heading=heading, known=known).blocks[0]
        assert [summary_of(choice) for choice in helped.choices] == [
            summary_of(choice) for choice in alone.choices
        ]


def summary_of(choice: Choice) -> tuple[RenderedLine | None, Reason | None, int, int]:
    return choice.line, choice.reason, choice.tokens, choice.short_by


# Splitting a budget: exact sums, floors, ceilings, and the worked example of the scoped shares.

shares = st.lists(
    st.builds(
        lambda weight, floor, extra: Share(
            weight=weight, floor=floor, ceiling=None if extra is None else floor + extra
        ),
        st.integers(0, 5000),
        st.integers(0, 300),
        st.none() | st.integers(0, 4000),
    ),
    min_size=1,
    max_size=9,
)


def test_half_and_thirty_and_twenty_percent_of_eight_thousand() -> None:
    assert allocate(8000, [Share(weight=50), Share(weight=30), Share(weight=20)]) == (4000, 2400, 1600)


def test_the_remainder_goes_to_the_last_section() -> None:
    assert allocate(11, [Share(weight=50), Share(weight=30), Share(weight=20)]) == (5, 3, 3)


def test_a_floor_is_set_aside_first() -> None:
    assert allocate(100, [Share(weight=0, floor=40), Share(weight=1), Share(weight=2)]) == (40, 20, 40)


def test_floors_that_do_not_fit_shrink_in_proportion() -> None:
    assert allocate(30, [Share(weight=1, floor=40), Share(weight=1, floor=20)]) == (20, 10)


def test_what_a_ceiling_cuts_off_goes_to_the_others() -> None:
    assert allocate(100, [Share(weight=1, ceiling=10), Share(weight=1)]) == (10, 90)


def test_ceilings_everywhere_keep_tokens_back() -> None:
    assert sum(allocate(100, [Share(weight=1, ceiling=10), Share(weight=3, ceiling=20)])) == 30


def test_nothing_can_be_split_into_nothing() -> None:
    assert allocate(0, [Share(weight=2), Share(weight=3)]) == (0, 0)


def test_a_negative_total_is_refused() -> None:
    with pytest.raises(InvalidInput, match="-1 tokens"):
        allocate(-1, [Share(weight=1)])


def test_a_ceiling_below_its_floor_is_refused() -> None:
    with pytest.raises(InvalidPlan, match="floor 5 and ceiling 4"):
        Share(weight=1, floor=5, ceiling=4)


@given(total=st.integers(0, 20_000), parts=shares)
def test_shares_sum_to_the_total_unless_ceilings_keep_some_back(total: int, parts: list[Share]) -> None:
    given_ = allocate(total, parts)
    assert len(given_) == len(parts)
    assert all(part >= 0 for part in given_)
    fits = sum(share.floor for share in parts) <= total
    assert sum(given_) <= total
    if fits and any(share.weight and share.ceiling is None for share in parts):
        assert sum(given_) == total
    for part, share in zip(given_, parts, strict=True):
        if fits:
            assert part >= share.floor
        if share.ceiling is not None and fits:
            assert part <= share.ceiling


@given(total=st.integers(0, 20_000), parts=shares, more=st.integers(0, 500))
def test_a_larger_total_never_shrinks_all_shares(total: int, parts: list[Share], more: int) -> None:
    assert sum(allocate(total + more, parts)) >= sum(allocate(total, parts))


# Cached lines save work and can't be wrong: they are for one very memory and section.

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ONE = Section(name="one", heading="## One", share=Share(weight=1))
COUNTER = get_counter("o200k")


def _lines(lines: RememberedLines, memory: Memory, section: Section = ONE) -> dict[Level, RenderedLine]:
    """What an assembly finds in the cache."""
    return Costs(COUNTER, BUILT_IN, lines).line_cache(section, memory).lines


def _made(lines: RememberedLines, memory: Memory) -> RenderedLine:
    """A line that an assembly makes, and leaves in the cache."""
    return Costs(COUNTER, BUILT_IN, lines).line(ONE, memory, Level.FULL)


def test_a_line_is_found_by_its_memory_and_level() -> None:
    lines, memory = RememberedLines(), make_memory("The cache lives in Redis.")
    made = _made(lines, memory)
    assert made.text == "- The cache lives in Redis."
    assert _lines(lines, memory) == {Level.FULL: made}


@pytest.mark.parametrize(
    "option", [{"own_heading": True}, {"ids": True}, {"levels": (Level.FULL,)}, {"share": Share(weight=2)}]
)
def test_a_section_that_differs_in_any_option_has_lines_of_its_own(option: dict[str, Any]) -> None:
    lines, memory = RememberedLines(), make_memory("The cache lives in Redis.")
    made = _made(lines, memory)
    assert _lines(lines, memory, replace(ONE)) == {Level.FULL: made}
    assert _lines(lines, memory, replace(ONE, **option)) == {}


def test_another_memory_of_the_same_id_is_another() -> None:
    lines, memory = RememberedLines(), make_memory("The cache lives in Redis.")
    _made(lines, memory)
    assert _lines(lines, memory.evolve(content="Something else.")) == {}


def test_what_is_counted_in_another_way_is_cached_apart() -> None:
    lines, memory = RememberedLines(), make_memory("The cache lives in Redis.")
    _made(lines, memory)
    assert ContentCosts(COUNTER, BUILT_IN, lines).line_cache(ONE, memory).lines == {}
    assert Costs(get_counter("cl100k"), BUILT_IN, lines).line_cache(ONE, memory).lines == {}
    lines.clear()
    assert _lines(lines, memory) == {}


def test_a_huge_memory_is_not_cached_and_many_are_let_go() -> None:
    lines, huge = RememberedLines(), make_memory("word " * 5000)
    _made(lines, huge)
    assert _lines(lines, huge) == {}
    first = make_memory("first")
    _made(lines, first)
    for number in range(1300):
        _lines(lines, make_memory("x" * 19_000, id=f"m{number}"))
    assert _lines(lines, first) == {}


def test_contexts_are_the_same_with_and_without_what_was_remembered() -> None:
    with germane.open(":memory:", agent="a", clock=lambda: NOW) as engine:
        for number in range(30):
            engine.remember(f"# Note {number}\nThe cache of part {number} lives in <b>Redis</b>.")
        first = engine.assemble("Where does the cache live?", budget=300)
        assert engine.assemble("Where does the cache live?", budget=300) == first
        other = engine.assemble("Where does the cache live?", budget=300, counter="cl100k")
        assert other.trace.counter == "cl100k"
        assert engine.assemble("Where does the cache live?", budget=300) == first


def test_a_plan_of_bullets_is_no_list() -> None:
    with pytest.raises(InvalidPlan, match="'relevance' is no list"):
        assemble_list(
            relevance(BUILT_IN),
            [],
            memories=[],
            counter=COUNTER,
            kinds=BUILT_IN,
            lines=RememberedLines(),
            budget=10,
            now=NOW,
        )


def test_cached_paragraphs_change_nothing_when_an_id_is_used_again() -> None:
    costs, (section,) = ListCosts(WordCounter(), BUILT_IN, RememberedLines()), working().sections
    one, other = make_memory("one text", id="same"), make_memory("another text here", id="same")
    assert costs.line(section, one, Level.FULL).tokens == 2
    assert costs.line(section, one, Level.FULL) is costs.line(section, one, Level.FULL)
    assert costs.line(section, other, Level.FULL).tokens == 3


def test_a_purge_takes_the_remembered_lines_along() -> None:
    with germane.open(":memory:", agent="a", clock=lambda: NOW) as engine:
        engine.remember("The secret lives in the vault.")
        (item,) = engine.assemble("Where does the secret live?", budget=300, plan="relevance").items
        found = item.memory
        session, (section, _) = engine._session, relevance(BUILT_IN).sections
        assert Costs(session.counter, BUILT_IN, session.lines).line_cache(section, found).lines != {}
        engine.purge(found.id, confirm=True)
        assert Costs(session.counter, BUILT_IN, session.lines).line_cache(section, found).lines == {}
        assert engine.assemble("Where does the secret live?", budget=300, plan="relevance").text == ""
