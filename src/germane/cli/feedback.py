"""The commands that record which memories of a context were useful, and the learning from it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from germane import InvalidInput, Level
from germane.cli.call import Call, command, only_id, recorded
from germane.cli.options import arg, opt
from germane.cli.output import counted, label_of, print_table, print_text, to_json
from germane.model.context import short_id
from germane.ranking import Impressions

if TYPE_CHECKING:
    from germane.ranking import Feedback

_LABEL = 60
_Context = Annotated[
    Path, opt("--context FILE", "Output of `assemble --json` or `recall --json`; - reads standard input.")
]


@command("context feedback", space=True)
def _feedback(
    call: Call,
    *,
    context: _Context,
    used: Annotated[list[str] | None, opt("--used ID", "A memory that was used. Repeatable.")] = None,
    ignored: Annotated[
        list[str] | None, opt("--ignored ID", "A memory that wasn't used; default: all others. Repeatable.")
    ] = None,
) -> None:
    """Uses are counted once per context. The ranking learns from them if `germane context learning` is on."""
    shown = _shown_in(_json_of(context))
    with call.open(writes=True) as engine:
        given = engine.feedback(
            shown,
            used=_ids(used or (), shown),
            ignored=None if ignored is None else _ids(ignored, shown),
        )
    examples = f"; examples stored: {given.examples}" if given.examples else ""
    call.answer(
        given,
        f"Uses counted: {given.counted} of {len(shown.parts)} memories shown{_known(given)}{examples}.",
    )


@command("context observe", space=True)
def _observe(
    call: Call,
    answer: Annotated[str, arg("ANSWER", "The answer; - reads standard input.")],
    *,
    assembly: Annotated[
        str | None, opt("--assembly ID", "The recorded assembly that was shown; default: the latest.")
    ] = None,
    context: Annotated[
        Path | None, opt("--context FILE", "Instead: output of `assemble --json` or `recall --json`.")
    ] = None,
    dry_run: Annotated[bool, opt("--dry-run", "Count nothing; show what would be counted.")] = False,
) -> None:
    """Compares the informative words of the answer with the memories, so a paraphrase is missed."""
    if assembly is not None and context is not None:
        raise InvalidInput("--assembly and --context both say what was shown. Give one of them.")
    if answer == "-" and str(context) == "-":
        raise InvalidInput("ANSWER and --context can't both be the standard input. Give one as a file.")
    text = sys.stdin.read() if answer == "-" else answer
    given = None if context is None else _json_of(context)
    with call.open(writes=not dry_run) as engine:
        if given is None:
            observed = engine.observe(recorded(engine, assembly), text, count=not dry_run)
        else:
            shown = _shown_in(given)
            question = str(_account_of(given)["question"]["text"])
            observed = engine.observe(shown, text, count=not dry_run, question=question)
        rows = [
            (
                "yes" if each in observed.used else "",
                f"{observed.scores[each]:.2f}",
                short_id(each),
                label_of(engine.get(each), _LABEL),
            )
            for each in sorted(observed.scores, key=lambda each: (-observed.scores[each], each))
        ]
    if call.prints(observed):
        return
    if rows:
        print_table(("USED", "SHARE", "MEMORY", "TEXT"), rows, right=(1,))
    uses = "Nothing was counted."
    if observed.feedback is not None:
        uses = f"Uses counted: {observed.feedback.counted}{_known(observed.feedback)}."
    print_text(f"The answer draws on {len(observed.used)} of {len(observed.scores)} memories shown. {uses}")


class _Result(StrEnum):
    """How a task turned out."""

    SUCCESS = "success"
    PARTIAL = "partial"
    FAILURE = "failure"


@command("context outcome", space=True)
def _outcome(
    call: Call,
    result: Annotated[_Result, arg("RESULT", "How the task turned out: success, partial or failure.")],
    *,
    context: _Context,
    memory: Annotated[
        list[str] | None,
        opt("--memory ID", "A memory that helped or misled; default: all shown. Repeatable."),
    ] = None,
) -> None:
    shown = _shown_in(_json_of(context))
    with call.open(writes=True) as engine:
        noted = engine.outcome(shown, str(result), memories=None if memory is None else _ids(memory, shown))
    known = noted.memories - noted.updated
    call.answer(
        {"outcome": result, "memories": noted.memories, "updated": noted.updated},
        f"Noted {result} for {noted.memories} memor{'y' if noted.memories == 1 else 'ies'}"
        + (f"; known already: {known}." if known else "."),
    )


class _Switch(StrEnum):
    """What `context learning` does."""

    ON = "on"
    OFF = "off"
    RESET = "reset"


@command("context learning", space=True)
def _learning(
    call: Call, switch: Annotated[_Switch | None, arg("[SWITCH]", "on, off or reset.")] = None
) -> None:
    """Learning is off by default. `off` keeps what was learned, and `reset` deletes it. The setting is stored
    with the agent.
    """
    with call.open(writes=switch is not None) as engine:
        removed = engine.reset_learning() if switch is _Switch.RESET else 0
        on = None if switch in (None, _Switch.RESET) else switch is _Switch.ON
        report = engine.set_learning(on)
    weights, state = report.weights, f"Learning is {'on' if report.on else 'off'}."
    if report.on and weights is not None:
        values = ", ".join(f"{name} {weight:.2f}" for name, weight in sorted(weights.values.items()))
        examples = f"{weights.examples:,} examples in {counted(weights.contexts, 'context')}"
        lines = [f"{state} {values}, from {examples}."]
    else:
        alike = "; all parts of a score count alike" if report.on else ""
        lines = [f"{state} Examples stored: {report.examples:,}{alike}."]
    if switch is _Switch.RESET:
        lines.insert(0, f"Removed {removed:,} examples; all parts of a score count alike again.")
    call.answer({**to_json(report), "removed": removed}, "\n".join(lines))


def _json_of(file: Path) -> Any:
    """The JSON in a file, or on standard input for a dash. Raises InvalidInput."""
    try:
        return json.loads(sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InvalidInput(f"--context {file} can't be read: {error.strerror}.") from error
    except ValueError as error:
        raise InvalidInput(
            f"--context {file} holds no JSON ({error}). Write it with `germane assemble ... --json`."
        ) from error


def _account_of(shape: Any) -> Any:
    """The part of a context's, trace's or recall's JSON that holds the question and the time."""
    return shape if "results" in shape else shape["trace"]


def _shown_in(shape: Any) -> Impressions:
    """What a context, a trace or a recall showed, from its JSON. Raises InvalidInput for other JSON."""
    try:
        account = _account_of(shape)
        if account is shape:
            parts = {each["memory"]["id"]: each["parts"] for each in shape["results"]}
        else:
            parts = {each["id"]: each["parts"] for each in account["entries"] if each["included"]}
        return Impressions.of(
            "recall" if account is shape else "context",
            question=account["question"]["text"],
            now=datetime.fromisoformat(account["now"]),
            parts=parts,
            weights=account["weights"],
            levels={
                each["id"]: Level(each["level"]) for each in account.get("entries", ()) if each["included"]
            },
        )
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"This JSON doesn't say what was shown ({error!r}). Pass what `germane assemble --json` or "
            "`germane recall --json` printed."
        ) from error


def _ids(texts: Sequence[str], shown: Impressions) -> list[str]:
    """The ids among those shown that the texts name."""
    return [only_id(text, shown.parts, "memories of this context") or text for text in texts]


def _known(feedback: Feedback) -> str:
    known = len(feedback.used) - feedback.counted
    return f"; known already: {known}" if known else ""
