"""The times of a source are those of its memories: what ranks by time ranks by them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import germane
from germane import Engine, InvalidInput
from germane.importers import import_source, read_markdown
from germane.testing.fakes import FixedClock, WordCounter

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.fixture
def engine() -> Iterator[Engine]:
    clock = FixedClock(NOW, timedelta(seconds=1))
    with germane.open(":memory:", embedder=None, counter=WordCounter(), clock=clock) as opened:
        yield opened


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def shown(engine: Engine) -> list[str]:
    context = engine.assemble("", plan="scoped", budget=100_000)
    return [item.memory.content.split("\n")[0] for item in context.items]


def test_one_date_is_both_and_none_is_now(engine: Engine) -> None:
    old = engine.remember("Old", created_at=day("2019-03-01"))
    assert (old.created_at, old.updated_at) == (day("2019-03-01"), day("2019-03-01"))
    both = engine.remember("Both", created_at=day("2019-03-01"), updated_at=day("2021-05-01"))
    assert (both.created_at, both.updated_at) == (day("2019-03-01"), day("2021-05-01"))
    updated = engine.remember("Updated", updated_at=day("2021-05-01"))
    assert (updated.created_at, updated.updated_at) == (day("2021-05-01"), day("2021-05-01"))
    new = engine.remember("New")
    assert new.created_at == new.updated_at > NOW - timedelta(minutes=1)
    with pytest.raises(InvalidInput, match="lies before created_at"):
        engine.remember("x", created_at=day("2021-01-01"), updated_at=day("2020-01-01"))


def test_a_memory_repeated_is_never_older_for_it(engine: Engine) -> None:
    first = engine.remember("Told")
    again = engine.remember("Told", created_at=day("2019-03-01"))
    assert (again.id, again.seen_count, again.updated_at) == (first.id, 2, first.updated_at)


def test_a_record_of_before_stands_after_one_of_now(engine: Engine) -> None:
    engine.remember("Record of 2026", kind="adr", created_at=day("2026-01-10"))
    engine.remember("Record of 2019", kind="adr", created_at=day("2019-01-10"))
    assert shown(engine) == ["Record of 2026", "Record of 2019"]


def test_staleness_counts_from_the_date_of_the_source(engine: Engine) -> None:
    engine.remember("Record of 2019", kind="adr", created_at=day("2019-01-10"))
    engine.remember("Record updated since", kind="adr", created_at=day("2019-01-10"), updated_at=NOW)
    context = engine.assemble("", plan="scoped", budget=1000)
    assert [item.text.split("\n")[0].split()[-1] for item in context.items] == ["since", "2019"]
    (note,) = [note for note in context.trace.notes if note.code == "stale"]
    assert "not updated for 2872 days" in note.text


@pytest.mark.parametrize("dated", [True, False])
def test_a_changelog_shows_its_newest_release_first(tmp_path: Path, engine: Engine, *, dated: bool) -> None:
    first = day("2022-01-01")
    entries = [
        f"## 1.{n}.0"
        + (f" - {first + timedelta(days=30 * n):%Y-%m-%d}" if dated else "")
        + f"\n\n- Change {n}\n"
        for n in reversed(range(30))
    ]
    path = write(tmp_path / "CHANGELOG.md", "# Changelog\n\n" + "\n".join(entries))
    import_source(engine, str(path))
    names = [line.removeprefix("## ").split()[0] for line in shown(engine)]
    assert names == [f"1.{n}.0" for n in reversed(range(30))]


def test_a_release_without_a_date_stays_between_its_neighbours(tmp_path: Path, engine: Engine) -> None:
    text = (
        "## Unreleased\n- a\n## 3.0 (May 1, 2024)\n- b\n## 2.0\n- c\n## 1.0 (2023/02/28)\n- d\n## 0.9\n- e\n"
    )
    import_source(engine, str(write(tmp_path / "CHANGELOG.md", text)))
    times = {memory.subject: memory.updated_at for memory in engine.memories()}
    assert times.pop("Unreleased") >= NOW
    assert times == {
        "3.0": day("2024-05-01"),
        "2.0": day("2023-02-28"),
        "1.0": day("2023-02-28"),
        "0.9": day("2023-02-28"),
    }
    assert [line[3:6].strip() for line in shown(engine)] == ["Unr", "3.0", "2.0", "1.0", "0.9"]


@pytest.mark.parametrize(
    "head",
    [
        "Date: 2019-02-03",
        "* Date: 3 February 2019",
        "## Date\n\nFeb 3rd, 2019",
        "Status: Accepted, 2019-02-03",
    ],
)
def test_the_date_of_a_decision_record_is_taken(tmp_path: Path, engine: Engine, head: str) -> None:
    text = f"# ADR 7: Use Redis\n\n{head}\n\n## Context\n\nLoad.\n\n## Decision\n\nRedis.\n"
    import_source(engine, str(write(tmp_path / "adr" / "0007-redis.md", text)))
    (memory,) = engine.memories()
    assert (memory.kind, memory.created_at, memory.updated_at) == (
        "adr",
        day("2019-02-03"),
        day("2019-02-03"),
    )


@pytest.mark.parametrize("name", ["updated", "updated_at", "modified", "last_modified", "lastmod"])
def test_front_matter_may_say_when_a_text_was_updated(tmp_path: Path, engine: Engine, name: str) -> None:
    path = write(tmp_path / "a.md", f"---\ndate: 2019-02-03\n{name}: 2021-05-01\n---\nText.")
    import_source(engine, str(path))
    (memory,) = engine.memories()
    assert (memory.created_at, memory.updated_at) == (day("2019-02-03"), day("2021-05-01"))


def test_an_update_that_is_no_date_is_metadata(tmp_path: Path, engine: Engine) -> None:
    path = write(tmp_path / "a.md", "---\ndate: 2019-02-03\nupdated: sometimes\n---\nText.")
    assert import_source(engine, str(path)).skipped == ()
    (memory,) = engine.memories()
    assert (memory.updated_at, memory.metadata["updated"]) == (day("2019-02-03"), "sometimes")


def test_lines_may_say_when_a_text_was_updated(tmp_path: Path, engine: Engine) -> None:
    line = '{"content": "a", "created_at": "2019-02-03", "updated_at": "2021-05-01T00:00:00Z"}'
    import_source(engine, str(write(tmp_path / "a.jsonl", line)))
    (memory,) = engine.memories()
    assert (memory.created_at, memory.updated_at) == (day("2019-02-03"), day("2021-05-01"))


def test_an_edit_of_a_dated_file_is_stored_now_and_dated_by_its_source(
    tmp_path: Path, engine: Engine
) -> None:
    path = write(tmp_path / "a.md", "---\ndate: 2019-02-03\n---\nText.")
    import_source(engine, str(path))
    write(path, "---\ndate: 2019-02-03\nupdated: 2020-01-01\n---\nText, edited.")
    assert import_source(engine, str(path)).revised == 1
    (memory,) = engine.memories()
    before, after = engine.history(memory.id)
    assert (after.created_at, after.updated_at) == (day("2019-02-03"), day("2020-01-01"))
    assert before.updated_at >= NOW


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("on 2024-05-01.", "2024-05-01"),
        ("(2024/5/1)", "2024-05-01"),
        ("2024.05.01", "2024-05-01"),
        ("1 May 2024", "2024-05-01"),
        ("Sept. 2nd, 2024", "2024-09-02"),
        ("2024-02-31, 2024-03-01", "2024-03-01"),
        ("1.2024.05.01", None),
        ("12024-05-01", None),
        ("v2024-05/01", None),
        ("", None),
    ],
)
def test_days_are_read_in_the_forms_that_people_write(tmp_path: Path, text: str, found: str | None) -> None:
    path = tmp_path / "CHANGELOG.md"
    path.write_text(f"# Changelog\n\n## 1.0 {text}\n\n- Sign in.\n", encoding="utf-8")
    (draft,) = read_markdown(path)
    assert draft.metadata.get("date") == found
