"""assemble and explain: the context for a query, and the account of it.

Level: integrations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from germane import Filter
from germane.integrations.cli import options
from germane.integrations.cli.opening import (
    DEFAULT_AGENT,
    DEFAULT_DATABASE,
    fields_of,
    id_of,
    moment_of,
    open_to_change,
    open_to_read,
    text_of,
)
from germane.integrations.cli.output import print_json, print_text, warn, warn_empty
from germane.integrations.shapes import context_shape, trace_shape

if TYPE_CHECKING:
    from germane import Context

__all__ = ["COMMANDS"]

_Query = Annotated[
    str, typer.Argument(metavar="[QUERY]", help="What it is about; without one the newest come first.")
]


def _assembling(show: Callable[..., None]) -> Callable[..., None]:
    """A command that assembles with every option there is, and shows of the context what it is asked for."""

    def command(
        query: _Query = "",
        *,
        budget: options.Budget = None,
        plan: options.PlanName = "layered",
        frame: options.FrameName = "task",
        frames: options.FramesFile = None,
        talk: options.TalkFile = None,
        counter: options.Counter = "o200k",
        pin: options.Pins = None,
        kind: options.KindFilter = None,
        tag: options.TagFilter = None,
        scope: options.Scopes = None,
        source: options.SourceFilter = None,
        meta: options.MetaFilter = None,
        with_space: options.WithSpaces = None,
        since: options.Since = None,
        until: options.Until = None,
        min_importance: options.MinImportance = None,
        record: options.Record = False,
        now: options.Now = None,
        database: options.Database = DEFAULT_DATABASE,
        agent: options.Agent = DEFAULT_AGENT,
        as_json: options.Json = False,
    ) -> None:
        asked = {"budget": budget, "plan": plan, "frame": frame, "counter": counter}
        among = {"kinds": kind or (), "tags": tag or (), "scopes": scope or (), "spaces": with_space or ()}
        context = _context(
            database,
            agent,
            query,
            now=now,
            frames=frames,
            talk=talk,
            pins=pin or (),
            where=Filter(source=source, metadata=fields_of(meta or ())),
            since=since,
            until=until,
            min_importance=min_importance,
            record=record,
            **asked,
            **among,
        )
        show(context, agent, as_json=as_json)

    command.__doc__ = show.__doc__
    return command


def _show_text(context: Context, agent: str, *, as_json: bool) -> None:
    """The best context for a query, within a budget of tokens.

    The text alone goes to the standard output, ready to be piped. What is worth knowing about it
    goes to the error stream; `germane explain` says all of it.
    """
    if as_json:
        print_json(context_shape(context))
        return
    if context.text:
        print_text(context.text.removesuffix("\n"))
    _print_notes(context, agent)


def _show_account(context: Context, _agent: str, *, as_json: bool) -> None:
    """What `assemble` puts in and what it leaves out, and why.

    Each candidate is accounted for: its level, its tokens and the parts of its score, or the reason
    it was left out and by how many tokens it missed.
    """
    if as_json:
        print_json({"tokens": context.tokens, "trace": trace_shape(context.trace)})
    else:
        print_text(context.explain().removesuffix("\n"))


def _context(
    database: str,
    agent: str,
    query: str,
    *,
    now: str | None,
    frames: Path | None,
    talk: Path | None,
    pins: Sequence[str],
    since: str | None,
    until: str | None,
    record: bool,
    **options: Any,
) -> Context:
    moment = moment_of(now, name="--now")
    said = None if talk is None else text_of(talk)
    opened = open_to_change if record else open_to_read
    with opened(database, agent, now=moment, frames=frames or ()) as engine:
        return engine.assemble(
            query,
            record=record,
            pins=[id_of(engine, pin) for pin in pins],
            since=since,
            until=until,
            conversation=said,
            **options,
        )


def _print_notes(context: Context, agent: str) -> None:
    trace = context.trace
    for note in trace.notes:
        warn(f"Note: {note.text}")
    if trace.emptiness is not None:
        warn_empty(trace.emptiness, agent)
    warn(
        f"{context.tokens:,} of {trace.budget:,} tokens ({trace.counter}); "
        f"memories: {len(trace.included)} in, {len(trace.excluded)} left out."
    )


COMMANDS: dict[str, Callable[..., Any]] = {
    "assemble": _assembling(_show_text),
    "explain": _assembling(_show_account),
}
"""The commands of this file by name."""
