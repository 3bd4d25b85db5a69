"""feedback and learn: what was used of what was shown, and what the ranking learns from it.

Level: integrations.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from germane import InvalidInput
from germane.integrations.cli.opening import (
    DEFAULT_AGENT,
    DEFAULT_DATABASE,
    open_to_change,
    open_to_read,
)
from germane.integrations.cli.options import Agent, Database, Json
from germane.integrations.cli.output import print_json, print_text
from germane.integrations.shapes import feedback_shape, lessons_shape, shown_from

if TYPE_CHECKING:
    from germane import Lessons, Shown

__all__ = ["COMMANDS", "read_shown", "whole_ids"]

_SHORTEST = 4


class _Switch(StrEnum):
    """What `germane learn` can be told."""

    ON = "on"
    OFF = "off"
    RESET = "reset"


def _feedback(
    *,
    context: Annotated[
        Path,
        typer.Option(
            "--context",
            metavar="FILE",
            help="What `assemble --json` or `recall --json` printed; - reads it from the standard input.",
        ),
    ],
    used: Annotated[
        list[str] | None,
        typer.Option("--used", metavar="ID", help="A memory in it that was used. Repeatable."),
    ] = None,
    ignored: Annotated[
        list[str] | None,
        typer.Option(
            "--ignored",
            metavar="ID",
            help="One that was not; without any, all the others were not. Repeatable.",
        ),
    ] = None,
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """Say which memories of a context were used.

    Their use is counted, once for each context, and the ranking learns from it where `germane learn on`
    was said.
    """
    shown = read_shown(context)
    with open_to_change(database, agent) as engine:
        given = engine.feedback(
            shown,
            used=whole_ids(used or (), shown),
            ignored=None if ignored is None else whole_ids(ignored, shown),
        )
    if as_json:
        print_json(feedback_shape(given))
        return
    known = len(given.used) - given.counted
    print_text(
        f"Uses counted: {given.counted} of {len(shown.parts)} memories shown"
        + (f"; known already: {known}" if known else "")
        + (f"; examples kept to learn from: {given.examples}." if given.examples else ".")
    )


def _learn(
    switch: Annotated[
        _Switch | None,
        typer.Argument(metavar="[on|off|reset]", help="What to do; without it the state is shown."),
    ] = None,
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """Let the ranking learn from feedback, or not, or forget what it learned.

    It is off until it is switched on. `off` keeps what was learned for the next time, and `reset`
    removes it. The setting stays with the agent.
    """
    removed = 0
    with open_to_read(database, agent) if switch is None else open_to_change(database, agent) as engine:
        if switch is _Switch.RESET:
            removed = engine.unlearn()
        on = None if switch in (None, _Switch.RESET) else switch is _Switch.ON
        lessons = engine.learn(on)
    if as_json:
        print_json({**lessons_shape(lessons), "removed": removed})
        return
    if switch is _Switch.RESET:
        print_text(f"Removed {removed:,} examples; all parts of a score count alike again.")
    print_text(_told(lessons))


def read_shown(file: Path) -> Shown:
    """What the JSON in a file says was shown, or that on the standard input for a dash."""
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig")
        return shown_from(json.loads(text))
    except InvalidInput:
        raise
    except OSError as error:
        raise InvalidInput(f"--context {file} can't be read: {error.strerror}.") from error
    except ValueError as error:
        raise InvalidInput(
            f"--context {file} holds no JSON ({error}). Write it with `germane assemble ... --json`."
        ) from error


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


def _told(lessons: Lessons) -> str:
    if not lessons.on:
        return f"Learning is off. Examples kept: {lessons.examples:,}."
    if lessons.weights is None:
        return f"Learning is on. Examples kept: {lessons.examples:,}; all parts of a score count alike."
    weights = lessons.weights
    named = ", ".join(f"{name} {weight:.2f}" for name, weight in sorted(weights.values.items()))
    contexts = f"{weights.contexts:,} context{'' if weights.contexts == 1 else 's'}"
    return f"Learning is on. {named}, from {weights.examples:,} examples in {contexts}."


COMMANDS: dict[str, Callable[..., Any]] = {"feedback": _feedback, "learn": _learn}
"""The commands of this file by name."""
