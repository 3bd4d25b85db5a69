"""Of real projects, a context brings what governs the path that is worked on: a small labelled set."""

from __future__ import annotations

from pathlib import Path

import pytest

import germane
from germane import Engine
from germane.importers import import_source
from integration.test_real_projects import unpacked

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

RECORDS = (
    # A path, what is done there, and the record that decides on it. None of these records names a path.
    ("adr_viewer/__init__.py", "add an option to the command line", "0002-expose-command-line"),
    ("setup.py", "rename the command line tool", "0002-expose-command-line"),
    (
        "adr_viewer/templates/vanilla/index.html",
        "a colour for superseded records",
        "0004-distinguish-superseded",
    ),
    ("adr_viewer/templates/vanilla/index.html", "mark amended records", "0005-distinguish-amendments"),
    ("adr_viewer/templates/vanilla/index.html", "headers of one colour", "0003-use-same-colour"),
    ("pa11y.json", "check accessibility of the pages", "0006-accessibility"),
    ("adr_viewer/templates/vanilla/index.html", "make it accessible to screen readers", "0006-accessibility"),
    ("test/test_adr_viewer.py", "test a mermaid diagram", "0005-has-mermaid"),
    ("doc/adr/0007-new.md", "record a decision", "0001-record-architecture"),
)
NOTES = {
    "structlog==25.5.0": (
        "src/structlog/_config.py",
        "src/structlog/dev.py",
        "src/structlog/processors.py",
        "src/structlog/stdlib.py",
        "src/structlog/twisted.py",
        "src/structlog/contextvars.py",
        "src/structlog/testing.py",
        "src/structlog/tracebacks.py",
    ),
    "adr-kit==0.2.7": ("adr_kit/cli.py", "adr_kit/__init__.py", "tests/conftest.py"),
}
BUDGET = 1500


def sources(engine: Engine, query: str, path: str) -> list[str]:
    """Where what stands in the context came from, in its order."""
    context = engine.assemble(query, plan="scoped", paths=[path], budget=BUDGET)
    assert context.tokens <= BUDGET
    return [item.memory.source or "" for item in context.items]


def test_the_record_that_decides_on_a_path_leads_its_context(tmp_path: Path) -> None:
    project = unpacked("adr-viewer==1.4.0", tmp_path)
    with germane.open(tmp_path / "a.db") as engine:
        import_source(engine, str(project))
        found = [(record, sources(engine, words, path)) for path, words, record in RECORDS]
    contained = sum(any(record in source for source in its) for record, its in found)
    first = sum(record in its[0] for record, its in found)
    near = sum(any(record in source for source in its[:2]) for record, its in found)
    print(  # noqa: T201 - The figures are the result.
        f"adr-viewer: in the context {contained} of {len(found)}, first {first}, among the first two {near}"
    )
    assert contained == len(found)
    assert near == len(found)
    assert first >= 6


def test_the_record_that_names_a_path_comes_without_a_word(tmp_path: Path) -> None:
    project = unpacked("adr-viewer==1.4.0", tmp_path)
    record = next(project.rglob("0006-accessibility*.md"))
    record.write_text(f"---\npaths: [adr_viewer/templates, pa11y.json]\n---\n{record.read_text()}")
    with germane.open(tmp_path / "a.db") as engine:
        import_source(engine, str(project))
        for path in ("adr_viewer/templates/vanilla/index.html", "pa11y.json"):
            assert "0006-accessibility" in sources(engine, "", path)[0]
        assert "0006-accessibility" not in sources(engine, "", "setup.py")[0]


@pytest.mark.parametrize("requirement", NOTES)
def test_the_note_on_a_module_comes_with_its_path(tmp_path: Path, requirement: str) -> None:
    project = unpacked(requirement, tmp_path)
    with germane.open(tmp_path / "a.db") as engine:
        import_source(engine, str(project))
        scoped = {str(memory.scope) for memory in engine.memories()}
        documented = [path for path in NOTES[requirement] if _place(path) in scoped]
        contained = sum(
            any(source.endswith(path) for source in sources(engine, "", path)) for path in documented
        )
    print(f"{requirement}: the note on its path stands in {contained} of {len(documented)} contexts")  # noqa: T201 - As above.
    assert contained == len(documented) > 0


def _place(path: str) -> str:
    return f"path:{path.removesuffix('/__init__.py')}"
