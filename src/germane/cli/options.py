"""The options that commands share, the engine that a command line names, and what every command does
alike.
"""

from __future__ import annotations

import inspect
import json
import os
import signal
import string
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from importlib import import_module
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, TypeVar

import typer

import germane
from germane import Filter, InvalidInput, NotFound, Status, StoreUnavailable
from germane.cli.commands import COMMANDS
from germane.cli.output import print_json, print_text, to_json
from germane.errors import UnreadableSource
from germane.stores.location import exists, location_of

if TYPE_CHECKING:
    from germane import Embedder, Engine, Memory, RecallResult, Space, WorkingSet
    from germane.ledger import Assembly
    from germane.stores.location import Following
    from germane.working_sets import AddResult, Eviction

# From what stands on a command line to an engine, a moment, an id.

DEFAULT_AGENT = "default"

EMBEDDERS: Final = {"static": "StaticEmbedder", "onnx": "OnnxEmbedder"}

_ID_LENGTH = 36
_SHORTEST = 4
_PAGE = 1000
_TIME_NAMED = 5


def text_of(file: Path) -> str:
    """The text of a file. Raises UnreadableSource."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UnreadableSource(f"{str(file)!r} can't be read: {error}.") from error


def chosen_embedder() -> Embedder | Literal["bundled"] | None:
    """The embedder that GERMANE_EMBEDDER names, or the bundled one, which gives way to a file's own."""
    name = os.environ.get("GERMANE_EMBEDDER", "bundled")
    if name == "bundled":
        return "bundled"
    return None if name == "none" else embedder_named(name)


def embedder_named(name: str) -> Embedder:
    """The embedder of that name. Raises InvalidInput."""
    if name not in EMBEDDERS:
        known = ", ".join(EMBEDDERS)
        raise InvalidInput(f"The embedder {name!r} is unknown. Take {known}, or none for words alone.")
    found: Embedder = getattr(import_module("germane.embedders"), EMBEDDERS[name])()
    return found


def moment_of(text: str | None, *, name: str) -> datetime | None:
    """A time in ISO 8601; one without an offset is UTC, since a command line is for people."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(
            f"{name}={text!r} is no time. Write it as 2026-11-20 or 2026-11-20T12:00Z (ISO 8601)."
        ) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def fields_of(pairs: Iterable[str]) -> dict[str, Any]:
    """Metadata from KEY=VALUE texts. A value that is JSON is read as such, any other is a text."""
    found: dict[str, Any] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not key or not separator:
            raise InvalidInput(f"--meta {pair!r} names no field. Write KEY=VALUE, such as reason='too slow'.")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
        except RecursionError:
            raise InvalidInput(f"--meta {key}=… is JSON that is nested too deeply. Flatten it.") from None
    return found


def id_of(engine: Engine | Space, text: str) -> str:
    """The whole id of the memory that a text names by its id, or by the beginning or end of it.

    The version of an `id@n` stays. Raises NotFound, or InvalidInput for what is too short or names several
    memories.
    """
    wanted, at, version = text.strip().lower().partition("@")
    if len(wanted) == _ID_LENGTH:
        return wanted + at + version
    if len(wanted) < _SHORTEST:
        raise InvalidInput(
            f"{text!r} is too short for an id: give {_SHORTEST} characters or more of its beginning or end."
        )
    if not set(wanted) <= set(string.hexdigits + "-"):
        raise NotFound(text, engine.agent)
    every = (memory.id for memory in all_memories(engine))
    found = list(dict.fromkeys(one for one in every if one.startswith(wanted) or one.endswith(wanted)))
    if not found:
        raise NotFound(text, engine.agent)
    if len(found) > 1:
        raise InvalidInput(_ambiguous(text, found))
    return found[0] + at + version


def all_memories(engine: Engine | Space) -> Iterator[Memory]:
    """Every memory of the agent, whatever its status, newest first."""
    after: str | None = None
    everything = Filter(statuses=tuple(Status))
    while page := engine.memories(everything, limit=_PAGE, after=after):
        yield from page
        after = page[-1].ref


def _ambiguous(text: str, found: Sequence[str]) -> str:
    named = ", ".join(found[:_TIME_NAMED])
    more = f" and {len(found) - _TIME_NAMED} more" if len(found) > _TIME_NAMED else ""
    return f"{text!r} names {len(found)} memories: {named}{more}. Give more of the id."


def check_is_there(database: str) -> None:
    """Raise StoreUnavailable where there is no store: only some commands make one.

    A server is asked when the store is opened, and says then what it lacks.
    """
    if not exists(database):
        raise StoreUnavailable(
            f"There is no store at {database}. `germane remember` and `germane import` make one; "
            "--db or GERMANE_DB names another."
        )


def opt(spec: str, says: str, **more: Any) -> Any:
    """An option: its name and what stands for its value, such as "--limit N", and its help."""
    name, _, metavar = spec.partition(" ")
    return typer.Option(name, metavar=metavar or None, help=says, **more)


def arg(metavar: str, says: str, **more: Any) -> Any:
    """An argument: what stands for its value, and its help."""
    return typer.Argument(metavar=metavar, help=says, **more)


_TIME = "ISO 8601; without an offset it is UTC"
_NAMED = "ISO 8601, in UTC without an offset, or words: last week, 3 days ago, May 2023"

Database = Annotated[
    str,
    opt(
        "--db STORE",
        "Where the memories are: a file, or the address of a PostgreSQL database.",
        envvar="GERMANE_DB",
    ),
]
Agent = Annotated[str, opt("--agent NAME", "Whose memories they are.", envvar="GERMANE_AGENT")]
Json = Annotated[bool, opt("--json", "Print one JSON object instead of text.")]


def any_agent(why: str) -> tuple[Any, str]:
    """An `--agent` that every command takes and that makes no difference here, with its default."""
    help_line = f"Makes no difference: {why}"
    option = opt("--agent NAME", help_line, envvar="GERMANE_AGENT")
    return Annotated[str, option], DEFAULT_AGENT


ANY_AGENT = any_agent("it is about all agents.")

Force = Annotated[bool, opt("--force", "Store it even if it is hardly worth keeping.")]
Reconciling = Annotated[
    bool, opt("--reconcile", "A fact confirms a known one that says the same, or replaces one.")
]
Target = Annotated[
    str, arg("ID", "A memory's id, or its beginning or end (4 characters or more); ID@2 is its version 2.")
]
QueryText = Annotated[str, arg("QUERY", "What it is about, in any words.")]

KindFilter = Annotated[list[str] | None, opt("--kind KIND", "Only memories of this kind. Repeatable.")]
TagFilter = Annotated[
    list[str] | None, opt("--tag TAG", "Only memories with this tag or one below it. Repeatable.")
]
SourceFilter = Annotated[str | None, opt("--source TEXT", "Only memories from this very source.")]
MetaFilter = Annotated[
    list[str] | None, opt("--meta KEY=VALUE", "Only memories with this field and this value. Repeatable.")
]
Scopes = Annotated[
    list[str] | None, opt("--scope SCOPE", "Only memories of this scope, such as task:T-42. Repeatable.")
]
WithSpaces = Annotated[
    list[str] | None, opt("--with-space SPACE", "What this space holds takes part too. Repeatable.")
]
Since = Annotated[str | None, opt("--since TIME", f"Only memories made at or after it ({_NAMED}).")]
Until = Annotated[str | None, opt("--until TIME", f"Only memories made before it ({_NAMED}).")]
MinImportance = Annotated[float | None, opt("--min-importance 0-10", "Only memories at least as important.")]
Now = Annotated[str | None, opt("--now TIME", f"Answer as if it were this moment, to replay ({_TIME}).")]
Budget = Annotated[
    int | None, opt("--budget TOKENS", "The most tokens the text may have; the frame's total if not said.")
]
PlanName = Annotated[
    str, opt("--plan PLAN", "How the text is laid out: layered, layered_strict, relevance or scoped.")
]
FrameName = Annotated[
    str,
    opt(
        "--frame FRAME",
        "What the agent is doing: conversation, question, task, decision, debug or creative, one of "
        "--frames, or auto for what the query says.",
    ),
]
NamedFrame = Annotated[
    str | None,
    opt(
        "--frame FRAME",
        "What the agent is doing: conversation, question, task, decision, debug or creative, one of "
        "--frames, or auto for what the query says. Default: task.",
    ),
]
Guidance = Annotated[
    bool | None,
    opt(
        "--guidance/--no-guidance",
        "Add the frame's own text where the budget allows. Default: only with a named --frame.",
    ),
]
Gate = Annotated[
    bool | None,
    opt(
        "--gate/--no-gate",
        "Leave out what has nothing to do with the query. Default: unless all memories fit.",
    ),
]
Dates = Annotated[bool, opt("--dates/--no-dates", "End facts, decisions and episodes with their day.")]
Sources = Annotated[
    bool, opt("--sources/--no-sources", "End facts, decisions and episodes with a short source.")
]
Ids = Annotated[bool, opt("--ids", "End each item with a short id that `germane show` takes.")]
FramesFile = Annotated[
    Path | None, opt("--frames FILE", "Further frames, a TOML file with a table for each.")
]
TalkFile = Annotated[
    Path | None, opt("--conversation FILE", "What was said so far; what it contains is left out.")
]
Counter = Annotated[str, opt("--counter NAME", "Who counts tokens: a counter or the name of a model.")]
Pins = Annotated[list[str] | None, opt("--pin ID", "A memory that must stand in the text. Repeatable.")]

Record = Annotated[bool, opt("--record", "Keep an account in the ledger: `germane ledger`.")]

MemoryText = Annotated[str, arg("TEXT", "What to remember; - reads it from the standard input.")]
KindName = Annotated[str, opt("--kind KIND", "What it is: note, fact, decision, procedure and so on.")]
ScopeName = Annotated[str, opt("--scope SCOPE", "Where it applies: global, task:T-42, path:src.")]
TrustName = Annotated[str | None, opt("--trust TRUST", "Whose word it is: owner, agent or external.")]
SourceText = Annotated[str | None, opt("--source TEXT", "Where the text came from.")]
Pinned = Annotated[bool, opt("--pinned", "Mark it as one to be kept in view.")]
CreatedAt = Annotated[str | None, opt("--created-at TIME", f"When it came about, if not now ({_TIME}).")]
Subject = Annotated[str | None, opt("--subject TEXT", "What or whom it is about, in a word or two.")]
Tags = Annotated[list[str] | None, opt("--tag TAG", "A tag, such as storage:cache. Repeatable.")]
Importance = Annotated[float | None, opt("--importance 0-10", "How much it matters; 1 if not said.")]
Confidence = Annotated[float | None, opt("--confidence 0-1", "How sure it is; 1 if not said.")]
OutcomeName = Annotated[
    str | None,
    opt("--outcome OUTCOME", "How it turned out: success, partial, pending, failure or abandoned."),
]
Meta = Annotated[
    list[str] | None,
    opt(
        "--meta KEY=VALUE",
        "A field of its kind or your own; a VALUE that is JSON is read as JSON. Repeatable.",
    ),
]

SubjectFilter = Annotated[str | None, opt("--subject TEXT", "Only memories with this very subject.")]
Most = Annotated[int, opt("--limit N", "The most memories to show.")]
Yes = Annotated[bool, opt("--yes", "Confirm that it can't be undone.")]


# The recorded assembly that a command line names.


def recorded(engine: Engine, text: str | None) -> Assembly:
    """The assembly that a text names, or the latest. Raises AssemblyNotFound, or InvalidInput for none
    at all.
    """
    ledger = engine.ledger()
    if text is not None:
        return ledger.show(whole_assembly_id(engine, text))
    latest = ledger.list(limit=1)
    if not latest:
        raise InvalidInput(
            "Nothing is recorded, so nobody knows what was shown. Record it with `germane assemble "
            "--record`, or give --context what `germane assemble --json` printed."
        )
    return latest[0]


def whole_assembly_id(engine: Engine, text: str) -> str:
    """The whole id of the assembly that a text names. Raises InvalidInput for what names several."""
    wanted = text.strip().lower()
    found = [
        one.id
        for one in engine.ledger().list(limit=None)
        if len(wanted) >= _SHORTEST and (one.id.startswith(wanted) or one.id.endswith(wanted))
    ]
    if len(found) > 1:
        raise InvalidInput(f"{text!r} names {len(found)} assemblies. Give more of the id.")
    return found[0] if found else text


# Commands that go on telling of what happens, until they are interrupted.

_TURN = 0.05
"""Seconds until an end is noticed that no event has brought."""

T = TypeVar("T")

Follow = Annotated[bool, opt("--follow", "Go on with what happens from now on, until it is interrupted.")]
SinceNumber = Annotated[int | None, opt("--since NUMBER", "Only those after this number.")]


def follow_each(
    call: Call,
    follow: Callable[[Callable[[T], object]], Following[T]],
    *,
    row: Callable[[T], tuple[str, ...]],
    limit: int | None,
) -> None:
    """Print each entry of a log as it comes, on a line of its own, until so many or an interruption.

    What ends the following of the log by itself is raised.
    """
    stop, left = threading.Event(), limit

    def tell(entry: T) -> None:
        nonlocal left
        if stop.is_set():
            return
        if not call.prints(entry, on_a_line=True):
            print_text("  ".join(filter(None, row(entry))))
        if left is not None:
            left -= 1
            if left <= 0:
                stop.set()

    if limit == 0:
        return
    with stopped_by_signals(stop), follow(tell) as following:
        while following.is_alive and not stop.wait(_TURN):
            pass
    if following.error is not None:
        raise following.error


@contextmanager
def stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """Inside, an interruption lets the step that is going on finish, and ends the watch after it."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Only the main thread may say what signals do.
        return
    before = {each: signal.signal(each, lambda *_: stop.set()) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


# What makes a function a command: a name, the options that all commands have, and how it answers.

F = TypeVar("F", bound=Callable[..., Any])


class Call(NamedTuple):
    """A call of a command: the store, whose memories, and whether the answer is JSON."""

    database: str
    agent: str
    as_json: bool

    @property
    def location(self) -> str:
        """The store as it is shown: without a password."""
        return location_of(self.database)

    def open(
        self,
        *,
        writes: bool = False,
        makes: bool = False,
        now: str | None = None,
        frames: Path | None = None,
        record: bool = False,
        embedder: Embedder | None = None,
    ) -> Engine:
        """An engine that only reads, unless it `writes`; the store must be there, unless it `makes` one.

        `now` is the moment to answer for, as text. The `embedder` is GERMANE_EMBEDDER's if none is given.
        Raises InvalidInput and StoreUnavailable.
        """
        if not makes:
            check_is_there(self.database)
        moment = moment_of(now, name="--now")
        return germane.open(
            self.database,
            agent=self.agent,
            embedder=embedder or chosen_embedder(),
            read_only=not (writes or makes),
            clock=None if moment is None else lambda: moment,
            frames=frames or (),
            record=record,
        )

    def progress(
        self, what: str, *, tenths: bool = False
    ) -> AbstractContextManager[Callable[[int, int], None]]:
        """How far a long piece of work is, as `progress_of` tells it; nothing where the answer is JSON."""
        from germane.cli.app import progress_of  # noqa: PLC0415 - Only some commands.

        return progress_of(what, quiet=self.as_json, tenths=tenths)

    def prints(self, value: Any, *, on_a_line: bool = False) -> bool:
        """Whether JSON was asked for; the value is then printed as that."""
        if self.as_json:
            print_json(value, on_a_line=on_a_line)
        return self.as_json

    def answer(self, value: Any, text: str | Callable[[], str]) -> None:
        """Print the value as JSON where that was asked for, else the text, or what makes it."""
        if not self.prints(value):
            print_text((text if isinstance(text, str) else text()).removesuffix("\n"))


_SHARED: Final[dict[str, tuple[Any, Any]]] = {
    "database": (Database, "germane.db"),
    "agent": (Agent, DEFAULT_AGENT),
    "as_json": (Json, False),
}
"""The options of every command by the names of their parameters, each with its default."""

_functions: dict[str, tuple[Callable[..., Any], dict[str, tuple[Any, Any]]]] = {}


def command(name: str, **others: Any) -> Callable[[F], F]:
    """Make a function the command of that name. It takes a Call, and then the command's own arguments.

    The help is the command's line in `commands`, and then the function's docstring if there is more to say.
    `--db`, `--agent` and `--json` are added where the function has no such parameter itself. `others` names
    another `database`, `agent` or `as_json` instead, with its default, or None for no such option.
    """

    def register(function: F) -> F:
        _functions[name] = function, {one: how for one, how in {**_SHARED, **others}.items() if how}
        return function

    return register


def function_of(name: str) -> Callable[..., Any]:
    """The function of a command with all of its options as typer reads them; its module must be imported."""
    function, offered = _functions[name]
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    names = [each.name for each in own]
    added = [
        Parameter(each, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
        for each, (annotation, default) in offered.items()
        if each not in names
    ]

    def run(**given: Any) -> Any:
        shared = {each: given.get(each) for each in _SHARED}
        call = Call(**{each: _SHARED[each][1] if value is None else value for each, value in shared.items()})
        return function(call, **{each: given[each] for each in names})

    run.__doc__ = "\n\n".join(filter(None, [COMMANDS[name].says, inspect.cleandoc(function.__doc__ or "")]))
    vars(run)["__signature__"] = Signature([*own, *added])
    return run


SHOWN_OF_ID = 8

Into = Annotated[
    str | None, opt("--into SET", "Let a working set take in what was found, as far as it fits.")
]


def figures_of(held: WorkingSet) -> dict[str, Any]:
    """A set as JSON without its entries."""
    items, most = held.items(), held.max_tokens
    tokens = sum(one.tokens for one in items)
    return {
        "name": held.name,
        "owner": held.owner,
        "max_tokens": most,
        "tokens": tokens,
        "utilization": round(tokens / most, 6) if most else 0.0,
        "count": len(items),
    }


def enter(held: WorkingSet, recalled: RecallResult) -> tuple[dict[str, Any], str]:
    """Let a set take in what was recalled; what came of it as JSON and as text."""
    added = held.add_recalled(recalled)
    now = figures_of(held)
    left_out = [memory.id for memory in added.left_out]
    text = told_of(added, "Entered", f", {len(left_out)} found no room" if left_out else "")
    return {**to_json(added), "left_out": left_out, "set": now}, text + fill(now)


def told_of(added: AddResult, what: str = "Added", more: str = "") -> str:
    """What adding did, for people."""
    touched = len(added.items) - len(added.new)
    return f"{what} {len(added.new)}, touched {touched}{more}. {eviction_line(added.eviction)}"


def eviction_line(eviction: Eviction) -> str:
    """Which memories were evicted, by the ends of their ids."""
    named = ", ".join(one.item.memory.id[-SHOWN_OF_ID:] for one in eviction.evicted)
    return f"{named} made room: {eviction.freed:,} tokens. " if named else ""


def fill(now: dict[str, Any]) -> str:
    """How full a set is, by its figures."""
    tokens, most = now["tokens"], now["max_tokens"]
    share = f" ({tokens / most:.0%})" if most else ""
    return f"The set holds {tokens:,} of {most:,} tokens{share}."
