"""watch: keep what is stored of a folder current.

Level: integrations.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from germane.integrations.cli.command import Call, command
from germane.integrations.cli.following import stopped_by_signals
from germane.integrations.cli.options import arg
from germane.integrations.cli.output import print_text, warn
from germane.integrations.cli.reporting import (
    AllowSecrets,
    ProjectName,
    ProjectRoot,
    Result,
    print_result,
    progress_shown,
    warn_of,
)
from germane.integrations.shapes import to_json

if TYPE_CHECKING:
    from germane.exchange.report import ImportReport
    from germane.exchange.running import Told


@command("watch")
def _watch(
    call: Call,
    path: Annotated[Path, arg("FOLDER", "The folder of a project.")] = Path(),
    *,
    project: ProjectName = None,
    root: ProjectRoot = None,
    allow_secrets: AllowSecrets = False,
) -> None:
    """What is edited becomes the next version of its memory, what is renamed keeps its history, what is
    deleted is forgotten until it comes back. With --json each step is one line with one object.
    """
    from germane.exchange.watching import watch  # noqa: PLC0415 - Only this command needs it.

    stop = threading.Event()
    with call.open(makes=True) as engine, stopped_by_signals(stop), ExitStack() as beginning:
        told: Told | None = beginning.enter_context(progress_shown(str(path), quiet=call.as_json))
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
            if not call.prints(step_of(path, report), on_a_line=True):
                _print_step(path, report, first=told is not None)
            told = None
    if not call.as_json:
        warn(f"{path}: no longer watched.")


def step_of(path: Path, report: ImportReport) -> dict[str, Any]:
    """What one step did, as `watch --json` prints it."""
    return {"folder": str(path), **to_json(report), "written": to_json(report.written)}


def _print_step(path: Path, report: ImportReport, *, first: bool) -> None:
    if first:
        print_result(Result(str(path), report))
        warn(f"{path}: watched; Ctrl-C ends it.")
        return
    for each in report.written:
        print_text(f"{'changed' if each.revised else 'new'}: {each.source}")
    for gone in report.gone:
        print_text(f"gone: {gone.source}")
    warn_of(replace(report, gone=(), passed_over=(), unchecked=None))
