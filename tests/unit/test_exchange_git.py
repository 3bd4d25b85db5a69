"""Commits as drafts, from repositories that git itself makes."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from germane.errors import UnreadableSource
from germane.exchange.detect import read
from germane.exchange.git import read_git
from germane.exchange.sources import Skipped


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Ann Öst", "-c", "user.email=ann@example.org", "-c", "commit.gpgSign=false")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_DATE": "2024-05-01T10:00:00+02:00",
        "GIT_COMMITTER_DATE": "2024-06-01T10:00:00+02:00",
    }
    command = ["git", *identity, "-C", str(folder), *arguments]  # The tests need git, as the reader does.
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()


def commit(folder: Path, message: str, **files: str) -> str:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--allow-empty-message", "--message", message)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    return folder


def test_each_commit_is_a_draft_newest_first(repository: Path) -> None:
    first = commit(
        repository, "Add the café\n\nSo that there is coffee.\n\n- hot\n", **{"a b": "x", "ü": "y"}
    )
    second = commit(repository, "Say nothing changed")
    third = commit(repository, "Move", docs__guide="z")
    drafts = list(read_git(repository))
    assert [d.source for d in drafts] == [f"git:{third}", f"git:{second}", f"git:{first}"]
    last = drafts[-1]
    assert last.content == "Add the café\n\nSo that there is coffee.\n\n- hot"
    assert (last.kind, last.subject, last.tags) == ("commit", "Add the café", ("commit",))
    assert last.created_at == datetime(2024, 5, 1, 8, tzinfo=UTC)
    assert last.metadata == {
        "commit": first,
        "short": first[:12],
        "day": "2024-05-01",
        "author": "Ann Öst",
        "files": ["a b", "ü"],
        "files_changed": 2,
    }
    assert [d.metadata["files"] for d in drafts[:2]] == [["docs/guide"], []]


def test_a_commit_without_a_message_is_named_by_its_hash(repository: Path) -> None:
    name = commit(repository, "", a="x")
    (draft,) = read_git(repository)
    assert draft.content == f"Commit {name[:12]}"


def test_a_huge_commit_names_only_some_of_its_files(repository: Path) -> None:
    commit(repository, "Import", **{f"f{n}": "x" for n in range(130)})
    (draft,) = read_git(repository)
    assert (len(draft.metadata["files"]), draft.metadata["files_changed"]) == (100, 130)


def test_merges_are_left_out(repository: Path) -> None:
    commit(repository, "Begin", a="1")
    git(repository, "checkout", "--quiet", "-b", "side")
    commit(repository, "Aside", b="1")
    git(repository, "checkout", "--quiet", "main")
    commit(repository, "Ahead", c="1")
    git(repository, "merge", "--quiet", "--no-edit", "side")
    assert {d.subject for d in read_git(repository)} == {"Begin", "Aside", "Ahead"}


def test_a_folder_inside_brings_only_what_touched_it(repository: Path) -> None:
    commit(repository, "Code", src__main="1")
    commit(repository, "Docs", docs__guide="1")
    assert [d.subject for d in read_git(repository / "docs")] == ["Docs"]
    (repository / "new").mkdir()
    with pytest.raises(UnreadableSource, match="no commit of the repository touched this folder"):
        list(read_git(repository / "new"))


def test_the_reader_can_be_left_early(repository: Path) -> None:
    commit(repository, "One", a="1")
    commit(repository, "Two", a="2")
    drafts = read_git(repository)
    assert next(drafts).subject == "Two"
    drafts.close()  # type: ignore[attr-defined]  # It is a generator; leaving it must end git quietly.


def test_a_shallow_clone_is_read_and_told_of(repository: Path, tmp_path: Path) -> None:
    commit(repository, "One", a="1")
    commit(repository, "Two", a="2")
    commit(repository, "Three", b="1")
    git(tmp_path, "clone", "--quiet", "--depth=2", f"file://{repository}", "shallow")
    skipped: list[Skipped] = []
    drafts = list(read_git(tmp_path / "shallow", on_skip=skipped.append))
    assert [(d.subject, d.metadata["files"]) for d in drafts] == [("Three", ["b"]), ("Two", [])]
    assert "--unshallow" in skipped[0].reason


def test_what_is_no_history_says_why(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnreadableSource, match="has no commits yet"):
        list(read_git(repository))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    (tmp_path / "plain").mkdir()
    with pytest.raises(UnreadableSource, match="is in no git repository"):
        list(read_git(tmp_path / "plain"))
    with pytest.raises(UnreadableSource, match="there is no such folder"):
        read(f"git:{tmp_path / 'missing'}")
    monkeypatch.setenv("PATH", str(tmp_path / "plain"))
    with pytest.raises(UnreadableSource, match="`git` isn't installed"):
        list(read(f"git:{repository}"))
