"""The reference is complete: every public name, kind, error and named test, as the code has them."""

from __future__ import annotations

import importlib
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import germane
from commandline import run
from docs.pages import ROOT
from germane import errors
from germane.kinds import BUILT_IN
from germane.stores import migrate_store
from germane.tokens import COUNTERS
from house.source import PUBLIC

REFERENCE = ROOT / "docs" / "reference"


def test_the_generated_parts_are_what_the_code_says() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "api_reference.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_every_public_name_has_one_entry_that_says_something() -> None:
    pages = {page: (REFERENCE / page).read_text(encoding="utf-8") for page in ("api.md", "modules.md")}
    documented = [f"germane.{name}" for name, _ in _entries(pages["api.md"])]
    for section in re.split(r"^## ", pages["modules.md"], flags=re.MULTILINE)[1:]:
        module = section.partition("\n")[0].strip("`")
        entries = _entries(section)
        documented += [f"{module}.{name}" for name, _ in entries]
        assert [name for name, entry in entries if len(entry.strip()) < 20] == []

    public = [f"germane.{name}" for name in germane.__all__]
    for module in PUBLIC[1:]:
        found = importlib.import_module(module)
        names = (name for name in found.__all__ if getattr(found, name) is not getattr(germane, name, None))
        public.extend(f"{module}.{name}" for name in names)
    assert sorted(documented) == sorted(public)


def test_the_table_of_modules_names_every_public_name() -> None:
    text = (REFERENCE / "api.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[`([\w.]+)`\]\S+ \| .+ \| (.+) \|$", text, re.MULTILINE)

    assert {module: re.findall(r"`(\w+)`", names) for module, names in rows} == {
        module: importlib.import_module(module).__all__ for module in PUBLIC
    }


def test_pages_and_examples_import_public_names_only() -> None:
    pages = (*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", *(ROOT / "examples").rglob("*.py"))
    imports = {
        (module, name)
        for page in pages
        for module, names in re.findall(
            r"^from (germane[\w.]*) import ([\w, ]+)$", page.read_text(encoding="utf-8"), re.MULTILINE
        )
        for name in names.split(", ")
    }
    public = {
        (module, name)
        for module in PUBLIC
        for name in (*importlib.import_module(module).__all__, *_modules_in(module))
    }

    assert len(imports) > 40
    assert imports - public == set()


def _modules_in(package: str) -> list[str]:
    return [name.removeprefix(f"{package}.") for name in PUBLIC[1:] if name.rpartition(".")[0] == package]


def _entries(text: str) -> list[tuple[str, str]]:
    """The headings of names with the text below each."""
    return re.findall(r"^### `(\w+)`\n+(.*?)(?=^##|^<!--|\Z)", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("error", errors.__all__)
def test_every_error_has_a_cause_and_a_remedy(error: str) -> None:
    text = (REFERENCE / "errors.md").read_text(encoding="utf-8")
    entry = re.search(rf"^### {error}\n(.*?)(?=^### |\Z)", text, re.MULTILINE | re.DOTALL)
    assert entry is not None

    if not getattr(errors, error).__subclasses__() or error == "InvalidInput":
        assert "**Cause:**" in entry[1]
        assert "**Remedy:**" in entry[1]
    stored = re.findall(r"self\.(\w+) = ", _source_of(error))
    assert [name for name in stored if f"`{name}`" not in entry[1]] == []


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("kinds.md", [kind.name for kind in BUILT_IN]),
        ("tokens.md", COUNTERS),
    ],
)
def test_every_built_in_name_has_a_row(page: str, names: list[str]) -> None:
    text = (REFERENCE / page).read_text(encoding="utf-8")

    assert [name for name in names if f"| `{name}`" not in text] == []


def test_every_frame_has_a_row(tmp_path: Path) -> None:
    text = (REFERENCE / "plans.md").read_text(encoding="utf-8")
    frames = [each["name"] for each in run("context", "frames", "--json", db=tmp_path / "a.db").json()]

    assert "decision" in frames
    assert [frame for frame in frames if f"| `{frame}`" not in text] == []


def test_every_plan_has_a_section() -> None:
    text = (REFERENCE / "plans.md").read_text(encoding="utf-8")
    with germane.open(":memory:") as engine, pytest.raises(germane.InvalidInput) as refused:
        engine.assemble("Tea?", plan="nonsense")
    plans = str(refused.value).partition("Known plans: ")[2].partition(". ")[0].split(", ")

    assert {"layered", "relevance"} <= set(plans)
    assert [plan for plan in plans if f"\n## {plan}\n" not in text] == []


def test_every_table_of_the_file_is_described(tmp_path: Path) -> None:
    text = (REFERENCE / "storage.md").read_text(encoding="utf-8")
    migrate_store(tmp_path / "agent.db")
    with closing(sqlite3.connect(tmp_path / "agent.db")) as raw:
        tables = [name for (name,) in raw.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]

    assert "memories" in tables
    assert [table for table in tables if f"`{table}`" not in text] == []


def test_the_tests_that_prove_the_invariants_exist() -> None:
    text = (ROOT / "docs" / "explanation" / "invariants.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", text)

    assert named
    assert [f"{p}::{t}" for p, t in named if f"def {t}(" not in (ROOT / p).read_text(encoding="utf-8")] == []


def _source_of(error: str) -> str:
    text = (ROOT / "src" / "germane" / "errors.py").read_text(encoding="utf-8")
    return text.partition(f"class {error}(")[2].partition("\nclass ")[0]
