"""What commands print: text, and JSON made from the dataclasses.

`rich` is imported only where a terminal shows the result.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from enum import Enum
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from germane.model.text import cut, harmless, line_of, table, width

if TYPE_CHECKING:
    from germane import Context, GermaneError, Memory
    from germane.ledger import EmptyReason

__all__ = ["FORMS", "Form", "error_json", "to_json"]

_LEAST = 24
"""Columns that the last column of a table needs to be read, the gap before it included."""
_RED, _PLAIN = "\x1b[31m", "\x1b[0m"


def is_terminal() -> bool:
    """Whether a person is likely to read what is printed."""
    return sys.stdout.isatty()


def print_json(value: Any, *, on_a_line: bool = False) -> None:
    """One value as JSON, readable unless it has to stand on a line, in the order of its fields."""
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


def why_empty(empty_reason: EmptyReason | None, agent: str) -> list[str]:
    """Why nothing is shown; where nothing is stored, also whose memory was asked, which may be a slip."""
    from germane.model.context import sentence_of  # noqa: PLC0415 - The help needs none of it.

    if empty_reason is None:
        return []
    told = agent and empty_reason == "nothing_stored"
    whose = f" It is {agent!r}; --agent or GERMANE_AGENT names another." if told else ""
    return [f"{sentence_of(empty_reason)}{whose}"]


def warn(text: str, *, is_error: bool = False) -> None:
    """One line on the error stream; an error in red on a terminal that may be coloured."""
    line = " ".join(harmless(text).split())
    if is_error and sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
        line = f"{_RED}{line}{_PLAIN}"
    typer.echo(line, err=True)


# Germane's values as JSON: one form for all of them, made from the fields of their classes.
#
# The form is documented in docs/reference/json.md and changes only by addition.

_DIGITS = 6
_EXACT = frozenset({"metadata", "options"})
"""Fields that hold values of the user's own, whose numbers are not rounded."""
_TEXTS = frozenset({"Scope"})
"""Classes whose values are written as the text that they are read from."""


class Form(NamedTuple):
    """How the JSON of a class differs from its fields.

    `without` names the fields that are left out. `made` gives what is added or takes the place of a field:
    the path of an attribute, which is null where something on the way is, or a function of the value.
    """

    without: str = ""
    made: Mapping[str, str | Callable[[Any], Any]] = {}


_OF_A_MEMORY = ("version", "kind", "scope", "created_at", "updated_at", "source")
_ID: dict[str, str | Callable[[Any], Any]] = {"id": "memory_id"}

FORMS: Mapping[str, Form] = {
    "MemoryChange": Form("memory_id", _ID),
    "AddResult": Form(
        "new left_out",
        {"items": lambda added: [{**to_json(one), "new": one.memory.id in added.new} for one in added.items]},
    ),
    "Assembly": Form(
        "key points where given_budget options",
        {"made_for": "made_for", "included": lambda made: len(made.included), "purged": "purged"},
    ),
    "DatabaseStatus": Form("", {"extensions": lambda status: dict(status.extensions)}),
    "AssemblyDiff": Form(
        "", {"altered": lambda made: [{"before": old, "after": new} for old, new in made.altered]}
    ),
    "Entry": Form("memory_id", {**_ID, "included": "included"}),
    "Evicted": Form("item freed", {"id": "item.memory.id", "tokens": "freed"}),
    "Eviction": Form("", {"in_the_way": lambda made: [one.memory.id for one in made.in_the_way]}),
    "Frame": Form(
        "", {"priorities": lambda frame: dict(frame.priorities), "shares": lambda frame: dict(frame.shares)}
    ),
    "ImportReport": Form("written"),
    "Item": Form("memory", {"id": "memory.ref", **{name: f"memory.{name}" for name in _OF_A_MEMORY}}),
    "LeftOut": Form("score"),
    "LearningReport": Form(
        "",
        {
            "weights": lambda made: {} if made.weights is None else dict(made.weights.values),
            "contexts": lambda made: 0 if made.weights is None else made.weights.contexts,
        },
    ),
    "LedgerEntry": Form("memory_id", _ID),
    "Memory": Form("renditions content_hash", {"version_id": "version_id", "supersedes": "supersedes"}),
    "Message": Form("parts agent session form extra", {name: name for name in ("text", "calls", "results")}),
    "WorkingSetEvent": Form("working_set kind memory_id", {"set": "working_set", "event": "kind", **_ID}),
    "ObserveResult": Form("feedback", {name: f"feedback.{name}" for name in ("counted", "examples")}),
    "Question": Form("order"),
    "Ranked": Form("candidate", {"memory": "memory"}),
    "RecallResult": Form("ranked", {"results": "ranked"}),
    "RememberResult": Form("quality_flag updated", {"what": "what"}),
    "Replay": Form("assembly context", {"id": "assembly.id", "tokens": "context.tokens"}),
    "Request": Form("state memory calibration stable head texts costs"),
    "Selection": Form("notes scores"),
    "SpaceInfo": Form("joined"),
    "TimeRange": Form("", {"since": "start", "until": "end"}),
    "ToolCall": Form("form extra"),
    "ToolResult": Form("content is_error form extra", {"text": "text"}),
    "Trace": Form("where"),
}
"""The form of each class whose JSON isn't just its fields, by the name of the class."""


def to_json(value: Any) -> Any:
    """The value in types that JSON has.

    A dataclass becomes an object of its fields, in which numbers are rounded to six digits; `FORMS` says
    where it differs. Times are ISO 8601, enumerations their values, and sets are sorted. None stays null.
    """
    return _walked(value, rounded=False)


def error_json(error: GermaneError) -> dict[str, Any]:
    """An error with its class, its message and its public attributes."""
    attributes = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in vars(error).items()
        if not name.startswith("_") and isinstance(value, str | int | float | tuple)
    }
    return {"error": {"type": type(error).__name__.lstrip("_"), "message": str(error), **attributes}}


def _walked(value: Any, *, rounded: bool) -> Any:
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, str | int | float):
        return round(value, _DIGITS) if rounded and isinstance(value, float) else value
    if hasattr(value, "__dataclass_fields__") and type(value).__name__ not in _TEXTS:
        return _object(value)
    if isinstance(value, Mapping):
        return {str(name): _inner(each, rounded=rounded) for name, each in value.items()}
    if isinstance(value, Iterable):
        return [_inner(each, rounded=rounded) for each in _in_order(value)]
    return value.isoformat() if isinstance(value, date) else str(value)


def _inner(value: Any, *, rounded: bool) -> Any:
    """What is deeper than the numbers of a field is rounded by its own class alone."""
    return _walked(value, rounded=rounded and isinstance(value, float))


def _in_order(values: Iterable[Any]) -> Iterable[Any]:
    return sorted(values) if isinstance(values, set | frozenset) else values


def _object(value: Any) -> dict[str, Any]:
    form = FORMS.get(type(value).__name__, _FIELDS_ALONE)
    without = form.without.split()
    fields = [name for name in value.__dataclass_fields__ if name not in without]
    added = [name for name in form.made if name not in fields]
    first = ["id"] if "id" in added else []
    return {
        name: _walked(_part(value, name, form), rounded=name not in _EXACT)
        for name in dict.fromkeys([*first, *fields, *added])
    }


def _part(value: Any, name: str, form: Form) -> Any:
    how = form.made.get(name, name)
    if callable(how):
        return how(value)
    for step in how.split("."):
        value = None if value is None else getattr(value, step)
    return value


_FIELDS_ALONE = Form()
