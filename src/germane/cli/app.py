"""The command `germane`: its commands, and what becomes of an error in any of them.

Which commands there are stands in `commands`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Final, TextIO

import typer
from typer.core import TyperGroup

from germane import GermaneError, InvalidInput, StoreError, __version__
from germane.cli.commands import COMMANDS, GROUPS
from germane.cli.output import print_json, warn
from germane.errors import shown

__all__ = ["Commands", "app"]

_SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

_LINES = {
    (first := name.partition(" ")[0]): GROUPS.get(first, command.says) for name, command in COMMANDS.items()
}
"""The help of the whole command: each command, or the group that it belongs to, with its line."""

_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[2]
"""What typer raises for a command line that it can't read; it has no public name of its own."""
_MISTAKE, _STORE, _INTERRUPTED, _UNREAD = 2, 3, 130, 141


class Commands(TyperGroup):
    """The group of all commands. An error is one line, or with --json one object; never a traceback.

    A command is built when it is asked for: building all of them would take longer than most run.
    """

    def main(self, args: Sequence[str] | None = None, *_: Any, **__: Any) -> Any:
        """Run the command that the arguments name (the process's own if None are given) and exit."""
        arguments = (_own_arguments() if args is None else list(args)) or ["--help"]
        for stream in (sys.stdout, sys.stderr):
            _speak_utf8(stream)
        try:
            code = self._run(arguments)
            sys.stdout.flush()
        except BrokenPipeError:
            # Whoever read the output has what he wanted. The interpreter flushes once more at its
            # end, which must go somewhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            code = _UNREAD
        sys.exit(code)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - The signature is typer's.
        """The names of the commands and groups in the order of the help."""
        return list(_LINES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, or None; what nearly is a name is answered with that name."""
        if cmd_name in GROUPS:
            return _group(cmd_name)
        if cmd_name not in COMMANDS:
            near = get_close_matches(cmd_name, _LINES, n=1)
            if near and ctx is not None and not ctx.resilient_parsing:
                ctx.fail(f"No such command {cmd_name!r}. Did you mean `germane {near[0]}`?")
            return None
        one = typer.Typer(add_completion=False, rich_markup_mode=None)
        one.command(cmd_name, context_settings=_SETTINGS)(_function_of(cmd_name))
        return typer.main.get_command(one)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - As above.
        """The list in the help: each command with the first sentence of its own."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_LINES.items()))

    def _run(self, arguments: list[str]) -> int:
        as_json = "--json" in arguments
        stdout = sys.stdout
        try:
            code = super().main(args=arguments, prog_name="germane", standalone_mode=False)
        except GermaneError as error:
            return _report(error, as_json=as_json)
        except SystemExit as ended:
            # Typer ends the process by itself after completion, and for a pipe that nobody reads,
            # in whose place it has put another stream by then.
            return int(ended.code or 0) if sys.stdout is stdout else _UNREAD
        except _USAGE_ERROR as error:
            return _report(_UsageError(_message_of(error)), as_json=as_json)
        except BrokenPipeError:
            raise
        except OSError as error:
            where = f": {shown(error.filename)}" if error.filename else ""
            return _report(
                InvalidInput(f"{error.strerror or error}{where}. Name another path."), as_json=as_json
            )
        except (KeyboardInterrupt, typer.Abort):
            return _INTERRUPTED
        return code if isinstance(code, int) else 0


def _group(name: str) -> Any:
    """The group of all commands that begin with a word. Most share a module, so all are built."""
    group = typer.Typer(
        name=name, help=GROUPS[name], add_completion=False, rich_markup_mode=None, context_settings=_SETTINGS
    )
    for command in COMMANDS:
        first, _, second = command.partition(" ")
        if first == name:
            group.command(second, context_settings=_SETTINGS)(_function_of(command))
    return typer.main.get_command(group)


def _function_of(command: str) -> Callable[..., Any]:
    """The function behind a command; only its own module is imported."""
    import_module(f"{__package__}.{COMMANDS[command].module}")
    function: Callable[..., Any] = import_module(f"{__package__}.options").function_of(command)
    return function


class _UsageError(InvalidInput):
    """The command line names no command, or what it says of one can't be read."""


def _report(error: GermaneError, *, as_json: bool) -> int:
    if as_json:
        from germane.cli.output import error_json  # noqa: PLC0415 - Only for programs.

        print_json(error_json(error))
    else:
        warn(f"germane: {error}", is_error=True)
    return _STORE if isinstance(error, StoreError) else _MISTAKE


def _message_of(error: Exception) -> str:
    """The message of a usage error, and where help is."""
    message = str(getattr(error, "format_message", lambda: error)()).rstrip(".")
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "germane"
    return f"{message}{'' if message.endswith('?') else '.'} See `{command} --help`."


def _own_arguments() -> list[str]:
    """The process's arguments read as UTF-8, which they are even where the locale is not set to it."""
    found = []
    for argument in sys.argv[1:]:
        try:
            found.append(os.fsencode(argument).decode("utf-8"))
        except UnicodeDecodeError:
            found.append(argument)
    return found


def _speak_utf8(stream: TextIO) -> None:
    """Memories are in every script, whatever the terminal's settings say; half a character is escaped."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding="utf-8", errors="backslashreplace")


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"germane {__version__}")
        raise typer.Exit


app = typer.Typer(
    name="germane",
    cls=Commands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=_SETTINGS,
)


@app.callback()
def _main(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """The best context that fits a token budget, from one file, with an account of what was left out.

    Every command takes --db STORE (or GERMANE_DB), --agent NAME (or GERMANE_AGENT) and --json.
    """


# How far a long piece of work is: a bar on a terminal, now and then a line elsewhere, nothing with --json.

_SECONDS_BETWEEN_LINES: Final = 2.0


@contextmanager
def progress_of(what: str, *, quiet: bool, tenths: bool = False) -> Iterator[Callable[[int, int], None]]:
    """What to tell how much is done, and of how much. `what` is in the plural: "tables".

    Where there is no terminal, a line is printed each few seconds, or with `tenths` for each tenth.
    """
    if quiet:
        yield lambda *_: None
    elif sys.stderr.isatty():
        from rich.console import Console  # noqa: PLC0415 - Only a terminal needs it.
        from rich.progress import Progress  # noqa: PLC0415 - As above.

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(what, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
    else:
        yield _tenths_of(what) if tenths else _Lines(what)


def _tenths_of(what: str) -> Callable[[int, int], None]:
    def tell(done: int, total: int) -> None:
        if done * 10 // total > (done - 1) * 10 // total:
            warn(f"{done:,} of {total:,} {what}")

    return tell


class _Lines:
    """A line each few seconds, and one in the end if there was any."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._reported = time.monotonic()
        self._any = False

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._reported >= _SECONDS_BETWEEN_LINES or (self._any and done >= total):
            self._reported, self._any = now, True
            warn(f"{done:,} of {total:,} {self._what}")
