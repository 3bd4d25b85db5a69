"""recall, show, history: what is read of memories.

Level: integrations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import typer

from germane import Filter, InvalidInput, Level
from germane.integrations.cli import options
from germane.integrations.cli.holding import Into, enter, tell_entered
from germane.integrations.cli.opening import (
    DEFAULT_AGENT,
    DEFAULT_DATABASE,
    fields_of,
    id_of,
    moment_of,
    open_to_change,
    open_to_read,
)
from germane.integrations.cli.output import print_json, print_table, print_text, warn, warn_empty
from germane.integrations.shapes import Shape, memory_shape, recalled_shape, renditions_shape
from germane.model.columns import cut, line_of
from germane.model.diffs import diff
from germane.model.explanation import short_id, why_of

if TYPE_CHECKING:
    from germane import Memory, Ranked, Recalled

__all__ = ["COMMANDS", "RankerName", "print_recalled"]

_LABEL = 100

RankerName = Annotated[
    str,
    typer.Option(
        "--ranker",
        metavar="NAME",
        help="relevance, or hybrid: half meaning, and tags asked for, recency and accesses.",
    ),
]


def _recall(
    query: options.QueryText,
    *,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="The most memories to show.")] = 10,
    kind: options.KindFilter = None,
    tag: options.TagFilter = None,
    scope: options.Scopes = None,
    since: options.Since = None,
    until: options.Until = None,
    min_importance: options.MinImportance = None,
    subject: Annotated[
        str | None, typer.Option("--subject", metavar="TEXT", help="Only memories with this very subject.")
    ] = None,
    source: options.SourceFilter = None,
    meta: options.MetaFilter = None,
    with_space: options.WithSpaces = None,
    superseded: Annotated[
        bool, typer.Option("--include-superseded", help="Old versions of memories too.")
    ] = False,
    ranker: RankerName = "relevance",
    into: Into = None,
    now: options.Now = None,
    database: options.Database = DEFAULT_DATABASE,
    agent: options.Agent = DEFAULT_AGENT,
    as_json: options.Json = False,
) -> None:
    """The memories that have most to do with a question, best first."""
    _check_owner(into, with_space)
    opened = open_to_read if into is None else open_to_change
    with opened(database, agent, now=moment_of(now, name="--now")) as engine:
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
    print_recalled(recalled, entered, agent=agent, as_json=as_json)


def _show(
    memory_id: options.Target,
    database: options.Database = DEFAULT_DATABASE,
    agent: options.Agent = DEFAULT_AGENT,
    as_json: options.Json = False,
) -> None:
    """One memory: its fields, its texts and its versions."""
    with open_to_read(database, agent) as engine:
        memory = engine.get(id_of(engine, memory_id))
        versions = engine.history(memory.id)
    if as_json:
        print_json(
            {
                "memory": memory_shape(memory),
                "renditions": renditions_shape(memory),
                "versions": [_version_shape(version) for version in versions],
            }
        )
    else:
        _print_memory(memory, versions)


def _history(
    memory_id: options.Target,
    database: options.Database = DEFAULT_DATABASE,
    agent: options.Agent = DEFAULT_AGENT,
    as_json: options.Json = False,
) -> None:
    """Every version of a memory, the first version first, and what changed from each to the next."""
    with open_to_read(database, agent) as engine:
        versions = engine.history(id_of(engine, memory_id))
    diffs = [diff(before, after) for before, after in pairwise(versions)]
    if as_json:
        print_json({"versions": [memory_shape(version) for version in versions], "diffs": diffs})
        return
    _print_versions(versions)
    for each in diffs:
        print_text(f"\n{each}".removesuffix("\n"))


def print_recalled(
    recalled: Recalled, entered: Shape | None = None, *, agent: str = "", as_json: bool
) -> None:
    """What a recall found and how, or why nothing; and what became of it in a working set."""
    if as_json:
        print_json({**recalled_shape(recalled), "entered": entered})
        return
    _print_ranked(recalled, agent)
    if entered is not None:
        tell_entered(entered)


def _check_owner(into: str | None, with_space: Sequence[str] | None) -> None:
    if into is not None and with_space:
        raise InvalidInput(
            f"--into {into} takes in the agent's own memories, and --with-space brings others'. Use one of "
            "them."
        )


def _print_ranked(recalled: Recalled, agent: str) -> None:
    for note in recalled.notes:
        warn(f"Note: {note.text}")
    if recalled.emptiness is not None:
        warn_empty(recalled.emptiness, agent)
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
                _label(ranked.memory),
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
    fields = memory_shape(memory)
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
                _label(memory),
            )
            for memory in versions
        ],
        right=(0,),
    )


def _version_shape(memory: Memory) -> dict[str, Any]:
    shape = memory_shape(memory)
    named = {name: shape[name] for name in ("version", "status", "created_at")}
    return {"id": memory.version_id, **named}


def _label(memory: Memory) -> str:
    return cut(line_of(memory.renditions.micro.text), _LABEL)


COMMANDS: dict[str, Callable[..., Any]] = {"recall": _recall, "show": _show, "history": _history}
"""The commands of this file by name."""
