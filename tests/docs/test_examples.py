"""Each example is run as its readers run it, and prints what stands beside it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from docs.pages import EXAMPLES, ROOT, masked, run_example


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_prints_what_stands_beside_it(example: Path) -> None:
    client = example.stem.removesuffix("_loop")
    if client in ("openai", "anthropic") and find_spec(client) is None:
        pytest.skip(f"The client {client} isn't installed.")
    expected = example.with_suffix(".txt").read_text(encoding="utf-8")
    assert masked(run_example(example)) == masked(expected)


def test_every_example_is_named_in_the_documentation() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert len(EXAMPLES) >= 6
    assert [example.name for example in EXAMPLES if f"examples/{example.name}" not in index] == []
