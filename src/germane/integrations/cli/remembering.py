"""remember, revise, forget, restore, purge: what changes a memory.

Level: integrations.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from germane import InvalidInput
from germane.integrations.cli import options
from germane.integrations.cli.command import Call, command
from germane.integrations.cli.opening import fields_of, id_of, moment_of
from germane.integrations.cli.options import arg, opt
from germane.integrations.cli.output import label_of
from germane.model.explanation import short_id

if TYPE_CHECKING:
    from germane import Memory, Remembered

_LABEL = 70
_NEW_TEXT = Annotated[str | None, arg("[TEXT]", "The new text; - reads it from the standard input.")]


@command("remember")
def _remember(
    call: Call,
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
) -> None:
    """What is hardly worth keeping (empty talk, a passing state, an answer that answers nothing, an episode
    told twice within two days) is refused unless --force is given.
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
    with call.open(makes=True) as engine:
        done = engine.remember_many([draft], reconcile=reconcile, quality="refuse", force=force)[0]
    print_remembered(call, done)


def print_remembered(call: Call, done: Remembered) -> None:
    """Print what became of a text that was remembered."""
    news = f", {done.what}" if done.updated else ""
    known = f"Known already, seen {done.memory.seen_count} times{news}"
    call.answer(done, told("Remembered" if done.created else known, done.memory))


@command("revise")
def _revise(
    call: Call,
    memory_id: options.Target,
    text: _NEW_TEXT = None,
    *,
    subject: options.Subject = None,
    tag: options.Tags = None,
    importance: options.Importance = None,
    confidence: options.Confidence = None,
    outcome: options.OutcomeName = None,
    pinned: Annotated[bool | None, opt("--pinned/--unpinned", "Keep it in view, or no longer.")] = None,
    meta: options.Meta = None,
) -> None:
    """Only what is named changes; the version before is kept as history."""
    with call.open(writes=True) as engine:
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
    call.answer({"memory": memory}, told(f"Revised, now version {memory.version}", memory))


def _changing(does: str, verb: str) -> None:
    """Make the command that calls one method of the engine with one memory, and shows it as it is then."""

    @command(does)
    def act(call: Call, memory_id: options.Target) -> None:
        with call.open(writes=True) as engine:
            memory = getattr(engine, does)(id_of(engine, memory_id))
        call.answer({"memory": memory}, told(verb, memory))


_changing("forget", "Forgotten")
_changing("restore", "Restored")


@command("purge")
def _purge(call: Call, memory_id: options.Target, *, yes: options.Yes = False) -> None:
    """All its versions go with it, and every trace of their text in the file."""
    with call.open(writes=True) as engine:
        whole_id = id_of(engine, memory_id)
        purged = engine.purge(whole_id, confirm=yes)
    call.answer(
        {"id": whole_id, "purged": purged},
        f"Purged {short_id(whole_id)}: {purged} version{'' if purged == 1 else 's'} gone.",
    )


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
    return f"{verb}: {short_id(memory.id)}  {memory.kind}  {label_of(memory, _LABEL)}"
