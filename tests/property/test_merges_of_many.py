"""Of many facts `maintain` merges those of which each two say the same."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

import germane
from germane.lifecycle import QualityFlag
from support.alike import Alike

NOW = datetime(2026, 6, 1, tzinfo=UTC)
WORDS = ("the", "deploys", "deployed", "payments", "every", "each", "3")
FACTS = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join),
    min_size=2,
    max_size=6,
    unique=True,
)


def opened() -> germane.Engine:
    return germane.open(":memory:", agent="a", clock=lambda: NOW, embedder=Alike())


def merges(facts: Sequence[str]) -> list[tuple[str, str]]:
    """Each fact that maintain would merge, with the one that stays."""
    engine = opened()
    drafts = [germane.Draft(content=fact, kind="fact") for fact in facts]
    stored = engine.remember_many(drafts, quality="mark")
    text_of = {each.memory.id: fact for each, fact in zip(stored, facts, strict=True)}
    steps = engine.maintain(dry_run=True).steps
    return [(text_of[step.memory_id], text_of[step.other]) for step in steps if step.other is not None]


def say_the_same(first: str, second: str) -> bool:
    """Whether an episode is marked as the duplicate of another: two texts are compared by the same rule."""
    engine = opened()
    engine.remember(first, kind="episode", subject="them", quality="mark")
    marked = engine.remember(second, kind="episode", subject="them", quality="mark").metadata
    return marked.get("doubt") == {QualityFlag.NEAR_DUPLICATE.value: True}


@settings(max_examples=40, deadline=None)
@given(FACTS)
def test_maintain_merges_what_says_the_same(facts: list[str]) -> None:
    alike = {pair for pair in combinations(facts, 2) if say_the_same(*pair)}
    expected, gone = [], set[str]()
    for place, first in enumerate(facts):
        if first not in gone:
            same = [each for each in facts[place + 1 :] if (first, each) in alike and each not in gone]
            gone.update(same)
            expected += [(each, first) for each in same]
    assert merges(facts) == expected


def test_of_these_facts_two_say_the_same() -> None:
    facts = ["deployed payments every 3", "deploys payments", "deploy payments each 3"]
    assert merges(facts) == [(facts[2], facts[0])]
