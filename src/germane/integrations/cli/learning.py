"""feedback, observe and learn: what was used of what was shown, and what the ranking learns from it.

Level: integrations.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from germane import InvalidInput, Level, Shown
from germane.integrations.cli.command import Call, command
from germane.integrations.cli.options import arg, opt
from germane.integrations.cli.output import label_of, print_table, print_text
from germane.integrations.cli.recorded import recorded
from germane.integrations.shapes import to_json
from germane.model.explanation import short_id

if TYPE_CHECKING:
    from germane import Engine, Lessons, Observed

_SHORTEST = 4
_LABEL = 60


class _Switch(StrEnum):
    """What `germane learn` can be told."""

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
    """Their use is counted, once for each context, and the ranking learns from it where `germane learn on`
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
    print_text(_said(found))


@command("learn")
def _learn(
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
            removed = engine.unlearn()
        on = None if switch in (None, _Switch.RESET) else switch is _Switch.ON
        lessons = engine.learn(on)
    lines = [_told(lessons)]
    if switch is _Switch.RESET:
        lines.insert(0, f"Removed {removed:,} examples; all parts of a score count alike again.")
    call.answer({**to_json(lessons), "removed": removed}, "\n".join(lines))


def read_shown(file: Path) -> Shown:
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


def shown_from(shape: Any) -> Shown:
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
        return Shown.of(
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


def whole_ids(texts: Sequence[str], shown: Shown) -> list[str]:
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


def _by_score(found: Observed) -> list[str]:
    """What was shown, the most of which stands in the answer first."""
    return sorted(found.scores, key=lambda one: (-found.scores[one], one))


def _observed_row(engine: Engine, memory_id: str, found: Observed) -> list[str]:
    text = label_of(engine.get(memory_id), _LABEL)
    used = "yes" if memory_id in found.used else ""
    return [used, f"{found.scores[memory_id]:.2f}", short_id(memory_id), text]


def _said(found: Observed) -> str:
    drawn = f"The answer draws on {len(found.used)} of {len(found.scores)} memories shown."
    if found.feedback is None:
        return f"{drawn} Nothing was counted."
    known = len(found.feedback.used) - found.feedback.counted
    more = f"; known already: {known}" if known else ""
    return f"{drawn} Uses counted: {found.feedback.counted}{more}."


def _told(lessons: Lessons) -> str:
    if not lessons.on:
        return f"Learning is off. Examples kept: {lessons.examples:,}."
    if lessons.weights is None:
        return f"Learning is on. Examples kept: {lessons.examples:,}; all parts of a score count alike."
    weights = lessons.weights
    named = ", ".join(f"{name} {weight:.2f}" for name, weight in sorted(weights.values.items()))
    contexts = f"{weights.contexts:,} context{'' if weights.contexts == 1 else 's'}"
    return f"Learning is on. {named}, from {weights.examples:,} examples in {contexts}."
