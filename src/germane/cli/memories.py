"""remember, recall, show, memories and whatever else reads or changes one memory."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

from germane import Filter, InvalidInput, Level, Memory, TimeRange
from germane.cli import options
from germane.cli.options import Call, Into, arg, command, enter, fields_of, id_of, moment_of, opt
from germane.cli.output import label_of, print_table, print_text, to_json, warn, why_empty
from germane.ledger import TraceNote
from germane.model.context import short_id, why_of
from germane.model.memory import diff

if TYPE_CHECKING:
    from germane import Ranked, RecallResult, RememberResult

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


def print_remembered(call: Call, done: RememberResult) -> None:
    """Print what became of a text that was remembered."""
    news = f", {done.what}" if done.updated else ""
    known = f"Known already, seen {done.memory.seen_count} times{news}"
    call.answer(done, memory_line("Remembered" if done.created else known, done.memory))


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
    call.answer({"memory": memory}, memory_line(f"Revised, now version {memory.version}", memory))


def _changing(does: str, verb: str) -> None:
    """Make the command that calls one method of the engine with one memory, and shows it as it is then."""

    @command(does)
    def act(call: Call, memory_id: options.Target) -> None:
        with call.open(writes=True) as engine:
            memory = getattr(engine, does)(id_of(engine, memory_id))
        call.answer({"memory": memory}, memory_line(verb, memory))


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


def memory_line(verb: str, memory: Memory) -> str:
    """What became of a memory, in a line."""
    return f"{verb}: {short_id(memory.id)}  {memory.kind}  {label_of(memory, _LABEL)}"


# recall, show, history: what is read of memories.

_VERSION_LABEL = 100

RankerName = Annotated[
    str, opt("--ranker NAME", "relevance, or hybrid: half meaning, and tags asked for, recency and accesses.")
]


@command("recall")
def _recall(
    call: Call,
    query: options.QueryText,
    *,
    limit: options.Most = 10,
    kind: options.KindFilter = None,
    tag: options.TagFilter = None,
    scope: options.Scopes = None,
    since: options.Since = None,
    until: options.Until = None,
    min_importance: options.MinImportance = None,
    subject: options.SubjectFilter = None,
    source: options.SourceFilter = None,
    meta: options.MetaFilter = None,
    with_space: options.WithSpaces = None,
    superseded: Annotated[bool, opt("--include-superseded", "Old versions of memories too.")] = False,
    ranker: RankerName = "relevance",
    into: Into = None,
    now: options.Now = None,
) -> None:
    _check_owner(into, with_space)
    with call.open(writes=into is not None, now=now) as engine:
        recalled = engine.recall(
            query,
            limit=limit,
            kinds=kind or (),
            tags=tag or (),
            scopes=scope or (),
            subject=subject,
            since=since,
            until=until,
            min_importance=min_importance,
            include_superseded=superseded,
            where=Filter(source=source, metadata=fields_of(meta or ())),
            ranker=ranker,
            spaces=with_space or (),
        )
        entered = None if into is None else enter(engine.working_set(into), recalled)
    print_recalled(call, recalled, entered, agent=call.agent)


@command("show")
def _show(call: Call, memory_id: options.Target) -> None:
    with call.open() as engine:
        memory = engine.get(id_of(engine, memory_id))
        versions = engine.history(memory.id)
    briefly = [
        {"id": each.version_id, "version": each.version, "status": each.status, "created_at": each.created_at}
        for each in versions
    ]
    if not call.prints({"memory": memory, "renditions": memory.renditions, "versions": briefly}):
        _print_memory(memory, versions)


@command("history")
def _history(call: Call, memory_id: options.Target) -> None:
    with call.open() as engine:
        versions = engine.history(id_of(engine, memory_id))
    diffs = [diff(before, after) for before, after in pairwise(versions)]
    if call.prints({"versions": versions, "diffs": diffs}):
        return
    _print_versions(versions)
    for each in diffs:
        print_text(f"\n{each}".removesuffix("\n"))


def print_recalled(
    call: Call, recalled: RecallResult, entered: tuple[dict[str, Any], str] | None = None, *, agent: str = ""
) -> None:
    """What a recall found and how, or why nothing; and what became of it in a working set."""
    if call.as_json:
        call.prints({**to_json(recalled), "entered": entered and entered[0]})
        return
    _print_ranked(recalled, agent)
    if entered is not None:
        print_text(entered[1])


def _check_owner(into: str | None, with_space: Sequence[str] | None) -> None:
    if into is not None and with_space:
        raise InvalidInput(
            f"--into {into} takes in the agent's own memories, and --with-space brings others'. Use one of "
            "them."
        )


def _print_ranked(recalled: RecallResult, agent: str) -> None:
    for line in (
        *(f"Note: {note.text}" for note in recalled.notes),
        *why_empty(recalled.empty_reason, agent),
    ):
        warn(line)
    if not recalled:
        return
    print_table(
        ("score", "why", "id", "kind", "made", "memory"),
        [
            (
                f"{ranked.score:.2f}",
                _why(ranked),
                short_id(ranked.memory.ref),
                ranked.memory.kind,
                f"{ranked.memory.created_at:%Y-%m-%d}",
                label_of(ranked.memory, _VERSION_LABEL),
            )
            for ranked in recalled
        ],
        right=(0,),
    )


def _why(ranked: Ranked) -> str:
    """The parts of a score, and the lists that several rankings were fused of."""
    why, fused = why_of(ranked.parts), ranked.fused
    return why if fused is None else f"{why}; fused {fused.score:.4f} of {', '.join(fused.sources) or 'none'}"


def _print_memory(memory: Memory, versions: tuple[Memory, ...]) -> None:
    fields = to_json(memory)
    content = fields.pop("content")
    width = max(map(len, fields))
    lines = [f"{name:<{width}}  {_value(value)}" for name, value in fields.items() if value not in _UNSAID]
    print_text("\n".join(lines))
    print_text(f"\n{content}")
    for level in (Level.MICRO, Level.SUMMARY, Level.FULL):
        rendition = memory.renditions.at(level)
        same = level is Level.FULL and rendition.text == content
        shown = "the text above" if same else rendition.text
        print_text(f"\n{level} ({rendition.tokens} tokens by {memory.renditions.counter}): {shown}")
    if len(versions) > 1:
        print_text("")
        _print_versions(versions)


_UNSAID: tuple[Any, ...] = (None, [], {})


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}={one}" for name, one in value.items())
    return str(value)


def _print_versions(versions: tuple[Memory, ...]) -> None:
    print_table(
        ("version", "id", "status", "made", "memory"),
        [
            (
                str(memory.version),
                short_id(memory.version_id),
                str(memory.status),
                f"{memory.created_at:%Y-%m-%d %H:%M}",
                label_of(memory, _VERSION_LABEL),
            )
            for memory in versions
        ],
        right=(0,),
    )


# memories: what is stored, by no question but by what it is.

_LIST_LABEL = 100
_PAGE = 20

_Statuses = Annotated[
    list[str] | None,
    opt(
        "--status STATUS",
        "Only memories of this status: active, unless said otherwise, superseded, archived or "
        "forgotten. Repeatable.",
    ),
]


@command("memories")
def _memories(
    call: Call,
    *,
    kind: options.KindFilter = None,
    tag: options.TagFilter = None,
    scope: options.Scopes = None,
    subject: options.SubjectFilter = None,
    source: options.SourceFilter = None,
    meta: options.MetaFilter = None,
    since: options.Since = None,
    until: options.Until = None,
    min_importance: options.MinImportance = None,
    pinned: Annotated[bool, opt("--pinned", "Only memories that are pinned.")] = False,
    status: _Statuses = None,
    order: Annotated[str, opt("--order ORDER", "newest, oldest or important: what comes first.")] = "newest",
    limit: options.Most = _PAGE,
    after: Annotated[str | None, opt("--after ID", "Go on after the memory that ended a page.")] = None,
) -> None:
    if limit < 1:
        raise InvalidInput(f"--limit={limit} shows nothing: take 1 or more.")
    # Words of the user's: the filter and the engine read them, and name those that there are.
    asked: dict[str, Any] = {"kinds": kind, "tags": tag, "scopes": scope, "statuses": status}
    where = Filter(
        subject=subject,
        source=source,
        metadata=fields_of(meta or ()),
        when=_time(since, until),
        min_importance=min_importance,
        pinned=True if pinned else None,
        **{name: words for name, words in asked.items() if words},
    )
    ordered: Any = order
    with call.open() as engine:
        start = None if after is None else id_of(engine, after)
        found = engine.memories(where, order=ordered, limit=limit + 1, after=start)
        total = engine.count(where)
        notes = engine.filter_warnings(where)
    _print_page(call, found[:limit], total, notes, more=len(found) > limit)


def _time(since: str | None, until: str | None) -> TimeRange | None:
    if since is None and until is None:
        return None
    return TimeRange(since=since, until=until)


def _print_page(
    call: Call, page: Sequence[Memory], total: int, notes: Sequence[TraceNote], *, more: bool
) -> None:
    after = page[-1].ref if more else None
    if call.prints({"memories": page, "total": total, "after": after, "notes": notes}):
        return
    for note in notes:
        warn(f"Note: {note.text}")
    if page:
        print_table(
            ("id", "kind", "scope", "made", "memory"),
            [
                (
                    short_id(each.ref),
                    each.kind,
                    str(each.scope),
                    f"{each.created_at:%Y-%m-%d}",
                    label_of(each, _LIST_LABEL),
                )
                for each in page
            ],
        )
    rest = f" Go on with --after {short_id(page[-1].ref)}." if more else ""
    warn(f"{len(page):,} of {total:,} memories.{rest}")
