"""Reading a repository that names commands in its own configuration: none of them runs."""

from __future__ import annotations

import ast
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.test_exchange_git import commit, git

import germane
from germane.exchange.changes import changed_paths
from germane.exchange.detect import read
from germane.exchange.git import read_git

COMMITTED = datetime(2024, 6, 1, 8, tzinfo=UTC)
ATTRIBUTES = {".gitattributes": "* filter=trap diff=trap\nb filter=other\n"}
EDITED = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, "Begin", a="one\n", b="two\n", docs__guide="three\n")
    return folder


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
    repository: Path, tmp_path: Path
) -> None:
    commit(repository, "Attributes", **ATTRIBUTES)
    marks = set_traps(repository, tmp_path / "traps")
    edit(repository / "a", "ONE\n")
    (repository / "b").touch()
    assert changed_paths(repository, ["a", "b", "docs"]) == {"a": EDITED, "b": COMMITTED, "docs": COMMITTED}
    assert [mark.name for mark in marks if mark.exists()] == []


def test_the_history_of_a_repository_runs_nothing_of_it(repository: Path, tmp_path: Path) -> None:
    commit(repository, "Attributes", **ATTRIBUTES)
    sign_the_last_commit(repository)
    marks = set_traps(repository, tmp_path / "traps")
    assert [draft.subject for draft in read_git(repository)] == ["Attributes", "Begin"]
    assert changed_paths(repository, ["a"]) == {"a": COMMITTED}
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


def test_hooks_of_a_repository_do_not_run(repository: Path, tmp_path: Path) -> None:
    hooks = repository / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    marks = []
    for name in ("post-index-change", "post-checkout", "reference-transaction", "fsmonitor-watchman"):
        command, mark = trap(tmp_path, name)
        shutil.copy(command, hooks / name)
        marks.append(mark)
    git(repository, "config", "core.hooksPath", str(hooks))
    os.utime(repository / "a", (1, 1))
    assert changed_paths(repository, ["a"]) == {"a": COMMITTED}
    assert len(list(read_git(repository))) == 1
    assert [mark.name for mark in marks if mark.exists()] == []


def test_settings_that_a_repository_includes_do_not_run(repository: Path, tmp_path: Path) -> None:
    commit(repository, "Attributes", **ATTRIBUTES)
    marks = set_traps(repository, tmp_path / "traps", configuration=repository / "settings.inc")
    git(repository, "config", "include.path", "../settings.inc")
    edit(repository / "a", "ONE\n")
    assert changed_paths(repository, ["a"]) == {"a": EDITED}
    assert len(list(read_git(repository))) == 2
    assert [mark.name for mark in marks if mark.exists()] == []


def test_a_bare_repository_inside_another_runs_nothing(repository: Path, tmp_path: Path) -> None:
    bare = repository / "fixtures" / "bare"
    bare.parent.mkdir()
    git(tmp_path, "clone", "--quiet", "--bare", f"file://{repository}", str(bare))
    marks = set_traps(repository, tmp_path / "traps", configuration=bare / "config")
    assert [draft.subject for draft in read_git(bare)] == ["Begin"]
    assert changed_paths(bare, ["a", "HEAD"]) == {"a": COMMITTED}
    git(bare, "config", "core.bare", "false")
    git(bare, "config", "core.worktree", str(repository))
    changed_paths(bare, ["a", "HEAD"])
    assert [mark.name for mark in marks if mark.exists()] == []


def test_a_work_tree_elsewhere_says_nothing_of_other_files(repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    edit(other / "secret", "x\n")
    git(repository, "config", "core.worktree", str(other))
    assert changed_paths(repository, ["secret"]) == {}


def test_what_a_partial_clone_lacks_is_not_fetched(repository: Path, tmp_path: Path) -> None:
    """Fetching it would run `uploadpack`, `core.sshCommand` or a remote helper of the configuration."""
    command, mark = trap(tmp_path, "uploadpack")
    git(repository, "config", "core.repositoryFormatVersion", "1")
    git(repository, "config", "extensions.partialClone", "origin")
    git(repository, "config", "protocol.allow", "always")
    git(repository, "config", "remote.origin.promisor", "true")
    git(repository, "config", "remote.origin.url", str(repository))
    git(repository, "config", "remote.origin.uploadpack", str(command))
    tree = git(repository, "rev-parse", "HEAD:docs")
    (repository / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    (repository / "docs" / "guide").unlink()
    changed_paths(repository, ["docs/guide"])
    with pytest.raises(germane.UnreadableSource):
        list(read_git(repository / "docs"))
    assert not mark.exists()


def test_a_path_is_no_pattern(repository: Path) -> None:
    assert changed_paths(repository, ["*", ":/a", ":(attr:x)a"]) == {}


def test_edits_are_seen_whether_staged_or_not(repository: Path) -> None:
    for name in ("a", "docs/guide", "new"):
        edit(repository / name, f"edited {name}\n")
    (repository / ".gitignore").write_text("ignored\n", encoding="utf-8")
    edit(repository / "ignored", "x\n")
    git(repository, "add", "docs/guide")
    paths = ["a", "b", "docs/guide", "docs", "new", "ignored", "missing"]
    assert changed_paths(repository, paths) == {
        "a": EDITED,
        "b": COMMITTED,
        "docs/guide": EDITED,
        "docs": COMMITTED,
        "new": EDITED,
    }
    assert changed_paths(repository / "docs", ["guide"]) == {"guide": EDITED}


def test_line_ends_that_git_converts_are_no_edit(repository: Path) -> None:
    commit(repository, "Attributes", **{".gitattributes": "* text eol=crlf\n"})
    for path in (repository / "a", repository / "b"):
        path.unlink()
    git(repository, "checkout", "--", "a", "b")
    assert (repository / "a").read_bytes() == b"one\r\n"
    os.utime(repository / "b", (EDITED.timestamp(), EDITED.timestamp()))
    assert changed_paths(repository, ["a", "b"]) == {"a": COMMITTED, "b": COMMITTED}


def test_a_link_is_compared_as_a_link(repository: Path) -> None:
    (repository / "link").symlink_to("a")
    git(repository, "add", "link")
    git(repository, "commit", "--quiet", "--message", "Link")
    assert changed_paths(repository, ["link"]) == {"link": COMMITTED}


def test_a_repository_without_commits_knows_what_was_added(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    edit(tmp_path / "a", "x\n")
    git(tmp_path, "add", "a")
    assert changed_paths(tmp_path, ["a"]) == {"a": EDITED}


def test_a_bare_repository_is_still_read(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", f"file://{repository}", "bare.git")
    assert [draft.subject for draft in read(f"git:{tmp_path / 'bare.git'}")] == ["Begin"]


def test_only_one_module_starts_programs() -> None:
    package = Path(germane.__file__).parent
    starters = set()
    for file in package.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if "subprocess" in names:
                starters.add(file.relative_to(package).as_posix())
    assert starters == {"exchange/git.py"}
