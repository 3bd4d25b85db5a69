"""Printing of text, tables and progress, and JSON of dataclasses.

`rich` is imported only if a terminal shows the result.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, Final, Literal

import typer

from germane.encoding import to_json
from germane.model.text import COLUMNS, cell, cut, harmless, line_of, table, width

if TYPE_CHECKING:
    from germane import Context, Memory
    from germane.ledger import EmptyReason, TraceNote

_LABEL = 70
_NARROWEST = 40
_UNITS, _STEP = ("bytes", "kB", "MB", "GB", "TB"), 1000
_GAP = 2
_LEAST = 22
"""The minimum width of the last column of a table, if it has so long a text."""
_LONG_WORD = 24
_BESIDE_A_TEXT = 60
"""The usual width of the columns before a text."""
_RED, _PLAIN = "\x1b[31m", "\x1b[0m"
_EXCERPT: Final = re.compile(r"\n  [^\n]*\n +\^\Z")
_SECONDS_BETWEEN_LINES: Final = 2.0


def is_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout.isatty()


def columns_of_output() -> int:
    """The width of the terminal, or the usual one of an account that isn't printed on a terminal."""
    return max(_NARROWEST, get_terminal_size().columns) if is_terminal() else COLUMNS


def print_json(value: Any, *, on_a_line: bool = False) -> None:
    """Print a value as JSON, indented unless it must be on a line."""
    typer.echo(json.dumps(to_json(value), ensure_ascii=False, indent=None if on_a_line else 2))


def print_text(text: str) -> None:
    """Print a text, on a terminal without control characters."""
    typer.echo(harmless(text) if is_terminal() else text)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> None:
    """Print rows in columns, those numbered `right` aligned to the right.

    On a terminal the last column is wrapped, or printed on lines of its own if the terminal is too narrow.
    """
    if not is_terminal():
        typer.echo("\n".join(table([headings, *rows], right=right)))
        return
    from rich.console import Console  # noqa: PLC0415 - Only a terminal needs it.
    from rich.table import Table  # noqa: PLC0415 - As above.
    from rich.text import Text  # noqa: PLC0415 - As above.

    columns = get_terminal_size().columns
    widths = [max(map(width, each)) for each in zip(headings, *rows, strict=True)]
    if sum(each + _GAP for each in widths[:-1]) + min(widths[-1], _LEAST) > columns:
        _print_stacked(headings, rows, widths, columns, right=right)
        return
    grid = Table(box=None, header_style="bold", pad_edge=False)
    for number, heading in enumerate(headings):
        justify: Literal["left", "right"] = "right" if number in right else "left"
        grid.add_column(heading, justify=justify, overflow="fold", no_wrap=number < len(headings) - 1)
    for row in rows:
        # Text, not str: brackets in a memory are no markup.
        grid.add_row(*(Text(harmless(each)) for each in row))
    Console().print(grid)


def _print_stacked(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    widths: Sequence[int],
    columns: int,
    *,
    right: Sequence[int],
) -> None:
    """Print rows whose columns continue on further, indented lines; the last column has lines of its own."""
    from rich.console import Console  # noqa: PLC0415 - Only a terminal needs it.
    from rich.padding import Padding  # noqa: PLC0415 - As above.
    from rich.text import Text  # noqa: PLC0415 - As above.

    lines: list[list[int]] = [[]]
    free = columns
    for number, each in enumerate(widths[:-1]):
        if lines[-1] and each > free:
            lines.append([])
            free = columns - _GAP
        lines[-1].append(number)
        free -= each + _GAP
    console = Console(highlight=False)
    has_last = any(row[-1] for row in rows)
    for row in (headings, *rows):
        for place, numbers in enumerate(lines):
            cells = (cell(harmless(row[each]), widths[each], right=each in right) for each in numbers)
            if line := (" " * _GAP).join(cells).rstrip():
                typer.echo(f"{' ' * _GAP if place else ''}{line}")
        if row[-1] and has_last:
            console.print(Padding(Text(harmless(row[-1])), (0, 0, 0, _GAP)))


def print_columns(
    items: Iterable[Any],
    columns: Mapping[str, Callable[[Any], str]],
    *,
    right: Sequence[int] = (),
    memory: tuple[Callable[[Any], Memory], int] | None = None,
) -> None:
    """Print a table with a row for each item; the columns are functions of an item by their headings.

    `memory` adds a last column with the label of a memory: a function of an item, and the columns of a label
    where the terminal has no more space.
    """
    items, headings = tuple(items), list(columns)
    rows = [[text_of(item) for text_of in columns.values()] for item in items]
    if memory is not None:
        memory_of, most = memory
        beside = sum(max(map(width, each)) + _GAP for each in zip(headings, *rows, strict=True))
        headings.append("MEMORY" if headings[0].isupper() else "memory")
        for row, item in zip(rows, items, strict=True):
            row.append(label_of(memory_of(item), most, beside=beside))
    print_table(headings, rows, right=right)


def label_of(memory: Memory, columns: int, *, beside: int = _BESIDE_A_TEXT) -> str:
    """The shortest text of a memory on one line, cut by `fitting`; on a terminal the longest that fits."""
    texts = memory.renditions
    shown = fitting(line_of(texts.micro.text), columns, beside=beside)
    if is_terminal():
        longer = (line_of(each.text) for each in (texts.full, texts.summary))
        shown = next((each for each in longer if fitting(each, columns, beside=beside) == each), shown)
    return shown


def fitting(text: str, columns: int, *, beside: int = _BESIDE_A_TEXT) -> str:
    """The text of at most so many columns, or more if the terminal is wide; cut between words if possible."""
    shown = cut(text, max(columns, columns_of_output() - beside))
    end = shown[:-1].rfind(" ", -_LONG_WORD)
    if shown == text or end < 0 or text[len(shown) - 1] == " ":
        return shown
    return shown[:end].rstrip(" …,;:") + "…"


def memory_line(verb: str, memory: Memory) -> str:
    """One line about a change of a memory: the verb, the short id, the kind and the label."""
    from germane.model.context import short_id  # noqa: PLC0415 - The help needs none of it.

    return f"{verb}: {short_id(memory.id)}  {memory.kind}  {label_of(memory, _LABEL)}"


def size_of(amount: float) -> str:
    """A number of bytes with a unit, such as "1.2 MB"."""
    for unit in _UNITS[:-1]:
        if amount < _STEP:
            return f"{amount:.0f} {unit}" if unit == _UNITS[0] else f"{amount:.1f} {unit}"
        amount /= _STEP
    return f"{amount:.1f} {_UNITS[-1]}"


def warn(text: str, *, is_error: bool = False) -> None:
    """Print one line on standard error; an error in red on a terminal unless NO_COLOR is set.

    An error that points to a place in a text by `^` has two more lines.
    """
    text = harmless(text.encode("utf-8", "backslashreplace").decode())
    excerpt = _EXCERPT.search(text)
    line = " ".join((text[: excerpt.start()] if excerpt else text).split()) + (excerpt[0] if excerpt else "")
    if is_error and sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
        line = f"{_RED}{line}{_PLAIN}"
    typer.echo(line, err=True)


def warn_each(notes: Iterable[TraceNote]) -> None:
    """Print notes on standard error."""
    for note in notes:
        warn(f"Note: {note.text}")


def warn_of_context(context: Context, *more: str) -> None:
    """Print a context's notes, `more` lines, and its counts of tokens and memories on standard error."""
    trace = context.trace
    warn_each(trace.notes)
    tokens = f"{context.tokens:,} of {trace.budget:,} tokens ({trace.counter})"
    memories = f"{len(trace.included)} in, {len(trace.excluded)} left out"
    for line in (*more, f"{tokens}; memories: {memories}."):
        warn(line)


def why_empty(reason: EmptyReason | None, agent: str | None) -> list[str]:
    """The reason for an empty result; if nothing is stored, also the agent's name, which may be wrong."""
    from germane.model.context import sentence_of  # noqa: PLC0415 - The help needs none of it.

    if reason is None:
        return []
    wrong = agent and reason == "nothing_stored"
    whose = f" It is {agent!r}; --agent or GERMANE_AGENT names another." if wrong else ""
    return [f"{sentence_of(reason)}{whose}"]


# The progress of a long task: a bar on a terminal, a line every few seconds elsewhere.


@contextmanager
def progress_of(what: str, *, quiet: bool, tenths: bool = False) -> Iterator[Callable[[int, int], None]]:
    """A function that reports the done and the total number; `what` is their plural noun, such as "tables".

    Without a terminal a line is printed every few seconds, or with `tenths` for each tenth.
    """
    if quiet:
        yield lambda *_: None
    elif sys.stderr.isatty():
        from rich.console import Console  # noqa: PLC0415 - Only a terminal needs it.
        from rich.progress import Progress  # noqa: PLC0415 - As above.

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(what, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
    else:
        lines = PacedLines()

        def report(done: int, total: int) -> None:
            line = f"{done:,} of {total:,} {what}"
            if not tenths:
                lines(line, last=done >= total)
            elif done * 10 // total > (done - 1) * 10 // total:
                warn(line)

        yield report


class PacedLines:
    """Prints a line every few seconds, the first only after that time unless `at_once`."""

    def __init__(self, *, at_once: bool = False) -> None:
        self._due = time.monotonic() + (0 if at_once else _SECONDS_BETWEEN_LINES)
        self._any = False

    def __call__(self, line: str, *, last: bool = False) -> None:
        """Print the line on standard error if it is due; the `last` also if another was printed."""
        now = time.monotonic()
        if now >= self._due or (self._any and last):
            self._due, self._any = now + _SECONDS_BETWEEN_LINES, True
            warn(line)
