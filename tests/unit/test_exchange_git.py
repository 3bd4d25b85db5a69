"""Commits as drafts, from repositories that git itself makes, and of which nothing is run."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

import germane
from germane.errors import UnreadableSource
from germane.importers import Skipped, changed_paths, read, read_git

COMMITTED = datetime(2024, 6, 1, 8, tzinfo=UTC)
ATTRIBUTES = {".gitattributes": "* filter=trap diff=trap\nb filter=other\n"}
EDITED = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)


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


def test_a_shallow_clone_is_read_and_reported(repository: Path, tmp_path: Path) -> None:
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


@pytest.fixture
def untrusted(repository: Path) -> Path:
    commit(repository, "Begin", a="one\n", b="two\n", docs__guide="three\n")
    return repository


def trap(folder: Path, name: str) -> tuple[Path, Path]:
    """A command that leaves a mark when it runs, and the place of that mark."""
    mark, command = folder / f"ran-{name}", folder / f"trap-{name}"
    command.write_text(f'#!/bin/sh\necho ran >> "{mark}"\nexit 1\n', encoding="utf-8")
    command.chmod(0o755)
    return command, mark


def edit(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    os.utime(path, (EDITED.timestamp(), EDITED.timestamp()))


def set_traps(folder: Path, traps: Path, *, configuration: Path | None = None) -> list[Path]:
    """Every setting that names a command, in the repository's own configuration; where they leave marks."""
    traps.mkdir(exist_ok=True)
    settings = {
        "core.fsmonitor": "fsmonitor",
        "core.pager": "pager",
        "pager.log": "pager-log",
        "core.sshCommand": "ssh",
        "core.askPass": "askpass",
        "core.editor": "editor",
        "core.gitProxy": "proxy",
        "core.alternateRefsCommand": "alternates",
        "diff.external": "diff",
        "diff.trap.command": "diff-driver",
        "diff.trap.textconv": "textconv",
        "filter.trap.clean": "clean",
        "filter.trap.smudge": "smudge",
        "filter.other.process": "process",
        "gpg.program": "gpg",
        "credential.helper": "credential",
        "trailer.x.command": "trailer",
    }
    marks = []
    file = configuration or Path(git(folder, "rev-parse", "--absolute-git-dir"), "config")
    for setting, name in settings.items():
        command, mark = trap(traps, name)
        git(folder, "config", "--file", str(file), setting, str(command))
        marks.append(mark)
    git(folder, "config", "--file", str(file), "log.showSignature", "true")
    git(folder, "config", "--file", str(file), "alias.log", f"!{trap(traps, 'alias')[0]}")
    marks.append(traps / "ran-alias")
    return marks


def test_changed_paths_run_neither_the_monitor_nor_the_filters_of_a_repository(
    untrusted: Path, tmp_path: Path
) -> None:
    commit(untrusted, "Attributes", **ATTRIBUTES)
    marks = set_traps(untrusted, tmp_path / "traps")
    edit(untrusted / "a", "ONE\n")
    (untrusted / "b").touch()
    assert changed_paths(untrusted, ["a", "b", "docs"]) == {"a": EDITED, "b": COMMITTED, "docs": COMMITTED}
    assert [mark.name for mark in marks if mark.exists()] == []


def test_the_history_of_a_repository_runs_nothing_of_it(untrusted: Path, tmp_path: Path) -> None:
    commit(untrusted, "Attributes", **ATTRIBUTES)
    sign_the_last_commit(untrusted)
    marks = set_traps(untrusted, tmp_path / "traps")
    assert [draft.subject for draft in read_git(untrusted)] == ["Attributes", "Begin"]
    assert changed_paths(untrusted, ["a"]) == {"a": COMMITTED}
    assert [mark.name for mark in marks if mark.exists()] == []


def sign_the_last_commit(folder: Path) -> None:
    """Give the last commit a signature, so that `log.showSignature` has something to check."""
    raw = git(folder, "cat-file", "commit", "HEAD")
    head, _, message = raw.partition("\n\n")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ\n -----END PGP SIGNATURE-----"
    file = folder / ".git" / "signed"
    file.write_text(f"{head}\n{signature}\n\n{message}\n", encoding="utf-8")
    signed = git(folder, "hash-object", "-t", "commit", "-w", str(file))
    git(folder, "update-ref", "HEAD", signed)


def test_hooks_of_a_repository_do_not_run(untrusted: Path, tmp_path: Path) -> None:
    hooks = untrusted / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    marks = []
    for name in ("post-index-change", "post-checkout", "reference-transaction", "fsmonitor-watchman"):
        command, mark = trap(tmp_path, name)
        shutil.copy(command, hooks / name)
        marks.append(mark)
    git(untrusted, "config", "core.hooksPath", str(hooks))
    os.utime(untrusted / "a", (1, 1))
    assert changed_paths(untrusted, ["a"]) == {"a": COMMITTED}
    assert len(list(read_git(untrusted))) == 1
    assert [mark.name for mark in marks if mark.exists()] == []


def test_settings_that_a_repository_includes_do_not_run(untrusted: Path, tmp_path: Path) -> None:
    commit(untrusted, "Attributes", **ATTRIBUTES)
    marks = set_traps(untrusted, tmp_path / "traps", configuration=untrusted / "settings.inc")
    git(untrusted, "config", "include.path", "../settings.inc")
    edit(untrusted / "a", "ONE\n")
    assert changed_paths(untrusted, ["a"]) == {"a": EDITED}
    assert len(list(read_git(untrusted))) == 2
    assert [mark.name for mark in marks if mark.exists()] == []


def test_a_bare_repository_inside_another_runs_nothing(untrusted: Path, tmp_path: Path) -> None:
    bare = untrusted / "fixtures" / "bare"
    bare.parent.mkdir()
    git(tmp_path, "clone", "--quiet", "--bare", f"file://{untrusted}", str(bare))
    marks = set_traps(untrusted, tmp_path / "traps", configuration=bare / "config")
    assert [draft.subject for draft in read_git(bare)] == ["Begin"]
    assert changed_paths(bare, ["a", "HEAD"]) == {"a": COMMITTED}
    git(bare, "config", "core.bare", "false")
    git(bare, "config", "core.worktree", str(untrusted))
    changed_paths(bare, ["a", "HEAD"])
    assert [mark.name for mark in marks if mark.exists()] == []


def test_a_work_tree_elsewhere_says_nothing_of_other_files(untrusted: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    edit(other / "secret", "x\n")
    git(untrusted, "config", "core.worktree", str(other))
    assert changed_paths(untrusted, ["secret"]) == {}


def test_what_a_partial_clone_lacks_is_not_fetched(untrusted: Path, tmp_path: Path) -> None:
    """Fetching it would run `uploadpack`, `core.sshCommand` or a remote helper of the configuration."""
    command, mark = trap(tmp_path, "uploadpack")
    git(untrusted, "config", "core.repositoryFormatVersion", "1")
    git(untrusted, "config", "extensions.partialClone", "origin")
    git(untrusted, "config", "protocol.allow", "always")
    git(untrusted, "config", "remote.origin.promisor", "true")
    git(untrusted, "config", "remote.origin.url", str(untrusted))
    git(untrusted, "config", "remote.origin.uploadpack", str(command))
    tree = git(untrusted, "rev-parse", "HEAD:docs")
    (untrusted / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    (untrusted / "docs" / "guide").unlink()
    changed_paths(untrusted, ["docs/guide"])
    with pytest.raises(UnreadableSource):
        list(read_git(untrusted / "docs"))
    assert not mark.exists()


def test_a_path_is_no_pattern(untrusted: Path) -> None:
    assert changed_paths(untrusted, ["*", ":/a", ":(attr:x)a"]) == {}


def test_edits_are_seen_whether_staged_or_not(untrusted: Path) -> None:
    for name in ("a", "docs/guide", "new"):
        edit(untrusted / name, f"edited {name}\n")
    (untrusted / ".gitignore").write_text("ignored\n", encoding="utf-8")
    edit(untrusted / "ignored", "x\n")
    git(untrusted, "add", "docs/guide")
    paths = ["a", "b", "docs/guide", "docs", "new", "ignored", "missing"]
    assert changed_paths(untrusted, paths) == {
        "a": EDITED,
        "b": COMMITTED,
        "docs/guide": EDITED,
        "docs": COMMITTED,
        "new": EDITED,
    }
    assert changed_paths(untrusted / "docs", ["guide"]) == {"guide": EDITED}


def test_line_ends_that_git_converts_are_no_edit(untrusted: Path) -> None:
    commit(untrusted, "Attributes", **{".gitattributes": "* text eol=crlf\n"})
    for path in (untrusted / "a", untrusted / "b"):
        path.unlink()
    git(untrusted, "checkout", "--", "a", "b")
    assert (untrusted / "a").read_bytes() == b"one\r\n"
    os.utime(untrusted / "b", (EDITED.timestamp(), EDITED.timestamp()))
    assert changed_paths(untrusted, ["a", "b"]) == {"a": COMMITTED, "b": COMMITTED}


def test_a_link_is_compared_as_a_link(untrusted: Path) -> None:
    (untrusted / "link").symlink_to("a")
    git(untrusted, "add", "link")
    git(untrusted, "commit", "--quiet", "--message", "Link")
    assert changed_paths(untrusted, ["link"]) == {"link": COMMITTED}


def test_a_repository_without_commits_knows_what_was_added(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    edit(tmp_path / "a", "x\n")
    git(tmp_path, "add", "a")
    assert changed_paths(tmp_path, ["a"]) == {"a": EDITED}


def test_a_bare_repository_is_still_read(untrusted: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", f"file://{untrusted}", "bare.git")
    assert [draft.subject for draft in read(f"git:{tmp_path / 'bare.git'}")] == ["Begin"]


def test_only_the_readers_of_git_and_the_hooks_client_start_programs() -> None:
    package = Path(germane.__file__).parent
    starters = set()
    for file in package.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "subprocess" in text else ():
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if "subprocess" in names:
                starters.add(file.relative_to(package).as_posix())
    assert starters == {"importers/git.py", "cli/hook_client.py"}
