"""space recall, space events: what is read in a space.

Level: integrations.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from germane.integrations.cli import options
from germane.integrations.cli.command import Call, command
from germane.integrations.cli.following import Follow, Since, follow_each
from germane.integrations.cli.holding import Into, enter
from germane.integrations.cli.opening import moment_of
from germane.integrations.cli.options import arg, opt
from germane.integrations.cli.output import print_table
from germane.integrations.cli.recalling import RankerName, print_recalled
from germane.model.explanation import short_id

if TYPE_CHECKING:
    from germane import SpaceEvent

_MOST_EVENTS = 50

Name = Annotated[str, arg("SPACE", "The name of the space.")]


@command("space recall")
def _recall(
    call: Call,
    name: Name,
    query: options.QueryText,
    *,
    limit: options.Most = 10,
    kind: options.KindFilter = None,
    tag: options.TagFilter = None,
    scope: options.Scopes = None,
    since: options.Since = None,
    until: options.Until = None,
    min_importance: options.MinImportance = None,
    ranker: RankerName = "relevance",
    into: Into = None,
    now: options.Now = None,
) -> None:
    with call.open(writes=into is not None, now=now) as engine:
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
    print_recalled(call, recalled, entered)


@command("space events")
def _events(
    call: Call,
    name: Name,
    *,
    since: Since = None,
    limit: Annotated[
        int | None, opt("--limit N", f"The most to show, oldest first; {_MOST_EVENTS} at once.")
    ] = None,
    follow: Follow = False,
) -> None:
    """With --follow, what happens from now on, or since the --since given; --limit then ends it."""
    with call.open() as engine:
        space = engine.space(name)
        if follow:
            follow_each(call, partial(space.follow, since=since), row=_row, limit=limit)
            return
        events = space.events(since=since or 0, limit=_MOST_EVENTS if limit is None else limit)
    if call.prints({"events": events}):
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
