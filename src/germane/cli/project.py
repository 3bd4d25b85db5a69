"""context and outcome: what a project knows for the work at hand, and how that work turned out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from germane import InvalidInput
from germane.cli import options
from germane.cli.lifecycle import read_shown, whole_ids
from germane.cli.options import Call, arg, command, opt
from germane.cli.output import print_text, warn, warn_of_context, why_empty

if TYPE_CHECKING:
    from germane import Context
    from germane.plans import ScopedPlan

_BUDGET = 8000


class _Format(StrEnum):
    """How `germane context` prints what it found."""

    TEXT = "text"
    AGENTS_MD = "agents-md"


class _Result(StrEnum):
    """How work turned out."""

    SUCCESS = "success"
    PARTIAL = "partial"
    FAILURE = "failure"


_Query = Annotated[str, arg("[QUERY]", "What the task is about, in any words.")]
_Task = Annotated[str | None, opt("--task TASK", "The task, by its id or in words.")]
_Paths = Annotated[list[str] | None, opt("--path PATH", "A file or folder that is worked on. Repeatable.")]
_Scopes = Annotated[
    list[str] | None, opt("--scope SCOPE", "A scope of your own, such as team:core. Repeatable.")
]
_Estimate = Annotated[
    bool, opt("--estimate", "Keep the budget by an estimate of contents: plan scoped_estimate.")
]
_TaskType = Annotated[str | None, opt("--task-type NAME", "Settings of [scoped.task_types.NAME].")]
_Column = Annotated[str | None, opt("--column NAME", "Settings of [scoped.columns.NAME].")]
_Board = Annotated[str | None, opt("--board NAME", "Settings of [scoped.boards.NAME].")]
_Root = Annotated[
    Path | None,
    opt(
        "--root FOLDER",
        "The project's root, if not where a germane.toml, a repository or a manifest is found above.",
    ),
]
_Config = Annotated[Path | None, opt("--config FILE", "The settings; germane.toml at the root unless given.")]
_Counter = Annotated[str | None, opt("--counter NAME", "Who counts tokens: a counter or a model's name.")]
_Git = Annotated[bool, opt("--git/--no-git", "Ask git when the paths were changed last.")]
_Form = Annotated[_Format, opt("--format", "The text alone, or between marks for a file for agents.")]
_Write = Annotated[Path | None, opt("--write FILE", "Put it into this file, in the place of the last one.")]
_Explain = Annotated[bool, opt("--explain", "Print instead what is in, what is not, and why.")]


@command("context")
def _context(
    call: Call,
    query: _Query = "",
    *,
    task: _Task = None,
    path: _Paths = None,
    scope: _Scopes = None,
    with_space: options.WithSpaces = None,
    budget: options.Budget = _BUDGET,
    estimate: _Estimate = False,
    task_type: _TaskType = None,
    column: _Column = None,
    board: _Board = None,
    root: _Root = None,
    config: _Config = None,
    counter: _Counter = None,
    git: _Git = True,
    form: _Form = _Format.TEXT,
    write: _Write = None,
    explain: _Explain = False,
    now: options.Now = None,
) -> None:
    how = _settings(config, root=root, estimate=estimate, board=board, column=column, task_type=task_type)
    paths, changed = _paths(path or (), root=root, git=git and not estimate)
    with call.open(now=now) as engine:
        context = engine.assemble(
            query,
            plan=how,
            task=task,
            paths=paths,
            scopes=scope or (),
            spaces=with_space or (),
            budget=budget,
            counter=counter,
            changed=changed,
        )
    if write is not None:
        _write(write, context)
    _show(call, context, form=form, explained=explain, written=write is not None)


@command("outcome")
def _outcome(
    call: Call,
    result: Annotated[_Result, arg("success|partial|failure", "How the work turned out.")],
    *,
    context: Annotated[
        Path,
        opt(
            "--context FILE",
            "What `context --json` or `assemble --json` printed; - reads it from the standard input.",
        ),
    ],
    memory: Annotated[
        list[str] | None, opt("--memory ID", "One that helped or misled; without any, all shown. Repeatable.")
    ] = None,
) -> None:
    shown = read_shown(context)
    with call.open(writes=True) as engine:
        told = engine.outcome(
            shown, str(result), memories=None if memory is None else whole_ids(memory, shown)
        )
    known = told.memories - told.updated
    call.answer(
        {"outcome": result, "memories": told.memories, "updated": told.updated},
        f"Noted {result} for {told.memories} memor{'y' if told.memories == 1 else 'ies'}"
        + (f"; known already: {known}." if known else "."),
    )


def _settings(
    config: Path | None,
    *,
    root: Path | None,
    estimate: bool,
    board: str | None,
    column: str | None,
    task_type: str | None,
) -> ScopedPlan:
    from germane.importers.manifests import SETTINGS, root_over  # noqa: PLC0415 - Only this command needs it.
    from germane.importers.project import read_scoped  # noqa: PLC0415 - As above.
    from germane.plans.scoped import ESTIMATE, SCOPED  # noqa: PLC0415 - As above.

    if estimate:
        if config or board or column or task_type:
            raise InvalidInput(
                "--estimate takes no settings: leave out --config, --board, --column, --task-type."
            )
        return ESTIMATE
    file = config or root_over(root or Path.cwd(), root) / SETTINGS
    how = read_scoped(file) if config is not None or file.is_file() else SCOPED
    return how.of(board=board, column=column, task_type=task_type)


def _paths(named: Sequence[str], *, root: Path | None, git: bool) -> tuple[list[str], dict[str, datetime]]:
    """The paths from the project's root, and when each was changed last. Raises InvalidInput."""
    if not named:
        return [], {}
    from germane.importers.git import changed_paths  # noqa: PLC0415 - Only where paths are named.
    from germane.importers.manifests import root_over  # noqa: PLC0415 - As above.

    top = root_over(root or Path.cwd(), root)
    paths = []
    for name in named:
        absolute = Path(name).expanduser().absolute()
        # Without following links: a link inside the project is a place of the project.
        inside = Path(*_without_dots(absolute))
        if not inside.is_relative_to(top):
            raise InvalidInput(
                f"--path {name!r} lies outside the project at {str(top)!r}. Name a path inside it, or run "
                "the command in the other project."
            )
        paths.append(inside.relative_to(top).as_posix())
    return paths, changed_paths(top, paths) if git else {}


def _without_dots(path: Path) -> list[str]:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts[1:] = parts[1:-1]
        else:
            parts.append(part)
    return parts


def _write(file: Path, context: Context) -> None:
    from germane.importers.transfer import write_block  # noqa: PLC0415 - Only where a file is written.

    changed = write_block(file, context.text)
    warn(f"{'Wrote' if changed else 'Nothing to change in'} {file}.")


def _show(call: Call, context: Context, *, form: _Format, explained: bool, written: bool) -> None:
    if call.prints(context):
        return
    if explained:
        print_text(context.explain().removesuffix("\n"))
        return
    if not written:
        if form is _Format.AGENTS_MD:
            from germane.importers.transfer import marked  # noqa: PLC0415 - Only in this form.

            print_text(marked(context.text).removesuffix("\n"))
        elif context.text:
            print_text(context.text.removesuffix("\n"))
    warn_of_context(context, *why_empty(context.trace.empty_reason, call.agent))
