"""Write docs/reference/cli.md from the commands themselves; with --check only say whether it is current."""

from __future__ import annotations

import sys
from inspect import cleandoc
from pathlib import Path
from typing import Any

import typer

from germane.cli.app import app
from germane.cli.commands import COMMANDS

__all__ = ["PAGE", "main", "reference"]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "cli.md"

_INTRODUCTION = """# The command line

<!-- Written by tools/cli_reference.py from the commands themselves; `make docs` writes it anew. -->

`germane` (or `python -m germane`) comes with `pip install 'germane[cli]'`. Every command takes `--db`,
`--agent` and `--json`; what `--json` prints is described in [JSON output](json.md).

Text for people goes to the standard output, and what is only worth knowing to the error stream, so that a
result can be piped. Where an id is asked for, its beginning or its end is enough, from 4 characters on, if
no other memory shares it; tables show the last 8. Colours and wrapping appear on a terminal only, and no
colours where `NO_COLOR` is set.

`germane --install-completion` teaches the shell in use (bash, zsh, fish or PowerShell) to complete commands
and options; `germane --show-completion` prints what it would install.

## Exit codes

| code | meaning |
|--:|---|
| 0 | Done. |
| 1 | Done, and `doctor` found something wrong, or `import` left something out. |
| 2 | A mistake in what was asked: a missing argument, an unknown id, a budget too small. |
| 3 | The store couldn't do it: no such file, no database, read-only, busy, too new. |
| 130 | Interrupted. |
| 141 | Whoever read the output stopped reading. |

## Environment

| variable | meaning |
|---|---|
| `GERMANE_DB` | The store, where `--db` isn't given; without either it is `germane.db` in this folder. |
| `GERMANE_AGENT` | The agent, where `--agent` isn't given; without either it is `default`. |
| `GERMANE_EMBEDDER` | `static`, `onnx`, or `none` for words alone; without it, what suits the store. |
| `NO_COLOR` | Set to anything, it turns colours off. |
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
    return "\n".join([_INTRODUCTION, *(_section(name, _command(name)) for name in COMMANDS)])


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
    said = str(param.help).replace("|", "\\|")
    default = param.default
    if param.param_type_name == "option" and not param.is_flag and default not in (None, (), []):
        said += f" Default: `{default}`."
    return said


if __name__ == "__main__":
    sys.exit(main())
