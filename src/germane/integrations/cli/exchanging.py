"""import and export: from what people have, and out again without loss.

Level: integrations.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from germane import UnreadableSource
from germane.integrations.cli.command import Call, command
from germane.integrations.cli.opening import all_memories
from germane.integrations.cli.options import arg, opt
from germane.integrations.cli.output import warn
from germane.integrations.cli.reporting import (
    AllowSecrets,
    ProjectName,
    ProjectRoot,
    Result,
    print_result,
    progress_shown,
    totals,
    unread,
)

if TYPE_CHECKING:
    from germane import Engine, Memory

_SOMETHING_UNREAD = 1


@command("import")
def _import(
    call: Call,
    sources: Annotated[
        list[str],
        arg(
            "SOURCE...",
            "A project's folder, a file of Markdown, JSON lines, an export, a chat transcript, a file in "
            "LoCoMo's layout, or git:PATH for the history of a repository.",
        ),
    ],
    *,
    prune: Annotated[
        bool, opt("--prune", "Forget what stands no longer in the files; it is restored if it comes back.")
    ] = False,
    project: ProjectName = None,
    root: ProjectRoot = None,
    allow_secrets: AllowSecrets = False,
) -> None:
    """Importing again changes nothing twice; what was edited becomes the next version of its memory. It may
    be interrupted: what was stored stays, and the next import goes on.
    What looks like a secret isn't stored. Ends with 1 if anything was left out, and says what and why.
    """
    options = {"prune": prune, "project": project, "root": root, "allow_secrets": allow_secrets}
    results: list[Result] = []
    with call.open(makes=True) as engine:
        for source in sources:
            results.append(_import_one(call, engine, source, options))
            if not call.as_json:
                print_result(results[-1])
    call.prints({"sources": [result.as_json() for result in results], **totals(results)})
    if any(result.error or result.report.skipped for result in results):
        raise typer.Exit(_SOMETHING_UNREAD)


@command("export")
def _export(
    call: Call,
    out: Annotated[
        Path | None, opt("--out FILE", "Write to this file instead of the standard output.")
    ] = None,
    *,
    memories_only: Annotated[
        bool, opt("--memories-only", "Leave out what was used, how work turned out, and the events of lives.")
    ] = False,
) -> None:
    """`germane import` restores them as they were. With --out and --json, one object says how many were
    written. Without --out the lines are the output.
    """
    from germane.exchange.exporting import export_jsonl  # noqa: PLC0415 - Only this command needs it.
    from germane.exchange.outputs import written_through  # noqa: PLC0415 - As above.

    with call.open() as engine:
        memories = _in_order(engine)
        ids = [memory.ref for memory in memories]
        kept: dict[str, Any] = {
            "standings": dict(zip(ids, engine.standings(ids), strict=True)),
            "experience": None if memories_only else engine.experience(),
            "agent": call.agent,
        }
        if out is None:
            export_jsonl(memories, sys.stdout, **kept)
            return
        with written_through(out) as file:
            written = export_jsonl(memories, file, **kept)
    if not call.prints({"out": out, "written": written}):
        warn(f"{written:,} memories written to {out}.")


def _import_one(call: Call, engine: Engine, source: str, options: dict[str, Any]) -> Result:
    """What became of one source. One that can't be read doesn't keep the others from being imported."""
    from germane.exchange.importing import import_source  # noqa: PLC0415 - Only this command needs it.

    with progress_shown(source, quiet=call.as_json) as told:
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
    return Result(source, report)


def _in_order(engine: Engine) -> list[Memory]:
    """Every memory in the order of making: a version's id is greater than that of the one before it."""
    return sorted(all_memories(engine), key=lambda memory: (memory.id, memory.version))
