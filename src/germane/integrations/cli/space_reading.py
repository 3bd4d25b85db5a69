"""space recall, space events: what is read in a space.

Level: integrations.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from germane.integrations.cli import options
from germane.integrations.cli.following import Follow, Since, follow_each
from germane.integrations.cli.holding import Into, enter
from germane.integrations.cli.opening import (
    DEFAULT_AGENT,
    DEFAULT_DATABASE,
    moment_of,
    open_to_change,
    open_to_read,
)
from germane.integrations.cli.output import print_json, print_table
from germane.integrations.cli.recalling import RankerName, print_recalled
from germane.integrations.space_shapes import event_shape
from germane.model.explanation import short_id

if TYPE_CHECKING:
    from germane import SpaceEvent

__all__ = ["COMMANDS"]

_MOST_EVENTS = 50

Name = Annotated[str, typer.Argument(metavar="SPACE", help="The name of the space.")]


def _recall(
    name: Name,
    query: options.QueryText,
    *,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="The most memories to show.")] = 10,
    kind: options.KindFilter = None,
    tag: options.TagFilter = None,
    scope: options.Scopes = None,
    since: options.Since = None,
    until: options.Until = None,
    min_importance: options.MinImportance = None,
    ranker: RankerName = "relevance",
    into: Into = None,
    now: options.Now = None,
    database: options.Database = DEFAULT_DATABASE,
    agent: options.Agent = DEFAULT_AGENT,
    as_json: options.Json = False,
) -> None:
    """The memories of a space that have most to do with a question, best first."""
    moment = moment_of(now, name="--now")
    opened = open_to_read if into is None else open_to_change
    with opened(database, agent, now=moment) as engine:
        space = engine.space(name)
        recalled = space.recall(
            query,
            limit=limit,
            kinds=kind or (),
            tags=tag or (),
            scopes=scope or (),
            since=moment_of(since, name="--since"),
            until=moment_of(until, name="--until"),
            min_importance=min_importance,
            ranker=ranker,
        )
        entered = None if into is None else enter(space.working_set(into), recalled)
    print_recalled(recalled, entered, as_json=as_json)


def _events(
    name: Name,
    *,
    since: Since = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="N", help=f"The most to show, oldest first; {_MOST_EVENTS} at once."),
    ] = None,
    follow: Follow = False,
    database: options.Database = DEFAULT_DATABASE,
    agent: options.Agent = DEFAULT_AGENT,
    as_json: options.Json = False,
) -> None:
    """What happened in a space, by whom, oldest first.

    With --follow, what happens from now on, or since the --since given; --limit then ends it.
    """
    with open_to_read(database, agent) as engine:
        space = engine.space(name)
        if follow:
            follow_each(
                partial(space.follow, since=since), shape=event_shape, row=_row, limit=limit, as_json=as_json
            )
            return
        events = space.events(since=since or 0, limit=_MOST_EVENTS if limit is None else limit)
    if as_json:
        print_json({"events": [event_shape(event) for event in events]})
        return
    print_table(("number", "what", "by", "of", "at"), [_row(event) for event in events], right=(0,))


def _row(event: SpaceEvent) -> tuple[str, ...]:
    return str(event.number), str(event.what), event.by, _object(event), _at(event)


def _object(event: SpaceEvent) -> str:
    """What it happened to: a member, a memory, or a working set."""
    if event.agent is not None:
        return event.agent
    memory = short_id(event.memory_id) if event.memory_id else ""
    return f"{memory} in {event.working_set}".strip() if event.working_set else memory


def _at(event: SpaceEvent) -> str:
    return "" if event.at is None else f"{event.at:%Y-%m-%d %H:%M:%S}"


COMMANDS: dict[str, Callable[..., Any]] = {"space recall": _recall, "space events": _events}
"""The commands of this file by name."""
