"""The commands `ledger …`, and those of `context …` that record which memories were useful."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from germane import InvalidInput
from germane.cli.call import Call, assembly_id, command, id_of, recorded
from germane.cli.options import Now, Without, Yes, arg, opt
from germane.cli.output import label_of, print_columns, print_table, print_text
from germane.encoding import to_json
from germane.ids import only_id
from germane.model.context import short_id, why_of
from germane.model.text import counted, line_of
from germane.ranking import Impressions

if TYPE_CHECKING:
    from germane.ledger import AssemblyDiff, Metrics
    from germane.ranking import Feedback

_Id = Annotated[str, arg("ID", "Assembly id, or 4 or more characters of its beginning or end.")]

_BLOCKS = "▁▂▃▄▅▆▇█"
_MOST_SPARKS = 60
_METRICS = {
    "relevance": ("Relevance of included memories", "{:.2f}", "above 0.6"),
    "budget_use": ("Use of the budget", "{:.0%}", "50 to 90 %"),
    "refreshes_per_turn": ("Contexts made for each turn", "{:.2f}", "below 0.3"),
    "recall_precision": ("Shown memories that were used", "{:.0%}", "above 40 %"),
    "cold_start": ("First context of an engine", "{:.3f} s", "below 0.5 s"),
    "memory_growth": ("New memories a day", "{:.1f}", ""),
    "fact_confirmation": ("Facts that were confirmed", "{:.0%}", "above 20 %"),
}


@command("ledger list", space=True)
def _list(
    call: Call,
    *,
    limit: Annotated[int, opt("--limit N", "The maximum number of assemblies to list.", min=1)] = 20,
    since: Annotated[str | None, opt("--since TIME", "Recorded at this time or later.")] = None,
) -> None:
    with call.open() as engine:
        assemblies = engine.ledger().list(since=since, limit=limit)
    if call.prints([{**to_json(each), "entries": None} for each in assemblies]):
        return
    if assemblies:
        columns = {
            "ID": lambda each: short_id(each.id),
            "AT (UTC)": lambda each: f"{each.at:%Y-%m-%d %H:%M}",
            "PLAN": lambda each: each.plan,
            "TOKENS": lambda each: f"{each.tokens:,}/{each.budget:,}",
            "IN": lambda each: str(len(each.included)),
            "QUESTION": lambda each: line_of(each.question),
        }
        print_columns(assemblies, columns, right=(3, 4))
    else:
        print_text("Nothing is recorded. `germane assemble --record` records an assembly.")


@command("ledger show", space=True)
def _show(call: Call, assembly: _Id) -> None:
    with call.open() as engine:
        record = engine.ledger().show(assembly_id(engine, assembly))
    if call.prints(record):
        return
    gone = f"; {record.purged} purged since" if record.purged else ""
    print_text(
        f"{record.id}\n{record.at:%Y-%m-%d %H:%M:%S} UTC, plan {record.plan}, {record.tokens:,} "
        f"of {record.budget:,} tokens ({record.counter}); "
        f"{len(record.included)} in of {record.candidates}{gone}\n"
        f"Question: {line_of(record.question) or 'none'}\n"
        f"SHA-256: {record.sha256 or 'gone with what was purged'}"
    )
    if record.entries:
        columns = {
            "MEMORY": lambda entry: short_id(entry.version_id),
            "SECTION": lambda entry: entry.section,
            "LEVEL OR REASON": lambda entry: str(entry.level or entry.reason),
            "TOKENS": lambda entry: f"{entry.tokens:,}",
            "SCORE": lambda entry: f"{entry.score:.2f}" if entry.parts else "",
            "WHY": lambda entry: why_of(entry.parts, entry.score),
        }
        print_columns(record.entries, columns, right=(3, 4))


@command("ledger purge", space=True)
def _purge(
    call: Call,
    assembly: Annotated[str | None, arg("ID", "Only this assembly; default: all.")] = None,
    *,
    before: Annotated[str | None, opt("--before TIME", "Only those recorded before this time.")] = None,
    yes: Yes = False,
) -> None:
    with call.open(writes=True) as engine:
        whole_id = None if assembly is None else assembly_id(engine, assembly)
        purged = engine.ledger().purge(whole_id, before=before, confirm=yes)
    call.answer({"purged": purged}, f"Purged {counted(purged, 'assembly')}.")


@command("ledger diff", space=True)
def _diff(call: Call, first: _Id, second: _Id) -> None:
    with call.open() as engine:
        difference = engine.ledger().diff(assembly_id(engine, first), assembly_id(engine, second))
    call.answer(difference, "\n".join(_difference_lines(difference)))


@command("ledger replay", space=True)
def _replay(call: Call, assembly: _Id, *, without: Without = None) -> None:
    """Exits with 1 unless the bytes are the same. `assemble --without` is not recorded: give it again."""
    with call.open() as engine:
        ids = [id_of(engine, each) for each in without or ()]
        replay = engine.ledger().replay(assembly_id(engine, assembly), without=ids)
    since = f"{len(replay.alterations):,} changes of memories since."
    lines = [f"The same bytes, by their hash. {since}"]
    if not replay.same:
        lines = [f"The same bytes could not be reproduced. {since}", *replay.why]
        lines += [] if replay.difference is None else _difference_lines(replay.difference)
    call.answer(replay, "\n".join(lines))
    if not replay.same:
        raise typer.Exit(1)


@command("ledger metrics", space=True)
def _metrics(
    call: Call,
    *,
    since: Annotated[str | None, opt("--since TIME", "Start of the period; default: 30 days ago.")] = None,
    plot: Annotated[Path | None, opt("--plot FILE", "Draw the days into this file (SVG).")] = None,
    now: Now = None,
) -> None:
    with call.open(now=now) as engine:
        metrics = engine.metrics(since=since)
    if plot is not None:
        from germane.evaluation import trend  # noqa: PLC0415 - Only a picture needs it.
        from germane.importers.transfer import written_through  # noqa: PLC0415 - As above.

        with written_through(plot) as file:
            file.write(trend(metrics))
    if not call.prints(metrics):
        _print_metrics(metrics)


def _difference_lines(difference: AssemblyDiff) -> list[str]:
    lines = [f"{each.name}: {each.before} -> {each.after}" for each in difference.inputs]
    for sign, entries in (("+", difference.entered), ("-", difference.left)):
        lines += [f"{sign} {entry.version_id} ({entry.section}, {entry.level})" for entry in entries]
    lines += [
        f"~ {before.version_id} ({before.section}, {before.level} -> {after.section}, {after.level})"
        for before, after in difference.altered
    ]
    if difference.moved:
        lines.append(f"In another order: {counted(len(difference.moved), 'memory')}.")
    lines.append("The same text." if difference.same_text else "Another text.")
    return lines


def _print_metrics(metrics: Metrics) -> None:
    days: dict[str, list[float | None]] = {
        "relevance": [day.relevance for day in metrics.per_day],
        "budget_use": [day.budget_use for day in metrics.per_day],
        "recall_precision": [day.recall_precision for day in metrics.per_day],
        "memory_growth": [float(day.added) for day in metrics.per_day],
    }
    rows = []
    for name, value in metrics.figures().items():
        label, form, target = _METRICS[name]
        reached = {True: "yes", False: "no", None: ""}[metrics.on_target(name)]
        shown = "unknown" if value is None else form.format(value)
        rows.append((label, shown, target, reached, _sparks(days.get(name, []))))
    print_text(
        f"From {metrics.since:%Y-%m-%d} until {metrics.until:%Y-%m-%d}: {metrics.assemblies:,} assemblies "
        f"recorded, {metrics.with_feedback:,} fed back; {metrics.turns:,} turns of the user."
    )
    print_table(("METRIC", "VALUE", "TARGET", "REACHED", "BY DAY"), rows, right=(1,))


def _sparks(values: Sequence[float | None]) -> str:
    """A bar for each of the last days, relative to the highest; a dot for an unknown value."""
    shown = values[-_MOST_SPARKS:]
    most = max((value for value in shown if value is not None), default=0.0)
    steps = len(_BLOCKS) - 1
    return "".join(
        "·" if value is None else _BLOCKS[round(value / most * steps) if most else 0] for value in shown
    )


# Which memories of a context were useful, and the learning from it.

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
    shown, _ = Impressions.from_json(_json_of(context))
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
            shown, question = Impressions.from_json(given)
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
    shown, _ = Impressions.from_json(_json_of(context))
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
        examples = f"{counted(weights.examples, 'example')} in {counted(weights.contexts, 'context')}"
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
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"--context {file} holds no JSON ({error}). Write it with `germane assemble ... --json`."
        ) from error


def _ids(texts: Sequence[str], shown: Impressions) -> list[str]:
    """The full ids of shown memories from the texts, which begin or end them."""
    return [only_id(text, shown.parts, "memories of this context") or text for text in texts]


def _known(feedback: Feedback) -> str:
    known = len(feedback.used) - feedback.counted
    return f"; known already: {known}" if known else ""
