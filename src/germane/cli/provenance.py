"""The commands `memory trace-back` and `memory revoke`: origins of memories, and removal by origin."""

from __future__ import annotations

from typing import Annotated

from germane.cli import options
from germane.cli.call import Call, command, id_of
from germane.cli.options import arg, opt
from germane.model.context import short_id
from germane.model.text import counted


@command("memory trace-back", space=True)
def _trace_back(call: Call, memory_id: options.Target) -> None:
    """The memory comes first; indented below it stand the memories that it was derived from."""
    with call.open() as engine:
        derivation = engine.trace_back(id_of(engine, memory_id))
    call.answer(derivation, str(derivation))


@command("memory revoke", space=True)
def _revoke(
    call: Call,
    source: Annotated[
        str, arg("SOURCE", "A file, URL, import, session or memory, as `trace-back` shows it.")
    ],
    *,
    dry_run: Annotated[bool, opt("--dry-run", "Show what would be removed; remove nothing.")] = False,
    yes: options.Yes = False,
) -> None:
    """Memories that were derived from it go as well, and so does the conversation of that name. Versions from
    elsewhere stay.
    """
    with call.open(writes=not dry_run) as engine:
        made = engine.revoke(source, confirm=yes, dry_run=dry_run)
    what = "Would remove" if dry_run else "Removed"
    lines = [
        f"{what} {counted(len(made.versions), 'version')} of {counted(len(made.memories), 'memory')}"
        + (f" and {counted(made.messages, 'message')}." if made.messages else ".")
    ]
    if made.restored:
        lines.append(f"Current again: {', '.join(map(short_id, made.restored))}.")
    if made.contexts:
        lines.append(f"Recorded contexts that showed any: {', '.join(map(short_id, made.contexts))}.")
    call.answer(made, "\n".join(lines))
