"""What can't be a plan: of a working set, of a whole store, and of lists without headings."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import germane
from germane import Engine, Plan, Section, Share
from germane.errors import InvalidInput, InvalidPlan
from germane.kinds import BUILT_IN
from germane.plans import Style
from germane.testing.fakes import make_memory


@pytest.fixture(name="engine")
def _engine() -> Iterator[Engine]:
    with germane.open(":memory:", embedder=None) as opened:
        yield opened


def test_unknown_words_are_named_with_the_known_ones(engine: Engine) -> None:
    working = engine.working_set()
    with pytest.raises(InvalidInput, match=r"Unknown overflow 'truncate'. Known: stop, skip, degrade"):
        working.assemble(overflow="truncate")
    with pytest.raises(InvalidInput, match=r"Unknown order 'best_last'. Known orders: best_first, reverse"):
        working.assemble(order="best_last")


@pytest.mark.parametrize("style", [Style.PARAGRAPHS, Style.RAW])
def test_a_list_is_a_working_set_s_and_only_a_list_is_reversed(engine: Engine, style: Style) -> None:
    section = Section(name="held", heading="", share=Share(weight=1), style=style, reverse=True)
    with pytest.raises(InvalidPlan, match=r"'mine' is a list of paragraphs.*working_set\(\).assemble"):
        engine.assemble("a question", plan=Plan(name="mine", sections=(section,)))
    with pytest.raises(InvalidPlan, match="can't be reversed"):
        Section(name="facts", heading="## Facts", share=Share(weight=1), reverse=True)


def test_a_plan_that_gathers_nothing_is_refused(engine: Engine) -> None:
    plan = Plan(name="mine", sections=(Section(name="facts", heading="## Facts", share=Share(weight=1)),))
    with pytest.raises(InvalidPlan, match="'mine' shows no memories: no section has kinds"):
        engine.assemble("a question", plan=plan)


def test_what_no_budget_may_drop_is_found_by_its_kind() -> None:
    blocks = make_memory("never push to main", kind="constraint", metadata={"action": "block"})
    warns = make_memory("mind the gap", kind="constraint", metadata={"action": "warn"})
    strict = BUILT_IN.strict()
    memories = (blocks, warns, make_memory())
    assert [one for one in memories if one.kind in strict and strict[one.kind](one)] == [blocks]


@pytest.mark.parametrize(
    "headed", [{"heading": "## Held"}, {"text": "x"}, {"own_heading": True}, {"by_session": True}]
)
@pytest.mark.parametrize("style", [Style.PARAGRAPHS, Style.RAW])
def test_only_bullets_stand_under_headings(style: Style, headed: dict[str, str]) -> None:
    given = {"name": "held", "heading": "", "share": Share(weight=1), "style": style} | headed
    with pytest.raises(InvalidPlan, match="stand under no heading"):
        Section(**given)  # type: ignore[arg-type] # The fields differ in type.
