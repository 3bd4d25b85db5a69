"""stats and doctor: figures about a store, and what is wrong with it.

Level: integrations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer

from germane.integrations.cli.command import Call, command
from germane.integrations.cli.output import print_text
from germane.model.columns import bar, cut, table
from germane.model.explanation import short_id

if TYPE_CHECKING:
    from germane import StoreStats

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
