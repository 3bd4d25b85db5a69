"""Importing a folder any number of times: what is stored is what the files say, and its history stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

import germane
from germane import Engine, Filter, Status
from germane.importers import import_source, read_project
from support.examples import examples

WORDS = ("alpha", "beta", "gamma", "delta")
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=2).map(" ".join)
sections = st.lists(st.tuples(st.sampled_from(("Use", "Use", "Setup", "Notes")), texts), max_size=4)
names = st.sampled_from(("README.md", "docs/guide.md", "docs/README.md", "CHANGELOG.md"))
states = st.dictionaries(names, sections, max_size=3)
histories = st.lists(states, min_size=1, max_size=4)

FILLER = "The quick brown fox jumps over the lazy dog and runs on and on. " * 14
"""So long that each section is a memory of its own."""


@contextmanager
def project() -> Iterator[tuple[Path, Engine]]:
    with TemporaryDirectory() as folder, germane.open(":memory:", embedder=None) as engine:
        root = Path(folder, "app")
        root.mkdir()
        yield root, engine


def write(root: Path, state: dict[str, list[tuple[str, str]]]) -> None:
    """The folder as the state says, and nothing else in it; one file is always there."""
    for path in sorted(root.rglob("*.md")):
        path.unlink()
    (root / "LICENCE.md").write_text("Free to use.", encoding="utf-8")
    for name, parts in state.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        changelog = path.stem == "CHANGELOG"
        heads = [f"## 1.{number}.0" if changelog else f"## {head}" for number, (head, _) in enumerate(parts)]
        body = [f"{head}\n\n{text}. {FILLER}" for head, (_, text) in zip(heads, parts, strict=True)]
        path.write_text("\n\n".join(["# Title", *body]), encoding="utf-8")


def written(root: Path) -> Counter[tuple[str, str]]:
    return Counter((draft.kind, draft.content) for draft in read_project(root))


def stored(engine: Engine) -> Counter[tuple[str, str]]:
    return Counter((memory.kind, memory.content) for memory in engine.memories())


@given(histories)
@settings(max_examples=examples(40))
def test_after_each_import_exactly_what_the_files_say_is_active(
    history: list[dict[str, list[tuple[str, str]]]],
) -> None:
    with project() as (root, engine):
        for state in history:
            write(root, state)
            report = import_source(engine, str(root), prune=True)
            assert report.skipped == ()
            assert stored(engine) == written(root)
            again = import_source(engine, str(root), prune=True)
            assert (again.created, again.revised, again.gone) == (0, 0, ())
            assert again.known == again.read == sum(written(root).values())


@given(histories)
@settings(max_examples=examples(40))
def test_without_pruning_nothing_active_is_lost_and_every_message_is_included(
    history: list[dict[str, list[tuple[str, str]]]],
) -> None:
    with project() as (root, engine):
        for state in history:
            write(root, state)
            import_source(engine, str(root))
            assert written(root) - stored(engine) == Counter()
        assert engine.memories(Filter(statuses=(Status.FORGOTTEN,))) == ()


@given(histories)
@settings(max_examples=examples(40))
def test_every_version_is_stored_in_one_chain_each(history: list[dict[str, list[tuple[str, str]]]]) -> None:
    with project() as (root, engine):
        stored = 0
        for state in history:
            write(root, state)
            report = import_source(engine, str(root))
            stored += report.created + report.revised
        everything = engine.memories(Filter(statuses=tuple(Status)))
        assert len(everything) == stored
        for memory in everything:
            versions = engine.history(memory.id)
            assert [each.version for each in versions] == list(range(1, len(versions) + 1))
            assert memory.id in [each.id for each in versions]


@given(states)
@settings(max_examples=examples(40))
def test_what_a_person_has_forgotten_stays_forgotten(state: dict[str, list[tuple[str, str]]]) -> None:
    with project() as (root, engine):
        write(root, state)
        import_source(engine, str(root), prune=True)
        for memory in engine.memories():
            engine.forget(memory.id)
        report = import_source(engine, str(root), prune=True)
        assert (report.created, report.revised, report.gone) == (0, 0, ())
        assert engine.memories() == ()


@given(states)
@settings(max_examples=examples(40))
def test_what_was_pruned_comes_back_with_its_files(state: dict[str, list[tuple[str, str]]]) -> None:
    with project() as (root, engine):
        write(root, state)
        import_source(engine, str(root), prune=True)
        first = {memory.id for memory in engine.memories()}
        before = stored(engine)
        write(root, {})
        import_source(engine, str(root), prune=True)
        assert set(stored(engine)) == {("note", "Free to use.")}
        write(root, state)
        report = import_source(engine, str(root), prune=True)
        assert report.created == 0
        assert stored(engine) == before
        assert {memory.id for memory in engine.memories()} == first
