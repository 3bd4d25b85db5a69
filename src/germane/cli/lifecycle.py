"""confirm, contradict, review, retire, events, maintain; feedback, observe and learn."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from germane import InvalidInput, Level
from germane.cli.options import Call, Target, arg, command, id_of, opt, recorded
from germane.cli.output import label_of, print_table, print_text, to_json
from germane.model.context import short_id
from germane.ranking import Impressions

if TYPE_CHECKING:
    from germane import Engine, Memory
    from germane.lifecycle import LifecycleEvent, Upkeep, UpkeepStep
    from germane.ranking import LearningReport, ObserveResult

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


@command("record-trigger")
def _record_trigger(
    call: Call,
    memory_id: Target,
    *,
    false_positive: Annotated[bool, opt("--false-positive", "It was a false alarm.")] = False,
) -> None:
    with call.open(writes=True) as engine:
        after = engine.record_trigger(id_of(engine, memory_id), false_positive=false_positive)
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
        found = engine.events(one, after=since, limit=limit)
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


def _row(event: LifecycleEvent) -> list[str]:
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


# feedback, observe and learn: what was used of what was shown, and what the ranking learns from it.

_SHORTEST = 4


class _Switch(StrEnum):
    """What `germane learning` can be told."""

    ON = "on"
    OFF = "off"
    RESET = "reset"


@command("feedback")
def _feedback(
    call: Call,
    *,
    context: Annotated[
        Path,
        opt(
            "--context FILE",
            "What `assemble --json` or `recall --json` printed; - reads it from the standard input.",
        ),
    ],
    used: Annotated[list[str] | None, opt("--used ID", "A memory in it that was used. Repeatable.")] = None,
    ignored: Annotated[
        list[str] | None,
        opt("--ignored ID", "One that was not; without any, all the others were not. Repeatable."),
    ] = None,
) -> None:
    """Their use is counted, once for each context, and the ranking learns from it where `germane learning on`
    was said.
    """
    shown = read_shown(context)
    with call.open(writes=True) as engine:
        given = engine.feedback(
            shown,
            used=whole_ids(used or (), shown),
            ignored=None if ignored is None else whole_ids(ignored, shown),
        )
    known = len(given.used) - given.counted
    call.answer(
        given,
        f"Uses counted: {given.counted} of {len(shown.parts)} memories shown"
        + (f"; known already: {known}" if known else "")
        + (f"; examples kept to learn from: {given.examples}." if given.examples else "."),
    )


@command("observe")
def _observe(
    call: Call,
    answer: Annotated[str, arg("ANSWER", "What was answered; - reads it from the standard input.")],
    *,
    assembly: Annotated[
        str | None, opt("--assembly ID", "The recorded assembly that was shown; the latest if not said.")
    ] = None,
    context: Annotated[
        Path | None, opt("--context FILE", "What `assemble --json` or `recall --json` printed instead.")
    ] = None,
    dry_run: Annotated[bool, opt("--dry-run", "Count nothing, and say what would be counted.")] = False,
) -> None:
    """It goes by the telling words of the answer, so it misses what is said in other words. What was shown is
    the latest assembly in the ledger (`germane assemble --record`), or what --context holds.
    """
    if assembly is not None and context is not None:
        raise InvalidInput("--assembly and --context both say what was shown. Give one of them.")
    if answer == "-" and str(context) == "-":
        raise InvalidInput("ANSWER and --context can't both be the standard input. Give one as a file.")
    said = sys.stdin.read() if answer == "-" else answer
    given = None if context is None else read_json(context)
    with call.open(writes=not dry_run) as engine:
        if given is None:
            found = engine.observe(recorded(engine, assembly), said, count=not dry_run)
        else:
            shown = shown_from(given)
            found = engine.observe(shown, said, count=not dry_run, question=question_from(given))
        rows = () if call.as_json else [_observed_row(engine, one, found) for one in _by_score(found)]
    if call.prints(found):
        return
    if rows:
        print_table(("USED", "SHARE", "MEMORY", "TEXT"), rows, right=(1,))
    print_text(_observation_line(found))


@command("learning")
def _set_learning(
    call: Call,
    switch: Annotated[
        _Switch | None, arg("[on|off|reset]", "What to do; without it the state is shown.")
    ] = None,
) -> None:
    """It is off until it is switched on. `off` keeps what was learned for the next time, and `reset`
    removes it. The setting stays with the agent.
    """
    removed = 0
    with call.open(writes=switch is not None) as engine:
        if switch is _Switch.RESET:
            removed = engine.reset_learning()
        on = None if switch in (None, _Switch.RESET) else switch is _Switch.ON
        report = engine.set_learning(on)
    lines = [_learning_line(report)]
    if switch is _Switch.RESET:
        lines.insert(0, f"Removed {removed:,} examples; all parts of a score count alike again.")
    call.answer({**to_json(report), "removed": removed}, "\n".join(lines))


def read_shown(file: Path) -> Impressions:
    """What the JSON in a file says was shown, or that on the standard input for a dash."""
    return shown_from(read_json(file))


def read_json(file: Path) -> Any:
    """The JSON in a file, or that on the standard input for a dash. Raises InvalidInput."""
    try:
        return json.loads(sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InvalidInput(f"--context {file} can't be read: {error.strerror}.") from error
    except ValueError as error:
        raise InvalidInput(
            f"--context {file} holds no JSON ({error}). Write it with `germane assemble ... --json`."
        ) from error


def shown_from(shape: Any) -> Impressions:
    """What a context, a trace or a recall showed, from its JSON. Raises InvalidInput for other JSON."""
    try:
        if "results" in shape:
            kind, account = "recall", shape
            parts = {one["memory"]["id"]: one["parts"] for one in shape["results"]}
        else:
            kind, account = "context", shape["trace"]
            parts = {one["id"]: one["parts"] for one in account["entries"] if one["included"]}
        question, now = account["question"]["text"], datetime.fromisoformat(account["now"])
        levels = {one["id"]: Level(one["level"]) for one in account.get("entries", ()) if one["included"]}
        return Impressions.of(
            kind, question=question, now=now, parts=parts, weights=account["weights"], levels=levels
        )
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"This JSON doesn't say what was shown ({error!r}). Pass what `germane assemble --json` or "
            "`germane recall --json` printed."
        ) from error


def question_from(shape: Any) -> str:
    """The question of a context, a trace or a recall, from JSON that `shown_from` takes."""
    account = shape if "results" in shape else shape["trace"]
    return str(account["question"]["text"])


def whole_ids(texts: Sequence[str], shown: Impressions) -> list[str]:
    """The ids among those shown that the texts name by themselves, their beginnings or their ends."""
    found = []
    for text in texts:
        wanted = text.strip().lower()
        fits = [one for one in shown.parts if wanted and (one.startswith(wanted) or one.endswith(wanted))]
        if len(fits) > 1 or (fits and len(wanted) < _SHORTEST):
            raise InvalidInput(
                f"{text!r} isn't enough to tell one memory of this context: give {_SHORTEST} characters "
                f"or more of an id ({', '.join(fits)})."
            )
        found.append(fits[0] if fits else text)
    return found


def _by_score(found: ObserveResult) -> list[str]:
    """What was shown, the most of which stands in the answer first."""
    return sorted(found.scores, key=lambda one: (-found.scores[one], one))


def _observed_row(engine: Engine, memory_id: str, found: ObserveResult) -> list[str]:
    text = label_of(engine.get(memory_id), _LABEL)
    used = "yes" if memory_id in found.used else ""
    return [used, f"{found.scores[memory_id]:.2f}", short_id(memory_id), text]


def _observation_line(found: ObserveResult) -> str:
    drawn = f"The answer draws on {len(found.used)} of {len(found.scores)} memories shown."
    if found.feedback is None:
        return f"{drawn} Nothing was counted."
    known = len(found.feedback.used) - found.feedback.counted
    more = f"; known already: {known}" if known else ""
    return f"{drawn} Uses counted: {found.feedback.counted}{more}."


def _learning_line(report: LearningReport) -> str:
    if not report.on:
        return f"Learning is off. Examples kept: {report.examples:,}."
    if report.weights is None:
        return f"Learning is on. Examples kept: {report.examples:,}; all parts of a score count alike."
    weights = report.weights
    named = ", ".join(f"{name} {weight:.2f}" for name, weight in sorted(weights.values.items()))
    contexts = f"{weights.contexts:,} context{'' if weights.contexts == 1 else 's'}"
    return f"Learning is on. {named}, from {weights.examples:,} examples in {contexts}."
