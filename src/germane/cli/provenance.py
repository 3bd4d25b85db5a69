"""The commands `memory trace-back`, `memory revoke` and `quarantine …`: origins, and what is suspicious."""

from __future__ import annotations

from typing import Annotated

from germane.cli import options
from germane.cli.call import Call, command, id_of
from germane.cli.options import arg, opt
from germane.cli.output import memory_line, print_columns, print_text
from germane.model.context import short_id
from germane.model.text import counted

_LABEL = 60


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


@command("quarantine list", space=True)
def _list(
    call: Call, *, limit: Annotated[int, opt("--limit N", "The maximum number of memories.", min=1)] = 50
) -> None:
    with call.open() as engine:
        found = engine.quarantine().list(limit=limit)
    if call.prints({"memories": found}):
        return
    if not found:
        print_text("Nothing is in quarantine.")
        return
    columns = {
        "id": lambda each: short_id(each.memory.id),
        "since": lambda each: f"{each.at:%Y-%m-%d}",
        "rules": lambda each: ", ".join(each.rules),
        "source": lambda each: each.memory.source or "",
    }
    print_columns(found, columns, memory=(lambda each: each.memory, _LABEL))


@command("quarantine release", space=True)
def _release(call: Call, memory_id: options.Target) -> None:
    """Read it first: `germane memory show` prints it. The release stands in the history of the memory."""
    with call.open(writes=True) as engine:
        memory = engine.quarantine().release(id_of(engine, memory_id))
    call.answer({"memory": memory}, memory_line("Released", memory))


@command("quarantine purge", space=True)
def _purge(
    call: Call,
    memory_id: Annotated[str | None, arg("[ID]", "Only this memory; default: all in quarantine.")] = None,
    *,
    yes: options.Yes = False,
) -> None:
    with call.open(writes=True) as engine:
        whole = None if memory_id is None else id_of(engine, memory_id)
        purged = engine.quarantine().purge(whole, confirm=yes)
    call.answer({"purged": purged}, f"Purged {counted(purged, 'memory')}.")
