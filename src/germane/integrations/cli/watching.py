"""watch: keep what is stored of a folder current.

Level: integrations.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from germane.integrations.cli.following import stopped_by_signals
from germane.integrations.cli.opening import DEFAULT_AGENT, DEFAULT_DATABASE, open_to_write
from germane.integrations.cli.options import Agent, Database, Json
from germane.integrations.cli.output import print_text, warn
from germane.integrations.cli.reporting import (
    AllowSecrets,
    ProjectName,
    ProjectRoot,
    print_result,
    progress_shown,
    report_shape,
    result_of,
    warn_of,
)

if TYPE_CHECKING:
    from germane.exchange.report import ImportReport
    from germane.exchange.running import Told

__all__ = ["COMMANDS", "step_shape"]


def _watch(
    path: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of a project.")] = Path(),
    *,
    project: ProjectName = None,
    root: ProjectRoot = None,
    allow_secrets: AllowSecrets = False,
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """Import a folder, then whatever changes in it, until it is interrupted.

    What is edited becomes the next version of its memory, what is renamed keeps its history, what is
    deleted is forgotten until it comes back. With --json each step is one line with one object.
    """
    from germane.exchange.watching import watch  # noqa: PLC0415 - Only this command needs it.

    stop = threading.Event()
    with open_to_write(database, agent) as engine, stopped_by_signals(stop), ExitStack() as beginning:
        told: Told | None = beginning.enter_context(progress_shown(str(path), quiet=as_json))
        steps = watch(
            engine,
            path,
            stop=stop,
            project=project,
            root=root,
            allow_secrets=allow_secrets,
            progress=lambda progress: told(progress) if told is not None else None,
        )
        for report in steps:
            beginning.close()
            if as_json:
                typer.echo(json.dumps(step_shape(path, report), ensure_ascii=False))
            else:
                _print_step(path, report, first=told is not None)
            told = None
    if not as_json:
        warn(f"{path}: no longer watched.")


def step_shape(path: Path, report: ImportReport) -> dict[str, Any]:
    """What one step did, as `watch --json` prints it."""
    written = [{"id": each.id, "source": each.source, "revised": each.revised} for each in report.written]
    return {"folder": str(path), **report_shape(report), "written": written}


def _print_step(path: Path, report: ImportReport, *, first: bool) -> None:
    result = result_of(str(path), report)
    if first:
        print_result(result)
        warn(f"{path}: watched; Ctrl-C ends it.")
        return
    for each in report.written:
        print_text(f"{'changed' if each.revised else 'new'}: {each.source}")
    for gone in report.gone:
        print_text(f"gone: {gone.source}")
    warn_of({**result, "gone": [], "passed_over": [], "unchecked": None})


COMMANDS: dict[str, Callable[..., Any]] = {"watch": _watch}
"""The commands of this file by name."""
