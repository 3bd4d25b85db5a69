"""The commands `assemble` and `context …` that build contexts and explain them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import germane
from germane import InvalidInput
from germane.cli import options
from germane.cli.call import Call, command, id_of, recorded
from germane.cli.options import Filters, arg, opt
from germane.cli.output import columns_of_output, print_text, warn, warn_of_context, why_empty
from germane.errors import UnreadableSource
from germane.model.text import table

if TYPE_CHECKING:
    from germane import Context, Engine, Space
    from germane.ledger import Assembly
    from germane.plans import ScopedPlan

_Query = Annotated[str, arg("[QUERY]", "What the context is for; without it the newest memories come first.")]
_Frame = "The agent's activity, from `context frames`; auto: by the query."


class _Settings(NamedTuple):
    """The options of `assemble` and `context explain` beside the filters."""

    budget: options.Budget = None
    plan: Annotated[str, opt("--plan PLAN", "layered, layered_strict, relevance or scoped.")] = "layered"
    frame: Annotated[str | None, opt("--frame FRAME", _Frame)] = None
    guidance: Annotated[
        bool | None, opt("--guidance/--no-guidance", "Add the frame's text; default: with --frame.")
    ] = None
    gate: Annotated[
        bool | None, opt("--gate/--no-gate", "Omit irrelevant memories; default: unless all fit.")
    ] = None
    dates: Annotated[bool, opt("--dates/--no-dates", "Show dates.")] = True
    sources: Annotated[bool, opt("--sources/--no-sources", "Show sources.")] = True
    ids: Annotated[bool, opt("--ids", "Show short ids for `germane memory show`.")] = False
    frames: options.FramesFile = None
    conversation: Annotated[
        Path | None, opt("--conversation FILE", "The conversation so far; its content is omitted.")
    ] = None
    counter: options.CounterName = "o200k"
    pin: Annotated[list[str] | None, opt("--pin ID", "A memory that must be included. Repeatable.")] = None
    without: options.Without = None
    with_space: options.WithSpaces = None
    record: options.Record = False
    now: options.Now = None
    as_of: options.AsOf = None


@command("assemble", space=True)
def _assemble(call: Call, query: _Query = "", *, settings: _Settings, filters: Filters) -> None:
    context = _assembled(call, query, settings, filters)
    if call.prints(context):
        return
    _print_context(call, context, context.text)


@command("context explain", space=True)
def _explain(call: Call, query: _Query = "", *, settings: _Settings, filters: Filters) -> None:
    context = _assembled(call, query, settings, filters)
    value = {"tokens": context.tokens, "trace": context.trace}
    call.answer(value, lambda: context.explain(columns=columns_of_output()))


def _print_context(call: Call, context: Context, text: str) -> None:
    """Print the text, if any, and on standard error the context's notes and counts."""
    if text:
        print_text(text.removesuffix("\n"))
    warn_of_context(context, *why_empty(context.trace.empty_reason, None if call.space else call.agent))


def _assembled(call: Call, query: str, settings: _Settings, filters: Filters) -> Context:
    from germane.operations.inputs import checked_count  # noqa: PLC0415 - The help needs none of it.

    # Before a store is looked for, whose absence would hide it.
    checked_count(settings.budget or 0, name="budget")
    given = settings._asdict()
    file, pins, without = given.pop("conversation"), given.pop("pin") or (), given.pop("without") or ()
    opened = {"now": given.pop("now"), "frames": given.pop("frames")}
    given["spaces"] = call.spaces(given.pop("with_space"))
    try:
        given["conversation"] = None if file is None else file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UnreadableSource(f"{str(file)!r} can't be read: {error}.") from error
    with call.open(writes=settings.record, **opened) as engine:
        given["pins"] = [id_of(engine, each) for each in pins]
        given["without"] = [id_of(engine, each) for each in without]
        return engine.assemble(query, where=filters.where(), **given)


# context refresh: the previous context is rebuilt from the ledger, where each new one is recorded.

_REASONS = {
    "first": "There was no context yet.",
    "filter": "The previous context was built with another filter.",
    "frame": "The activity has changed.",
    "decision_point": "A decision is about to be acted on.",
    "topic": "The message has little in common with the previous context.",
    "pressure": "The previous context was larger than the free tokens.",
}
_REFRESHABLE = frozenset({"assemble", "cut"})
_LOOKED_AT = 100


@command("context refresh", space=True)
def _refresh(
    call: Call,
    message: Annotated[str, arg("[TEXT]", "The latest message.")] = "",
    *,
    context: Annotated[
        str | None,
        opt("--context ID", "The previous context, as 4 or more characters of its id; default: the latest."),
    ] = None,
    free_tokens: Annotated[
        int | None, opt("--free-tokens TOKENS", "The tokens left for a context; a longer one is cut.")
    ] = None,
    acting: Annotated[bool, opt("--acting", "The agent is about to act on a decision.")] = False,
    always: Annotated[bool, opt("--always", "Print the context even if it is not stale.")] = False,
    budget: options.Budget = None,
    plan: Annotated[str | None, opt("--plan PLAN", "Default: the previous plan, else layered.")] = None,
    frame: Annotated[str, opt("--frame FRAME", _Frame)] = "auto",
    frames: options.FramesFile = None,
    scope: Annotated[list[str] | None, opt("--scope SCOPE", "Only this scope. Repeatable.")] = None,
    now: options.Now = None,
) -> None:
    """Call it at each turn with the latest message. The first call builds a context; later calls check if it
    is stale. A new or cut context is printed and recorded in the ledger, where the next call finds it. The
    reason is printed on standard error.
    """
    with call.open(writes=True, now=now, frames=frames, record=True) as engine:
        previous = _previous(engine, context)
        refreshed = engine.refresh(
            None if previous is None else _replayed(engine, previous),
            message,
            free_tokens=free_tokens,
            acting=acting,
            budget=budget,
            plan=plan or ("layered" if previous is None else previous.plan),
            frame=frame,
            counter=None if previous is None else previous.counter,
            scopes=scope or (),
        )
    if call.prints(refreshed):
        return
    made = refreshed.context
    if (refreshed.needed or always) and made.text:
        print_text(made.text.removesuffix("\n"))
    similarity = "" if refreshed.similarity is None else f" Similarity {refreshed.similarity:.2f}."
    if refreshed.reason is None:
        warn(f"The previous context is still current.{similarity}")
    else:
        warn_of_context(made, f"{_REASONS[refreshed.reason.value]}{similarity}")


def _previous(engine: Engine | Space, text: str | None) -> Assembly | None:
    """The recorded context that a text names, or the latest, if any. Raises InvalidInput."""
    if text is None:
        latest = engine.ledger().list(limit=_LOOKED_AT)
        return next((each for each in latest if each.made_for in _REFRESHABLE), None)
    assembly = recorded(engine, text)
    if assembly.made_for not in _REFRESHABLE:
        raise InvalidInput(
            f"Assembly {assembly.id} was made for a {assembly.made_for.replace('_', ' ')}, which can't be "
            "refreshed. Name one that `germane assemble --record` or `germane context refresh` made."
        )
    return assembly


def _replayed(engine: Engine | Space, previous: Assembly) -> Context | None:
    replay = engine.ledger().replay(previous.id)
    if not replay.same:
        why = replay.why[0] if replay.why else "The cause is unknown."
        what = "can't be rebuilt" if replay.context is None else "is rebuilt with other bytes"
        warn(f"Note: The previous context, {previous.id}, {what}. {why}")
    return replay.context


@command("context frames", user=None)
def _frames(call: Call, *, frames: options.FramesFile = None) -> None:
    with germane.open(":memory:", agent=call.agent, embedder=None, frames=frames or ()) as engine:
        known = engine.frames()
    if call.prints(known):
        return
    sections = ("decisions", "facts", "procedures", "episodes")
    rows: list[tuple[str, ...]] = [("FRAME", "total", *sections, "what for")]
    for frame in known:
        shares = dict(frame.shares)
        tokens = (f"{shares.get(name, 0):,}" for name in sections)
        rows.append((frame.name, f"{frame.budget:,}", *tokens, frame.description))
    print_text("\n".join(table(rows, right=(1, 2, 3, 4, 5))))


# context project: the scoped plan for a task and the paths that it changes.


class _Format(StrEnum):
    """How `context project` prints the context."""

    TEXT = "text"
    AGENTS_MD = "agents-md"


@command("context project", space=True)
def _project(
    call: Call,
    query: Annotated[str, arg("[QUERY]", "A description of the task.")] = "",
    *,
    task: Annotated[str | None, opt("--task TASK", "The task's id, or a description.")] = None,
    path: Annotated[list[str] | None, opt("--path PATH", "A file or folder in use. Repeatable.")] = None,
    scope: Annotated[
        list[str] | None, opt("--scope SCOPE", "A scope of your own, such as team:core. Repeatable.")
    ] = None,
    with_space: options.WithSpaces = None,
    budget: Annotated[int, opt("--budget TOKENS", "Maximum tokens of the text.")] = 8000,
    estimate: Annotated[
        bool, opt("--estimate", "Estimate tokens instead of counting: plan scoped_estimate.")
    ] = False,
    task_type: Annotated[
        str | None, opt("--task-type NAME", "Use the settings of [scoped.task_types.NAME].")
    ] = None,
    column: Annotated[str | None, opt("--column NAME", "Use the settings of [scoped.columns.NAME].")] = None,
    board: Annotated[str | None, opt("--board NAME", "Use the settings of [scoped.boards.NAME].")] = None,
    root: options.Root = None,
    config: Annotated[
        Path | None, opt("--config FILE", "The settings; by default germane.toml at the root.")
    ] = None,
    counter: options.CounterName = None,
    git: Annotated[bool, opt("--git/--no-git", "Ask git when the paths last changed.")] = True,
    form: Annotated[
        _Format, opt("--format", "The text alone, or with the markers of a block in AGENTS.md.")
    ] = _Format.TEXT,
    write: Annotated[
        Path | None, opt("--write FILE", "Write it to this file, replacing the previous block.")
    ] = None,
    explain: Annotated[bool, opt("--explain", "Print what is included and left out, and why.")] = False,
    now: options.Now = None,
) -> None:
    from germane.importers.transfer import marked, write_block  # noqa: PLC0415 - Only for projects.

    plan = _scoped_plan(config, root=root, estimate=estimate, board=board, column=column, task_type=task_type)
    paths, changed = _paths(path or (), root=root, git=git and not estimate)
    spaces = call.spaces(with_space)
    with call.open(now=now) as engine:
        context = engine.assemble(
            query,
            plan=plan,
            task=task,
            paths=paths,
            scopes=scope or (),
            spaces=spaces,
            budget=budget,
            counter=counter,
            changed=changed,
        )
    if write is not None:
        warn(f"{'Wrote' if write_block(write, context.text) else 'Nothing to change in'} {write}.")
    if call.prints(context):
        return
    if explain:
        print_text(context.explain(columns=columns_of_output()).removesuffix("\n"))
        return
    text = marked(context.text) if form is _Format.AGENTS_MD else context.text
    _print_context(call, context, text if write is None else "")


def _scoped_plan(
    config: Path | None, *, root: Path | None, estimate: bool, **names: str | None
) -> ScopedPlan:
    """The plan of the settings file with the named board, column and task type. Raises InvalidInput."""
    from germane.importers.project import SETTINGS, root_over  # noqa: PLC0415 - Only for projects.
    from germane.importers.transfer import read_scoped  # noqa: PLC0415 - As above.
    from germane.plans.scoped import ESTIMATE, SCOPED  # noqa: PLC0415 - As above.

    if estimate:
        if config or any(names.values()):
            raise InvalidInput(
                "--estimate takes no settings: leave out --config, --board, --column, --task-type."
            )
        return ESTIMATE
    file = config or root_over(root or Path.cwd(), root) / SETTINGS
    plan = read_scoped(file) if config is not None or file.is_file() else SCOPED
    return plan.of(**names)


def _paths(named: Sequence[str], *, root: Path | None, git: bool) -> tuple[list[str], dict[str, datetime]]:
    """The paths relative to the project's root, and when each last changed. Raises InvalidInput."""
    if not named:
        return [], {}
    from germane.importers.git import changed_paths  # noqa: PLC0415 - Only where paths are named.
    from germane.importers.project import root_over  # noqa: PLC0415 - As above.

    top = root_over(root or Path.cwd(), root)
    paths = []
    for name in named:
        # Links are not followed: a link inside the project is a path of the project.
        inside = Path(os.path.normpath(Path(name).expanduser().absolute()))
        if not inside.is_relative_to(top):
            raise InvalidInput(
                f"--path {name!r} lies outside the project at {str(top)!r}. Name a path inside it, or run "
                "the command in the other project."
            )
        paths.append(inside.relative_to(top).as_posix())
    return paths, changed_paths(top, paths) if git else {}
