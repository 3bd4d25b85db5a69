"""The commands `learn …`, `consolidate` and `about`: facts from conversations, their log, and entities."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from germane import InvalidInput
from germane.cli.call import Call, command
from germane.cli.options import AsOf, arg, opt
from germane.cli.output import print_columns, print_text
from germane.errors import MessageNotFound
from germane.model.context import short_id
from germane.model.text import line_of

if TYPE_CHECKING:
    from germane.extractors import Decision, EntityFact, LearningRun
    from germane.protocols import Extractor

_Run = Annotated[str, arg("RUN", "Id of the run, or its last eight digits.")]
_Private = Annotated[bool, opt("--private", "Into a space: learn also what a user said in private.")]


class ModelOptions(NamedTuple):
    """The options that name a model to learn with."""

    model: Annotated[str | None, opt("--model NAME", "Learn with this model; default: by rules.")] = None
    api: Annotated[str, opt("--api NAME", "Interface of the model: openai or anthropic.")] = "openai"
    base_url: Annotated[
        str | None, opt("--base-url URL", "Address of the model's server; default: the provider's.")
    ] = None
    max_tokens: Annotated[
        int, opt("--max-tokens N", "Make no further call once the calls took so many.", min=1)
    ] = 100_000


@command("learn from", space=True)
def _from(
    call: Call,
    source: Annotated[str, arg("SESSION|FILE", "Name of a conversation, or a transcript.")],
    *,
    since: Annotated[str | None, opt("--since TIME", "Read only messages from then on.")] = None,
    again: Annotated[bool, opt("--again", "Read all messages, also those that were read.")] = False,
    dry_run: Annotated[bool, opt("--dry-run", "Show what would be learned; store nothing.")] = False,
    private: _Private = False,
    using: ModelOptions,
) -> None:
    """Each fact names the message that states it. Only new messages of a conversation are read, and those of
    a transcript all. All members of a space see what is learned into it, without the words of the
    conversation. The key of a model is taken from OPENAI_API_KEY or ANTHROPIC_API_KEY.
    """
    # A transcript may be the first that an agent learns from; a space must exist.
    makes = not dry_run and call.space is None and Path(source).is_file()
    with call.engine(writes=not dry_run, makes=makes) as engine:
        if any(info.session == source for info in engine.sessions()):
            named: list[object] = [engine.conversation(source)]
        elif Path(source).is_file():
            from germane.importers.dialogue import read_conversations  # noqa: PLC0415 - Only here.

            named = [messages for _, messages in read_conversations(Path(source), None)]
        else:
            raise MessageNotFound("conversation", source, source)
        extractor = _extractor(using)
        how: dict[str, Any] = {"extractor": extractor, "since": since, "again": again, "dry_run": dry_run}
        learner: Any = engine
        if call.space is not None:
            learner, how["private"] = engine.space(call.space), private
        runs = [learner.learn_from(each, **how) for each in named]
    _show_runs(call, runs)


@command("consolidate", space=True)
def _consolidate(
    call: Call,
    *,
    reflect: Annotated[bool, opt("--reflect", "Also summarize each topic of four or more facts.")] = False,
    dry_run: Annotated[bool, opt("--dry-run", "Show what would be learned; store nothing.")] = False,
    private: _Private = False,
    using: ModelOptions,
) -> None:
    """Run it when the agent is idle, for instance every night. With --space, the agent's conversations are
    learned into the space, where all members see the facts.
    """
    with call.engine(writes=not dry_run) as engine:
        extractor = _extractor(using)
        if call.space is None:
            runs = engine.consolidate(extractor=extractor, reflect=reflect, dry_run=dry_run)
        elif reflect:
            raise InvalidInput("--reflect summarizes an agent's own memories. Leave it out with --space.")
        else:
            space = engine.space(call.space)
            runs = space.consolidate(extractor=extractor, dry_run=dry_run, private=private)
    _show_runs(call, runs)


@command("learn runs", space=True)
def _runs(
    call: Call,
    *,
    session: Annotated[str | None, opt("--session NAME", "Only those of this conversation.")] = None,
    memory: Annotated[str | None, opt("--memory ID", "Only those that concern this memory.")] = None,
    limit: Annotated[int, opt("--limit N", "The maximum number of runs to list.", min=1)] = 20,
) -> None:
    with call.open() as engine:
        runs = engine.learning_runs(session=session, memory_id=memory, limit=limit)
    if call.prints({"runs": runs}):
        return
    if not runs:
        print_text("Nothing was learned from conversations. `germane learn from` does it.")
        return
    columns = {
        "ID": lambda run: short_id(run.id),
        "AT (UTC)": lambda run: f"{run.at:%Y-%m-%d %H:%M}",
        "SESSION": lambda run: run.session or "",
        "EXTRACTOR": lambda run: run.extractor,
        "DECISIONS": lambda run: ", ".join(f"{count} {name}" for name, count in run.counts.items()),
        "UNDONE": lambda run: "" if run.undone_at is None else "undone",
    }
    print_columns(runs, columns)


@command("learn show", space=True)
def _show(call: Call, run: _Run) -> None:
    with call.open() as engine:
        found = engine.learning_run(run)
    if call.prints(found):
        return
    _print_run(found, quotes=True)


@command("learn undo", space=True)
def _undo(call: Call, run: _Run) -> None:
    """What the run stored is removed, and what it changed stands as before. A memory that was changed since
    is left as it is.
    """
    with call.open(writes=True) as engine:
        undone = engine.unlearn(run)
    left = [each for each in undone.decisions if each.effects and not each.undone]
    lines = [f"Undone: {sum(each.undone for each in undone.decisions)} of {len(undone.decisions)} decisions."]
    call.answer(undone, "\n".join([*lines, *map(_line, left)]))


@command("learn same")
def _same(
    call: Call,
    name: Annotated[str, arg("NAME", "A name or a relation, such as Anna or 'my sister'.")],
    other: Annotated[str, arg("OTHER", "Another name.")],
    *,
    apart: Annotated[bool, opt("--apart", "They are two: don't merge them.")] = False,
    reason: Annotated[str, opt("--reason TEXT", "Why; the log keeps it.")] = "",
) -> None:
    """The decision prevails over what memories state. `germane learn undo` undoes it."""
    with call.engine(writes=True) as engine:
        run = engine.same_name(name, other, same=not apart, reason=reason)
    call.answer(run, f"{short_id(run.id)}:\n{_line(run.decisions[0])}")


@command("about")
def _about(
    call: Call,
    name: Annotated[str, arg("NAME", "A name, a relation such as 'my sister', or 'me' for the user.")],
    *,
    as_of: AsOf = None,
    limit: Annotated[int, opt("--limit N", "The maximum number of facts of each entity.", min=1)] = 50,
) -> None:
    """The facts come in order of time. `*` marks one that isn't current, `~` one that merely mentions it."""
    with call.engine() as engine:
        report = engine.about(name, as_of=as_of, limit=limit)
    if call.prints(report):
        return
    if not report:
        print_text(f"Nothing is known about {line_of(name)}.")
    for one in report.entities:
        print_text(" = ".join(map(line_of, one.names)))
        for fact in one.facts:
            print_text(_fact_line(fact))
        for merge in one.merges:
            ids = "".join(f" [{short_id(each)}]" for each in merge.memories)
            print_text(f"  {' = '.join(map(line_of, merge.names))}: {line_of(merge.reason)}{ids}")
    if report.unclear:
        print_text("unclear")
    for fact in report.unclear:
        print_text(_fact_line(fact))
    for note in report.notes:
        print_text(note)


def _fact_line(fact: EntityFact) -> str:
    until = f" to {fact.until:%Y-%m-%d}" if fact.until else ""
    marks = "" if fact.current else "*"
    marks += "~" if fact.mentioned else ""
    content = line_of(fact.memory.content)
    sources = "".join(f" ({short_id(quote.message)})" for quote in fact.quotes)
    return f"  {fact.since:%Y-%m-%d}{until} [{short_id(fact.memory.ref)}]{marks} {content}{sources}"


def _extractor(using: ModelOptions) -> Extractor | None:
    if using.model is None:
        return None
    from germane.extractors import AnthropicExtractor, OpenAIExtractor  # noqa: PLC0415 - Few name a model.

    makers = {"openai": OpenAIExtractor, "anthropic": AnthropicExtractor}
    if using.api not in makers:
        raise InvalidInput(f"--api {using.api} is unknown. Name openai or anthropic.")
    return makers[using.api](using.model, base_url=using.base_url, max_tokens=using.max_tokens)


def _show_runs(call: Call, runs: Sequence[LearningRun]) -> None:
    if call.prints({"runs": runs}):
        return
    if not runs:
        print_text("No conversation has messages that weren't read.")
    for run in runs:
        _print_run(run)


def _print_run(run: LearningRun, *, quotes: bool = False) -> None:
    place = f" {run.session}, messages {run.since + 1} to {run.through}," if run.session else ""
    state = "dry run" if run.dry_run else short_id(run.id)
    print_text(f"{state}:{place} {len(run.decisions)} proposals by {run.extractor}.")
    for decision in run.decisions:
        print_text(_line(decision))
        for quote in decision.proposal.quotes if quotes else ():
            words = line_of(quote.text) or f"[{quote.withheld}]"
            print_text(f"    {short_id(quote.message)}: {words}")
    if run.stopped:
        print_text(run.stopped)


def _line(decision: Decision) -> str:
    undone = ", undone" if decision.undone else ""
    memory = f" [{short_id(decision.memory)}]" if decision.memory else ""
    content = line_of(decision.proposal.content)
    return f"  {decision.outcome.value}{undone}{memory}: {content} {decision.reason}"
