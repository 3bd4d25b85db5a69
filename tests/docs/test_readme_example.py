"""The first example of the README answers at every budget that it names, not only at the one shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from docs.pages import ROOT, blocks_of
from germane import Engine

QUESTION = "Should we use Redis for caching?"


@pytest.fixture(name="engine")
def _engine(tmp_path: Path) -> Iterator[Engine]:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first = next(block for block in blocks_of(readme) if block.language == "python")
    namespace: dict[str, Any] = {}
    with chdir(tmp_path), redirect_stdout(StringIO()):
        exec(compile(first.text, "README.md", "exec"), namespace)  # noqa: S102 - It is our own example.
        with namespace["engine"] as engine:
            yield engine


def test_every_budget_from_60_to_500_answers(engine: Engine) -> None:
    for budget in range(60, 501):
        text = engine.assemble(QUESTION, budget=budget).text
        assert "**Never** deploy on a Friday." in text, budget
        assert "took it out" in text or "40 ms" in text, budget
        if budget >= 90:
            assert "took it out. [failure]" in text, budget
            assert "the hit rate stayed under 20 %; one more server to patch" in text, budget
        if budget >= 120:
            assert "40 ms without a cache" in text, budget
