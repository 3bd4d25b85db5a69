"""What a command writes stays in the place that it has, and a database is its owner's alone."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import germane
from commandline import run
from germane.stores import copy_store

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes.")

WRITERS: dict[str, Callable[[Path], tuple[str, ...]]] = {
    "export": lambda path: ("export", "--out", str(path)),
    "context": lambda path: ("context", "project", "--write", str(path)),
    "metrics": lambda path: ("ledger", "metrics", "--plot", str(path)),
}


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "agent.db"
    with germane.open(path, embedder=None) as engine:
        engine.remember("Sessions are kept in Redis.", kind="adr")
    return path


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_keeps_its_mode_and_its_other_names(db: Path, tmp_path: Path, writer: str) -> None:
    path, other = tmp_path / "out.txt", tmp_path / "other.txt"
    path.write_text("x" * 100_000, encoding="utf-8")
    path.chmod(0o600)
    other.hardlink_to(path)
    run(*WRITERS[writer](path), db=db)
    assert (mode_of(path), path.samefile(other)) == (0o600, True)
    text = path.read_text(encoding="utf-8")
    assert ("x" * 1000 in text) is (writer == "context"), "only AGENTS.md keeps what stands beside"
    assert text.endswith("\n")
    assert [each.name for each in tmp_path.iterdir() if "out" in each.name] == ["out.txt"]


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("exists", [True, False])
def test_a_link_is_followed(db: Path, tmp_path: Path, writer: str, exists: bool) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    target, link = folder / "target.txt", tmp_path / "link.txt"
    if exists:
        target.touch()
    link.symlink_to(target)
    run(*WRITERS[writer](link), db=db)
    assert link.is_symlink()
    assert target.stat().st_size > 0


@pytest.mark.parametrize("writer", WRITERS)
def test_what_is_no_ordinary_file_is_refused_and_stays(db: Path, tmp_path: Path, writer: str) -> None:
    pipe, folder, link = tmp_path / "pipe", tmp_path / "folder", tmp_path / "link"
    os.mkfifo(pipe)
    folder.mkdir()
    link.symlink_to(pipe)
    device = Path("/dev/full")
    for path, kind in ((pipe, "a pipe"), (folder, "a folder"), (link, "a pipe"), (device, "a device")):
        ran = run(*WRITERS[writer](path), db=db)
        assert (ran.code, f"{path} is {kind} and no ordinary file" in ran.err) == (2, True), ran.err
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert stat.S_ISCHR(device.stat().st_mode)
    ran = run(*WRITERS[writer](tmp_path / "no" / "file.txt"), db=db)
    assert (ran.code, "doesn't exist" in ran.err) == (2, True), ran.err


_LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
from germane.cli import main
main()
"""


def test_what_fails_before_it_is_whole_leaves_the_file_as_it_was(db: Path, tmp_path: Path) -> None:
    with germane.open(db, embedder=None) as engine:
        engine.remember_many(f"Session {number} is kept in Redis." for number in range(1000))
    path = tmp_path / "out.jsonl"
    path.write_text("before", encoding="utf-8")

    ended = subprocess.run(
        [sys.executable, "-c", _LIMITED, "export", "--out", str(path), "--db", str(db)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, "File too large" in ended.stderr) == (2, True)
    assert path.read_text(encoding="utf-8") == "before"


def test_a_new_database_and_a_copy_are_their_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        path, copy, link = tmp_path / "agent.db", tmp_path / "copy.db", tmp_path / "link.db"
        link.symlink_to(tmp_path / "linked.db")
        for each in (path, link):
            with germane.open(each, embedder=None) as engine:
                engine.remember("Sessions are kept in Redis.")
                beside = [one for one in tmp_path.iterdir() if one.name.startswith(each.resolve().name)]
                assert len(beside) == 3, "the file, its log and the log's index"
                assert {mode_of(one) for one in beside} == {0o600}
        copy_store(path, copy)
        assert mode_of(copy) == 0o600
        path.chmod(0o640)
        with germane.open(path, embedder=None) as engine:
            engine.remember("A file that is there keeps the mode that it was given.")
        assert mode_of(path) == 0o640
    finally:
        os.umask(before)
