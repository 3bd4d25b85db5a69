"""The frameworks' own tests, from their source distributions, run on germane's adapters.

Each runs in an environment of its own that the test makes; where the package index can't be reached it is
skipped. What is known to differ is named with its reason in the guide of the framework.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
from collections.abc import Sequence
from pathlib import Path

import pytest

from house.source import ROOT

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
_TOOLS = ("pytest", "pytest-asyncio", "pytest-mock", "pytest-timeout", "hypothesis")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with this package and the frameworks; its Python."""
    folder = tmp_path_factory.mktemp("upstream") / "venv"
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    needed = ("langchain", "langgraph", "langgraph-checkpoint-sqlite", "openai-agents", *_TOOLS)
    done = _pip(python, "install", "-c", str(ROOT / "constraints.txt"), *needed, str(ROOT))
    if done.returncode:
        pytest.skip(f"The package index can't be reached: {done.stderr.strip()[-200:]}")
    return python


def _pip(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(python), "-m", "pip", arguments[0], "-q", "--disable-pip-version-check", *arguments[1:]]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("package", "files", "differing"),
    [
        (
            "langgraph-checkpoint",
            ("tests/test_store.py",),
            {"test_vector_store_initialization", "test_embed_with_path"},
        ),
        (
            "langgraph-checkpoint-sqlite",
            ("tests/test_store.py", "tests/test_async_store.py", "tests/test_ttl.py"),
            {
                "test_vector_store_initialization",
                "test_embed_with_path",
                "test_scores",
                "test_sql_injection_vulnerability",
                "test_filter_keys_with_hyphens_and_digits",
                "test_ttl_override_default",
                "test_no_running_loop",
            },
        ),
    ],
)
def test_langgraphs_own_tests_pass(
    package: str, files: Sequence[str], differing: set[str], environment: Path, tmp_path: Path
) -> None:
    assert _failed(environment, package, files, "langgraph_stores", tmp_path) == differing


def test_the_agents_sdks_own_tests_of_its_session_pass(environment: Path, tmp_path: Path) -> None:
    files = ("tests/memory/test_session.py", "tests/memory/test_session_limit.py")
    failed = _failed(environment, "openai-agents", files, "openai_sessions", tmp_path)
    # These look at the connections, locks and damaged rows of the SDK's own database.
    inside = re.compile(
        r"test_sqlite_session_.*(?:connection|closed_rejects|corrupt|file_lock|failed_|rollback|post_commit)"
    )
    assert [name for name in failed if not inside.match(name)] == []


def test_langchains_tests_of_a_retriever_pass(environment: Path, tmp_path: Path) -> None:
    done = _pip(environment, "install", "-c", str(ROOT / "constraints.txt"), "langchain-tests")
    if done.returncode:
        pytest.skip(f"The package index can't be reached: {done.stderr.strip()[-200:]}")
    # In a folder of its own no settings of this project hold.
    tests = shutil.copy(Path(__file__).parent / "upstream" / "langchain_retriever.py", tmp_path)
    command = [str(environment), "-m", "pytest", tests, "--asyncio-mode=auto", "-q"]
    ran = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True)
    assert re.search(r"^5 passed", ran.stdout, re.MULTILINE), ran.stdout[-2000:] + ran.stderr[-2000:]


def _failed(python: Path, package: str, files: Sequence[str], plugin: str, folder: Path) -> set[str]:
    """The names of the tests of these files that fail with a plugin of `upstream`."""
    ran = subprocess.run(
        [
            *(str(python), "-m", "pytest", *files, "-p", plugin, "-o", "addopts="),
            *("--asyncio-mode=auto", "-p", "no:cacheprovider", "-q", "-rfE", "--no-header"),
        ],
        check=False,
        cwd=_source_of(python, package, folder),
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent / "upstream")},
        capture_output=True,
        text=True,
    )
    assert re.search(r"\d+ passed", ran.stdout), ran.stdout[-2000:] + ran.stderr[-2000:]
    return set(re.findall(r"^(?:FAILED|ERROR) \S+::(\w+)", ran.stdout, re.MULTILINE))


def _source_of(python: Path, package: str, folder: Path) -> Path:
    """The unpacked source distribution of the version that is installed."""
    read = f"import importlib.metadata as m; print(m.version({package!r}))"
    found = subprocess.run([str(python), "-c", read], check=True, capture_output=True, text=True)
    wanted = f"{package}=={found.stdout.strip()}"
    done = _pip(python, "download", "--no-deps", "--no-binary", package, "-d", str(folder), wanted)
    if done.returncode:
        pytest.skip(f"No source distribution of {wanted}: {done.stderr.strip()[-200:]}")
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        if sys.version_info >= (3, 12):
            files.extractall(folder, filter="data")
        else:
            files.extractall(folder)  # noqa: S202 - It is a release that pip has verified.
    return archive.with_name(archive.name.removesuffix(".tar.gz"))
