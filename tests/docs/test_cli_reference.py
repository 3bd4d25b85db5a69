"""Every command and option has help, and the reference pages say what the commands do."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from commandline import COMMANDS, GROUPS, parser, run

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"


def test_the_reference_is_what_the_commands_say() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "cli_reference.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_every_command_is_in_both_references() -> None:
    headings = {
        name: " ".join(re.findall(r"^#+ .*$", (REFERENCE / name).read_text(encoding="utf-8"), re.MULTILINE))
        for name in ("cli.md", "json.md")
    }

    assert [
        (command, page)
        for command in COMMANDS
        for page, text in headings.items()
        if f"`germane {command}`" not in text
    ] == []


def test_nothing_in_the_reference_lacks_its_meaning() -> None:
    rows = [
        line.split(" | ")
        for line in (REFERENCE / "cli.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    ]

    assert len(rows) > 100
    assert [row for row in rows if len(row) < 2 or len(row[1].strip(" |")) < 10] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_the_three_common_options(command: str) -> None:
    ran = run(*command.split(), "--help")

    assert ran.code == 0
    for option in ("--db", "--agent", "--json", "--help"):
        assert option in ran.out


@pytest.mark.parametrize("name", ["", *GROUPS, *COMMANDS])
def test_every_help_fits_a_screen_of_42_lines_and_100_columns(name: str) -> None:
    command = parser(name)
    # Help leaves two of a terminal's columns empty.
    context = command.context_class(
        command, info_name=f"germane {name}".strip(), terminal_width=98, **command.context_settings
    )
    lines = context.get_help().splitlines()
    assert len(lines) <= 42
    assert max(map(len, lines)) <= 98


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_lists_the_shared_options_in_one_panel(name: str) -> None:
    own, _, shared = run(*name.split(), "--help").out.partition("\nShared options:\n")
    assert re.findall(r"^  (--(?:db|agent|space|json)\b|-h\b)", own, re.MULTILINE) == []
    assert "--json" in shared


def test_no_arguments_show_the_first_steps_or_the_help_of_a_group() -> None:
    steps = re.findall(r"^  germane (\S+)", run().out, re.MULTILINE)
    assert [each for each in steps if each not in COMMANDS] == ["--help"]
    assert all(f"\n  {command.split()[0]} " in run("-h").out for command in COMMANDS)
    assert all(run(group).out == run(group, "--help").out for group in GROUPS)


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_lists_its_commands(group: str) -> None:
    ran = run(group, "--help")

    assert GROUPS[group] in ran.out
    assert all(f"\n  {name.split()[1]} " in ran.out for name in COMMANDS if name.split()[0] == group)
    assert run(group, "nonsense").code == 2
