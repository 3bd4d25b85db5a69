"""remember, revise, forget, restore, purge: what changes a memory.

Level: integrations.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from germane import InvalidInput
from germane.integrations.cli import options
from germane.integrations.cli.opening import (
    DEFAULT_AGENT,
    DEFAULT_DATABASE,
    fields_of,
    id_of,
    moment_of,
    open_to_change,
    open_to_write,
)
from germane.integrations.cli.output import print_json, print_text
from germane.integrations.shapes import memory_shape
from germane.model.columns import cut, line_of
from germane.model.explanation import short_id

if TYPE_CHECKING:
    from germane import Engine, Memory, Remembered

__all__ = ["COMMANDS", "print_remembered", "text_of", "told"]

_LABEL = 70
_NEW_TEXT = Annotated[
    str | None, typer.Argument(metavar="[TEXT]", help="The new text; - reads it from the standard input.")
]


def _remember(
    text: options.MemoryText,
    *,
    kind: options.KindName = "note",
    subject: options.Subject = None,
    tag: options.Tags = None,
    scope: options.ScopeName = "global",
    importance: options.Importance = None,
    confidence: options.Confidence = None,
    outcome: options.OutcomeName = None,
    trust: options.TrustName = None,
    source: options.SourceText = None,
    pinned: options.Pinned = False,
    created_at: options.CreatedAt = None,
    meta: options.Meta = None,
    reconcile: options.Reconciling = False,
    force: options.Force = False,
    database: options.Database = DEFAULT_DATABASE,
    agent: options.Agent = DEFAULT_AGENT,
    as_json: options.Json = False,
) -> None:
    """Store a memory. The same one said again is counted, not doubled, and gets what is new.

    What is hardly worth keeping (empty talk, a passing state, an answer that answers nothing, an episode told
    twice within two days) is refused unless --force is given.
    """
    from germane import Draft  # noqa: PLC0415 - The other commands of this file make none.

    draft = Draft(
        content=text_of(text),
        kind=kind,
        subject=subject,
        tags=tuple(tag or ()),
        scope=scope,
        importance=importance,
        confidence=confidence,
        outcome=outcome,
        trust=trust,
        source=source,
        pinned=pinned,
        created_at=moment_of(created_at, name="--created-at"),
        metadata=fields_of(meta or ()),
    )
    with open_to_write(database, agent) as engine:
        done = engine.remember_many([draft], reconcile=reconcile, quality="refuse", force=force)[0]
    print_remembered(done, as_json=as_json)


def print_remembered(done: Remembered, *, as_json: bool) -> None:
    """Print what became of a text that was remembered."""
    if as_json:
        print_json({"created": done.created, "what": done.what, "memory": memory_shape(done.memory)})
        return
    news = f", {done.what}" if done.updated else ""
    known = f"Known already, seen {done.memory.seen_count} times{news}"
    print_text(told("Remembered" if done.created else known, done.memory))


def _revise(
    memory_id: options.Target,
    text: _NEW_TEXT = None,
    *,
    subject: options.Subject = None,
    tag: options.Tags = None,
    importance: options.Importance = None,
    confidence: options.Confidence = None,
    outcome: options.OutcomeName = None,
    pinned: Annotated[
        bool | None, typer.Option("--pinned/--unpinned", help="Keep it in view, or no longer.")
    ] = None,
    meta: options.Meta = None,
    database: options.Database = DEFAULT_DATABASE,
    agent: options.Agent = DEFAULT_AGENT,
    as_json: options.Json = False,
) -> None:
    """Store the next version of a memory.

    Only what is named changes; the version before is kept as history.
    """
    with open_to_change(database, agent) as engine:
        memory = engine.revise(
            id_of(engine, memory_id),
            None if text is None else text_of(text),
            subject=subject,
            tags=tag or None,
            importance=importance,
            confidence=confidence,
            outcome=outcome,
            pinned=pinned,
            metadata=fields_of(meta) if meta else None,
        )
    if as_json:
        print_json({"memory": memory_shape(memory)})
    else:
        print_text(told(f"Revised, now version {memory.version}", memory))


def _changing(verb: str, change: Callable[[Engine, str], Memory], *, says: str) -> Callable[..., None]:
    """A command that does one thing to one memory and shows it as it is then."""

    def command(
        memory_id: options.Target,
        database: options.Database = DEFAULT_DATABASE,
        agent: options.Agent = DEFAULT_AGENT,
        as_json: options.Json = False,
    ) -> None:
        with open_to_change(database, agent) as engine:
            memory = change(engine, id_of(engine, memory_id))
        if as_json:
            print_json({"memory": memory_shape(memory)})
        else:
            print_text(told(verb, memory))

    command.__doc__ = says
    return command


def _purge(
    memory_id: options.Target,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Confirm that it can't be undone.")] = False,
    database: options.Database = DEFAULT_DATABASE,
    agent: options.Agent = DEFAULT_AGENT,
    as_json: options.Json = False,
) -> None:
    """Remove a memory for good.

    All its versions go with it, and every trace of their text in the file.
    """
    with open_to_change(database, agent) as engine:
        whole_id = id_of(engine, memory_id)
        purged = engine.purge(whole_id, confirm=yes)
    if as_json:
        print_json({"id": whole_id, "purged": purged})
    else:
        print_text(f"Purged {short_id(whole_id)}: {purged} version{'' if purged == 1 else 's'} gone.")


def text_of(text: str) -> str:
    """The text, or all of the standard input for a dash, without the line feed that ends it."""
    if text != "-":
        return text
    stream = getattr(sys.stdin, "buffer", None)
    try:
        read = sys.stdin.read() if stream is None else stream.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"The standard input is not UTF-8 (byte {error.start}). Convert it, with iconv for instance."
        ) from error
    return read.removesuffix("\n").removesuffix("\r")


def told(verb: str, memory: Memory) -> str:
    """What became of a memory, in a line."""
    label = cut(line_of(memory.renditions.micro.text), _LABEL)
    return f"{verb}: {short_id(memory.id)}  {memory.kind}  {label}"


COMMANDS: dict[str, Callable[..., Any]] = {
    "remember": _remember,
    "revise": _revise,
    "forget": _changing(
        "Forgotten",
        lambda engine, memory_id: engine.forget(memory_id),
        says="Keep a memory out of every result until it is restored.",
    ),
    "restore": _changing(
        "Restored", lambda engine, memory_id: engine.restore(memory_id), says="Undo a forget."
    ),
    "purge": _purge,
}
"""The commands of this file by name."""
