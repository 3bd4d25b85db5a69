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

from germane.model.columns import cut, harmless, line_of, table, width

if TYPE_CHECKING:
    from germane import Context, Emptiness, Memory

_LEAST = 24
"""Columns that the last column of a table needs to be read, the gap before it included."""
_RED, _PLAIN = "\x1b[31m", "\x1b[0m"


def is_terminal() -> bool:
    """Whether a person is likely to read what is printed."""
    return sys.stdout.isatty()


def print_json(value: Any, *, on_a_line: bool = False) -> None:
    """One value as JSON, readable unless it has to stand on a line, in the order of its fields."""
    from germane.integrations.shapes import to_json  # noqa: PLC0415 - The help needs none of it.

    typer.echo(json.dumps(to_json(value), ensure_ascii=False, indent=None if on_a_line else 2))


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


def label_of(memory: Memory, columns: int) -> str:
    """The shortest text of a memory, on a line that is no wider than so many columns."""
    return cut(line_of(memory.renditions.micro.text), columns)


def warn_of_context(context: Context, *more: str) -> None:
    """The notes of a context, what `more` there is to say, and how many tokens and memories are in it."""
    trace = context.trace
    counted = f"{context.tokens:,} of {trace.budget:,} tokens ({trace.counter})"
    memories = f"{len(trace.included)} in, {len(trace.excluded)} left out"
    for line in (*(f"Note: {note.text}" for note in trace.notes), *more, f"{counted}; memories: {memories}."):
        warn(line)


def why_empty(emptiness: Emptiness | None, agent: str) -> list[str]:
    """Why nothing is shown; where nothing is stored, also whose memory was asked, which may be a slip."""
    from germane.model.explanation import sentence_of  # noqa: PLC0415 - The help needs none of it.

    if emptiness is None:
        return []
    told = agent and emptiness == "nothing_stored"
    whose = f" It is {agent!r}; --agent or GERMANE_AGENT names another." if told else ""
    return [f"{sentence_of(emptiness)}{whose}"]


def warn(text: str, *, is_error: bool = False) -> None:
    """One line on the error stream; an error in red on a terminal that may be coloured."""
    line = " ".join(harmless(text).split())
    if is_error and sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
        line = f"{_RED}{line}{_PLAIN}"
    typer.echo(line, err=True)
