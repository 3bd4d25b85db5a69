"""recall, show, history: what is read of memories.

Level: integrations.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

from germane import Filter, InvalidInput, Level
from germane.integrations.cli import options
from germane.integrations.cli.command import Call, command
from germane.integrations.cli.holding import Into, enter
from germane.integrations.cli.opening import fields_of, id_of
from germane.integrations.cli.options import opt
from germane.integrations.cli.output import label_of, print_table, print_text, warn, why_empty
from germane.integrations.shapes import to_json
from germane.model.diffs import diff
from germane.model.explanation import short_id, why_of

if TYPE_CHECKING:
    from germane import Memory, Ranked, Recalled

_LABEL = 100

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
    call: Call, recalled: Recalled, entered: tuple[dict[str, Any], str] | None = None, *, agent: str = ""
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


def _print_ranked(recalled: Recalled, agent: str) -> None:
    for line in (*(f"Note: {note.text}" for note in recalled.notes), *why_empty(recalled.emptiness, agent)):
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
                label_of(ranked.memory, _LABEL),
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
                label_of(memory, _LABEL),
            )
            for memory in versions
        ],
        right=(0,),
    )
