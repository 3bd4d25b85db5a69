"""import and export: from what people have, and out again without loss.

Level: integrations.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from germane import StoreUnavailable, UnreadableSource
from germane.integrations.cli.opening import (
    DEFAULT_AGENT,
    DEFAULT_DATABASE,
    all_memories,
    open_to_read,
    open_to_write,
)
from germane.integrations.cli.options import Agent, Database, Json
from germane.integrations.cli.output import print_json, print_text, warn

if TYPE_CHECKING:
    from germane import Engine, Memory
    from germane.exchange.importing import ImportReport, Progress

__all__ = ["COMMANDS"]

_SKIPPED_SHOWN = 20
_SOMETHING_UNREAD = 1


def _import(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="A folder or file of Markdown, JSON lines, an export, a chat transcript, "
            "a file in LoCoMo's layout, or git:PATH for the history of a repository.",
        ),
    ],
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """Remember what stands in files, chats or a repository.

    Importing again changes nothing twice. Ends with 1 if anything was left out, and says what and why.
    """
    results: list[dict[str, Any]] = []
    with open_to_write(database, agent) as engine:
        for source in sources:
            results.append(_import_one(engine, source, quiet=as_json))
            if not as_json:
                _print_result(results[-1])
    if as_json:
        print_json({"sources": results, **_totals(results)})
    if any(result["error"] or result["skipped"] for result in results):
        raise typer.Exit(_SOMETHING_UNREAD)


def _export(
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write to this file instead of the standard output."),
    ] = None,
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """Write every memory as a line of JSON, oldest first.

    `germane import` restores them as they were. With --out and --json, one object says how many were
    written. Without --out the lines are the output.
    """
    from germane.exchange.exporting import export_jsonl  # noqa: PLC0415 - Only this command needs it.

    with open_to_read(database, agent) as engine:
        memories = _in_order(engine)
        if out is None:
            export_jsonl(memories, sys.stdout)
            return
        with _replaced(out) as file:
            written = export_jsonl(memories, file)
    if as_json:
        print_json({"out": str(out), "written": written})
    else:
        warn(f"{written:,} memories written to {out}.")


def _import_one(engine: Engine, source: str, *, quiet: bool) -> dict[str, Any]:
    """What became of one source. One that can't be read doesn't keep the others from being imported."""
    from germane.exchange.importing import import_source  # noqa: PLC0415 - Only this command needs it.

    before = {"read": 0, "created": 0, "known": 0, "skipped": 0}
    with _progress(source, quiet=quiet) as told:

        def step(progress: Progress) -> None:
            before.update(
                read=progress.read, created=progress.created, known=progress.known, skipped=progress.skipped
            )
            told(progress)

        try:
            report = import_source(engine, source, progress=step)
        except UnreadableSource as error:
            return {"source": source, **before, "skipped": [], "error": str(error)}
    return _result(source, report)


def _result(source: str, report: ImportReport) -> dict[str, Any]:
    return {
        "source": source,
        "read": report.read,
        "created": report.created,
        "known": report.known,
        "skipped": [{"source": skipped.source, "reason": skipped.reason} for skipped in report.skipped],
        "error": None,
    }


def _totals(results: Sequence[dict[str, Any]]) -> dict[str, int]:
    totals = {name: sum(result[name] for result in results) for name in ("read", "created", "known")}
    return {
        **totals,
        "skipped": sum(len(result["skipped"]) for result in results),
        "errors": sum(result["error"] is not None for result in results),
    }


def _print_result(result: dict[str, Any]) -> None:
    print_text(
        f"{result['source']}: {result['read']:,} read, {result['created']:,} new, {result['known']:,} known, "
        f"{len(result['skipped']):,} left out."
    )
    for skipped in result["skipped"][:_SKIPPED_SHOWN]:
        warn(f"  left out: {skipped['source']}: {skipped['reason']}")
    more = len(result["skipped"]) - _SKIPPED_SHOWN
    if more > 0:
        warn(f"  … and {more:,} more; --json lists all of them")
    if result["error"]:
        warn(f"germane: {result['error']}", is_error=True)


@contextmanager
def _progress(source: str, *, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """How progress is told: a line that moves on a terminal, now and then a line elsewhere."""
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        from rich.console import Console  # noqa: PLC0415 - Only a terminal needs it.
        from rich.markup import escape  # noqa: PLC0415 - As above.

        with Console(stderr=True).status(f"{escape(source)} …") as status:
            yield lambda progress: status.update(f"{escape(source)}: {escape(_so_far(progress))}")
    else:
        yield lambda progress: warn(f"{source}: {_so_far(progress)}")


def _so_far(progress: Progress) -> str:
    left_out = f", {progress.skipped:,} left out" if progress.skipped else ""
    return f"{progress.read:,} read, {progress.created:,} new{left_out} …"


def _in_order(engine: Engine) -> list[Memory]:
    """Every memory in the order of making: a version's id is greater than that of the one before it."""
    return sorted(all_memories(engine), key=lambda memory: memory.id)


@contextmanager
def _replaced(path: Path) -> Iterator[TextIO]:
    """A new file that takes the path's place only when it is whole."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with unfinished.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        unfinished.replace(path)
    except OSError as error:
        raise StoreUnavailable(
            f"Can't write {path}: {error.strerror or error}. Name a file that can be written with --out."
        ) from error
    finally:
        with suppress(OSError):
            unfinished.unlink()


COMMANDS: dict[str, Callable[..., Any]] = {"import": _import, "export": _export}
"""The commands of this file by name."""
