"""What commands print: text for people, JSON for programs, errors on one line.

Level: integrations. `rich` is imported only where a terminal shows the result.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

import typer

from germane.model.columns import harmless, table, width

if TYPE_CHECKING:
    from germane import Emptiness

__all__ = ["is_terminal", "print_json", "print_table", "print_text", "warn", "warn_empty"]

_LEAST = 24
"""Columns that the last column of a table needs to be read, the gap before it included."""
_RED, _PLAIN = "\x1b[31m", "\x1b[0m"


def is_terminal() -> bool:
    """Whether a person is likely to read what is printed."""
    return sys.stdout.isatty()


def print_json(value: Any) -> None:
    """One JSON value, readable and in the order of its fields."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def print_text(text: str) -> None:
    """Text as it is; on a terminal without what would steer it."""
    typer.echo(harmless(text) if is_terminal() else text)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> None:
    """Rows in columns: wrapped to a terminal's width; aligned and uncut where there is none.

    Where a narrow terminal has no room for the last column, each of its texts stands on a line of its own.
    """
    if not is_terminal():
        typer.echo("\n".join(table([headings, *rows], right=right)))
        return
    from rich.console import Console  # noqa: PLC0415 - Only a terminal needs it.
    from rich.table import Table  # noqa: PLC0415 - As above.
    from rich.text import Text  # noqa: PLC0415 - As above.

    columns = get_terminal_size().columns
    before = table([each[:-1] for each in (headings, *rows)], right=right)
    if max(map(width, before)) + _LEAST > columns:
        _print_stacked(before, [each[-1] for each in (headings, *rows)])
        return
    shown = Table(box=None, header_style="bold", pad_edge=False)
    for number, heading in enumerate(headings):
        last = number == len(headings) - 1
        shown.add_column(
            heading, justify="right" if number in right else "left", overflow="fold", no_wrap=not last
        )
    for row in rows:
        # Text, not str: what a memory says in brackets is no markup.
        shown.add_row(*(Text(harmless(each)) for each in row))
    Console().print(shown)


def _print_stacked(before: Sequence[str], last: Sequence[str]) -> None:
    for number, (line, text) in enumerate(zip(before, last, strict=True)):
        typer.echo(f"{harmless(line)}\n  {harmless(text)}" if number else harmless(line))


def warn_empty(emptiness: Emptiness, agent: str) -> None:
    """Why nothing is shown; where nothing is stored, also whose memory was asked, which may be a slip."""
    from germane.model.explanation import sentence_of  # noqa: PLC0415 - The help needs none of it.

    told = agent and emptiness == "nothing_stored"
    whose = f" It is {agent!r}; --agent or GERMANE_AGENT names another." if told else ""
    warn(f"{sentence_of(emptiness)}{whose}")


def warn(text: str, *, is_error: bool = False) -> None:
    """One line on the error stream; an error in red on a terminal that may be coloured."""
    line = " ".join(harmless(text).split())
    if is_error and sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
        line = f"{_RED}{line}{_PLAIN}"
    typer.echo(line, err=True)
