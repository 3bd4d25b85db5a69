"""Write docs/reference/cli.md from the commands themselves; with --check only compare it."""

from __future__ import annotations

import sys
from inspect import cleandoc
from pathlib import Path
from typing import Any

import typer

from germane.cli.app import app
from germane.cli.commands import COMMANDS, GROUPS

__all__ = ["PAGE", "main", "reference"]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "cli.md"

_INTRODUCTION = """# The command line

<!-- Written by tools/cli_reference.py from the commands themselves; `make docs` writes it anew. -->

Install `germane` (or `python -m germane`) with `pip install 'germane[cli]'`. Every command has the options
`--db`, `--agent` and `--json`; [JSON output](json.md) describes what `--json` prints. Commands of one agent
have `--user`: they also use what the agent knows of that user. Commands on memories, contexts and working
sets have `--space`: it selects the memories of a space instead of the agent's own.

Results go to standard output, notes and progress to standard error, so that results can be piped. An id may
be shortened to 4 or more characters of its beginning or end if they are unique; tables show the last 8.
Colours and wrapping are used only on terminals, and colours only if `NO_COLOR` isn't set.

`germane --install-completion` installs the completion of commands and options for the current shell (bash,
zsh, fish or PowerShell); `germane --show-completion` prints it.

{groups}

## Exit codes

| code | meaning |
|--:|---|
| 0 | Success. |
| 1 | Done, but damage was found, a source was skipped, a replay differs, or a requirement was missed. |
| 2 | Invalid usage: a missing argument, an unknown id, a budget that is too small. |
| 3 | The store failed: no such file, no database, read-only, busy, too new. |
| 130 | Interrupted. |
| 141 | The reader of the output is gone. |

## Where the memory is

`--db` or `GERMANE_DB` names the database. Without either, a command uses `germane.db` in the current folder
if it is there, and otherwise a file in your data folder, outside of your projects:

| system | folder |
|---|---|
| Linux | `$XDG_DATA_HOME/germane`, by default `~/.local/share/germane` |
| macOS | `$XDG_DATA_HOME/germane`, by default `~/Library/Application Support/germane` |
| Windows | `%LOCALAPPDATA%\\germane` |

Each git repository has a file of its own, such as `shop-1a2b3c4d.db`, from its name and a hash of its path;
its worktrees use the same file. All other folders share `germane.db`. A command that makes a database prints
its path on standard error, and `germane db status` shows it later. After a repository was moved, name the
former file with `--db`, or rename it to the path that the first command prints.

## Environment

| variable | meaning |
|---|---|
| `GERMANE_DB` | The default of `--db`; otherwise [a file of your own](#where-the-memory-is). |
| `GERMANE_AGENT` | The default of `--agent`; otherwise `default`. |
| `GERMANE_USER` | The default of `--user`; otherwise none: the agent itself. |
| `GERMANE_KEY` | The key of an [encrypted store](../how-to/encrypt.md), or `file:PATH`; otherwise none. |
| `GERMANE_EMBEDDER` | `bundled`, `minilm`, or `none` for lexical search; by default the store's embedder. |
| `NO_COLOR` | Any value turns colours off. |
"""


def main() -> int:
    """Write the page, or compare it; 1 if it was found to be out of date."""
    text = reference()
    if "--check" not in sys.argv:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(text, encoding="utf-8")
        return 0
    current = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text
    if not current:
        sys.stderr.write(f"{PAGE.name} is out of date: run `python tools/cli_reference.py`.\n")
    return 0 if current else 1


def reference() -> str:
    """The page as it should be."""
    alone = ", ".join(f"[`{name}`]({_anchor(name)})" for name in COMMANDS if " " not in name)
    rows = [f"| | {alone} |", *(f"| `germane {name}` | {_members(name)} |" for name in GROUPS)]
    introduction = _INTRODUCTION.format(groups="\n".join(["| group | commands |", "|---|---|", *rows]))
    return "\n".join([introduction, *(_section(name, _command(name)) for name in COMMANDS)])


def _members(group: str) -> str:
    """Links to the commands of a group."""
    names = [name for name in COMMANDS if name.startswith(f"{group} ")]
    return ", ".join(f"[`{name.split()[1]}`]({_anchor(name)})" for name in names)


def _anchor(name: str) -> str:
    return f"#germane-{name.replace(' ', '-')}"


def _command(name: str) -> Any:
    """The command of that name; one of two words is in the group of the first."""
    found: Any = typer.main.get_command(app)
    for word in name.split():
        found = found.get_command(None, word)
    return found


def _section(name: str, command: Any) -> str:
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    options = [param for param in command.params if param.param_type_name == "option" and not _is_help(param)]
    usage = " ".join(["germane", name, *(_metavar(param) for param in arguments), "[OPTIONS]"])
    rows = [f"| `{_metavar(param)}` | {_meaning(param)} |" for param in arguments]
    rows += [f"| `{_spelled(param)}` | {_meaning(param)} |" for param in options]
    return "\n".join(
        [
            f"## `germane {name}`",
            "",
            cleandoc(command.help),
            "",
            "```text",
            usage,
            "```",
            "",
            "| argument or option | meaning |",
            "|---|---|",
            *rows,
            "",
        ]
    )


def _is_help(param: Any) -> bool:
    return "--help" in param.opts


def _metavar(param: Any) -> str:
    return str(param.metavar or param.name.upper())


def _spelled(param: Any) -> str:
    name = ", ".join(param.opts)
    return name if param.is_flag else f"{name} {_metavar(param)}"


def _meaning(param: Any) -> str:
    meaning = str(param.help).replace("|", "\\|")
    default = param.default
    if param.param_type_name == "option" and not param.is_flag and default not in (None, (), []):
        meaning += f" Default: `{default}`."
    return meaning


if __name__ == "__main__":
    sys.exit(main())
