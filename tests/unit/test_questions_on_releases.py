"""A question on releases is answered by the changelog: the newest first, or those that match its topic."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import germane
from germane import Engine
from germane.importers import import_source
from germane.testing.fakes import WordCounter

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
WORK = (
    "Mend the reading of empty files.",
    "Speed up the start of the worker.",
    "Show times in the zone of the reader.",
    "Accept lists of hosts.",
    "Drop support for the old protocol.",
    "Write the log to standard error.",
    "Add retries with a limit.",
    "Support sockets without a name.",
)
PROSE = (
    "# Guide\n\n## Releases\n\nWhoever wants to know what changed in the newest releases reads the log. "
    "A release is made whenever something has changed, and the newest release is always supported.\n\n"
    "## Versions\n\nThe version of a release tells what changed: a new major version breaks something.\n\n"
    "## Retries\n\nRetries have a limit, which is added in the settings. Retries are added by default.\n"
)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    entries = [
        f"## {9 - place}.0.0 - 2026-{9 - place:02}-01\n\n- {text}\n" for place, text in enumerate(WORK)
    ]
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n" + "\n".join(entries), encoding="utf-8")
    (tmp_path / "guide.md").write_text(PROSE, encoding="utf-8")
    with germane.open(":memory:", counter=WordCounter(), clock=lambda: NOW) as opened:
        import_source(opened, str(tmp_path), root=tmp_path)
        yield opened


def shown(engine: Engine, question: str, budget: int) -> list[str | None]:
    context = engine.assemble(question, budget=budget)
    assert context.tokens <= budget
    return [one.memory.subject if one.memory.kind == "changelog" else None for one in context.items]


@pytest.mark.parametrize(
    "question",
    [
        "What changed in the newest releases?",
        "What's new in the latest version?",
        "Show me the release notes.",
        "What did the last three releases bring?",
    ],
)
@pytest.mark.parametrize("budget", [60, 100, 300])
def test_the_newest_releases_come_first(engine: Engine, question: str, budget: int) -> None:
    versions = [f"{9 - place}.0.0" for place in range(8)]
    found = shown(engine, question, budget)
    releases = [one for one in found if one is not None]
    assert len(releases) >= min(8, budget // 40)
    assert found[: len(releases)] == versions[: len(releases)]


@pytest.mark.parametrize(
    ("question", "version"),
    [
        ("Which release added retries?", "3.0.0"),
        ("What changed in release 5.0.0?", "5.0.0"),
        ("In which version was support for the old protocol dropped?", "5.0.0"),
    ],
)
def test_a_release_that_matches_the_topic_stands_first(engine: Engine, question: str, version: str) -> None:
    assert shown(engine, question, 120)[0] == version
    assert engine.recall(question)[0].memory.subject == version


@pytest.mark.parametrize(
    "question",
    ["How do I make a release?", "Which retries are the default?", "Which version of Python is needed?"],
)
def test_another_question_is_not_taken_for_one_on_releases(engine: Engine, question: str) -> None:
    assert "## Releases" not in engine.assemble(question, budget=300).text.splitlines()


def test_releases_of_a_time_are_those_of_that_time(engine: Engine) -> None:
    found = [
        one for one in shown(engine, "What changed in the releases of May 2026?", 100) if one is not None
    ]
    assert found[0] == "5.0.0"


def test_without_a_changelog_others_answer() -> None:
    with germane.open(":memory:", counter=WordCounter(), clock=lambda: NOW) as engine:
        engine.remember("Release 2.0 changed the parser.", kind="episode")
        context = engine.assemble("What changed in the newest release?", budget=100)
        assert [one.memory.content for one in context.items] == ["Release 2.0 changed the parser."]
