"""ledger, metrics, stats and doctor: what was assembled, how well, and what is wrong with a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from germane.cli.options import Call, Now, Since, arg, command, opt, whole_assembly_id
from germane.cli.output import print_table, print_text, to_json
from germane.model.context import short_id, why_of
from germane.model.text import bar, cut, line_of, table

if TYPE_CHECKING:
    from germane.ledger import AssemblyDiff, LedgerEntry, Metrics, Replay
    from germane.stores import StoreStats

_Id = Annotated[str, arg("ID", "An assembly, by its id or the beginning or end of it.")]
_Limit = Annotated[int, opt("--limit", "How many to list at most.", min=1)]
_Plot = Annotated[Path | None, opt("--plot FILE", "Write the days as a picture (SVG) as well.")]

_BLOCKS = "▁▂▃▄▅▆▇█"
_MOST_SPARKS = 60
_SAYS = {
    "relevance": ("Relevance of what stands in contexts", "{:.2f}", "above 0.6"),
    "budget_use": ("Use of the budget", "{:.0%}", "50 to 90 %"),
    "refreshes_per_turn": ("Contexts made for each turn", "{:.2f}", "below 0.3"),
    "recall_precision": ("Shown memories that were used", "{:.0%}", "above 40 %"),
    "cold_start": ("First context of an engine", "{:.3f} s", "below 0.5 s"),
    "memory_growth": ("New memories a day", "{:.1f}", ""),
    "fact_confirmation": ("Facts that were confirmed", "{:.0%}", "above 20 %"),
}


@command("ledger list")
def _list(call: Call, *, limit: _Limit = 20, since: Since = None) -> None:
    with call.open() as engine:
        found = engine.ledger().list(since=since, limit=limit)
    if call.prints([{**to_json(one), "entries": None} for one in found]):
        return
    if found:
        rows = [
            (
                short_id(one.id),
                f"{one.at:%Y-%m-%d %H:%M}",
                one.plan,
                f"{one.tokens:,}/{one.budget:,}",
                str(len(one.included)),
                line_of(one.question),
            )
            for one in found
        ]
        print_table(("ID", "AT (UTC)", "PLAN", "TOKENS", "IN", "QUESTION"), rows, right=(3, 4))
    else:
        print_text("Nothing is recorded. `germane assemble --record` records an assembly.")


@command("ledger show")
def _show(call: Call, assembly: _Id) -> None:
    with call.open() as engine:
        found = engine.ledger().show(whole_assembly_id(engine, assembly))
    if call.prints(found):
        return
    gone = f"; {found.purged} purged since" if found.purged else ""
    print_text(
        f"{found.id}\n{found.at:%Y-%m-%d %H:%M:%S} UTC, plan {found.plan}, {found.tokens:,} of "
        f"{found.budget:,} tokens ({found.counter}); {len(found.included)} in of {found.candidates}{gone}\n"
        f"Question: {line_of(found.question) or 'none'}\n"
        f"SHA-256: {found.sha256 or 'gone with what was purged'}"
    )
    if found.entries:
        _print_entries(found.entries)


@command("ledger diff")
def _diff(call: Call, first: _Id, second: _Id) -> None:
    with call.open() as engine:
        difference = engine.ledger().diff(whole_assembly_id(engine, first), whole_assembly_id(engine, second))
    call.answer(difference, "\n".join(_difference_lines(difference)))


@command("ledger replay")
def _replay(call: Call, assembly: _Id) -> None:
    with call.open() as engine:
        replay = engine.ledger().replay(whole_assembly_id(engine, assembly))
    call.answer(replay, "\n".join(_replay_lines(replay)))
    if not replay.same:
        raise typer.Exit(1)


@command("metrics")
def _metrics(call: Call, *, since: Since = None, plot: _Plot = None, now: Now = None) -> None:
    with call.open(now=now) as engine:
        found = engine.metrics(since=since)
    if plot is not None:
        from germane.evaluation import trend  # noqa: PLC0415 - Only a picture needs it.
        from germane.importers.transfer import written_through  # noqa: PLC0415 - As above.

        with written_through(plot) as file:
            file.write(trend(found))
    if not call.prints(found):
        _print_metrics(found)


def _print_entries(entries: Sequence[LedgerEntry]) -> None:
    rows = [
        (
            short_id(entry.version_id),
            entry.section,
            str(entry.level or entry.reason),
            f"{entry.tokens:,}",
            f"{entry.score:.2f}" if entry.parts else "",
            why_of(entry.parts, entry.score),
        )
        for entry in entries
    ]
    print_table(("MEMORY", "SECTION", "LEVEL OR REASON", "TOKENS", "SCORE", "WHY"), rows, right=(3, 4))


def _difference_lines(difference: AssemblyDiff) -> list[str]:
    lines = [f"{each.name}: {each.before} -> {each.after}" for each in difference.inputs]
    lines += [f"+ {entry.version_id} ({entry.section}, {entry.level})" for entry in difference.entered]
    lines += [f"- {entry.version_id} ({entry.section}, {entry.level})" for entry in difference.left]
    lines += [
        f"~ {before.version_id} ({before.section}, {before.level} -> {after.section}, {after.level})"
        for before, after in difference.altered
    ]
    if difference.moved:
        lines.append(f"In another order: {len(difference.moved)} memories.")
    lines.append("The same text." if difference.same_text else "Another text.")
    return lines


def _replay_lines(replay: Replay) -> list[str]:
    since = f"{len(replay.alterations):,} things have happened to memories since."
    if replay.same:
        return [f"The same bytes, by their hash. {since}"]
    lines = [f"Not proved to be the same bytes. {since}", *replay.why]
    return lines + (_difference_lines(replay.difference) if replay.difference is not None else [])


def _print_metrics(metrics: Metrics) -> None:
    days: dict[str, list[float | None]] = {
        "relevance": [day.relevance for day in metrics.per_day],
        "budget_use": [day.budget_use for day in metrics.per_day],
        "recall_precision": [day.recall_precision for day in metrics.per_day],
        "memory_growth": [float(day.added) for day in metrics.per_day],
    }
    rows = []
    for name, value in metrics.figures().items():
        says, form, target = _SAYS[name]
        reached = {True: "yes", False: "no", None: ""}[metrics.on_target(name)]
        shown = "unknown" if value is None else form.format(value)
        rows.append((says, shown, target, reached, _sparks(days.get(name, []))))
    print_text(
        f"From {metrics.since:%Y-%m-%d} until {metrics.until:%Y-%m-%d}: {metrics.assemblies:,} assemblies "
        f"recorded, {metrics.with_feedback:,} fed back; {metrics.turns:,} turns of the user."
    )
    print_table(("FIGURE", "VALUE", "AIM", "REACHED", "BY DAY"), rows, right=(1,))


def _sparks(values: Sequence[float | None]) -> str:
    """A bar for each of the last days, by its share of the highest; a dot where none is known."""
    shown = values[-_MOST_SPARKS:]
    most = max((value for value in shown if value is not None), default=0.0)
    steps = len(_BLOCKS) - 1
    return "".join(
        "·" if value is None else _BLOCKS[round(value / most * steps) if most else 0] for value in shown
    )


# stats and doctor: figures about a store, and what is wrong with it.

_BAR = 40
_WIDTH = 110
_USUAL_LANGUAGE = "english"
_FOUND_WRONG = 1
_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_STEP = 1000


@command("stats")
def _stats(call: Call) -> None:
    with call.open() as engine:
        stats = engine.stats()
    if call.prints(stats):
        return
    print_text("\n".join(cut(line, _WIDTH) for line in table(_rows(stats))))
    if stats.by_kind:
        print_text("\n" + "\n".join(_bars(stats.by_kind)))


@command("doctor")
def _doctor(call: Call) -> None:
    with call.open() as engine:
        findings = engine.doctor()
    damage = [each for each in findings if not each.advice]
    lines = [
        f"{each.code}: {each.text}\n  {'Advice' if each.advice else 'Remedy'}: {each.remedy}"
        for each in findings
    ]
    said = "\n".join(lines) or f"{call.location}: nothing wrong was found."
    call.answer({"healthy": not damage, "findings": findings}, said)
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
        said = ", ".join(f"{tokens:,} {scope}" for scope, tokens in stats.tokens_by_scope.items())
        rows.append(("By scope", f"{said} (active)"))
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


def _bars(counts: Mapping[str, int]) -> list[str]:
    most = max(counts.values())
    rows = [
        (kind, f"{count:,}", bar(count, count, scale=most, columns=_BAR))
        for kind, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    ]
    return table(rows, right=(1,))


def size_of(amount: float) -> str:
    """A number of bytes in the unit that suits it."""
    for unit in _UNITS:
        if amount < _STEP or unit == _UNITS[-1]:
            return f"{amount:.0f} {unit}" if unit == _UNITS[0] else f"{amount:.1f} {unit}"
        amount /= _STEP
    raise AssertionError(amount)
