"""What is published: the wheel and the source archive are complete, reproducible and can be installed."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from importlib.util import find_spec
from pathlib import Path

import pytest

from docs.pages import ROOT

pytestmark = pytest.mark.skipif(
    find_spec("hatchling") is None, reason="hatchling isn't installed: pip install --group package"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return _built(tmp_path_factory.mktemp("first"))


def test_the_same_tree_gives_the_same_bytes(built: tuple[Path, Path], tmp_path: Path) -> None:
    for one, other in zip(built, _built(tmp_path), strict=True):
        assert one.name == other.name
        assert one.read_bytes() == other.read_bytes()


def test_a_package_index_takes_both(built: tuple[Path, Path]) -> None:
    pytest.importorskip("twine")
    pytest.importorskip("check_wheel_contents")
    _run("twine", "check", "--strict", *map(str, built))
    _run("check_wheel_contents", str(built[0]))


def test_the_wheel_has_its_data_licences_and_types(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        names = set(wheel.namelist())
    metadata = _metadata(built[0])
    tree = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "germane").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert tree <= names
    assert {name.split("/")[0] for name in names} == {"germane", "germane-0.1.0.dist-info"}
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE", "NOTICE"]
    assert metadata["Requires-Python"] == "<3.15,>=3.11"


def test_the_source_archive_has_what_the_tests_and_the_site_need(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.*")]
    needed += [
        path for folder in ("bench", "examples", "tests", "tools") for path in (ROOT / folder).rglob("*.py")
    ]
    assert {path.relative_to(ROOT).as_posix() for path in needed} <= names


def test_without_an_address_no_link_of_the_description_is_dead(built: tuple[Path, Path]) -> None:
    metadata = _metadata(built[0])
    assert _relative(str(metadata.get_payload())) == []
    assert "docs/index.md" in str(metadata.get_payload())
    assert metadata.get_all("Project-URL") is None


def test_one_setting_gives_all_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GERMANE_ADDRESS", "https://example.org/team/germane/")
    wheel, archive = _built(tmp_path)
    metadata = _metadata(wheel)
    text = str(metadata.get_payload())
    assert _relative(text) == []
    assert "](https://example.org/team/germane/raw/v0.1.0/docs/context.svg)" in text
    linked = re.findall(r"\]\(https://example\.org/team/germane/blob/v0\.1\.0/([^)#]+)", text)
    assert len(linked) == len(_relative((ROOT / "README.md").read_text(encoding="utf-8"))) - 1
    assert all((ROOT / each).exists() for each in linked)
    urls = dict(each.split(", ") for each in metadata.get_all("Project-URL") or ())
    assert set(urls) == {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    assert {url.split("/")[2] for url in urls.values()} == {"example.org"}
    # Who builds the wheel from the source archive needs no setting.
    monkeypatch.delenv("GERMANE_ADDRESS")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    again = tmp_path / archive.name.removesuffix(".tar.gz")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "again")],
        cwd=again,
        check=True,
        capture_output=True,
    )
    assert _metadata(tmp_path / "again" / wheel.name).as_string() == metadata.as_string()


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("extra", ["core", "cli"])
def test_it_works_from_its_wheel_in_an_empty_environment(
    built: tuple[Path, Path], extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    packages = importlib.import_module("test_install").test(built[0], extra)
    assert packages <= (12 if extra == "core" else 30)


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as packed:
        return Parser().parsestr(packed.read("germane-0.1.0.dist-info/METADATA").decode())


def _relative(text: str) -> list[str]:
    """The targets of the relative links of a text, images included."""
    return re.findall(r"\]\(((?![a-z]+:|#)[^)\s]+)\)", text)


def _built(folder: Path) -> tuple[Path, Path]:
    """The wheel and the source archive."""
    _run("hatchling", "build", "-d", str(folder))
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def _run(*command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", *command],
        cwd=ROOT,
        env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
