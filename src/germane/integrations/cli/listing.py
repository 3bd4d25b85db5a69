"""memories: what is stored, by no question but by what it is.

Level: integrations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from germane import Filter, InvalidInput, Memory, Note, TimeRange
from germane.integrations.cli import options
from germane.integrations.cli.command import Call, command
from germane.integrations.cli.opening import fields_of, id_of
from germane.integrations.cli.options import opt
from germane.integrations.cli.output import label_of, print_table, warn
from germane.model.explanation import short_id

_LABEL = 100
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
        notes = engine.notes_on(where)
    _print_page(call, found[:limit], total, notes, more=len(found) > limit)


def _time(since: str | None, until: str | None) -> TimeRange | None:
    if since is None and until is None:
        return None
    return TimeRange(since=since, until=until)


def _print_page(call: Call, page: Sequence[Memory], total: int, notes: Sequence[Note], *, more: bool) -> None:
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
                    label_of(each, _LABEL),
                )
                for each in page
            ],
        )
    rest = f" Go on with --after {short_id(page[-1].ref)}." if more else ""
    warn(f"{len(page):,} of {total:,} memories.{rest}")
