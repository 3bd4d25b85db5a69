"""The command `germane`: its commands, and what becomes of an error in any of them.

Level: integrations.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, TextIO

import typer
from typer.core import TyperGroup

import germane
from germane.integrations.cli.output import print_json, warn
from germane.integrations.shapes import error_shape

__all__ = ["COMMANDS", "Commands", "app"]

COMMANDS: Mapping[str, str] = {
    "remember": "remembering",
    "recall": "recalling",
    "assemble": "assembling",
    "explain": "assembling",
    "feedback": "learning",
    "learn": "learning",
    "show": "recalling",
    "history": "recalling",
    "revise": "remembering",
    "forget": "remembering",
    "restore": "remembering",
    "purge": "remembering",
    "import": "exchanging",
    "export": "exchanging",
    "embed": "embedding",
    "reembed": "embedding",
    "stats": "inspecting",
    "doctor": "inspecting",
    "eval": "evaluating",
    "demo": "demonstrating",
}
"""Every command and the module beside this one that holds it, in the order of the help."""
_SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

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
        """The names of the commands in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - As above.
        """The command of that name, or None."""
        if cmd_name not in COMMANDS:
            return None
        one = typer.Typer(add_completion=False, rich_markup_mode=None)
        one.command(cmd_name, context_settings=_SETTINGS)(_function_of(cmd_name))
        return typer.main.get_command(one)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - As above.
        """The list in the help: each command with the first sentence of its own."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _first_line(_function_of(name))) for name in COMMANDS])

    def _run(self, arguments: list[str]) -> int:
        as_json = "--json" in arguments
        try:
            code = super().main(args=arguments, prog_name="germane", standalone_mode=False)
        except germane.GermaneError as error:
            return _report(error, as_json=as_json)
        except SystemExit:
            # The one thing that typer ends the process for by itself: a pipe that nobody reads.
            return _UNREAD
        except _USAGE_ERROR as error:
            return _report(_UsageError(_message_of(error)), as_json=as_json)
        except (KeyboardInterrupt, typer.Abort):
            return _INTERRUPTED
        return code if isinstance(code, int) else 0


def _function_of(command: str) -> Callable[..., Any]:
    """The function behind a command; only its own module is imported."""
    commands: Mapping[str, Callable[..., Any]] = import_module(f"{__package__}.{COMMANDS[command]}").COMMANDS
    return commands[command]


def _first_line(function: Callable[..., Any]) -> str:
    return (function.__doc__ or "").partition("\n")[0]


class _UsageError(germane.InvalidInput):
    """The command line names no command, or what it says of one can't be read."""


def _report(error: germane.GermaneError, *, as_json: bool) -> int:
    if as_json:
        shape = error_shape(error)
        shape["error"]["type"] = type(error).__name__.lstrip("_")
        print_json(shape)
    else:
        warn(f"germane: {error}", is_error=True)
    return _STORE if isinstance(error, germane.StoreError) else _MISTAKE


def _message_of(error: Exception) -> str:
    """The message of a usage error, and where help is."""
    message = str(getattr(error, "format_message", lambda: error)()).rstrip(".")
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "germane"
    return f"{message}. See `{command} --help`."


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
        typer.echo(f"germane {germane.__version__}")
        raise typer.Exit


app = typer.Typer(
    name="germane",
    cls=Commands,
    add_completion=False,
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

    Every command takes --db FILE (or GERMANE_DB), --agent NAME (or GERMANE_AGENT) and --json.
    """
