"""Run a command in this process, make its output comparable from run to run, and list all commands."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from typing import Any

import typer
from typer.testing import CliRunner

from germane.cli.app import app
from germane.cli.commands import COMMANDS, GROUPS

__all__ = [
    "COMMANDS",
    "GROUPS",
    "Ran",
    "fields",
    "filled",
    "id_of",
    "masked",
    "parser",
    "printed",
    "run",
    "run_here",
]

_REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "json.md"

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_MOMENT = re.compile(r"20(?!20)\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?\+00:00")
"""Every moment but those of the year 2020, which tests choose themselves."""
_DAY = re.compile(r"(?<=\()20(?!20)\d\d-\d\d-\d\d(?=[,)])")
"""A day at the beginning of parentheses, as a context shows that of a memory, but for those of 2020."""


class Ran:
    """What a command printed, and how it ended."""

    def __init__(
        self,
        arguments: tuple[str, ...],
        *,
        stdin: str | bytes | None,
        db: Path | str | None,
        environment: Mapping[str, str],
    ) -> None:
        # By words alone, whose scores are the same on every machine to the last digit.
        whole = {
            "GERMANE_DB": None if db is None else str(db),
            "GERMANE_AGENT": None,
            "GERMANE_USER": None,
            "GERMANE_EMBEDDER": "none",
            **environment,
        }
        result = CliRunner(env=whole).invoke(app, list(arguments), input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        self.code = result.exit_code
        self.out = result.stdout
        self.err = result.stderr

    def json(self) -> Any:
        """The object that was printed, which has to be all that was printed."""
        return json.loads(self.out)


def run(
    *arguments: str,
    db: Path | str | None = None,
    stdin: str | bytes | None = None,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Ran:
    """Run `germane` with these arguments on this store, and with more variables of the environment."""
    return Ran(arguments, stdin=stdin, db=db, environment=environment)


def run_here(arguments: list[str]) -> tuple[int, str, str]:
    """Run `germane` in this process's own environment: its exit code, its output and its warnings."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            app(arguments)
        except SystemExit as ended:
            return int(ended.code or 0), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


@cache
def parser(name: str = "") -> Any:
    """Typer's parser of a command or group, or without a name that of `germane` itself."""
    found: Any = typer.main.get_command(app)
    for word in name.split():
        found = found.get_command(None, word)
    return found


def masked(value: Any, *, db: Path) -> Any:
    """The value with ids numbered in the order in which they come, and with moments and the path named."""
    numbers: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return numbers.setdefault(match[0], f"<id {len(numbers) + 1}>")

    text = json.dumps(value, ensure_ascii=False).replace(str(db.parent), "<folder>")
    return json.loads(_DAY.sub("<day>", _MOMENT.sub("<moment>", _ID.sub(number, text))))


def filled(folder: Path) -> Path:
    """A store with three memories of 2020."""
    db = folder / "agent.db"
    run(
        *("remember", "Chose Postgres over ChromaDB", "--kind", "decision", "--outcome", "success"),
        *("--confidence", "0.85", "--meta", "reasons=One database fewer.", "--tag", "storage:database"),
        *("--created-at", "2020-01-01", "--importance", "7", "--subject", "storage"),
        db=db,
    )
    run("remember", "Postgres runs on port 5433.", "--kind", "fact", "--created-at", "2020-02-01", db=db)
    run("remember", "日本語の検索 [bold]works[/bold].", "--created-at", "2020-03-01", db=db)
    return db


def printed(*arguments: str, db: Path) -> Any:
    """What the command prints with --json, comparable from run to run."""
    return masked(run(*arguments, "--json", db=db).json(), db=db)


def id_of(db: Path | str, query: str) -> str:
    """The id of the memory that answers best."""
    return str(run("recall", query, "--limit", "1", "--json", db=db).json()["results"][0]["memory"]["id"])


def fields(heading: str) -> list[str]:
    """The fields that the reference of --json names under a heading, in its order."""
    sections = re.split(r"^#+ ", _REFERENCE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    section = next(section for section in sections if heading in section.partition("\n")[0])
    return re.findall(r"^\| `(\S+)` \|", section, re.MULTILINE)
