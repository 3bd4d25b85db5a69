"""The reference is complete: every public name, kind, error and named test, as the code has them."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys

import pytest

import germane
from docs.pages import ROOT
from germane import errors
from germane.kinds import BUILT_IN
from germane.plans.frames import FRAMES
from germane.plans.layered import PLANS
from germane.stores.sql import schema
from germane.tokens import COUNTERS

REFERENCE = ROOT / "docs" / "reference"


def test_the_generated_parts_are_what_the_code_says() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "api_reference.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_every_public_name_has_an_entry() -> None:
    entries = re.findall(r"^### `(\w+)`$", (REFERENCE / "api.md").read_text(encoding="utf-8"), re.MULTILINE)

    assert sorted(entries) == sorted(germane.__all__)


def test_every_name_of_the_other_rooms_has_an_entry_that_says_something() -> None:
    text = (REFERENCE / "rooms.md").read_text(encoding="utf-8")
    rooms = re.findall(r"^## `([\w.]+)`$", text, re.MULTILINE)
    entries = re.findall(r"^### `(\w+)`\n+(.*?)(?=^##|^<!--)", text, re.MULTILINE | re.DOTALL)

    assert sorted(name for name, _ in entries) == sorted(
        name for room in rooms for name in importlib.import_module(room).__all__
    )
    assert [name for name, entry in entries if len(entry.strip()) < 20] == []


@pytest.mark.parametrize("error", [name for name in germane.__all__ if name in errors.__all__])
def test_every_error_has_a_cause_and_a_remedy(error: str) -> None:
    text = (REFERENCE / "errors.md").read_text(encoding="utf-8")
    entry = re.search(rf"^### {error}\n(.*?)(?=^### |\Z)", text, re.MULTILINE | re.DOTALL)
    assert entry is not None

    if not getattr(germane, error).__subclasses__() or error == "InvalidInput":
        assert "**Cause:**" in entry[1]
        assert "**Remedy:**" in entry[1]
    stored = re.findall(r"self\.(\w+) = ", _source_of(error))
    assert [name for name in stored if f"`{name}`" not in entry[1]] == []


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("kinds.md", [kind.name for kind in BUILT_IN]),
        ("plans.md", [frame.name for frame in FRAMES]),
        ("tokens.md", COUNTERS),
    ],
)
def test_every_built_in_name_has_a_row(page: str, names: list[str]) -> None:
    text = (REFERENCE / page).read_text(encoding="utf-8")

    assert [name for name in names if f"| `{name}`" not in text] == []


def test_every_plan_has_a_section() -> None:
    text = (REFERENCE / "plans.md").read_text(encoding="utf-8")

    assert [plan for plan in PLANS if f"\n## {plan}\n" not in text] == []


def test_every_table_of_the_file_is_described() -> None:
    text = (REFERENCE / "storage.md").read_text(encoding="utf-8")
    tables = re.findall(r"^CREATE TABLE (\w+)", schema("sqlite"), re.MULTILINE)

    assert tables
    assert [table for table in tables if f"`{table}`" not in text] == []


def test_the_tests_that_prove_the_invariants_exist() -> None:
    text = (ROOT / "docs" / "explanation" / "invariants.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", text)

    assert named
    assert [f"{p}::{t}" for p, t in named if f"def {t}(" not in (ROOT / p).read_text(encoding="utf-8")] == []


def _source_of(error: str) -> str:
    text = (ROOT / "src" / "germane" / "errors.py").read_text(encoding="utf-8")
    return text.partition(f"class {error}(")[2].partition("\nclass ")[0]
