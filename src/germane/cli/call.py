"""Registering functions as commands, the options of all commands, and opening the store of a call."""

from __future__ import annotations

import inspect
import os
import re
import signal
import string
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from hashlib import sha256
from inspect import Parameter, Signature
from itertools import chain
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    NamedTuple,
    TypeVar,
    get_args,
    get_type_hints,
)

import germane
from germane import GermaneError, InvalidInput, NotFound, StoreUnavailable
from germane.cli.commands import COMMANDS
from germane.cli.options import moment_of, opt, path_of, place_of
from germane.cli.output import print_json, print_text, progress_of, warn
from germane.ids import SHORTEST, is_short, only_id
from germane.model.text import user_tenant
from germane.stores.location import MEMORY, exists, location_of

if TYPE_CHECKING:
    from germane import Engine, Memory, Space
    from germane.engine.handle import StoreHandle
    from germane.ledger import Assembly

F = TypeVar("F", bound=Callable[..., Any])
Served = TypeVar("Served", "Engine", "StoreHandle")

DEFAULT_AGENT: Final = "default"
MADE: Final = "Made the database"
"""What the line begins with that says where a new database is."""

_AGENT_HELP = "Owner of the memories."
_Database = Annotated[
    str | None,
    opt(
        "--db STORE",
        "File or PostgreSQL address; default: in your data folder.",
        envvar="GERMANE_DB",
        parser=place_of,
    ),
]
_Agent = Annotated[str, opt("--agent NAME", _AGENT_HELP, envvar="GERMANE_AGENT")]
_User = Annotated[
    str | None,
    opt("--user NAME", "Use memories of this user too.", envvar="GERMANE_USER"),
]
_Unused = Annotated[str, opt("--agent NAME", "Not used: this concerns all agents.", envvar="GERMANE_AGENT")]
_Space = Annotated[str | None, opt("--space SPACE", "Use this space instead of the agent's own memory.")]
_Json = Annotated[bool, opt("--json", "Print JSON instead of text.")]
ANY_AGENT: Final = (_Unused, DEFAULT_AGENT)
"""The `agent` of a command that concerns all agents of a store."""

_SHARED: Final[dict[str, tuple[Any, Any]]] = {
    "database": (_Database, None),
    "agent": (_Agent, DEFAULT_AGENT),
    "user": (_User, None),
    "space": (_Space, None),
    "as_json": (_Json, False),
}
"""The options of every command by the names of their parameters, each with its default."""

_SHORTENED, _SHORTENED_PLACE = 30, 58
"""The numbers of characters of a value, and of a path, that every message shows."""

_functions: dict[str, tuple[Callable[..., Any], dict[str, tuple[Any, Any]]]] = {}


def observed(served: Served) -> Served:
    """The engine or handle of a server, instrumented where OpenTelemetry's SDK was set up before it started.

    That is what `opentelemetry-instrument germane ...` does.
    """
    if "opentelemetry.sdk" not in sys.modules:
        return served
    from germane.telemetry import instrument  # noqa: PLC0415 - Most servers need none of it.

    return instrument(served)


def command(name: str, *, space: bool = False, **others: Any) -> Callable[[F], F]:
    """Register a function as the command of that name. It takes a Call, then the command's own parameters.

    The help is the command's summary in `commands`, followed by the function's docstring, if any. `--db`,
    `--agent` with `--user`, and `--json` are added, and `--space` with `space=True`, unless the function has
    such a parameter. `others` replace `database`, `agent`, `user` or `as_json` by another annotation and
    default, or remove the option with None; `--user` needs the usual `--agent`. A parameter annotated with a
    NamedTuple is replaced by its fields.
    """
    left_out = ({} if space else {"space": None}) | ({"user": None} if "agent" in others else {})
    offered = {**_SHARED, **left_out, **others}

    def register(function: F) -> F:
        _functions[name] = function, {each: option for each, option in offered.items() if option}
        return function

    return register


def function_of(name: str) -> Callable[..., Any]:
    """The function of a command with the signature for typer; its module must be imported."""
    function, offered = _functions[name]
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    bundles = {each.name: each.annotation for each in own if hasattr(each.annotation, "_fields")}
    parameters = [
        part for each in own for part in (_fields(each.annotation) if each.name in bundles else [each])
    ]
    names = {each.name for each in parameters}
    parameters += [
        Parameter(each, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
        for each, (annotation, default) in offered.items()
        if each not in names
    ]
    for each in parameters:
        if Path in get_args(each.annotation.__origin__) or each.annotation.__origin__ is Path:
            each.annotation.__metadata__[0].parser = path_of

    def run(**given: Any) -> Any:
        shared = {each: default for each, (_, default) in _SHARED.items()}
        shared |= {each: given[each] for each in shared if given.get(each) is not None}
        shared["database"] = shared["database"] or default_database()
        bundled = {
            each: bundle(**{field: given[field] for field in bundle._fields})
            for each, bundle in bundles.items()
        }
        try:
            return function(Call(**shared), **{each.name: (given | bundled)[each.name] for each in own})
        except GermaneError as error:
            option = _option_at_fault(str(error), given, parameters)
            if option is not None:
                error.args = (f"{option}: {error}",)
            raise

    run.__doc__ = "\n\n".join(
        filter(None, [COMMANDS[name].summary, inspect.cleandoc(function.__doc__ or "")])
    )
    vars(run)["__signature__"] = Signature(parameters)
    return run


def _option_at_fault(message: str, given: Mapping[str, Any], parameters: Iterable[Parameter]) -> str | None:
    """The option whose value an error's message shows; None if the message names the option itself.

    Errors of the engine name its own arguments, such as `spaces` for --with-space.
    """
    for each in parameters:
        info, value = each.annotation.__metadata__[0], given[each.name]
        option = info.default
        if not isinstance(option, str) or isinstance(value, bool | None) or value == each.default:
            continue
        values = value if isinstance(value, list | tuple) else [value]
        if any(_is_in(message, str(one), is_place=info.parser is not None) for one in values):
            word = option.partition("/")[0].lstrip("-").replace("-", "[-_]")
            return None if re.search(rf"\b{word}\b", message, re.IGNORECASE) else option
    return None


def _is_in(message: str, value: str, *, is_place: bool) -> bool:
    """Whether a message contains a value: quoted, as `name=value` or as a file name; a path in any form."""
    whole, most = repr(value)[1:-1], _SHORTENED_PLACE if is_place else _SHORTENED
    after = r"(?!\w)" if len(whole) <= most else ""
    pattern = ("" if is_place else "['\"=/]") + re.escape(whole[:most]) + after
    return bool(re.search(pattern, message.encode("utf-8", "backslashreplace").decode()))


def _fields(bundle: Any) -> list[Parameter]:
    """The fields of a NamedTuple as parameters."""
    return [
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=hint, default=bundle._field_defaults[name])
        for name, hint in get_type_hints(bundle, include_extras=True).items()
    ]


class Call(NamedTuple):
    """A call of a command: the store, the agent, its user and space if any, and whether it prints JSON."""

    database: str
    agent: str
    user: str | None
    space: str | None
    as_json: bool

    @property
    def location(self) -> str:
        """The store without a password, for messages."""
        return location_of(self.database)

    @property
    def member(self) -> str:
        """The name of the agent, or of its user, as an owner of memories and a member of spaces."""
        return self.agent if self.user is None else user_tenant(self.user, self.agent)

    @contextmanager
    def engine(
        self,
        *,
        writes: bool = False,
        makes: bool = False,
        now: str | None = None,
        frames: Path | None = None,
        record: bool = False,
        embedder: str | None = None,
        note: Callable[[str], None] = warn,
    ) -> Iterator[Engine]:
        """The engine of the agent or its user, read-only unless it `writes`.

        The store must exist unless it `makes` one, of which `note` gets a line. `now` is the time to answer
        for, in ISO 8601. Raises InvalidInput and StoreUnavailable.
        """
        moment = moment_of(now, name="--now")
        is_new = self._is_new(makes=makes)
        chosen: dict[str, Any] = {} if embedder is None else {"embedder": embedder}
        with germane.open(
            self.database,
            agent=self.agent,
            **chosen,
            read_only=not (writes or makes),
            clock=None if moment is None else lambda: moment,
            frames=frames or (),
            record=record,
        ) as engine:
            if is_new:
                note(f"{MADE} {_place_in_words(Path(self.database))}")
            if self.user is None:
                yield engine
                return
            with engine.for_user(self.user) as bound:
                yield bound

    def handle(self, *, read_only: bool = False, **settings: Any) -> StoreHandle:
        """All agents of the store, which must exist only if this is `read_only`. Raises StoreUnavailable."""
        is_new = self._is_new(makes=not read_only)
        handle = germane.connect(self.database, read_only=read_only, **settings)
        if is_new:
            warn(f"{MADE} {_place_in_words(Path(self.database))}")
        return handle

    def _is_new(self, *, makes: bool) -> bool:
        """Whether a file is going to be made; its folder exists then if it is the default."""
        if not makes:
            check_exists(self.database)
        is_new = makes and self.database != MEMORY and not exists(self.database)
        folder = Path(self.database).parent
        if is_new and _is_data_folder(folder):
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise StoreUnavailable(
                    f"The folder {folder} can't be made: {error.strerror}. Name a database with --db or "
                    "GERMANE_DB."
                ) from error
        return is_new

    @contextmanager
    def open(self, *, makes: bool = False, **settings: Any) -> Iterator[Engine | Space]:
        """The agent's engine, or the space of `--space`; the settings are those of `engine`."""
        # Only the store of an agent is created; a space must exist.
        settings |= {"makes": makes} if self.space is None else {"writes": makes or settings.get("writes")}
        with self.engine(**settings) as engine:
            yield engine if self.space is None else engine.space(self.space)

    def spaces(self, names: Sequence[str] | None) -> Sequence[str]:
        """The spaces of `--with-space`. Raises InvalidInput together with `--space`."""
        if self.space is not None and names:
            raise InvalidInput(
                f"--space {self.space} uses that space alone, and --with-space adds spaces to the agent's "
                "own memories. Use one of them."
            )
        return names or ()

    def progress(
        self, what: str, *, tenths: bool = False
    ) -> AbstractContextManager[Callable[[int, int], None]]:
        """The progress of a long task, as `progress_of` shows it; nothing with `--json`."""
        return progress_of(what, quiet=self.as_json, tenths=tenths)

    def prints(self, value: Any, *, on_a_line: bool = False) -> bool:
        """Print the value as JSON if `--json` was given; returns whether it was."""
        if self.as_json:
            print_json(value, on_a_line=on_a_line)
        return self.as_json

    def answer(self, value: Any, text: str | Callable[[], str]) -> None:
        """Print the value as JSON if `--json` was given; otherwise the text, or a function's result."""
        if not self.prints(value):
            print_text((text if isinstance(text, str) else text()).removesuffix("\n"))


# Databases that no option names.

_FILE: Final = "germane.db"
_LONGEST_NAME = 40


def default_database() -> str:
    """The database of a call that names none, as a path.

    It is `germane.db` in the working folder if that is there. Otherwise it is in the data folder: one file
    for each git repository, which its worktrees share, and one for all other folders. Raises InvalidInput.
    """
    if Path(_FILE).exists():
        return _FILE
    repository = _repository_over(Path.cwd())
    if repository is None:
        return str(data_folder() / _FILE)
    # Two repositories may have one name.
    digest = sha256(os.fsencode(repository)).hexdigest()[:8]
    return str(data_folder() / f"{repository.name[:_LONGEST_NAME]}-{digest}.db")


def data_folder() -> Path:
    """The folder `germane` in the user's data folder, which may not exist yet.

    Raises InvalidInput where the user has no home folder.
    """
    try:
        if os.name == "nt":
            return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local") / "germane"
        named = Path(os.environ.get("XDG_DATA_HOME", ""))
        usual = "Library/Application Support" if sys.platform == "darwin" else ".local/share"
        return (named if named.is_absolute() else Path.home() / usual) / "germane"
    except RuntimeError as error:
        raise InvalidInput(f"There is no folder for a database: {error} Name one with --db.") from error


def _is_data_folder(folder: Path) -> bool:
    try:
        return folder == data_folder()
    except InvalidInput:
        return False


def _repository_over(folder: Path) -> Path | None:
    """The main folder of the git repository around a folder, also for a worktree of it."""
    root = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)
    if root is None or (root / ".git").is_dir():
        return root
    with suppress(OSError):
        line = os.fsdecode((root / ".git").read_bytes()).strip()
        own = Path(line.removeprefix("gitdir: "))
        if own.is_absolute() and own.parent.name == "worktrees":
            common = own.parents[1]
            return common.parent if common.name == ".git" else common
    return root


def _place_in_words(path: Path) -> str:
    """The full path of a new database, and how to place it elsewhere or keep it out of a repository."""
    whole = path.resolve()
    if _is_data_folder(path.parent):
        return f"{whole}. To place it elsewhere, use --db or GERMANE_DB."
    repository = _repository_over(whole.parent)
    if repository is None:
        return f"{whole}."
    return (
        f"{whole}, which lies in the git repository {repository}. If git does not ignore it, add "
        f"{path.name}* to .gitignore, or name another place with --db or GERMANE_DB."
    )


def check_exists(database: str) -> None:
    """Raise StoreUnavailable for a missing file. A server is contacted only when the store is opened."""
    if not exists(database):
        raise StoreUnavailable(
            f"There is no store at {database}. `germane remember` and `germane import` make one; "
            "--db or GERMANE_DB names another."
        )


# Ids from their beginnings or ends.

_ID_LENGTH = 36


def id_of(engine: Engine | Space, text: str) -> str:
    """The id of the memory with an id that is, begins with or ends with the text.

    A version, as in `id@n`, is preserved. Raises NotFound, or InvalidInput for a text that is too short or
    ambiguous.
    """
    wanted, at, version = text.strip().lower().partition("@")
    if len(wanted) == _ID_LENGTH:
        return wanted + at + version
    if len(wanted) >= SHORTEST and not set(wanted) <= set(string.hexdigits + "-"):
        raise NotFound(text, engine.agent)
    # The last eight digits have an index; other parts are compared with all ids.
    end = wanted[-8:]
    ends = all_memories(engine, end) if is_short(end) else ()
    whole_id = only_id(wanted, (memory.id for memory in ends), "memories")
    whole_id = whole_id or only_id(wanted, (memory.id for memory in all_memories(engine)), "memories")
    if whole_id is None:
        raise NotFound(text, engine.agent)
    return whole_id + at + version


def all_memories(engine: Engine | Space, short_id: str | None = None) -> Iterator[Memory]:
    """All memories of the agent or space, whatever their status, newest first; of a short id, if given."""
    from germane.operations.read import EVERY, pages  # noqa: PLC0415 - The help needs none of it.

    return chain.from_iterable(pages(engine.memories, replace(EVERY, short_id=short_id)))


def assembly_id(engine: Engine | Space, text: str) -> str:
    """The id of the recorded assembly that begins or ends with the text; the text itself if none does."""
    return only_id(text, (each.id for each in engine.ledger().list(limit=None)), "assemblies") or text


def recorded(engine: Engine | Space, text: str | None) -> Assembly:
    """The recorded assembly with that id, or the latest. Raises AssemblyNotFound or InvalidInput."""
    ledger = engine.ledger()
    if text is not None:
        return ledger.show(assembly_id(engine, text))
    latest = ledger.list(limit=1)
    if not latest:
        raise InvalidInput(
            f"Agent {engine.agent!r} has no recorded assembly, so it is unknown what was shown. Record one "
            "with `germane assemble --record`, or pass the output of `germane assemble --json` as --context."
        )
    return latest[0]


# Commands that run until they are interrupted.


@contextmanager
def stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """Set the event on SIGINT and SIGTERM instead of raising, so that the current step is completed."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Only the main thread may set signal handlers.
        return
    before = {each: signal.signal(each, lambda *_: stop.set()) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
