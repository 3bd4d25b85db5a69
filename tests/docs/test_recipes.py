"""The programs of the recipes print what their page shows, where their framework is installed.

Their frameworks don't fit into one environment, and none is part of the development environment. To run one:
`pip install -e . smolagents pytest pytest-timeout hypothesis`, then `pytest tests/docs/test_recipes.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest

from docs.pages import ILLUSTRATION, ROOT, Block, blocks_of, masked

_PAGE = ROOT / "docs" / "how-to" / "other-frameworks.md"
_ENVIRONMENT = {"CREWAI_DISABLE_TELEMETRY": "true", "HAYSTACK_TELEMETRY_ENABLED": "false"}


def recipes() -> dict[str, tuple[Block, Block]]:
    """The program and the output of each recipe, by the module of its framework."""
    pairs = pairwise(blocks_of(_PAGE.read_text(encoding="utf-8")))
    return {one.words[1]: (one, after) for one, after in pairs if one.words[:1] == (ILLUSTRATION,)}


def test_each_framework_has_a_recipe() -> None:
    assert list(recipes()) == ["crewai", "smolagents", "autogen_agentchat", "haystack", "dspy"]


@pytest.mark.parametrize("framework", recipes())
def test_a_recipe_prints_what_its_page_shows(framework: str, tmp_path: Path) -> None:
    if find_spec(framework) is None:
        pytest.skip(f"{framework} isn't installed.")
    program, output = recipes()[framework]
    (tmp_path / "program.py").write_text(program.text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={**os.environ, **_ENVIRONMENT},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert masked(done.stdout) == masked(output.text)
