"""The command line as a process: its entries, pipes, files that can't be written, and missing packages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import germane
from commandline import filled, run


def process(*arguments: str, code: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    start = ["-m", "germane"] if code is None else ["-c", code]
    return subprocess.run(
        [sys.executable, *start, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        env={**os.environ, **environment},
    )


def test_the_module_and_the_script_are_the_same_command() -> None:
    script = Path(sys.executable).with_name("germane")

    by_module = process("--version")
    by_script = subprocess.run([script, "--version"], capture_output=True, text=True, check=False)

    assert by_module.stdout == by_script.stdout == f"germane {germane.__version__}\n"
    assert (by_module.returncode, by_script.returncode) == (0, 0)


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    db = filled(tmp_path)
    for number in range(3):
        run("remember", "-", stdin=f"{number} " + "long " * 40_000, db=db)
    with subprocess.Popen(
        [sys.executable, "-m", "germane", "export", "--db", str(db)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.read(10)
        running.stdout.close()
        output = running.stderr.read()
    assert output == b""
    assert running.returncode == 141


def test_every_script_is_printed_in_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    db = filled(tmp_path)

    ran = process("recall", "検索", "--db", str(db), LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0")

    assert "日本語の検索" in ran.stdout
    assert ran.returncode == 0


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_a_missing_package_is_named_with_the_extra_that_brings_it(package: str) -> None:
    ran = process(code=f"import sys; sys.modules[{package!r}] = None\nfrom germane.cli import main\nmain()")

    assert ran.returncode == 2
    assert package in ran.stderr
    assert "pip install 'germane[cli]'" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_without_the_extra_the_version_is_printed() -> None:
    words = "import sys; sys.modules['typer'] = None; sys.argv = ['germane', '--version']"
    ran = process(code=f"{words}\nfrom germane.cli import main\nmain()")

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"germane {germane.__version__}\n", "")


@pytest.mark.parametrize("package", ["mcp", "anyio"])
def test_a_missing_package_of_the_mcp_server_is_no_traceback(package: str, tmp_path: Path) -> None:
    words = f"import sys; sys.modules[{package!r}] = None; sys.argv = ['germane', 'mcp', '--db', sys.argv[1]]"
    ran = process(str(tmp_path / "m.db"), code=f"{words}\nfrom germane.cli import main\nmain()")

    assert ran.returncode == 2
    assert "pip install 'germane[mcp]'" in ran.stderr
    assert "Traceback" not in ran.stderr


def without_privilege(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command as a process that what stands in a folder's permissions binds, even if root runs it."""
    if not hasattr(os, "geteuid"):
        pytest.skip("This system knows no permissions that a folder's mode could say.")
    if os.geteuid() == 0 and sys.platform != "linux":
        pytest.skip("Only Linux lets root lay down its right to write anywhere.")
    return process(*arguments, code=_AS_ANYBODY)


_AS_ANYBODY = """
import ctypes, os
if os.geteuid() == 0:
    # Root that has laid down its capabilities may do what the owner of its files may do.
    version_3, of_this_process = 0x20080522, 0
    header, none = (ctypes.c_uint32 * 2)(version_3, of_this_process), (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None).capset(header, none) == 0
from germane.cli import main
main()
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ("recall", "Postgres"),
        ("assemble", "Postgres"),
        ("db", "stats"),
        ("export",),
    ],
)
def test_a_store_in_a_read_only_folder_can_be_read(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    db = filled(tmp_path)
    tmp_path.chmod(0o555)
    try:
        ran = without_privilege(*arguments, "--db", str(db))
    finally:
        tmp_path.chmod(0o755)

    assert (ran.returncode, ran.stderr.count("germane:")) == (0, 0)
    assert ran.stdout != ""


@pytest.mark.parametrize("is_there", [True, False])
def test_a_read_only_folder_is_refused_by_name_for_writing_and_left_alone(
    tmp_path: Path, *, is_there: bool
) -> None:
    db = filled(tmp_path) if is_there else tmp_path / "new.db"
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    tmp_path.chmod(0o555)
    try:
        refused = without_privilege("remember", "x", "--db", str(db))
    finally:
        tmp_path.chmod(0o755)

    assert refused.returncode == 3
    assert refused.stdout == ""
    assert refused.stderr.startswith("germane: ")
    assert refused.stderr.count("\n") == 1
    assert str(db) in refused.stderr
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_missing_store_ends_with_3_and_one_line(tmp_path: Path) -> None:
    ran = process("db", "stats", "--db", str(tmp_path / "none.db"))

    assert ran.returncode == 3
    assert ran.stdout == ""
    assert ran.stderr.count("\n") == 1
    assert "\x1b" not in ran.stderr
