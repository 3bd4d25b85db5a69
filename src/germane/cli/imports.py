"""import, export and watch: from what people have, and out again without loss."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from germane.cli.options import Call, all_memories, arg, command, opt, stopped_by_signals
from germane.cli.output import print_text, to_json, warn
from germane.errors import UnreadableSource

if TYPE_CHECKING:
    from germane import Engine, Memory
    from germane.importers.report import ImportReport, Progress, ProgressCallback

_SOMETHING_UNREAD = 1


@command("import")
def _import(
    call: Call,
    sources: Annotated[
        list[str],
        arg(
            "SOURCE...",
            "A project's folder, a file of Markdown, JSON lines, an export, a chat transcript, a file in "
            "LoCoMo's layout, or git:PATH for the history of a repository.",
        ),
    ],
    *,
    prune: Annotated[
        bool, opt("--prune", "Forget what stands no longer in the files; it is restored if it comes back.")
    ] = False,
    project: ProjectName = None,
    root: ProjectRoot = None,
    allow_secrets: AllowSecrets = False,
) -> None:
    """Importing again changes nothing twice; what was edited becomes the next version of its memory. It may
    be interrupted: what was stored stays, and the next import goes on.
    What looks like a secret isn't stored. Ends with 1 if anything was left out, and says what and why.
    """
    options = {"prune": prune, "project": project, "root": root, "allow_secrets": allow_secrets}
    results: list[Result] = []
    with call.open(makes=True) as engine:
        for source in sources:
            results.append(_import_one(call, engine, source, options))
            if not call.as_json:
                print_result(results[-1])
    call.prints({"sources": [result.as_json() for result in results], **totals(results)})
    if any(result.error or result.report.skipped for result in results):
        raise typer.Exit(_SOMETHING_UNREAD)


@command("export")
def _export(
    call: Call,
    out: Annotated[
        Path | None, opt("--out FILE", "Write to this file instead of the standard output.")
    ] = None,
    *,
    memories_only: Annotated[
        bool, opt("--memories-only", "Leave out what was used, how work turned out, and the events of lives.")
    ] = False,
) -> None:
    """`germane import` restores them as they were. With --out and --json, one object says how many were
    written. Without --out the lines are the output.
    """
    from germane.importers.transfer import export_jsonl, written_through  # noqa: PLC0415 - Only this command needs it.

    with call.open() as engine:
        memories = _in_order(engine)
        ids = [memory.ref for memory in memories]
        kept: dict[str, Any] = {
            "lifecycle_states": dict(zip(ids, engine.lifecycle_states(ids), strict=True)),
            "usage_history": None if memories_only else engine.usage_history(),
            "agent": call.agent,
        }
        if out is None:
            export_jsonl(memories, sys.stdout, **kept)
            return
        with written_through(out) as file:
            written = export_jsonl(memories, file, **kept)
    if not call.prints({"out": out, "written": written}):
        warn(f"{written:,} memories written to {out}.")


def _import_one(call: Call, engine: Engine, source: str, options: dict[str, Any]) -> Result:
    """What became of one source. One that can't be read doesn't keep the others from being imported."""
    from germane.importers.transfer import import_source  # noqa: PLC0415 - Only this command needs it.

    with progress_shown(source, quiet=call.as_json) as told:
        try:
            report = import_source(engine, source, progress=told, **options)
        except UnreadableSource as error:
            return unread(source, told.last, str(error))
        except KeyboardInterrupt:
            stored = told.last.created + told.last.revised if told.last else 0
            warn(
                f"{source}: interrupted; {stored:,} new or changed were stored. "
                "Run it again to go on from there."
            )
            raise
    return Result(source, report)


def _in_order(engine: Engine) -> list[Memory]:
    """Every memory in the order of making: a version's id is greater than that of the one before it."""
    return sorted(all_memories(engine), key=lambda memory: (memory.id, memory.version))


# watch: keep what is stored of a folder current.


@command("watch")
def _watch(
    call: Call,
    path: Annotated[Path, arg("FOLDER", "The folder of a project.")] = Path(),
    *,
    project: ProjectName = None,
    root: ProjectRoot = None,
    allow_secrets: AllowSecrets = False,
) -> None:
    """What is edited becomes the next version of its memory, what is renamed keeps its history, what is
    deleted is forgotten until it comes back. With --json each step is one line with one object.
    """
    from germane.importers.sync import watch  # noqa: PLC0415 - Only this command needs it.

    stop = threading.Event()
    with call.open(makes=True) as engine, stopped_by_signals(stop), ExitStack() as beginning:
        told: ProgressCallback | None = beginning.enter_context(progress_shown(str(path), quiet=call.as_json))
        steps = watch(
            engine,
            path,
            stop=stop,
            project=project,
            root=root,
            allow_secrets=allow_secrets,
            progress=lambda progress: told(progress) if told is not None else None,
        )
        for report in steps:
            beginning.close()
            if not call.prints(step_of(path, report), on_a_line=True):
                _print_step(path, report, first=told is not None)
            told = None
    if not call.as_json:
        warn(f"{path}: no longer watched.")


def step_of(path: Path, report: ImportReport) -> dict[str, Any]:
    """What one step did, as `watch --json` prints it."""
    return {"folder": str(path), **to_json(report), "written": to_json(report.written)}


def _print_step(path: Path, report: ImportReport, *, first: bool) -> None:
    if first:
        print_result(Result(str(path), report))
        warn(f"{path}: watched; Ctrl-C ends it.")
        return
    for each in report.written:
        print_text(f"{'changed' if each.revised else 'new'}: {each.source}")
    for gone in report.gone:
        print_text(f"gone: {gone.source}")
    warn_of(replace(report, gone=(), passed_over=(), unchecked=None))


# What `import` and `watch` say of an import: as JSON, as lines for people, and while it goes on.

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
    from germane.importers.report import ImportReport  # noqa: PLC0415 - Only for what can't be read.

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
    experience = f" Of its use, {report.usage_records:,} records are new." if report.usage_records else ""
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


class ProgressReporter:
    """Tells how far an import has come, and remembers what it told last."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self.last: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        """Tell it."""
        self.last = progress
        self._show(_so_far(progress))


@contextmanager
def progress_shown(source: str, *, quiet: bool) -> Iterator[ProgressReporter]:
    """How progress is told: a line that moves on a terminal, now and then a line elsewhere."""
    if quiet:
        yield ProgressReporter(lambda _: None)
    elif sys.stderr.isatty():
        from rich.console import Console  # noqa: PLC0415 - Only a terminal needs it.
        from rich.markup import escape  # noqa: PLC0415 - As above.

        with Console(stderr=True).status(f"{escape(source)} …") as status:
            yield ProgressReporter(lambda text: status.update(f"{escape(source)}: {escape(text)}"))
    else:
        yield ProgressReporter(_lines_now_and_then(source))


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
