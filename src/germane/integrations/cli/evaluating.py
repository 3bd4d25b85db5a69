"""eval: how much of what answers a question stands in its context, measured without a judge.

Level: integrations.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from germane import InvalidInput, StoreUnavailable
from germane.integrations.cli.opening import DEFAULT_AGENT, DEFAULT_DATABASE
from germane.integrations.cli.options import Agent, Database, Json
from germane.integrations.cli.output import print_json, print_text, warn

__all__ = ["COMMANDS", "numbers_of"]

_BUDGETS = "500,1000,2000,4000"
_NOBODY = "none"
_ITSELF = "germane"
_STEPS = 10


def _eval(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Conversations and questions in LoCoMo's layout.")
    ],
    *,
    budgets: Annotated[
        str, typer.Option("--budgets", metavar="N,N,...", help="The budgets to measure at, in o200k tokens.")
    ] = _BUDGETS,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="SVG", help="Draw recall against budget into this file.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit-questions", metavar="N", help="Ask only N of the questions, drawn by a seed."),
    ] = None,
    baselines: Annotated[
        str | None,
        typer.Option(
            "--baselines",
            metavar="NAMES",
            help="What to compare with: names parted by commas, or none; all that are installed if not said.",
        ),
    ] = None,
    database: Database = DEFAULT_DATABASE,  # noqa: ARG001 - Every command takes it; see the help.
    agent: Agent = DEFAULT_AGENT,  # noqa: ARG001 - As above.
    as_json: Json = False,
) -> None:
    """Measure how much of the evidence stands in the context.

    For each question: the share of the turns that answer it which stand whole in the text, beside
    other retrievers. Each conversation is measured in a store of its own, in memory; --db and
    --agent aren't used.
    """
    from germane import evaluation  # noqa: PLC0415 - Only this command needs it.

    with _progress(quiet=as_json) as told:
        report = evaluation.evaluate(
            file,
            budgets=numbers_of(budgets, name="--budgets"),
            retrievers=_retrievers(baselines),
            questions_limit=limit,
            progress=told,
        )
    if plot is not None:
        with _writable(plot):
            evaluation.plot(report, plot)
    if as_json:
        print_json(report.as_dict())
    else:
        print_text(report.to_text().removesuffix("\n"))


def numbers_of(text: str, *, name: str) -> list[int]:
    """Whole numbers parted by commas. Raises InvalidInput."""
    try:
        return [int(part.replace("_", "")) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InvalidInput(f"{name}={text!r} is no list of numbers. Write 500,1000,2000.") from None


def _retrievers(baselines: str | None) -> list[str] | None:
    if baselines is None:
        return None
    named = [name.strip() for name in baselines.split(",") if name.strip() and name.strip() != _NOBODY]
    return [_ITSELF, *(name for name in dict.fromkeys(named) if name != _ITSELF)]


@contextmanager
def _writable(plot: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(
            f"Can't write {plot}: {error.strerror or error}. Name a file that can be written with --plot."
        ) from error


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """How progress is told: a bar on a terminal, a line for each tenth elsewhere."""
    if quiet:
        yield lambda _done, _total: None
    elif sys.stderr.isatty():
        from rich.console import Console  # noqa: PLC0415 - Only a terminal needs it.
        from rich.progress import Progress  # noqa: PLC0415 - As above.

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("questions", total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
    else:
        yield _tell_tenths


def _tell_tenths(done: int, total: int) -> None:
    if done * _STEPS // total > (done - 1) * _STEPS // total:
        warn(f"{done:,} of {total:,} answered")


COMMANDS: dict[str, Callable[..., Any]] = {"eval": _eval}
"""The commands of this file by name."""
