"""The plan of a working set as data."""

from __future__ import annotations

import pytest

from germane import Level, Overflow, Plan, Section, Share
from germane.errors import InvalidInput, InvalidPlan
from germane.kinds import BUILT_IN
from germane.plans import Style
from germane.plans.layered import plan_for, working
from germane.testing.fakes import make_memory


def test_it_is_one_list_without_headings_that_skips_what_does_not_fit() -> None:
    (section,) = working().sections
    assert (section.heading, section.overflow, section.levels) == ("", Overflow.SKIP, (Level.FULL,))
    assert (section.style, section.reverse) == (Style.PARAGRAPHS, False)


def test_each_choice_changes_one_thing() -> None:
    default = working().sections[0]
    assert working(overflow="stop").sections[0].overflow is Overflow.STOP
    assert working(overflow=Overflow.DEGRADE).sections[0].levels == (Level.FULL, Level.SUMMARY, Level.MICRO)
    assert working(order="reverse").sections[0].reverse
    assert working(raw=True).sections[0].style is Style.RAW
    assert working(overflow="skip", order="best_first", raw=False).sections[0] == default


def test_unknown_words_are_named_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r"Unknown overflow 'truncate'. Known: stop, skip, degrade"):
        working(overflow="truncate")
    with pytest.raises(InvalidInput, match=r"Unknown order 'best_last'. Known orders: best_first, reverse"):
        working(order="best_last")


def test_a_list_is_a_working_set_s_and_only_a_list_is_reversed() -> None:
    with pytest.raises(InvalidPlan, match=r"'working' is a list of paragraphs.*working_set\(\).assemble"):
        plan_for(working(), kinds=BUILT_IN, frame="task")
    with pytest.raises(InvalidPlan, match="can't be reversed"):
        Section(name="facts", heading="## Facts", share=Share(weight=1), reverse=True)


def test_a_plan_that_gathers_nothing_is_refused() -> None:
    plan = Plan(name="mine", sections=(Section(name="facts", heading="## Facts", share=Share(weight=1)),))
    with pytest.raises(InvalidPlan, match="'mine' shows no memories: no section has kinds"):
        plan_for(plan, kinds=BUILT_IN, frame="task")


def test_what_no_budget_may_drop_is_found_by_its_kind() -> None:
    blocks = make_memory("never push to main", kind="constraint", metadata={"action": "block"})
    warns = make_memory("mind the gap", kind="constraint", metadata={"action": "warn"})
    assert BUILT_IN.required([blocks, warns, make_memory()]) == {blocks.id}


@pytest.mark.parametrize(
    "headed", [{"heading": "## Held"}, {"text": "x"}, {"own_heading": True}, {"by_session": True}]
)
@pytest.mark.parametrize("style", [Style.PARAGRAPHS, Style.RAW])
def test_only_bullets_stand_under_headings(style: Style, headed: dict[str, str]) -> None:
    given = {"name": "held", "heading": "", "share": Share(weight=1), "style": style} | headed
    with pytest.raises(InvalidPlan, match="stand under no heading"):
        Section(**given)  # type: ignore[arg-type] # The fields differ in type.
