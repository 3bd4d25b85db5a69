"""Where the memory of commands is that name no database."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from commandline import run

GIT = ("git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder of germane, in an empty home; the working folder is `work`."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "data"))
    return tmp_path / "data" / "germane"


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    subprocess.run([*GIT, "init", "-q"], cwd=folder, check=True)
    subprocess.run([*GIT, "commit", "-q", "--allow-empty", "-m", "Begin"], cwd=folder, check=True)
    return folder


def default() -> Path:
    """The file that a command looks for in the working folder, where there is none yet."""
    found = re.search(r"There is no store at (.*)\. `germane remember`", run("recall", "tea").err)
    assert found is not None
    return Path(found[1])


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_database_is_made_in_the_data_folder_and_named_once(data: Path, more: tuple[str, ...]) -> None:
    made = run("remember", "Ann prefers tea.", *more)
    path = data / "germane.db"
    assert made.err == f"Made the database {path}. To place it elsewhere, use --db or GERMANE_DB.\n"
    assert str(data) not in made.out
    assert path.is_file()
    assert list(Path.cwd().iterdir()) == []
    assert run("remember", "Ann prefers green tea.", *more).err == ""
    assert [each["content"] for each in run("memory", "list", "--json").json()["memories"]] == [
        "Ann prefers green tea.",
        "Ann prefers tea.",
    ]


def test_reading_makes_nothing(data: Path) -> None:
    ran = run("recall", "tea")
    assert (ran.code, str(data / "germane.db") in ran.err) == (3, True)
    assert not data.exists()


def test_a_database_in_the_working_folder_is_used(data: Path) -> None:
    assert f"Made the database {Path.cwd() / 'germane.db'}." in run("remember", "Ann.", db="germane.db").err
    run("remember", "Ben.")
    assert run("db", "stats", "--json").json()["memories"] == 2
    assert not data.exists()


def test_each_repository_has_its_own_which_its_folders_and_worktrees_share(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, other = repository(tmp_path / "a" / "shop"), repository(tmp_path / "b" / "shop")
    subprocess.run([*GIT, "worktree", "add", "-q", str(tmp_path / "feature")], cwd=shop, check=True)
    (shop / "src").mkdir()
    found = {}
    for folder in (shop, shop / "src", tmp_path / "feature", other):
        monkeypatch.chdir(folder)
        found[folder] = default()
    assert found[shop] == found[shop / "src"] == found[tmp_path / "feature"] != found[other]
    assert {each.parent for each in found.values()} == {data}
    assert all(each.name.startswith("shop-") for each in found.values())


def test_a_submodule_has_its_own(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = repository(tmp_path / "whole") / "part"
    part.mkdir()
    (part / ".git").write_text("gitdir: ../.git/modules/part\n", encoding="utf-8")
    monkeypatch.chdir(part)
    assert default().name.startswith("part-")
    assert not data.exists()


@pytest.mark.skipif(os.name == "nt", reason="there the folder has another name")
@pytest.mark.parametrize("named", ["", "relative"])
def test_the_usual_folder_is_used_where_no_absolute_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", named)
    monkeypatch.setenv("HOME", str(tmp_path))
    usual = "Library/Application Support" if sys.platform == "darwin" else ".local/share"
    monkeypatch.chdir(tmp_path)
    assert default() == tmp_path / usual / "germane" / "germane.db"


@pytest.mark.skipif(os.name == "nt", reason="there a file is refused in another way")
def test_a_data_folder_that_cannot_be_made_is_named(data: Path) -> None:
    data.parent.write_text("A file.", encoding="utf-8")
    ran = run("remember", "Ann prefers tea.")
    assert ran.code == 3
    assert f"The folder {data} can't be made" in ran.err
    assert "--db" in ran.err


def test_without_a_home_a_named_database_works(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.delenv("LOCALAPPDATA")
    monkeypatch.setattr(Path, "home", homeless)
    ran = run("recall", "tea")
    assert (ran.code, "Name one with --db" in ran.err) == (2, True)
    assert run("remember", "Ann prefers tea.", db=tmp_path / "a.db").code == 0
    assert not data.exists()


def test_servers_make_the_same_database(data: Path) -> None:
    made = run("keys", "create", "--agent", "support")
    assert f"Made the database {data / 'germane.db'}." in made.err
    assert len(made.out.split()) == 1
