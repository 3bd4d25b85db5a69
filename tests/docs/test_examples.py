"""Each example is run as its readers run it, and prints what stands beside it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from docs.pages import EXAMPLES, ROOT, masked, run_example, run_with_model


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_prints_what_stands_beside_it(example: Path) -> None:
    client = example.stem.removesuffix("_loop")
    if client in ("openai", "anthropic") and find_spec(client) is None:
        pytest.skip(f"The client {client} isn't installed.")
    expected = example.with_suffix(".txt").read_text(encoding="utf-8")
    assert masked(run_example(example)) == masked(expected)


@pytest.mark.parametrize(
    "example", [each for each in EXAMPLES if "model_or" in each.read_text()], ids=lambda example: example.stem
)
def test_an_example_with_a_script_takes_a_model_in_its_place(example: Path) -> None:
    pytest.importorskip("openai")
    printed = run_with_model(example, "--model", "stand-in")
    assert masked(printed) != masked(run_example(example))
    assert any(answer in printed for answer in ("Noted.", "I don't know."))


def test_every_example_is_named_in_the_documentation() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert len(EXAMPLES) >= 6
    assert [example.name for example in EXAMPLES if f"examples/{example.name}" not in index] == []
