"""Type checkers and editors see every public name with its type, and every misspelt name or argument."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest
from mypy import api

from house.source import PUBLIC, ROOT

pytestmark = pytest.mark.timeout(400)
"""Without a cache mypy reads the whole package, which takes a minute and a half on a slow machine."""

NAMES = [(module, name) for module in PUBLIC for name in import_module(module).__all__]


def _reported(program: str, folder: Path) -> dict[int, str]:
    """What mypy, in its strict mode, reports by line of the program."""
    file = folder / "program.py"
    file.write_text(program, encoding="utf-8")
    settings = ["--strict", "--config-file", str(ROOT / "pyproject.toml"), "--follow-imports", "silent"]
    report, trouble, _ = api.run([*settings, str(file)])
    assert trouble == ""
    found = re.findall(r"program\.py:(\d+): (?:error|note): (.*)", report)
    return {int(line): message for line, message in found}


@pytest.fixture(autouse=True)
def _in_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_every_public_name_has_its_type(tmp_path: Path) -> None:
    lines = [f"import {module}" for module in PUBLIC]
    lines += [f"reveal_type({module}.{name})" for module, name in NAMES]

    reported = _reported("\n".join(lines), tmp_path)

    assert len(reported) == len(NAMES)
    assert [
        message for message in reported.values() if not re.match('Revealed type is "(?!Any")', message)
    ] == []


def test_what_is_misspelt_is_an_error(tmp_path: Path) -> None:
    program = """\
import germane
from germane.stores import copy_stoer
germane.opne("x.db")
germane.open("x.db", agnt="ada")
async def main() -> None:
    engine = await germane.aio.open("x.db", agent="ada")
    reveal_type(engine)
    await germane.aio.open("x.db", agnt="ada")
    await engine.recall("x", limt=3)
    for ranked in await engine.recall("x", limit=3):
        reveal_type(ranked)
"""
    reported = _reported(program, tmp_path)

    assert sorted(reported) == [2, 3, 4, 7, 8, 9, 11]
    assert reported[3] == 'Module has no attribute "opne"  [attr-defined]'
    assert reported[8].startswith('Unexpected keyword argument "agnt"')
    assert reported[7] == 'Revealed type is "germane.aio.AsyncEngine"'
    assert reported[11] == 'Revealed type is "germane.model.context.Ranked"'
