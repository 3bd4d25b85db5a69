"""What makes a function a command: a name, the options that all commands have, and how it answers.

Level: integrations.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import germane
from germane.integrations.cli.commands import COMMANDS
from germane.integrations.cli.opening import DEFAULT_AGENT, check_is_there, chosen_embedder, moment_of
from germane.integrations.cli.options import Agent, Database, Json
from germane.integrations.cli.output import print_json, print_text
from germane.stores.opening import location_of

if TYPE_CHECKING:
    from germane import Embedder, Engine

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
        from germane.integrations.cli.progress import progress_of  # noqa: PLC0415 - Only some commands.

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
