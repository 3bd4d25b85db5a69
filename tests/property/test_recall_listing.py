"""The listing of a recall: never longer than its budget, and as long as it allows."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

import germane
from germane import InvalidInput
from germane.tokens import get_counter

COUNTER = get_counter("o200k")
TEXTS = st.lists(st.text(min_size=1, max_size=400), min_size=1, max_size=12)


@settings(max_examples=60)
@given(texts=TEXTS, budget=st.integers(0, 600), limit=st.integers(1, 12))
def test_a_listing_fits_and_names_each_memory_once(texts: list[str], budget: int, limit: int) -> None:
    with germane.open(":memory:", embedder=None) as engine:
        for text in texts:
            try:
                engine.remember(f"refund {text}")
            except InvalidInput:
                continue
        everything = engine.recall("refund", limit=limit)
        found = engine.recall("refund", limit=limit, budget=budget)

        assert COUNTER.count(found.text) == found.tokens <= budget
        ids = [one.id for one in everything]
        assert [one.id for one in found] == [one for one in ids if one in {each.id for each in found}]
        lines = [line for line in found.text.split("\n") if line.startswith("[")]
        assert [line[1:9] for line in lines] == [one.id[-8:] for one in found]
        left_out = len(everything) - len(found)
        assert (f"({left_out} more found" in found.text) == bool(left_out and found.text)


def test_a_large_budget_lists_whole_texts_and_a_small_one_says_how_to_expand() -> None:
    with germane.open(":memory:") as engine:
        memory = engine.remember("The refund team in Osaka answers within three days. " * 12, kind="fact")
        whole = engine.recall("refund", budget=1000)
        part = engine.recall("refund", budget=60)

        assert "expand" not in whole.text
        assert part.text.endswith(f"… (expand {memory.id[-8:]})")
        assert engine.expand(memory.id[-8:]).startswith("The refund team")
        assert engine.recall("refund").text == ""
