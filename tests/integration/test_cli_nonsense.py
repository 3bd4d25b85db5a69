"""Whatever is given to any option or argument: done, or one line that says what is wrong; never a traceback.

The commands and their parameters are found by introspection, so that a new one is tested without a word.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from commandline import COMMANDS, filled, id_of, parser, run

NEVER_ENDS = {
    "watch": "It ends only when it is interrupted; its options are those of `import`.",
    "serve": "It serves until it is interrupted.",
    "inspect": "As `serve`.",
    "hook": "It answers a host: whatever is wrong it logs, and ends well; test_hook tries wrong options.",
}
LONG, HUGE = "x" * 5000, "9" * 40
TEXTS = ("", "-1", "\0", LONG, HUGE, "\udcff")
NUMBERS = ("", "-1", "x", HUGE, "nan", "1e400", "\0")
TIMES = ("", "soon", "-1", "0001-01-01T00:00+14:00", "9999-12-31T23:59-12:00", "\0", LONG)
WORDS = ("", LONG)
FEW = 2
"""Values for an option that an earlier command declares too, and on which all values were tried there."""
UNUSED = {
    ("db status", "--agent"): "It concerns all agents, and says so in its help.",
    ("db purge-user", "--agent"): "As above.",
}
WITHOUT_THE_VALUE = {
    ("db migrate", "--role"): "What is wrong is that a file has no roles, whatever the role.",
    ("db index", "--agent"): "What is wrong is that a file has no such index, whatever the agent.",
    ("db rekey", "--new-key"): "A key is never shown.",
}
NOT_AT_FAULT = {
    **dict.fromkeys((("db rekey", "--agent"), ("db rekey", "--user")), "The store has no key."),
    ("chat request", "--agent"): "Any name is an agent's; what is wrong is that it has no such conversation.",
    ("chat window", "--agent"): "As above.",
    ("chat summary", "--agent"): "As above.",
    ("chat request", "--user"): "Any name is a user's; what is wrong is that there is no such conversation.",
    ("chat window", "--user"): "As above.",
    ("chat summary", "--user"): "As above.",
    ("learn from", "--agent"): "As above.",
    ("learn from", "--user"): "As above.",
    ("learn show", "--agent"): "As above, of a run.",
    ("learn show", "--user"): "As above, of a run.",
    ("learn undo", "--agent"): "As above, of a run.",
    ("learn undo", "--user"): "As above, of a run.",
    ("context observe", "--user"): "What is wrong is that nothing was recorded for this user.",
    ("db distribute", "--agent"): "What is wrong is that a file isn't on servers, whatever the agent.",
}


class Store(NamedTuple):
    """A store, and what a correct call of any command names in it."""

    path: Path
    arguments: dict[str, str]
    options: dict[str, tuple[str, ...]]
    dump: str


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return made_store(tmp_path_factory.mktemp("store"))


def made_store(folder: Path) -> Store:
    """A store in a folder, with something that each command can name."""
    db = filled(folder)
    run("remember", "The key is AKIAIOSFODNN7QWERTYU.", db=db)
    marked = json.loads(run("quarantine", "list", "--json", db=db).out)["memories"][0]["memory"]["id"]
    run("remember", "Never log a password.", "--kind", "constraint", db=db)
    run("assemble", "Postgres", "--record", db=db)
    run("space", "create", "team", db=db)
    context, talk, notes, questions = (
        folder / name for name in ("context.json", "talk.json", "notes.md", "questions.jsonl")
    )
    context.write_text(run("assemble", "Postgres", "--json", db=db).out, encoding="utf-8")
    talk.write_text('[{"role": "user", "content": "Hi"}]', encoding="utf-8")
    notes.write_text("# Notes\n\nIt runs.\n", encoding="utf-8")
    questions.write_text('{"question": "Which port?", "evidence": ["Postgres runs on port 5433."]}')
    (data := folder / "data").mkdir()
    message = '{"role": "user", "content": "It runs.", "id": 1}'
    (data / "chat.jsonl").write_text(message + '\n{"question": "What runs?", "evidence": 1}')
    run("chat", "import", str(talk), db=db)
    key = run("keys", "create", "--agent", "default", "--may", "read", "--json", db=db).json()["id"]
    learned = run("learn", "from", "talk", "--json", db=db).json()["runs"][0]["id"]
    fact, assembly = id_of(db, "Postgres port"), run("ledger", "list", "--json", db=db).json()[0]["id"]
    arguments = {
        **dict.fromkeys(("ID", "ID..."), fact),
        "QUERY": "Postgres",
        "TEXT": "A new note on the weather.",
        **dict.fromkeys(("OUTCOME", "RESULT"), "success"),
        "ANSWER": "Postgres runs on port 5433.",
        "SPACE": "team",
        "MEMBER": "default",
        **dict.fromkeys(("SESSION", "SESSION|FILE", "SOURCE"), "talk"),
        "RUN": learned,
        "OTHER": "another name",
        "TOKENS": "5",
        "NAME": "bundled",
        "FILE": str(questions),
        "FILE...": str(talk),
        "FOLDER": str(data),
        "SOURCE...": str(notes),
        **dict.fromkeys(("quarantine release ID", "quarantine purge ID"), marked),
        "memory review ID": id_of(db, "ChromaDB"),
        "memory record-trigger ID": id_of(db, "log a password"),
        "space create SPACE": "another",
        "keys revoke ID": key,
        **{f"ledger {verb} ID": assembly for verb in ("show", "diff", "replay")},
    }
    options = {
        **dict.fromkeys(("context feedback", "context outcome"), ("--context", str(context))),
        "db rekey": ("--new-key", "7c" * 32),
        "db copy": ("--to", str(folder / "copy.db")),
        "db embed": ("--embedder", "bundled"),
        "db index": ("--agent", "default"),
        "db remove": ("--agent", "nobody", "--yes"),
        "demo": ("--project", str(folder), "--budgets", "500"),
        "db purge-user": ("--yes",),
        **dict.fromkeys(("memory purge", "memory revoke", "quarantine purge", "space disband"), ("--yes",)),
        "eval run": ("--baselines", "none", "--budgets", "100"),
        "eval kinds": ("--peers", "none", "--budgets", "100"),
    }
    return Store(db, arguments, options, dumped(db))


def dumped(db: Path) -> str:
    with closing(sqlite3.connect(db)) as raw:
        return "\n".join(raw.iterdump())


def parameters_of(name: str) -> list[Any]:
    """What a command takes, without its flags."""
    return [each for each in parser(name).params if not getattr(each, "is_flag", False)]


def is_never_right(parameter: Any, value: str) -> bool:
    """Whether no parameter of its kind means anything by the value."""
    return values_for(parameter, known=False) is not TEXTS and value not in ("-1", HUGE)


def values_for(parameter: Any, *, known: bool) -> tuple[str, ...]:
    kind = type(parameter.type).__name__
    values: tuple[str, ...] = NUMBERS if kind.startswith(("Int", "Float")) else TEXTS
    if parameter.metavar == "TIME":
        values = TIMES
    elif "Choice" in kind:
        values = WORDS
    return values[:FEW] if known else values


def declared(parameter: Any) -> tuple[str, ...]:
    return (*parameter.opts, str(parameter.metavar), str(parameter.help))


FIRST = {
    declared(each): name
    for name in reversed([one for one in COMMANDS if one not in NEVER_ENDS])
    for each in parameters_of(name)
}
"""The first command that has a parameter of that declaration."""


@pytest.mark.parametrize("name", [each for each in COMMANDS if each not in NEVER_ENDS])
def test_nonsense_is_refused_in_one_line_and_stores_nothing(
    name: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    db = tmp_path / "agent.db"
    for parameter in parameters_of(name):
        for value in values_for(parameter, known=FIRST[declared(parameter)] != name):
            shutil.copy(store.path, db)
            ran = run(*line_of(name, {parameter.name: value}, store), db=db)
            if (name, parameter.opts[0]) in UNUSED or (
                ran.code == 0 and not is_never_right(parameter, value)
            ):
                continue
            where = (name, parameter.opts or parameter.metavar, value[:40], ran.err[:300])
            assert ran.code in (1, 2, 3), where
            assert says_what_is_wrong(ran.err, name, parameter, value), where
            assert dumped(db) == store.dump, where


def line_of(name: str, given: Mapping[str, str], store: Store) -> list[str]:
    """A correct call of a command but for the values of some parameters, by their names."""
    positional, options = [], list(store.options.get(name, ()))
    for each in parameters_of(name):
        value = given.get(each.name)
        if each.param_type_name == "argument":
            usual = store.arguments.get(f"{name} {each.metavar}", store.arguments.get(each.metavar))
            wanted = usual if value is None else value
            positional += [] if wanted is None else [wanted]
        elif value is not None:
            option = each.opts[0]
            if option in options:
                place = options.index(option)
                del options[place : place + 2]
            options += [option, *([value] * each.nargs)]
    return [*name.split(), *options, "--", *positional]


def says_what_is_wrong(err: str, name: str, parameter: Any, value: str) -> bool:
    """Whether the last line names the option, or for an argument it or its value, and shows the value.

    A line that points to a place in a text by a caret, and the one above it, belong to the last line.
    """
    lines = err.splitlines()
    line = " ".join(lines[-3:]) if lines[-1].strip() == "^" else lines[-1]
    option = (
        parameter.opts[0] if parameter.param_type_name == "option" else str(parameter.metavar).strip("[].")
    )
    words = {option.strip("-"), parameter.name}
    named = any(re.search(rf"\b{word.replace('-', '[-_]')}", line, re.IGNORECASE) for word in words)
    if value in ("", "\0"):
        # Nothing of these can be seen but their quotes.
        return line.startswith("germane: ") and (named or repr(value) in line)
    shown = any(each[:20] in line for each in (value, repr(value)[1:-1], json.dumps(value)[1:-1]))
    if type(parameter.type).__name__.startswith("Float") or parameter.metavar == "TIME":
        # As a number or as a time it may be written in another way.
        shown = True
    if (name, option) in NOT_AT_FAULT:
        named = shown = True
    optional = parameter.param_type_name == "argument" or (name, option) in WITHOUT_THE_VALUE
    return line.startswith("germane: ") and ((named or shown) if optional else (named and shown))
