"""confirm, contradict, review, triggered, retire, events, maintain: how memories live.

Level: integrations.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from germane.integrations.cli.command import Call, command
from germane.integrations.cli.opening import id_of
from germane.integrations.cli.options import Target, arg, opt
from germane.integrations.cli.output import label_of, print_table, print_text
from germane.model.explanation import short_id

if TYPE_CHECKING:
    from germane import Engine, LifeEvent, Memory, Upkeep, UpkeepStep

_LABEL = 60


@command("confirm")
def _confirm(
    call: Call,
    memory_id: Target,
    *,
    core: Annotated[bool, opt("--core", "Make it a core fact at once.")] = False,
) -> None:
    with call.open(writes=True) as engine:
        _tell(call, engine.confirm(id_of(engine, memory_id), core=core))


@command("contradict")
def _contradict(
    call: Call,
    memory_id: Target,
    *,
    by: Annotated[str | None, opt("--by ID", "The memory that speaks against it.")] = None,
) -> None:
    with call.open(writes=True) as engine:
        other = None if by is None else id_of(engine, by)
        _tell(call, engine.contradict(id_of(engine, memory_id), by=other))


@command("review")
def _review(
    call: Call,
    memory_id: Target,
    outcome: Annotated[str, arg("OUTCOME", "success, partial, pending, failure or abandoned.")],
    *,
    result: Annotated[str | None, opt("--result TEXT", "What came of a decision.")] = None,
) -> None:
    with call.open(writes=True) as engine:
        _tell(call, engine.review(id_of(engine, memory_id), outcome, result=result))


@command("triggered")
def _triggered(
    call: Call,
    memory_id: Target,
    *,
    false_positive: Annotated[bool, opt("--false-positive", "It was a false alarm.")] = False,
) -> None:
    with call.open(writes=True) as engine:
        after = engine.triggered(id_of(engine, memory_id), false_positive=false_positive)
        _tell(call, after)


@command("retire")
def _retire(call: Call, memory_id: Target) -> None:
    with call.open(writes=True) as engine:
        _tell(call, engine.retire(id_of(engine, memory_id)))


@command("events")
def _events(
    call: Call,
    memory_id: Annotated[str | None, arg("[ID]", "A memory; without it, all of the agent's.")] = None,
    *,
    since: Annotated[int, opt("--since NUMBER", "Only what came after this event.", min=0)] = 0,
    limit: Annotated[int | None, opt("--limit COUNT", "At most so many.", min=1)] = None,
) -> None:
    with call.open() as engine:
        one = None if memory_id is None else id_of(engine, memory_id)
        found = engine.events(one, since=since, limit=limit)
    if call.prints(found):
        return
    if not found:
        print_text("Nothing has happened to it yet." if one else "Nothing has happened yet.")
    else:
        print_table(
            ["number", "at", "memory", "what", "stage", "why", "by"],
            [_row(event) for event in found],
            right=[0],
        )


@command("maintain")
def _maintain(
    call: Call,
    *,
    dry_run: Annotated[bool, opt("--dry-run", "Change nothing, and say what would be done.")] = False,
) -> None:
    """It may be interrupted at any time, and goes on when it is called again."""
    # Looking changes nothing, so that a file that can only be read can be looked at.
    with call.open(writes=not dry_run) as engine:
        upkeep = engine.maintain(dry_run=dry_run, progress=_shown if sys.stderr.isatty() else None)
        rows = () if call.as_json else [_step_row(engine, step) for step in upkeep.steps]
    if call.prints(upkeep):
        return
    if rows:
        print_table(["task", "memory", "stage", "with", "text"], rows)
    print_text(_summary(upkeep))


def _tell(call: Call, memory: Memory) -> None:
    label = label_of(memory, _LABEL)
    said = f"{str(memory.stage).capitalize()}: {short_id(memory.id)}  {memory.kind}  {label}"
    call.answer({"memory": memory}, f"{said}  (confidence {memory.confidence:.2f})")


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
    text = label_of(engine.get(step.memory_id), _LABEL)
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
