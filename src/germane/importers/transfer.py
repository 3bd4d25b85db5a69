"""Import of any source, and export."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, Final, TextIO

from germane.errors import InvalidInput
from germane.importers.foreign import counted
from germane.importers.layouts import FOREIGN, Layout, layout_of, path_of, read
from germane.importers.project import Project, nothing_in, project_of
from germane.importers.records import (
    Learns,
    Line,
    RenditionsOf,
    known_by,
    memory_to_json,
    read_lines,
    run_known_by,
    usage_history_to_json,
)
from germane.importers.report import ImportReport, ProgressCallback, Run
from germane.importers.sources import batches, read_text, translated_os_errors, unreadable
from germane.importers.sync import sync, sync_items
from germane.model.change import UsageHistory, UsageRecord, version_of
from germane.model.extraction import LearningRun
from germane.model.learning import Example, OutcomeRecord
from germane.model.memory import Draft, LifecycleEvent, LifecycleState, Memory, Trust
from germane.model.validation import checked_word
from germane.plans.scoped import SCOPED, ScopedPlan, scoped_from

if TYPE_CHECKING:
    from germane.engine import Engine

_LINES_A_STEP = 100
"""The number of lines of an export between two progress reports of the search for secrets."""


def import_source(
    engine: Engine,
    source: str,
    *,
    progress: ProgressCallback | None = None,
    batch: int = 500,
    renditions_of: RenditionsOf | None = None,
    project: str | None = None,
    root: Path | str | None = None,
    prune: bool = False,
    allow_secrets: bool = False,
    trust: Trust | str | None = None,
) -> ImportReport:
    """Import a source, `batch` memories per transaction, and return a report.

    Sources are those of `read`. An export is restored with its ids and usage records, and nothing is counted
    twice. A second import changes nothing, and forgotten memories stay forgotten. In files and folders, an
    edited text becomes the next version of its memory. A text that is gone is reported, and with `prune`
    forgotten until it returns. `project` is the name of the project of the files, which separates the
    projects of an agent. `root` is the folder that paths are relative to, by default `project_root`.

    Texts of files are external, so that a context only quotes rules and preferences among them. With `trust`
    you vouch for those that are new or changed. An export has the trust of each memory.

    A part that looks like a secret is skipped with the rule and the place unless `allow_secrets` is set; in
    an export, all versions of the memory are skipped. A draft that the engine refuses and an unreadable file
    of a folder are skipped with the reason. If the source itself becomes unreadable, UnreadableSource names
    the place, and the earlier batches are stored.

    `progress` is called after each batch, and while files or lines are examined before the first batch. An
    import can be interrupted at any time: stored batches stay, and the next import continues. `renditions_of`
    makes the renditions of export lines without them.
    Raises InvalidInput for a batch size below 1, for `trust` with an export, for `project`, `root` or `prune`
    with a source that isn't a file or folder of a project, and for a source outside `root`. Raises
    MissingExtra for a folder without that extra.
    """
    if batch < 1:
        raise InvalidInput(f"batch={batch} can't be used: a batch holds 1 memory or more.")
    layout = checked_layout(source, project=project, root=root, prune=prune, trust=trust)
    path = path_of(source)
    run = Run(progress=progress, allow_secrets=allow_secrets, trust=trust)
    if layout in (Layout.PROJECT, Layout.MARKDOWN):
        owner = project_of(path, name=project, root=root)
        _import_files(engine, owner, path, run, prune=prune, batch=batch)
    elif layout in FOREIGN:
        sync_items(engine, read(source, on_skip=run.passed_over.append), run, product=layout, batch=batch)
    elif layout is Layout.EXPORT:
        _import_export(engine, path, run, batch=batch, renditions_of=renditions_of)
    else:
        file = None if layout is Layout.GIT else path
        for drafts in batches(read(source, on_skip=run.skipped.append), batch):
            accepted = [draft for draft in drafts if not run.holds_secret(draft, file)]
            run.read += len(drafts) - len(accepted)
            run.store(accepted, partial(engine.remember_many, revive=False, allow_secrets=run.allows_secrets))
    return run.report()


def checked_layout(
    source: str, *, project: str | None, root: Path | str | None, prune: bool, trust: Trust | str | None
) -> Layout:
    """The format of a source.

    Raises InvalidInput for an unknown trust and for an option of `import_source` that a source of this format
    doesn't take, and UnreadableSource for a source that can't be imported.
    """
    if trust is not None:
        checked_word(Trust, trust, name="trust")
    layout = layout_of(source)
    if layout is Layout.EXPORT and trust is not None:
        raise InvalidInput(
            f"trust={str(trust)!r} goes with texts from outside; {source!r} is an export, which has the "
            "trust of each memory. Leave it out."
        )
    if layout in (Layout.PROJECT, Layout.MARKDOWN):
        project_of(path_of(source), name=project, root=root)
        return layout
    files = {"project": project, "root": root and str(root), "prune": prune or None}
    if named := [f"{name}={value!r}" for name, value in files.items() if value is not None]:
        raise InvalidInput(
            f"{named[0]} goes with a project's files; {source!r} is of layout {layout}. Leave it out."
        )
    return layout


def _import_files(engine: Engine, owner: Project, path: Path, run: Run, *, prune: bool, batch: int) -> None:
    is_folder, start = path.is_dir(), [path.resolve()]
    if is_folder:
        run.require_detector()
    with counted(path, run.passed_over.append) as leave_out:
        count = sync(
            engine, owner, start, run, prune=prune, batch=batch, named=not is_folder, leave_out=leave_out
        )
    if is_folder and not count and not run.skipped:
        raise nothing_in(path)


def _import_export(
    engine: Engine, path: Path, run: Run, *, batch: int, renditions_of: RenditionsOf | None
) -> None:
    """Restore an export. All versions of a memory are skipped if one has a secret, so it is read twice."""
    read = partial(read_lines, path, agent=engine.agent, renditions_of=renditions_of)
    refused = _ids_with_secrets(read(), run) if run.unchecked is None else frozenset()
    records: list[UsageRecord | LearningRun | Learns] = []
    ids: dict[str, str] = {}
    for lines in batches(read(), batch):
        records += [line for line in lines if not isinstance(line, tuple)]
        group = [line for line in lines if isinstance(line, tuple)]
        accepted = [memory for memory, _ in group if memory.id not in refused]
        states = {memory.ref: state for memory, state in group if state is not None}
        run.read += len(group) - len(accepted)
        stored = run.store(accepted, partial(engine.import_memories, lifecycle_states=states))
        # A memory that is stored under another id has the same usage records.
        ids |= {
            given.ref: one.memory.version_id
            for given, one in zip(accepted, stored, strict=True)
            if one is not None
        }
    if records:
        clean = [each for each in records if not (isinstance(each, LearningRun) and _has_secret(each, run))]
        history = _usage_history(clean, ids, refused)
        run.usage_records = engine.import_usage_history(history)


def _ids_with_secrets(lines: Iterable[Line], run: Run) -> frozenset[str]:
    refused = set()
    for line in lines:
        run.seen += 1
        if run.seen % _LINES_A_STEP == 0:
            run.show_progress(None)
        if isinstance(line, tuple) and run.holds_secret(line[0]):
            refused.add(line[0].id)
    return frozenset(refused)


def _has_secret(learned: LearningRun, run: Run) -> bool:
    """Whether a text of a learning run looks like a secret, so that the run is skipped."""
    proposals = [each.proposal for each in learned.decisions]
    texts = [text for each in proposals for text in (each.content, *(one.text for one in each.quotes))]
    if run.unchecked is not None or not any(texts):
        return False
    return run.holds_secret(Draft(content="\n".join(texts), source=f"learning run {learned.id}"))


def _usage_history(
    records: Sequence[UsageRecord | LearningRun | Learns], ids: Mapping[str, str], refused: Collection[str]
) -> UsageHistory:
    """The usage records of memories in this store, with their ids in this store.

    Learning runs come without the texts of memories that were refused.
    """
    given = 0
    mapped: list[UsageRecord] = []
    runs: list[LearningRun] = []
    for one in records:
        if isinstance(one, LearningRun):
            runs.append(run_known_by(one.without(memories=refused), ids))
            continue
        if isinstance(one, bool):
            continue
        record = one
        if isinstance(record, Example):
            given += record.given
            record = replace(record, given=given)
        if (known := known_by(record, ids)) is not None:
            mapped.append(known)
    return UsageHistory(
        learns=True in records,
        showings=tuple(one for one in mapped if isinstance(one, Example)),
        outcomes=tuple(one for one in mapped if isinstance(one, OutcomeRecord)),
        events=tuple(one for one in mapped if isinstance(one, LifecycleEvent)),
        runs=tuple(runs),
    )


# Memories and their usage records as JSON lines that can be imported without loss.

_SURROGATE = re.compile("[\ud800-\udfff]")


def export_jsonl(
    memories: Iterable[Memory],
    out: TextIO,
    *,
    lifecycle_states: Mapping[str, LifecycleState] | None = None,
    usage_history: UsageHistory | None = None,
    agent: str | None = None,
) -> int:
    """Write one line per memory in the given order, and return the number of written memories.

    `lifecycle_states` are by `Memory.ref`; without them a line has no counts. The records of `usage_history`
    that belong to these memories follow, one per line; events caused by `agent` don't name it.

    Fields are sorted and independent of time and place, so equal memories give equal bytes; `out` must be
    UTF-8 with line feeds. To restore into an empty store, memories must be oldest first, each version after
    the one that it supersedes. Raises InvalidInput for metadata that JSON can't represent.
    """
    written: dict[str, str] = {}
    for memory in memories:
        try:
            line = _as_line(memory_to_json(memory, (lifecycle_states or {}).get(memory.ref)))
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                f"Memory {memory.id!r} can't be exported: its fields hold what JSON can't ({error}). "
                "Revise it with metadata of texts, numbers, lists and objects alone."
            ) from error
        out.write(line)
        written[memory.version_id] = memory.ref
    if usage_history is not None:
        events = tuple(
            replace(one, memory_id=written[name])
            for one in usage_history.events
            if (name := version_of(one)) in written
        )
        of_refs = replace(usage_history, events=events)
        records = usage_history_to_json(of_refs, agent=agent, ids=frozenset(written.values()))
        out.writelines(map(_as_line, records))
    return len(written)


def _as_line(fields: Mapping[str, Any]) -> str:
    text = json.dumps(fields, ensure_ascii=False, sort_keys=True, allow_nan=False)
    # An unpaired surrogate has no UTF-8; as an escape it is restored without loss.
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


# Writing a file in place: links are followed, and the mode and the owner stay.

_KINDS: Final = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
# Opening a pipe without a reader would block forever.
_FLAGS: Final = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@contextmanager
def written_through(path: Path) -> Iterator[TextIO]:
    """Replace the content of a file when the block ends.

    An existing file keeps its mode, its owner and its hard links, and symbolic links are followed. Escaped
    surrogates are written as the bytes that they represent. Raises InvalidInput for anything but an ordinary
    file, and if the file can't be written; then nothing has changed unless the disk is full.
    """
    check_ordinary(path)
    with (
        TemporaryFile() as whole,
        TextIOWrapper(whole, encoding="utf-8", errors="surrogateescape", newline="\n") as text,
    ):
        yield text
        text.flush()
        whole.seek(0)
        _copy(whole, path)


def check_ordinary(path: Path) -> None:
    """Raise InvalidInput for an existing path that isn't an ordinary file."""
    with suppress(FileNotFoundError), _refused(path):
        _check_mode(path, path.stat().st_mode)


def _check_mode(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        raise InvalidInput(
            f"{path} is {kind} and no ordinary file, so nothing is written to it. Name a file."
        )


def _copy(whole: IO[bytes], path: Path) -> None:
    with _refused(path):
        is_new = not path.exists()
        number = os.open(path, _FLAGS, 0o666)
        with os.fdopen(number, "wb") as file:
            _check_mode(path, os.fstat(number).st_mode)
            try:
                shutil.copyfileobj(whole, file)
                file.truncate()
            except OSError:
                if is_new:
                    path.unlink()
                raise


@contextmanager
def _refused(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        if path.parent.is_dir():
            raise
        raise InvalidInput(f"{path} can't be written: the folder {path.parent} doesn't exist.") from None
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InvalidInput(f"{path} can't be written: {why}. Name a file that can be.") from error


# A context as a marked block in a file for agents, such as AGENTS.md, which can be replaced.

BEGIN = "<!-- germane:begin, written by `germane context project`; all up to the end mark is replaced -->"
END = "<!-- germane:end -->"
# Only whole lines are marks; lines of memories always begin with a bullet or an indent.
_BEGINS = re.compile(r"^<!-- germane:begin\b[^\n]*$", re.MULTILINE)
_ENDS = re.compile(r"^<!-- germane:end -->$", re.MULTILINE)


def marked(text: str) -> str:
    """A context between the marks."""
    return f"{BEGIN}\n{text.strip()}\n{END}\n"


def with_block(whole: str, text: str) -> str:
    """The text of a file with the context in place of the previous one, or at the end if there was none.

    Raises InvalidInput if a mark is missing or repeated.
    """
    block = marked(text)
    begins, ends = list(_BEGINS.finditer(whole)), list(_ENDS.finditer(whole))
    if not begins and not ends:
        return f"{whole.rstrip()}\n\n{block}" if whole.strip() else block
    if len(begins) != 1 or len(ends) != 1 or ends[0].start() < begins[0].start():
        raise InvalidInput(
            f"The file has {len(begins)} marks that begin germane's part and {len(ends)} that end it; one of "
            "each, in that order, is needed to replace it. Remove what is left of them, and write it again."
        )
    return whole[: begins[0].start()] + block + whole[ends[0].end() :].removeprefix("\n")


def write_block(path: Path, text: str) -> bool:
    """Write a context into a file, which is created if necessary; returns whether the file changed.

    The bytes outside the marks, the mode and the links of the file stay unchanged. Raises InvalidInput and
    UnreadableSource.
    """
    check_ordinary(path)
    with translated_os_errors(path):
        before = path.read_bytes().decode("utf-8", "surrogateescape") if path.exists() else ""
        ends = "\r\n" if "\r\n" in before else "\n"
        after = with_block(before.replace("\r\n", "\n"), text).replace("\n", ends)
        if after == before:
            return False
    with written_through(path) as file:
        file.write(after)
    return True


# The settings of a project, in the file `germane.toml` at its root.


def read_scoped(path: Path | str) -> ScopedPlan:
    """The scoped plan in the table `scoped` of a file; the default plan without such a table.

    Raises UnreadableSource for invalid TOML, InvalidInput for unknown settings, and InvalidPlan.
    """
    file = Path(path)
    try:
        found = tomllib.loads(read_text(file))
    except tomllib.TOMLDecodeError as error:
        raise unreadable(file, f"it is no TOML ({error})") from error
    table = found.get("scoped", {})
    if not isinstance(table, Mapping):
        raise InvalidInput(f"`scoped` in {file} is no table. Write [scoped].")
    return scoped_from(table, source=str(file)) if table else SCOPED
