"""The command `germane`: finding its commands, their help, and the exit code of an error."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from germane import GermaneError, InvalidInput, StoreError, __version__
from germane.cli.commands import COMMANDS, GROUPS, name_in
from germane.cli.output import print_json, warn
from germane.errors import shown

_SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_SHARED = frozenset({"--db", "--agent", "--user", "--space", "--json", "--help"})
"""The options that the help lists apart, since nearly every command has them."""

_VERSIONS = ["--json", "--version"]
_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[2]
"""The exception of typer for an invalid command line; the class has no public name."""
_FIRST_STEPS = (
    ("germane demo", "Look first: a memory of 300 records, and contexts of it."),
    ("germane import .", "Load notes, this project, or what another product knows."),
    ('germane assemble "…"', "Ask something: the best context for it."),
    ("germane mcp --print-config HOST", "Give it to a host, such as claude-code."),
    ("germane --help", "All commands; `germane COMMAND --help` has their options."),
)
_LONG_WORD = re.compile(r"(\S{60})\S{940,}")
"""A word of 1,000 characters or more, of which an error shows 60: a value, since no path is as long."""
_MISTAKE, _STORE, _INTERRUPTED, _UNREAD = 2, 3, 130, 141


class _Command(TyperCommand):
    """A command whose help lists the shared options in a section of their own."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[Any]] = {"Arguments": [], "Options": [], "Shared options": []}
        for param in self.get_params(ctx):
            kind = "Options" if param.param_type_name == "option" else "Arguments"
            shared = _SHARED.intersection(param.opts)
            sections["Shared options" if shared else kind].append(param.get_help_record(ctx))
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class _Group(TyperGroup):
    """Commands that are built one by one when they are called: building all takes longer than most run."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - The signature is typer's.
        """The last words of the commands, in the order of the help."""
        prefix = self._full("")
        return [name.removeprefix(prefix) for name in COMMANDS if name.startswith(prefix)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command with that word, or None; the error for an unknown word suggests the nearest command."""
        if cmd_name in self.list_commands(ctx):
            name = self._full(cmd_name)
            # Only the command's own module is imported.
            import_module(f"{__package__}.{COMMANDS[name].module}")
            one = typer.Typer(add_completion=False, rich_markup_mode=None)
            function = import_module(f"{__package__}.call").function_of(name)
            one.command(cmd_name, cls=_Command, context_settings=_SETTINGS)(function)
            return typer.main.get_command(one)
        if ctx is not None and not ctx.resilient_parsing:
            own = {word: self._full(word) for word in self.list_commands(ctx)}
            others = {name.split()[-1]: name for name in reversed(list(COMMANDS))}
            if nearest := _nearest(cmd_name, own) or _nearest(cmd_name, others):
                ctx.fail(f"No such command {cmd_name!r}. Did you mean `germane {nearest}`?")
        return None

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Without arguments the help is shown."""
        return super().parse_args(ctx, args or ["--help"])

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands with their summaries, which loads none of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(word, self._summary(word)) for word in self.list_commands(ctx)])

    def _full(self, word: str) -> str:
        return f"{self.name} {word}"

    def _summary(self, word: str) -> str:
        return COMMANDS[self._full(word)].summary


class Commands(_Group):
    """All commands. An error is one line on standard error, or with --json one object; never a traceback."""

    def main(self, args: Sequence[str] | None = None, *_: Any, **__: Any) -> Any:
        """Run the command that the arguments name (by default the process's own) and exit."""
        for stream in (sys.stdout, sys.stderr):
            # UTF-8 whatever the terminal's settings; surrogates are escaped.
            if reconfigure := getattr(stream, "reconfigure", None):
                reconfigure(encoding="utf-8", errors="backslashreplace")
        try:
            arguments = [*map(_decoded, sys.argv[1:])] if args is None else list(args)
            code = _print_versions() if sorted(arguments) == _VERSIONS else self._run(arguments)
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader has closed the pipe. The interpreter flushes once more when it ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            code = _UNREAD
        sys.exit(code)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Without arguments the first steps are shown; completion has none either."""
        if not args and not ctx.resilient_parsing:
            formatter = ctx.make_formatter()
            self.format_usage(ctx, formatter)
            with formatter.section("First steps"):
                formatter.write_dl(_FIRST_STEPS)
            typer.echo(formatter.getvalue().rstrip())
            ctx.exit()
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - The signature is typer's.
        """The commands of one word, then the groups."""
        return [*(name for name in COMMANDS if " " not in name), *GROUPS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command or group of that name, or None."""
        if cmd_name in GROUPS:
            return _Group(
                name=cmd_name, help=GROUPS[cmd_name], context_settings=_SETTINGS, rich_markup_mode=None
            )
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands, then the groups."""
        rows = {word: self._summary(word) for word in self.list_commands(ctx) if word not in GROUPS}
        for title, section in (("Commands", rows), ("Command groups", GROUPS)):
            with formatter.section(title):
                formatter.write_dl(list(section.items()))

    def _full(self, word: str) -> str:
        return word

    def _run(self, arguments: list[str]) -> int:
        as_json = "--json" in arguments
        stdout = sys.stdout
        try:
            code = super().main(args=arguments, prog_name="germane", standalone_mode=False)
        except GermaneError as error:
            return _report(error, as_json=as_json)
        except SystemExit as ended:
            # Typer exits by itself after completion, and for a pipe without a reader, for which it has
            # replaced the stream.
            return int(ended.code or 0) if sys.stdout is stdout else _UNREAD
        except _USAGE_ERROR as error:
            message = str(getattr(error, "format_message", error.__str__)()).rstrip(".")
            context = getattr(error, "ctx", None)
            named = name_in(arguments)
            command = f"germane {named}" if named in COMMANDS else "germane"
            if context is not None:
                command = context.command_path
            end = "" if message.endswith("?") else "."
            return _report(_UsageError(f"{message}{end} See `{command} --help`."), as_json=as_json)
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


def _nearest(word: str, names: dict[str, str]) -> str | None:
    """The name of the most similar word, if any is similar."""
    near = get_close_matches(word, names, n=1)
    return names[near[0]] if near else None


class _UsageError(InvalidInput):
    """A command line without a valid command, or with invalid arguments."""


def _report(error: GermaneError, *, as_json: bool) -> int:
    message = _LONG_WORD.sub(r"\1…", str(error))
    if as_json:
        from germane.encoding import error_json  # noqa: PLC0415 - Only for programs.

        found = error_json(error)["error"]
        print_json({"error": {**found, "message": message}})
    else:
        warn(f"germane: {message}", is_error=True)
    return _STORE if isinstance(error, StoreError) else _MISTAKE


def _decoded(argument: str) -> str:
    """An argument of the process decoded as UTF-8, whatever the locale."""
    try:
        return os.fsencode(argument).decode("utf-8")
    except UnicodeDecodeError:
        return argument


def _print_versions() -> int:
    from germane.cli.stores import versions  # noqa: PLC0415 - Only for programs.

    print_json(versions())
    return 0


def _print_version(wanted: bool) -> None:
    if wanted:
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
        False,
        "--version",
        callback=_print_version,
        is_eager=True,
        help="Print the version and exit; --json adds those of packages.",
    ),
) -> None:
    """Memory for LLM agents: the best context for a token budget, and what is left out of it.

    Commands take --db (or GERMANE_DB), --agent (GERMANE_AGENT), --user (GERMANE_USER) and --json.
    """
