"""What `import` and `watch` say of an import: as JSON, as lines for people, and while it goes on.

Level: integrations.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from germane.integrations.cli.options import opt
from germane.integrations.cli.output import print_text, warn
from germane.integrations.shapes import to_json

if TYPE_CHECKING:
    from germane.exchange.report import ImportReport, Progress

ProjectName = Annotated[
    str | None,
    opt(
        "--project NAME", "The project that the files belong to, if not as its manifest or folder is called."
    ),
]
ProjectRoot = Annotated[
    Path | None,
    opt(
        "--root FOLDER",
        "The project's root, which paths are told from, if not where a germane.toml, a repository or "
        "a manifest is found above.",
    ),
]
AllowSecrets = Annotated[
    bool, opt("--allow-secrets", "Store even what looks like a secret; nothing is checked.")
]

_SHOWN = 20
_COUNTS = ("read", "created", "known", "revised")
_SECONDS_BETWEEN_LINES = 2.0


class Result(NamedTuple):
    """What became of one source, and the error that ended it, if one did."""

    source: str
    report: ImportReport
    error: str | None = None

    def as_json(self) -> dict[str, Any]:
        """As `import --json` prints it."""
        return {"source": self.source, **to_json(self.report), "error": self.error}


def unread(source: str, last: Progress | None, error: str) -> Result:
    """The same for a source that couldn't be read to its end."""
    from germane.exchange.report import ImportReport  # noqa: PLC0415 - Only for what can't be read.

    counts: dict[str, Any] = {name: getattr(last, name, 0) for name in _COUNTS}
    return Result(source, ImportReport(**counts), error)


def totals(results: Sequence[Result]) -> dict[str, int]:
    """The sums over all sources."""
    counts = {name: sum(getattr(each.report, name) for each in results) for name in _COUNTS}
    lists = {name: sum(len(getattr(each.report, name)) for each in results) for name in ("gone", "skipped")}
    return {**counts, **lists, "errors": sum(each.error is not None for each in results)}


def print_result(result: Result) -> None:
    """One line of counts, and on the error stream what needs a look."""
    report = result.report
    changed = f"{report.revised:,} changed, " if report.revised else ""
    experience = f" Of its use, {report.experience:,} records are new." if report.experience else ""
    print_text(
        f"{result.source}: {report.read:,} read, {report.created:,} new, {changed}"
        f"{report.known:,} known, {len(report.skipped):,} left out.{experience}"
    )
    warn_of(report)
    if result.error:
        warn(f"germane: {result.error}", is_error=True)


def warn_of(report: ImportReport) -> None:
    """What moved, is gone, was left out or passed over, and whether nothing was checked for secrets."""
    _warn_each(
        [
            f"moved: {each.after} is the next version of {each.before}, which is gone: "
            f"{each.share:.0%} of what only that said stands there"
            for each in report.moved
        ]
    )
    gone = "gone, and forgotten" if report.pruned else "gone, still stored (--prune forgets it)"
    _warn_each([f"{gone}: {each.source}" for each in report.gone])
    _warn_each([f"left out: {each.source}: {each.reason}" for each in report.skipped])
    if report.passed_over:
        warn(f"passed over: {len(report.passed_over):,}; --json says what and why")
    if report.unchecked:
        warn(f"not checked for secrets: {report.unchecked}")


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
