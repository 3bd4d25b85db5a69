"""confirm, contradict, review, triggered, retire, events, maintain: how memories live.

Level: integrations.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from germane.integrations.cli.opening import (
    DEFAULT_AGENT,
    DEFAULT_DATABASE,
    id_of,
    open_to_change,
    open_to_read,
)
from germane.integrations.cli.options import Agent, Database, Json, Target
from germane.integrations.cli.output import print_json, print_table, print_text
from germane.integrations.life_shapes import event_shape, upkeep_shape
from germane.integrations.shapes import memory_shape
from germane.model.columns import cut, line_of
from germane.model.explanation import short_id

if TYPE_CHECKING:
    from germane import Engine, LifeEvent, Memory, Upkeep, UpkeepStep

__all__ = ["COMMANDS"]

_LABEL = 60


def _confirm(
    memory_id: Target,
    *,
    core: Annotated[bool, typer.Option("--core", help="Make it a core fact at once.")] = False,
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """Say that a fact was met again."""
    with open_to_change(database, agent) as engine:
        _told(engine.confirm(id_of(engine, memory_id), core=core), as_json=as_json)


def _contradict(
    memory_id: Target,
    *,
    by: Annotated[
        str | None, typer.Option("--by", metavar="ID", help="The memory that speaks against it.")
    ] = None,
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """Say that something speaks against a fact: its confidence falls by 0.2."""
    with open_to_change(database, agent) as engine:
        other = None if by is None else id_of(engine, by)
        _told(engine.contradict(id_of(engine, memory_id), by=other), as_json=as_json)


def _review(
    memory_id: Target,
    outcome: Annotated[
        str, typer.Argument(metavar="OUTCOME", help="success, partial, pending, failure or abandoned.")
    ],
    *,
    result: Annotated[
        str | None, typer.Option("--result", metavar="TEXT", help="What came of a decision.")
    ] = None,
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """Say how a decision turned out, or whether a procedure worked."""
    with open_to_change(database, agent) as engine:
        _told(engine.review(id_of(engine, memory_id), outcome, result=result), as_json=as_json)


def _triggered(
    memory_id: Target,
    *,
    false_positive: Annotated[bool, typer.Option("--false-positive", help="It was a false alarm.")] = False,
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """Say that a censor was triggered."""
    with open_to_change(database, agent) as engine:
        after = engine.triggered(id_of(engine, memory_id), false_positive=false_positive)
        _told(after, as_json=as_json)


def _retire(
    memory_id: Target,
    *,
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """Take a fact, a procedure or a censor out of use, or archive an episode."""
    with open_to_change(database, agent) as engine:
        _told(engine.retire(id_of(engine, memory_id)), as_json=as_json)


def _events(
    memory_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A memory; without it, all of the agent's.")
    ] = None,
    *,
    since: Annotated[
        int, typer.Option("--since", metavar="NUMBER", min=0, help="Only what came after this event.")
    ] = 0,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="COUNT", min=1, help="At most so many.")
    ] = None,
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """What moved a memory from stage to stage, by whom and why."""
    with open_to_read(database, agent) as engine:
        one = None if memory_id is None else id_of(engine, memory_id)
        found = engine.events(one, since=since, limit=limit)
    if as_json:
        print_json([event_shape(event) for event in found])
    elif not found:
        print_text("Nothing has happened to it yet." if one else "Nothing has happened yet.")
    else:
        print_table(
            ["number", "at", "memory", "what", "stage", "why", "by"],
            [_row(event) for event in found],
            right=[0],
        )


def _maintain(
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing, and say what would be done.")
    ] = False,
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """Age episodes, settle what was counted, merge duplicates, mark outdated quotations.

    It may be interrupted at any time, and goes on when it is called again.
    """
    # Looking changes nothing, so that a file that can only be read can be looked at.
    with (open_to_read if dry_run else open_to_change)(database, agent) as engine:
        upkeep = engine.maintain(dry_run=dry_run, progress=_shown if sys.stderr.isatty() else None)
        rows = () if as_json else [_step_row(engine, step) for step in upkeep.steps]
    if as_json:
        print_json(upkeep_shape(upkeep))
        return
    if rows:
        print_table(["task", "memory", "stage", "with", "text"], rows)
    print_text(_summary(upkeep))


def _told(memory: Memory, *, as_json: bool) -> None:
    if as_json:
        print_json({"memory": memory_shape(memory)})
        return
    label = cut(line_of(memory.renditions.micro.text), _LABEL)
    print_text(
        f"{str(memory.stage).capitalize()}: {short_id(memory.id)}  {memory.kind}  {label}  "
        f"(confidence {memory.confidence:.2f})"
    )


def _row(event: LifeEvent) -> list[str]:
    moved = str(event.after) if event.before is event.after else f"{event.before} → {event.after}"
    other = f" ({short_id(event.other)})" if event.other else ""
    moment = f"{event.at:%Y-%m-%d %H:%M}"
    what = str(event.sign).replace("_", " ")
    return [
        str(event.number),
        moment,
        short_id(event.memory_id),
        what,
        moved,
        f"{event.cause}{other}",
        event.by,
    ]


def _step_row(engine: Engine, step: UpkeepStep) -> list[str]:
    moved = f"{step.before} → {step.after}" if step.after else ""
    text = cut(line_of(engine.get(step.memory_id).renditions.micro.text), _LABEL)
    other = short_id(step.other) if step.other else ""
    return [str(step.task), short_id(step.memory_id), moved, other, text]


def _summary(upkeep: Upkeep) -> str:
    count = len(upkeep.steps)
    steps = f"{count:,} step" if count == 1 else f"{count:,} steps"
    said = f"{steps} due; nothing was changed." if upkeep.dry_run else f"{upkeep.done:,} of {steps} done."
    if upkeep.flagged:
        said += f" Procedures that mostly fail: {', '.join(map(short_id, upkeep.flagged))}."
    return said


def _shown(done: int, of: int, step: UpkeepStep | None) -> None:
    """Progress on the error stream of a terminal, on one line that is written over."""
    end = "\n" if done == of else ""
    sys.stderr.write(f"\r{done:,} of {of:,}{f'  {step.task}' if step else ''}\x1b[K{end}")
    sys.stderr.flush()


COMMANDS: dict[str, Callable[..., Any]] = {
    "confirm": _confirm,
    "contradict": _contradict,
    "review": _review,
    "triggered": _triggered,
    "retire": _retire,
    "events": _events,
    "maintain": _maintain,
}
"""The commands of this file by name."""
