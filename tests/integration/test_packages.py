"""What is published: the wheel and the source archive are complete, reproducible and can be installed."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tarfile
import zipfile
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
        metadata = Parser().parsestr(wheel.read("germane-0.1.0.dist-info/METADATA").decode())
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


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("extra", ["core", "cli"])
def test_it_works_from_its_wheel_in_an_empty_environment(
    built: tuple[Path, Path], extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    packages = importlib.import_module("test_install").test(built[0], extra)
    assert packages <= (12 if extra == "core" else 30)


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
