"""The commands `remember`, `recall`, `memory …`, `db maintain`, `db stats` and `db doctor`."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from germane import InvalidInput, Level, Memory
from germane.cli import options
from germane.cli.call import Call, check_exists, command, id_of
from germane.cli.options import Filters, arg, fields_of, opt
from germane.cli.output import (
    columns_of_output,
    label_of,
    memory_line,
    print_columns,
    print_text,
    size_of,
    warn,
    warn_each,
    why_empty,
)
from germane.encoding import to_json
from germane.model.context import short_id, why_of
from germane.model.memory import diff
from germane.model.text import bar, counted, cut, table
from germane.provenance import quarantine_of

if TYPE_CHECKING:
    from germane import Ranked, RecallResult
    from germane.lifecycle import UpkeepStep
    from germane.stores import StoreStats

_LONG_LABEL = 100
_STEP_LABEL = 60
_EMPTY: tuple[Any, ...] = (None, [], {})


@command("remember", space=True)
def _remember(
    call: Call,
    text: options.MemoryText,
    *,
    fields: options.DraftFields,
    reconcile: Annotated[bool, opt("--reconcile", "Let a fact confirm or replace an earlier one.")] = False,
    force: Annotated[bool, opt("--force", "Store it whatever its quality.")] = False,
) -> None:
    """Text of low quality (small talk, a passing state, a non-answer, an episode repeated within two days) is
    refused, and a secret is put into quarantine, unless --force is given.
    """
    from germane import Draft  # noqa: PLC0415 - The other commands of this file make none.

    draft = Draft(content=_text_of(text), **fields.checked())
    with call.open(makes=True) as engine:
        done = engine.remember_many([draft], reconcile=reconcile, quality="refuse", force=force)[0]
    updated = f", {done.what}" if done.updated else ""
    known = f"Known already, seen {done.memory.seen_count} times{updated}"
    verb = _in_quarantine(done.memory) or ("Remembered" if done.created else known)
    call.answer(done, memory_line(verb, done.memory))


@command("recall", space=True)
def _recall(
    call: Call,
    query: options.QueryText,
    *,
    limit: options.Limit = 10,
    filters: Filters,
    with_space: options.WithSpaces = None,
    include_superseded: Annotated[
        bool, opt("--include-superseded", "Include old versions of memories.")
    ] = False,
    ranker: Annotated[
        str, opt("--ranker NAME", "relevance, or hybrid: half meaning, half tags, recency and accesses.")
    ] = "relevance",
    into: options.Into = None,
    now: options.Now = None,
    as_of: options.AsOf = None,
) -> None:
    if into is not None and with_space:
        raise InvalidInput(
            f"--into {into} takes the agent's own memories, and --with-space adds others. Use one of them."
        )
    from germane.operations.inputs import checked_count  # noqa: PLC0415 - The help needs none of it.

    # Before a store is looked for, whose absence would hide it.
    checked_count(limit, name="limit", least=1)
    spaces = call.spaces(with_space)
    with call.open(writes=into is not None, now=now) as engine:
        recalled = engine.recall(
            query,
            limit=limit,
            include_superseded=include_superseded,
            where=filters.where(),
            ranker=ranker,
            spaces=spaces,
            as_of=as_of,
        )
        entered = None if into is None else _entered(engine.working_set(into), recalled)
    if call.prints({**to_json(recalled), "entered": entered and entered[0]}):
        return
    _print_ranked(recalled, None if call.space else call.agent)
    if entered is not None:
        print_text(entered[1])


@command("memory list", space=True)
def _list(
    call: Call,
    *,
    filters: Filters,
    pinned: Annotated[bool, opt("--pinned", "Only pinned memories.")] = False,
    session: Annotated[str | None, opt("--session NAME", "Only what was learned in this session.")] = None,
    status: Annotated[
        list[str] | None,
        opt("--status STATUS", "active (default), superseded, archived or forgotten. Repeatable."),
    ] = None,
    order: Annotated[str, opt("--order ORDER", "newest, oldest or important first.")] = "newest",
    limit: options.Limit = 20,
    after: Annotated[str | None, opt("--after ID", "Continue after the last memory of a page.")] = None,
    as_of: options.AsOf = None,
) -> None:
    if limit < 1:
        raise InvalidInput(f"--limit={limit} shows nothing: take 1 or more.")
    where = filters.where(pinned=pinned or None, statuses=status, session=session)
    with call.open() as engine:
        start = None if after is None else id_of(engine, after)
        memories = engine.memories(where, order=order, limit=limit + 1, after=start, as_of=as_of)
        total = engine.count(where, as_of=as_of)
        notes = engine.filter_warnings(where)
    page = memories[:limit]
    last = page[-1].ref if len(memories) > limit else None
    if call.prints({"memories": page, "total": total, "after": last, "notes": notes}):
        return
    warn_each(notes)
    if page:
        columns = {
            "id": lambda each: short_id(each.ref),
            "kind": lambda each: each.kind,
            "scope": lambda each: str(each.scope),
            "made": lambda each: f"{each.created_at:%Y-%m-%d}",
        }
        print_columns(page, columns, memory=(lambda each: each, _LONG_LABEL))
    rest = f" Go on with --after {short_id(last)}." if last else ""
    warn(f"{len(page):,} of {total:,} memories.{rest}")


@command("memory show", space=True)
def _show(call: Call, memory_id: options.Target, *, as_of: options.AsOf = None) -> None:
    with call.open() as engine:
        memory = engine.get(id_of(engine, memory_id), as_of=as_of)
        versions = tuple(each for each in engine.history(memory.id) if each.version <= memory.version)
    briefly = [
        {"id": each.version_id, "version": each.version, "status": each.status, "created_at": each.created_at}
        for each in versions
    ]
    if not call.prints({"memory": memory, "renditions": memory.renditions, "versions": briefly}):
        _print_memory(memory, versions)


@command("memory history", space=True)
def _history(call: Call, memory_id: options.Target) -> None:
    with call.open() as engine:
        versions = engine.history(id_of(engine, memory_id))
    diffs = [diff(before, after) for before, after in pairwise(versions)]
    if call.prints({"versions": versions, "diffs": diffs}):
        return
    _print_versions(versions)
    for each in diffs:
        print_text(f"\n{each}".removesuffix("\n"))


@command("memory revise", space=True)
def _revise(
    call: Call,
    memory_id: options.Target,
    content: Annotated[str | None, arg("[TEXT]", "The new text; - reads standard input.")] = None,
    *,
    subject: options.Subject = None,
    tag: options.Tags = None,
    importance: options.Importance = None,
    confidence: options.Confidence = None,
    outcome: options.OutcomeName = None,
    pinned: Annotated[bool | None, opt("--pinned/--unpinned", "Whether contexts always show it.")] = None,
    meta: options.Meta = None,
    valid_from: options.ValidFrom = None,
    valid_until: options.ValidUntil = None,
    force: Annotated[bool, opt("--force", "Store it also where it looks like a secret.")] = False,
) -> None:
    """Only the given fields change. The previous version remains in the history."""
    with call.open(writes=True) as engine:
        memory = engine.revise(
            id_of(engine, memory_id),
            None if content is None else _text_of(content),
            subject=subject,
            tags=tag or None,
            importance=importance,
            confidence=confidence,
            outcome=outcome,
            pinned=pinned,
            metadata=fields_of(meta) if meta else None,
            valid_from=valid_from,
            valid_until=valid_until,
            force=force,
        )
    verb = _in_quarantine(memory) or f"Revised, now version {memory.version}"
    call.answer({"memory": memory}, memory_line(verb, memory))


@command("memory forget", space=True)
def _forget(call: Call, memory_id: options.Target) -> None:
    with call.open(writes=True) as engine:
        memory = engine.forget(id_of(engine, memory_id))
    call.answer({"memory": memory}, memory_line("Forgotten", memory))


@command("memory restore", space=True)
def _restore(call: Call, memory_id: options.Target) -> None:
    with call.open(writes=True) as engine:
        memory = engine.restore(id_of(engine, memory_id))
    call.answer({"memory": memory}, memory_line("Restored", memory))


@command("memory purge", space=True)
def _purge(call: Call, memory_id: options.Target, *, yes: options.Yes = False) -> None:
    """All its versions and every trace of their text in the file are deleted."""
    with call.open(writes=True) as engine:
        whole_id = id_of(engine, memory_id)
        purged = engine.purge(whole_id, confirm=yes)
    call.answer(
        {"id": whole_id, "purged": purged},
        f"Purged {short_id(whole_id)}: {purged} version{'' if purged == 1 else 's'} gone.",
    )


def _text_of(text: str) -> str:
    """The text, or all of standard input for a dash, without the final line feed."""
    if text != "-":
        return text
    stream = getattr(sys.stdin, "buffer", None)
    try:
        read = sys.stdin.read() if stream is None else stream.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"The standard input is not UTF-8 (byte {error.start}). Convert it, with iconv for instance."
        ) from error
    return read.removesuffix("\n").removesuffix("\r")


def _entered(working_set: Any, recalled: RecallResult) -> tuple[dict[str, Any], str]:
    """Add the results to a working set, and return the outcome as JSON and as text."""
    from germane.cli.working_sets import added_text, figures_of, fill  # noqa: PLC0415 - Only with --into.

    added = working_set.add_recalled(recalled)
    now = figures_of(working_set)
    left_out = [memory.id for memory in added.left_out]
    text = added_text(added, "Entered", f", {len(left_out)} didn't fit" if left_out else "")
    return {**to_json(added), "left_out": left_out, "set": now}, text + fill(now)


def _print_ranked(recalled: RecallResult, agent: str | None) -> None:
    warn_each(recalled.notes)
    for line in why_empty(recalled.empty_reason, agent):
        warn(line)
    if recalled:
        columns = {
            "score": lambda ranked: f"{ranked.score:.2f}",
            "why": _why,
            "id": lambda ranked: short_id(ranked.memory.ref),
            "kind": lambda ranked: ranked.memory.kind,
            "made": lambda ranked: f"{ranked.memory.created_at:%Y-%m-%d}",
        }
        print_columns(recalled, columns, right=(0,), memory=(lambda ranked: ranked.memory, _LONG_LABEL))


def _why(ranked: Ranked) -> str:
    """The parts of a score, and the fused rankings."""
    why, fused = why_of(ranked.parts), ranked.fused
    return why if fused is None else f"{why}; fused {fused.score:.4f} of {', '.join(fused.sources) or 'none'}"


def _in_quarantine(memory: Memory) -> str:
    """What to print of a memory that went to quarantine; empty for any other."""
    rules = ", ".join(quarantine_of(memory))
    return f"Stored in quarantine ({rules}) and not shown; see `germane quarantine`" if rules else ""


def _print_memory(memory: Memory, versions: tuple[Memory, ...]) -> None:
    fields = to_json(memory)
    content = fields.pop("content")
    width = max(map(len, fields))
    for name, value in fields.items():
        if value not in _EMPTY:
            print_text(f"{name:<{width}}  {_value(value)}")
    print_text(f"\n{content}")
    for level in (Level.MICRO, Level.SUMMARY, Level.FULL):
        rendition = memory.renditions.at(level)
        text = "the text above" if rendition.text == content and level is Level.FULL else rendition.text
        print_text(f"\n{level} ({counted(rendition.tokens, 'token')} by {memory.renditions.counter}): {text}")
    if len(versions) > 1:
        print_text("")
        _print_versions(versions)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        value = [f"{name}={each}" for name, each in value.items()]
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _print_versions(versions: tuple[Memory, ...]) -> None:
    columns = {
        "version": lambda each: str(each.version),
        "id": lambda each: short_id(each.version_id),
        "status": lambda each: str(each.status),
        "made": lambda each: f"{each.created_at:%Y-%m-%d %H:%M}",
    }
    print_columns(versions, columns, right=(0,), memory=(lambda each: each, _LONG_LABEL))


# The lifecycle of a memory.


@command("memory confirm", space=True)
def _confirm(
    call: Call,
    memory_id: options.Target,
    *,
    core: Annotated[bool, opt("--core", "Make it a core fact at once.")] = False,
    vouched_by: Annotated[
        Literal["user", "operator"] | None,
        opt("--vouched-by WHO", "Who has read it and vouches for it: user or operator."),
    ] = None,
) -> None:
    with call.open(writes=True) as engine:
        _print_state(call, engine.confirm(id_of(engine, memory_id), core=core, vouched_by=vouched_by))


@command("memory contradict", space=True)
def _contradict(
    call: Call,
    memory_id: options.Target,
    *,
    by: Annotated[str | None, opt("--by ID", "The memory that contradicts it.")] = None,
) -> None:
    with call.open(writes=True) as engine:
        other = None if by is None else id_of(engine, by)
        _print_state(call, engine.contradict(id_of(engine, memory_id), by=other))


@command("memory review", space=True)
def _review(
    call: Call,
    memory_id: options.Target,
    outcome: Annotated[str, arg("OUTCOME", "success, partial, ongoing, pending, failure or abandoned.")],
    *,
    result: Annotated[str | None, opt("--result TEXT", "The result of a decision.")] = None,
) -> None:
    with call.open(writes=True) as engine:
        _print_state(call, engine.review(id_of(engine, memory_id), outcome, result=result))


@command("memory record-trigger", space=True)
def _record_trigger(
    call: Call,
    memory_id: options.Target,
    *,
    false_positive: Annotated[bool, opt("--false-positive", "It was a false alarm.")] = False,
) -> None:
    with call.open(writes=True) as engine:
        memory = engine.record_trigger(id_of(engine, memory_id), false_positive=false_positive)
        _print_state(call, memory)


@command("memory retire", space=True)
def _retire(call: Call, memory_id: options.Target) -> None:
    with call.open(writes=True) as engine:
        _print_state(call, engine.retire(id_of(engine, memory_id)))


@command("memory events")
def _events(
    call: Call,
    memory_id: Annotated[str | None, arg("[ID]", "Only events of this memory.")] = None,
    *,
    after: options.AfterNumber = 0,
    limit: Annotated[int | None, opt("--limit N", "The maximum number of events.", min=1)] = None,
) -> None:
    with call.engine() as engine:
        only = None if memory_id is None else id_of(engine, memory_id)
        events = engine.events(only, after=after or 0, limit=limit)
    if call.prints(events):
        return
    if not events:
        print_text("It has no events yet." if only else "There are no events yet.")
        return
    columns = {
        "number": lambda event: str(event.number),
        "at": lambda event: f"{event.at:%Y-%m-%d %H:%M}",
        "memory": lambda event: short_id(event.memory_id),
        "what": lambda event: str(event.sign).replace("_", " "),
        "stage": lambda event: " → ".join(dict.fromkeys((str(event.before), str(event.after)))),
        "why": lambda event: event.cause + (f" ({short_id(event.other)})" if event.other else ""),
        "by": lambda event: event.by,
    }
    print_columns(events, columns, right=(0,))


@command("db maintain", space=True)
def _maintain(
    call: Call,
    *,
    dry_run: Annotated[bool, opt("--dry-run", "Change nothing; show the steps that are due.")] = False,
) -> None:
    """Also marks outdated quotations. It can be interrupted; the next call continues."""
    # A dry run changes nothing, so a read-only file will do.
    with call.open(writes=not dry_run) as engine:
        upkeep = engine.maintain(dry_run=dry_run, progress=_report_step if sys.stderr.isatty() else None)
        labels = {step: label_of(engine.get(step.memory_id), _STEP_LABEL) for step in upkeep.steps}
    if call.prints(upkeep):
        return
    if upkeep.steps:
        columns = {
            "task": lambda step: str(step.task),
            "memory": lambda step: short_id(step.memory_id),
            "stage": lambda step: f"{step.before} → {step.after}" if step.after else "",
            "with": lambda step: short_id(step.other) if step.other else "",
            "text": labels.__getitem__,
        }
        print_columns(upkeep.steps, columns)
    steps = counted(len(upkeep.steps), "step")
    done = f"{steps} due; nothing was changed." if upkeep.dry_run else f"{upkeep.done:,} of {steps} done."
    failing = f" Procedures that mostly fail: {', '.join(map(short_id, upkeep.flagged))}."
    print_text(done + (failing if upkeep.flagged else ""))


def _print_state(call: Call, memory: Memory) -> None:
    line = memory_line(str(memory.stage).capitalize(), memory)
    call.answer({"memory": memory}, f"{line}  (confidence {memory.confidence:.2f})")


def _report_step(done: int, of: int, step: UpkeepStep | None) -> None:
    """Overwrite one line of a terminal with the progress."""
    end = "\n" if done == of else ""
    sys.stderr.write(f"\r{done:,} of {of:,}{f'  {step.task}' if step else ''}\x1b[K{end}")
    sys.stderr.flush()


# Statistics and the health of the store.

_BAR = 40
_USUAL_LANGUAGE = "english"
_FOUND_WRONG = 1


@command("db stats", space=True)
def _stats(call: Call) -> None:
    with call.open() as engine:
        stats = engine.stats()
    if call.prints(stats):
        return
    columns = columns_of_output()
    print_text("\n".join(cut(line, columns) for line in table(_rows(stats))))
    if stats.by_kind:
        most = max(stats.by_kind.values())
        bars = [
            (kind, f"{count:,}", bar(count, count, scale=most, columns=min(_BAR, columns // 2)))
            for kind, count in sorted(stats.by_kind.items(), key=lambda each: (-each[1], each[0]))
        ]
        print_text("\n" + "\n".join(table(bars, right=(1,))))


@command("db doctor", space=True)
def _doctor(
    call: Call,
    *,
    repair: Annotated[
        bool, opt("--repair", "Save what can be saved, of all agents, and print what was lost.")
    ] = False,
) -> None:
    """Exits with 1 if damage is found, or with --repair if something was lost, set aside or is still damaged.

    With --repair, what can be read of a file that SQLite can't read whole is written to a new file beside it;
    the damaged file is unchanged.
    """
    if repair:
        _repair(call)
        return
    with call.open() as engine:
        findings = engine.doctor()
    damage = [each for each in findings if not each.advice]
    lines = [
        f"{each.code}: {each.text}\n  {'Advice' if each.advice else 'Remedy'}: {each.remedy}"
        for each in findings
    ]
    text = "\n".join(lines) or f"{call.location}: nothing wrong was found."
    call.answer({"healthy": not damage, "findings": findings, "repair": None}, text)
    if damage:
        raise typer.Exit(_FOUND_WRONG)


def _repair(call: Call) -> None:
    from germane.stores import repair_store  # noqa: PLC0415 - The other commands of this file repair nothing.

    check_exists(call.database)
    report = repair_store(call.database)
    lines = [f"Repaired: {each.code}: {each.text}" for each in report.found if each not in report.left]
    for title, losses in (("Set aside", report.set_aside), ("Lost", report.lost)):
        lines += [
            f"{title}: {each.what} {each.id or ''}{' of ' + each.agent if each.agent else ''}: {each.text}"
            for each in losses
        ]
    lines += [f"Left: {each.code}: {each.text}\n  Remedy: {each.remedy}" for each in report.left]
    if report.pending:
        lines.append(f"{counted(report.pending, 'memory')} wait for a vector: germane db embed")
    if report.new_file is not None:
        lines.append(
            f"The repaired store is {report.new_file}. {report.location} is unchanged: keep it until you "
            "have looked at the new one, then put the new one in its place."
        )
    is_whole = not (report.set_aside or report.lost or report.left)
    text = "\n".join(lines) or f"{call.location}: nothing wrong was found."
    call.answer({"healthy": not report.left, "findings": report.left, "repair": report}, text)
    if not is_whole:
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
        waiting = f", {counted(stats.pending, 'memory')} without one" if stats.pending else ""
        rows.append(("Vectors", f"{stats.vectors:,} by {stats.embedding}{waiting}"))
    if stats.language != _USUAL_LANGUAGE:
        rows.append(("Language", stats.language))
    return rows
