"""assemble and explain: the context for a query, and the account of it.

Level: integrations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from germane import Context
from germane.integrations.cli.opening import (
    DEFAULT_AGENT,
    DEFAULT_DATABASE,
    id_of,
    moment_of,
    open_to_read,
)
from germane.integrations.cli.options import (
    Agent,
    Budget,
    Counter,
    Database,
    FrameName,
    Json,
    KindFilter,
    MinImportance,
    Now,
    Pins,
    PlanName,
    Scopes,
    Since,
    TagFilter,
    Until,
)
from germane.integrations.cli.output import print_json, print_text, warn
from germane.integrations.shapes import context_shape, trace_shape
from germane.model.explanation import sentence_of

__all__ = ["COMMANDS"]

_DEFAULT_BUDGET = 8000
_Query = Annotated[
    str, typer.Argument(metavar="[QUERY]", help="What it is about; without one the newest come first.")
]


def _assemble(
    query: _Query = "",
    *,
    budget: Budget = _DEFAULT_BUDGET,
    plan: PlanName = "layered",
    frame: FrameName = "task",
    counter: Counter = "o200k",
    pin: Pins = None,
    kind: KindFilter = None,
    tag: TagFilter = None,
    scope: Scopes = None,
    since: Since = None,
    until: Until = None,
    min_importance: MinImportance = None,
    now: Now = None,
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """The best context for a query, within a budget of tokens.

    The text alone goes to the standard output, ready to be piped. What is worth knowing about it
    goes to the error stream; `germane explain` says all of it.
    """
    context = _context(
        database,
        agent,
        query,
        now=now,
        pins=pin or (),
        budget=budget,
        plan=plan,
        frame=frame,
        counter=counter,
        kinds=kind or (),
        tags=tag or (),
        scopes=scope or (),
        since=since,
        until=until,
        min_importance=min_importance,
    )
    if as_json:
        print_json(context_shape(context))
        return
    if context.text:
        print_text(context.text.removesuffix("\n"))
    _print_notes(context)


def _explain(
    query: _Query = "",
    *,
    budget: Budget = _DEFAULT_BUDGET,
    plan: PlanName = "layered",
    frame: FrameName = "task",
    counter: Counter = "o200k",
    pin: Pins = None,
    kind: KindFilter = None,
    tag: TagFilter = None,
    scope: Scopes = None,
    since: Since = None,
    until: Until = None,
    min_importance: MinImportance = None,
    now: Now = None,
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """What `assemble` puts in and what it leaves out, and why.

    Each candidate is accounted for: its level, its tokens and the parts of its score, or the reason
    it was left out and by how many tokens it missed.
    """
    context = _context(
        database,
        agent,
        query,
        now=now,
        pins=pin or (),
        budget=budget,
        plan=plan,
        frame=frame,
        counter=counter,
        kinds=kind or (),
        tags=tag or (),
        scopes=scope or (),
        since=since,
        until=until,
        min_importance=min_importance,
    )
    if as_json:
        print_json({"tokens": context.tokens, "trace": trace_shape(context.trace)})
    else:
        print_text(context.explain().removesuffix("\n"))


def _context(
    database: Path,
    agent: str,
    query: str,
    *,
    now: str | None,
    pins: Sequence[str],
    since: str | None,
    until: str | None,
    **options: Any,
) -> Context:
    with open_to_read(database, agent, now=moment_of(now, name="--now")) as engine:
        return engine.assemble(
            query,
            pins=[id_of(engine, pin) for pin in pins],
            since=moment_of(since, name="--since"),
            until=moment_of(until, name="--until"),
            **options,
        )


def _print_notes(context: Context) -> None:
    trace = context.trace
    for note in trace.notes:
        warn(f"Note: {note.text}")
    if trace.emptiness is not None:
        warn(sentence_of(trace.emptiness))
    warn(
        f"{context.tokens:,} of {trace.budget:,} tokens ({trace.counter}); "
        f"memories: {len(trace.included)} in, {len(trace.excluded)} left out."
    )


COMMANDS: dict[str, Callable[..., Any]] = {"assemble": _assemble, "explain": _explain}
"""The commands of this file by name."""
