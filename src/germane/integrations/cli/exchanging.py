"""import and export: from what people have, and out again without loss.

Level: integrations.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from germane import UnreadableSource
from germane.integrations.cli.opening import (
    DEFAULT_AGENT,
    DEFAULT_DATABASE,
    all_memories,
    open_to_read,
    open_to_write,
)
from germane.integrations.cli.options import Agent, Database, Json
from germane.integrations.cli.output import print_json, warn
from germane.integrations.cli.reporting import (
    AllowSecrets,
    ProjectName,
    ProjectRoot,
    print_result,
    progress_shown,
    result_of,
    totals,
    unread,
)

if TYPE_CHECKING:
    from germane import Engine, Memory

__all__ = ["COMMANDS"]

_SOMETHING_UNREAD = 1


def _import(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="A project's folder, a file of Markdown, JSON lines, an export, a chat transcript, "
            "a file in LoCoMo's layout, or git:PATH for the history of a repository.",
        ),
    ],
    *,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune", help="Forget what stands no longer in the files; it is restored if it comes back."
        ),
    ] = False,
    project: ProjectName = None,
    root: ProjectRoot = None,
    allow_secrets: AllowSecrets = False,
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """Remember what stands in files, chats or a repository.

    Importing again changes nothing twice; what was edited becomes the next version of its memory. It may
    be interrupted: what was stored stays, and the next import goes on.
    What looks like a secret isn't stored. Ends with 1 if anything was left out, and says what and why.
    """
    options = {"prune": prune, "project": project, "root": root, "allow_secrets": allow_secrets}
    results: list[dict[str, Any]] = []
    with open_to_write(database, agent) as engine:
        for source in sources:
            results.append(_import_one(engine, source, options, quiet=as_json))
            if not as_json:
                print_result(results[-1])
    if as_json:
        print_json({"sources": results, **totals(results)})
    if any(result["error"] or result["skipped"] for result in results):
        raise typer.Exit(_SOMETHING_UNREAD)


def _export(
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write to this file instead of the standard output."),
    ] = None,
    *,
    memories_only: Annotated[
        bool,
        typer.Option(
            "--memories-only", help="Leave out what was used, how work turned out, and the events of lives."
        ),
    ] = False,
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """Write every memory as a line of JSON, oldest first, then what was learned from its use.

    `germane import` restores them as they were. With --out and --json, one object says how many were
    written. Without --out the lines are the output.
    """
    from germane.exchange.exporting import export_jsonl  # noqa: PLC0415 - Only this command needs it.
    from germane.exchange.outputs import written_through  # noqa: PLC0415 - As above.

    with open_to_read(database, agent) as engine:
        memories = _in_order(engine)
        ids = [memory.ref for memory in memories]
        kept: dict[str, Any] = {
            "standings": dict(zip(ids, engine.standings(ids), strict=True)),
            "experience": None if memories_only else engine.experience(),
            "agent": agent,
        }
        if out is None:
            export_jsonl(memories, sys.stdout, **kept)
            return
        with written_through(out) as file:
            written = export_jsonl(memories, file, **kept)
    if as_json:
        print_json({"out": str(out), "written": written})
    else:
        warn(f"{written:,} memories written to {out}.")


def _import_one(engine: Engine, source: str, options: dict[str, Any], *, quiet: bool) -> dict[str, Any]:
    """What became of one source. One that can't be read doesn't keep the others from being imported."""
    from germane.exchange.importing import import_source  # noqa: PLC0415 - Only this command needs it.

    with progress_shown(source, quiet=quiet) as told:
        try:
            report = import_source(engine, source, progress=told, **options)
        except UnreadableSource as error:
            return unread(source, told.last, str(error))
        except KeyboardInterrupt:
            stored = told.last.created + told.last.revised if told.last else 0
            warn(
                f"{source}: interrupted; {stored:,} new or changed were stored. "
                "Run it again to go on from there."
            )
            raise
    return result_of(source, report)


def _in_order(engine: Engine) -> list[Memory]:
    """Every memory in the order of making: a version's id is greater than that of the one before it."""
    return sorted(all_memories(engine), key=lambda memory: (memory.id, memory.version))


COMMANDS: dict[str, Callable[..., Any]] = {"import": _import, "export": _export}
"""The commands of this file by name."""
