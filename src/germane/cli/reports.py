"""The commands `ledger …`, `db stats` and `db doctor`: recorded assemblies, metrics, health of the store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from germane.cli.call import Call, assembly_id, command
from germane.cli.options import Now, arg, opt
from germane.cli.output import print_columns, print_table, print_text, size_of, to_json
from germane.model.context import short_id, why_of
from germane.model.text import bar, cut, line_of, table

if TYPE_CHECKING:
    from germane.ledger import AssemblyDiff, Metrics
    from germane.stores import StoreStats

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


@command("ledger diff", space=True)
def _diff(call: Call, first: _Id, second: _Id) -> None:
    with call.open() as engine:
        difference = engine.ledger().diff(assembly_id(engine, first), assembly_id(engine, second))
    call.answer(difference, "\n".join(_difference_lines(difference)))


@command("ledger replay", space=True)
def _replay(call: Call, assembly: _Id) -> None:
    """Exits with 1 unless the bytes are the same."""
    with call.open() as engine:
        replay = engine.ledger().replay(assembly_id(engine, assembly))
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
        lines.append(f"In another order: {len(difference.moved)} memories.")
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


# db stats and db doctor.

_BAR = 40
_WIDTH = 110
_USUAL_LANGUAGE = "english"
_FOUND_WRONG = 1


@command("db stats", space=True)
def _stats(call: Call) -> None:
    with call.open() as engine:
        stats = engine.stats()
    if call.prints(stats):
        return
    print_text("\n".join(cut(line, _WIDTH) for line in table(_rows(stats))))
    if stats.by_kind:
        most = max(stats.by_kind.values())
        bars = [
            (kind, f"{count:,}", bar(count, count, scale=most, columns=_BAR))
            for kind, count in sorted(stats.by_kind.items(), key=lambda each: (-each[1], each[0]))
        ]
        print_text("\n" + "\n".join(table(bars, right=(1,))))


@command("db doctor", space=True)
def _doctor(call: Call) -> None:
    """Exits with 1 if damage is found."""
    with call.open() as engine:
        findings = engine.doctor()
    damage = [each for each in findings if not each.advice]
    lines = [
        f"{each.code}: {each.text}\n  {'Advice' if each.advice else 'Remedy'}: {each.remedy}"
        for each in findings
    ]
    text = "\n".join(lines) or f"{call.location}: nothing wrong was found."
    call.answer({"healthy": not damage, "findings": findings}, text)
    if damage:
        raise typer.Exit(_FOUND_WRONG)


def _rows(stats: StoreStats) -> list[tuple[str, str]]:
    statuses = ", ".join(f"{count:,} {status}" for status, count in sorted(stats.by_status.items()) if count)
    rows = [
        ("Store", stats.location),
        ("Size", f"{size_of(stats.bytes)}, schema {stats.schema_version}"),
        ("Agent", stats.agent),
        ("Memories", f"{stats.memories:,}" + (f" ({statuses})" if statuses else "")),
        ("Tokens", f"{stats.tokens:,}"),
    ]
    if len(stats.tokens_by_scope) > 1:
        by_scope = ", ".join(f"{tokens:,} {scope}" for scope, tokens in stats.tokens_by_scope.items())
        rows.append(("By scope", f"{by_scope} (active)"))
    rows.extend(
        ("Large", f"{each.tokens:,} tokens: {short_id(each.id)} {each.kind} {each.label}")
        for each in stats.large
    )
    if stats.oldest is not None and stats.newest is not None:
        rows.append(("Made", f"{stats.oldest:%Y-%m-%d} to {stats.newest:%Y-%m-%d}"))
    if stats.embedding is not None:
        waiting = f", {stats.pending:,} memories wait for one" if stats.pending else ""
        rows.append(("Vectors", f"{stats.vectors:,} by {stats.embedding}{waiting}"))
    if stats.language != _USUAL_LANGUAGE:
        rows.append(("Language", stats.language))
    return rows
