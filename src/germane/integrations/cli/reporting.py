"""What `import` and `watch` say of an import: as JSON, as lines for people, and while it goes on.

Level: integrations.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from germane.integrations.cli.output import print_text, warn

if TYPE_CHECKING:
    from germane.exchange.report import ImportReport, Progress

__all__ = [
    "AllowSecrets",
    "ProjectName",
    "ProjectRoot",
    "Telling",
    "print_result",
    "progress_shown",
    "report_shape",
    "result_of",
    "totals",
    "unread",
    "warn_of",
]

ProjectName = Annotated[
    str | None,
    typer.Option(
        "--project",
        metavar="NAME",
        help="The project that the files belong to, if not as its manifest or folder is called.",
    ),
]
ProjectRoot = Annotated[
    Path | None,
    typer.Option(
        "--root",
        metavar="FOLDER",
        help="The project's root, which paths are told from, if not where a germane.toml, a repository or a "
        "manifest is found above.",
    ),
]
AllowSecrets = Annotated[
    bool, typer.Option("--allow-secrets", help="Store even what looks like a secret; nothing is checked.")
]

_SHOWN = 20
_SECONDS_BETWEEN_LINES = 2.0


def result_of(source: str, report: ImportReport) -> dict[str, Any]:
    """What became of one source, as `import --json` prints it."""
    return {"source": source, **report_shape(report), "experience": report.experience, "error": None}


def report_shape(report: ImportReport) -> dict[str, Any]:
    """The counts of an import, and what it found gone, left out and passed over."""
    return {
        "read": report.read,
        "created": report.created,
        "known": report.known,
        "revised": report.revised,
        "gone": [{"id": gone.id, "source": gone.source} for gone in report.gone],
        "pruned": report.pruned,
        "moved": [
            {"id": each.id, "before": each.before, "after": each.after, "share": each.share}
            for each in report.moved
        ],
        "skipped": [{"source": each.source, "reason": each.reason} for each in report.skipped],
        "passed_over": [{"source": each.source, "reason": each.reason} for each in report.passed_over],
        "unchecked": report.unchecked,
    }


def unread(source: str, last: Progress | None, error: str) -> dict[str, Any]:
    """The same for a source that couldn't be read to its end."""
    return {
        "source": source,
        "read": last.read if last else 0,
        "created": last.created if last else 0,
        "known": last.known if last else 0,
        "revised": last.revised if last else 0,
        "gone": [],
        "pruned": False,
        "moved": [],
        "skipped": [],
        "passed_over": [],
        "unchecked": None,
        "experience": 0,
        "error": error,
    }


def totals(results: Sequence[dict[str, Any]]) -> dict[str, int]:
    """The sums over all sources."""
    counts = {
        name: sum(result[name] for result in results) for name in ("read", "created", "known", "revised")
    }
    lists = {name: sum(len(result[name]) for result in results) for name in ("gone", "skipped")}
    return {**counts, **lists, "errors": sum(result["error"] is not None for result in results)}


def print_result(result: dict[str, Any]) -> None:
    """One line of counts, and on the error stream what needs a look."""
    changed = f"{result['revised']:,} changed, " if result["revised"] else ""
    experience = f" Of its use, {result['experience']:,} records are new." if result["experience"] else ""
    print_text(
        f"{result['source']}: {result['read']:,} read, {result['created']:,} new, {changed}"
        f"{result['known']:,} known, {len(result['skipped']):,} left out.{experience}"
    )
    warn_of(result)
    if result["error"]:
        warn(f"germane: {result['error']}", is_error=True)


def warn_of(result: dict[str, Any]) -> None:
    """What moved, is gone, was left out or passed over, and whether nothing was checked for secrets."""
    _warn_each(
        [
            f"moved: {each['after']} is the next version of {each['before']}, which is gone: "
            f"{each['share']:.0%} of what only that said stands there"
            for each in result["moved"]
        ]
    )
    gone = "gone, and forgotten" if result["pruned"] else "gone, still stored (--prune forgets it)"
    _warn_each([f"{gone}: {each['source']}" for each in result["gone"]])
    _warn_each([f"left out: {each['source']}: {each['reason']}" for each in result["skipped"]])
    if result["passed_over"]:
        warn(f"passed over: {len(result['passed_over']):,}; --json says what and why")
    if result["unchecked"]:
        warn(f"not checked for secrets: {result['unchecked']}")


class Telling:
    """Tells how far an import has come, and remembers what it told last."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self.last: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        """Tell it."""
        self.last = progress
        self._show(_so_far(progress))


@contextmanager
def progress_shown(source: str, *, quiet: bool) -> Iterator[Telling]:
    """How progress is told: a line that moves on a terminal, now and then a line elsewhere."""
    if quiet:
        yield Telling(lambda _: None)
    elif sys.stderr.isatty():
        from rich.console import Console  # noqa: PLC0415 - Only a terminal needs it.
        from rich.markup import escape  # noqa: PLC0415 - As above.

        with Console(stderr=True).status(f"{escape(source)} …") as status:
            yield Telling(lambda text: status.update(f"{escape(source)}: {escape(text)}"))
    else:
        yield Telling(_lines_now_and_then(source))


def _lines_now_and_then(source: str) -> Callable[[str], None]:
    """Says the first thing at once, and then one each few seconds."""
    said = -_SECONDS_BETWEEN_LINES

    def say(text: str) -> None:
        nonlocal said
        now = time.monotonic()
        if now - said >= _SECONDS_BETWEEN_LINES:
            said = now
            warn(f"{source}: {text}")

    return say


def _warn_each(lines: Sequence[str]) -> None:
    for line in lines[:_SHOWN]:
        warn(line)
    if len(lines) > _SHOWN:
        warn(f"… and {len(lines) - _SHOWN:,} more; --json lists all of them")


def _so_far(progress: Progress) -> str:
    changed = f", {progress.revised:,} changed" if progress.revised else ""
    left_out = f", {progress.skipped:,} left out" if progress.skipped else ""
    of = f" of {progress.seen_of:,}" if progress.seen_of is not None else ""
    seen = f"{progress.seen:,}{of} looked through, " if progress.seen or of else ""
    return f"{seen}{progress.read:,} read, {progress.created:,} new{changed}{left_out} …"
