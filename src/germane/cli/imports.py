"""The commands `import`, `watch` and `export`: memories from files and repositories, and back."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

import germane
from germane.cli import options
from germane.cli.call import Call, all_memories, command, stopped_by_signals
from germane.cli.options import arg, opt, place_of
from germane.cli.output import PacedLines, print_text, warn
from germane.encoding import to_json
from germane.errors import UnreadableSource
from germane.model.text import counted, user_tenant
from germane.stores.location import MEMORY, exists, is_address

if TYPE_CHECKING:
    from collections.abc import Callable

    from germane import Engine
    from germane.importers.report import ImportReport, Progress

_INCOMPLETE = 1
_SHOWN = 20
_COUNTS = ("read", "created", "known", "revised")

_Project = Annotated[
    str | None, opt("--project NAME", "The project of the files; default: from its manifest or folder.")
]
_AllowSecrets = Annotated[
    bool, opt("--allow-secrets", "Don't check for secrets; store them like other text.")
]


class _Result(NamedTuple):
    """The report on one source, and the error that ended its import, if any."""

    source: str
    report: ImportReport
    error: str | None = None


@command("import")
def _import(
    call: Call,
    sources: Annotated[
        list[str],
        arg(
            "SOURCE...", "A folder, a file or an export, also of another product; git:PATH.", parser=place_of
        ),
    ],
    *,
    prune: Annotated[
        bool, opt("--prune", "Forget what the files no longer contain; it is restored if it returns.")
    ] = False,
    project: _Project = None,
    root: options.Root = None,
    allow_secrets: _AllowSecrets = False,
    trust: Annotated[
        str | None, opt("--trust TRUST", "Who vouches for the texts: owner or agent; default: external.")
    ] = None,
    dry_run: Annotated[bool, opt("--dry-run", "Store nothing; report what an import would do.")] = False,
) -> None:
    """A second import changes nothing; edited text becomes the next version of its memory. It can be
    interrupted: the next import continues. Text that looks like a secret is not stored. Exits with 1 if
    anything was left out.
    """
    from germane.importers.transfer import checked_layout  # noqa: PLC0415 - Only this command needs it.

    settings: dict[str, Any] = {"prune": prune, "project": project, "root": root, "trust": trust}
    for source in sources:  # An option that one of them doesn't take is refused before any is stored.
        with suppress(UnreadableSource):
            checked_layout(source, **settings)
    settings["allow_secrets"] = allow_secrets
    results: list[_Result] = []
    with _on_copy(call) if dry_run else _engine_for(call, sources) as engine:
        for source in sources:
            results.append(_import_one(call, engine, source, settings))
            if not call.as_json:
                _print_result(results[-1])
    reports = [each.report for each in results]
    counts = {name: sum(getattr(each, name) for each in reports) for name in _COUNTS}
    lists = {name: sum(len(getattr(each, name)) for each in reports) for name in ("gone", "skipped")}
    errors = sum(each.error is not None for each in results)
    listed = [{"source": each.source, **to_json(each.report), "error": each.error} for each in results]
    printed = call.prints({"sources": listed, **counts, **lists, "errors": errors, "dry_run": dry_run})
    if dry_run and not printed:
        warn("Nothing was stored. Import it without --dry-run.")
    elif not printed and exists(call.database):
        with call.engine() as engine:  # The one before embedded a last batch when it was closed.
            if waiting := engine.stats().pending:
                warn(f"{counted(waiting, 'memory')} without a vector, found by words: germane db embed")
    if errors or lists["skipped"]:
        raise typer.Exit(_INCOMPLETE)


def _engine_for(call: Call, sources: Sequence[str]) -> AbstractContextManager[Engine]:
    """The engine of the agent, in memory alone where a file would be made although no source is there."""
    may_be_there = any(
        each.startswith("git:") or is_address(each) or Path(each).expanduser().exists() for each in sources
    )
    if may_be_there or exists(call.database):
        return call.engine(makes=True)
    return call._replace(database=MEMORY, user=None).engine(makes=True, embedder="none")


@contextmanager
def _on_copy(call: Call) -> Iterator[Engine]:
    """The engine on a copy of what the agent and its users have, which is removed again."""
    from germane.stores import copy_store, store_agents  # noqa: PLC0415 - Only a dry run needs them.

    with TemporaryDirectory() as folder:
        copy = str(Path(folder) / "copy.db")
        if exists(call.database):
            with germane.connect(call.database, embedder=None, read_only=True) as store:
                users = store.users()
            own = {call.agent, *(user_tenant(user, call.agent) for user in users)}
            if own := own & {each.name for each in store_agents(call.database)}:
                copy_store(call.database, copy, agents=sorted(own))
        # The copy is no database of the user, so no message says that it was made.
        germane.open(copy, agent=call.agent, embedder=None).close()
        with call._replace(database=copy).engine(makes=True, embedder="none") as engine:
            yield engine


@command("export")
def _export(
    call: Call,
    out: Annotated[Path | None, opt("--out FILE", "Write to this file instead of standard output.")] = None,
    *,
    memories_only: Annotated[
        bool, opt("--memories-only", "Leave out uses, outcomes, lifecycle events and learning runs.")
    ] = False,
) -> None:
    """Memories come first, oldest first, then what was learned from their use. `germane import` restores
    everything. With --out and --json, the number of written memories is printed.
    """
    from germane.importers.transfer import export_jsonl, written_through  # noqa: PLC0415 - Only this command needs it.

    with call.engine() as engine:
        # The id of a later version is greater than that of an earlier one.
        own = (memory for memory in all_memories(engine) if memory.user == engine.user)
        memories = sorted(own, key=lambda memory: (memory.id, memory.version))
        ids = [memory.ref for memory in memories]
        more: dict[str, Any] = {
            "lifecycle_states": dict(zip(ids, engine.lifecycle_states(ids), strict=True)),
            "usage_history": None if memories_only else engine.usage_history(),
            "agent": call.member,
        }
        if out is None:
            export_jsonl(memories, sys.stdout, **more)
            return
        with written_through(out) as file:
            written = export_jsonl(memories, file, **more)
    if not call.prints({"out": out, "written": written}):
        warn(f"{counted(written, 'memory')} written to {out}.")


def _import_one(call: Call, engine: Engine, source: str, settings: dict[str, Any]) -> _Result:
    """Import one source. An unreadable source doesn't prevent the import of the others."""
    from germane.importers.report import ImportReport  # noqa: PLC0415 - Only this command needs it.
    from germane.importers.transfer import import_source  # noqa: PLC0415 - As above.

    last: Progress | None = None
    with _progress(source, quiet=call.as_json) as show:

        def report_progress(progress: Progress) -> None:
            nonlocal last
            last = progress
            show(progress)

        try:
            return _Result(source, import_source(engine, source, progress=report_progress, **settings))
        except UnreadableSource as error:
            counts: dict[str, Any] = {name: getattr(last, name, 0) for name in _COUNTS}
            return _Result(source, ImportReport(**counts), str(error))
        except KeyboardInterrupt:
            stored = getattr(last, "created", 0) + getattr(last, "revised", 0)
            warn(
                f"{source}: interrupted; {stored:,} new or changed were stored. "
                "Run it again to go on from there."
            )
            raise


@command("watch")
def _watch(
    call: Call,
    path: Annotated[Path, arg("FOLDER", "The folder of a project.")] = Path(),
    *,
    project: _Project = None,
    root: options.Root = None,
    allow_secrets: _AllowSecrets = False,
) -> None:
    """Edited text becomes the next version of its memory, renamed files keep their history, and memories of
    deleted files are forgotten until the files return. With --json, each step is one object on a line.
    """
    from germane.importers.sync import watch  # noqa: PLC0415 - Only this command needs it.

    stop, first = threading.Event(), True
    with call.engine(makes=True) as engine, stopped_by_signals(stop), ExitStack() as beginning:
        show = beginning.enter_context(_progress(str(path), quiet=call.as_json))
        steps = watch(
            engine,
            path,
            stop=stop,
            project=project,
            root=root,
            allow_secrets=allow_secrets,
            progress=lambda progress: show(progress) if first else None,
        )
        for report in steps:
            beginning.close()
            step = {"folder": str(path), **to_json(report), "written": to_json(report.written)}
            if call.prints(step, on_a_line=True):
                pass
            elif first:
                _print_result(_Result(str(path), report))
                warn(f"{path}: watched; Ctrl-C ends it.")
            else:
                changes = [
                    f"{'changed' if each.revised else 'new'}: {each.source}" for each in report.written
                ]
                for line in (*changes, *(f"gone: {each.source}" for each in report.gone)):
                    print_text(line)
                _warn_of(replace(report, gone=(), passed_over=(), unchecked=None))
            first = False
    if not call.as_json:
        warn(f"{path}: no longer watched.")


def _print_result(result: _Result) -> None:
    """Print the counts, and warnings on standard error."""
    report = result.report
    changed = f"{report.revised:,} changed, " if report.revised else ""
    experience = f" Of its use, {report.usage_records:,} records are new." if report.usage_records else ""
    print_text(
        f"{result.source}: {counted(report.read, 'memory')} read, {report.created:,} new, {changed}"
        f"{report.known:,} known, {len(report.skipped):,} left out.{experience}"
    )
    _warn_of(report)
    if result.error:
        warn(f"germane: {result.error}", is_error=True)


def _warn_of(report: ImportReport) -> None:
    """Warn of moved, missing, skipped and ignored files, and of unchecked secrets."""
    _warn_each(
        [
            f"moved: {each.after} is the next version of {each.before}, which is gone: "
            f"it has {each.share:.0%} of the text that only that file had"
            for each in report.moved
        ]
    )
    gone = "gone, and forgotten" if report.pruned else "gone, still stored (--prune forgets it)"
    _warn_each([f"{gone}: {each.source}" for each in report.gone])
    _warn_each([f"left out: {each.source}: {each.reason}" for each in report.skipped])
    foreign = [each for each in report.passed_over if each.reason.startswith("not taken over")]
    _warn_each([f"{each.source}: {each.reason}" for each in foreign])
    if by_rule := len(report.passed_over) - len(foreign):
        warn(f"not taken over by rule: {by_rule:,}; --json says what and why")
    if report.unchecked:
        warn(f"not checked for secrets: {report.unchecked}")


def _warn_each(lines: Sequence[str]) -> None:
    for line in lines[:_SHOWN]:
        warn(line)
    if len(lines) > _SHOWN:
        warn(f"… and {len(lines) - _SHOWN:,} more; --json lists all of them")


@contextmanager
def _progress(source: str, *, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """A function that shows progress: on a moving line of a terminal, every few seconds elsewhere."""
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        from rich.console import Console  # noqa: PLC0415 - Only a terminal needs it.
        from rich.markup import escape  # noqa: PLC0415 - As above.

        with Console(stderr=True).status(f"{escape(source)} …") as status:
            yield lambda progress: status.update(f"{escape(source)}: {escape(_so_far(progress))}")
    else:
        lines = PacedLines(at_once=True)
        yield lambda progress: lines(f"{source}: {_so_far(progress)}")


def _so_far(progress: Progress) -> str:
    changed = f", {progress.revised:,} changed" if progress.revised else ""
    left_out = f", {progress.skipped:,} left out" if progress.skipped else ""
    of = f" of {progress.seen_of:,}" if progress.seen_of is not None else ""
    seen = f"{progress.seen:,}{of} files or lines examined, " if progress.seen or of else ""
    return f"{seen}{counted(progress.read, 'memory')} read, {progress.created:,} new{changed}{left_out} …"
