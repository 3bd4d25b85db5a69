"""The JSON of every command over one small store, as it was read.

To write it anew, set GERMANE_WRITE_CLI_JSON=1, and read the difference before it is committed.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from commandline import COMMANDS, id_of, masked, run

PRINTED = Path(__file__).parent / "every_command.json"
AT = ("--now", "2020-06-01T12:00Z")
MADE = ("--created-at", "2020-01-01")
ADA, BEN = ("--agent", "ada"), ("--agent", "ben")
TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Is it raining in Rome?", "created_at": "2020-05-01T10:00:00Z"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Rome"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "dry, 21 degrees"},
    {"role": "assistant", "content": "No, it's dry."},
]
# Figures of the machine, of the moment and of the version, which say nothing about the form.
VARYING = frozenset(
    {
        "bytes",
        "cold_start",
        "engine",
        "makers",
        "newest_version",
        "packages",
        "schema_version",
        "seconds",
        "sha256",
    }
)
UNTIL_INTERRUPTED = frozenset({"serve", "inspect", "hook", "mcp", "watch"})
"""Commands that don't end by themselves; test_cli_import_json has what `watch` prints of a step."""


class Session:
    """A store, and what every command run on it printed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.db = folder / "agent.db"
        self.printed: dict[str, Any] = {}
        self.commands: set[str] = set()

    def take(self, *arguments: str, named: str = "", form: bool = False, stdin: str | None = None) -> Any:
        """Run a command with --json and keep what it printed; with `form` only the names and types."""
        one = arguments[0] if arguments[0] in COMMANDS else " ".join(arguments[:2])
        ran = run(*arguments, "--json", db=self.db, stdin=stdin)
        value = ran.json()
        self.commands.add(one)
        self.printed[f"{one}{named and f' ({named})'}"] = {
            "ends with": ran.code,
            "printed": form_of(value) if form else value,
        }
        return value

    def id(self, query: str) -> str:
        """The id of the memory that answers best."""
        return id_of(self.db, query)


def form_of(value: Any) -> Any:
    """The names in a value and the types of what they name; of a list, of its first member."""
    if isinstance(value, dict):
        return {name: form_of(each) for name, each in value.items()}
    if isinstance(value, list):
        return [form_of(each) for each in value[:1]]
    return type(value).__name__


def steady(value: Any) -> Any:
    """The value without what differs from machine to machine or from version to version."""
    if isinstance(value, dict):
        return {
            name: f"<{type(each).__name__}>" if name in VARYING and each is not None else steady(each)
            for name, each in value.items()
        }
    return [steady(each) for each in value] if isinstance(value, list) else value


def write_memories(session: Session) -> None:
    take = session.take
    take(
        *("remember", "Chose Postgres over ChromaDB", "--kind", "decision", "--outcome", "success"),
        *("--confidence", "0.85", "--meta", "ratio=0.123456789", "--tag", "storage:database"),
        *("--importance", "7", "--subject", "storage", *MADE),
    )
    take("remember", "Chose Postgres over ChromaDB", "--kind", "decision", named="again")
    take("remember", "Postgres runs on port 5433.", "--kind", "fact", *MADE, named="fact")
    take("remember", "postgres runs on port 5433", "--kind", "fact", *MADE, named="duplicate")
    take("remember", "Never log a password.", "--kind", "constraint", *MADE, named="constraint")
    take("remember", "To deploy, run make ship.", "--kind", "procedure", *MADE, named="procedure")
    take("remember", "Met Ana about billing.", "--kind", "episode", *MADE, named="episode")
    take("memory", "revise", session.id("ChromaDB"), "Chose Postgres over ChromaDB and Redis")
    ship = session.id("make ship")
    take("memory", "forget", ship)
    take("memory", "restore", ship)
    take("memory", "confirm", session.id("port 5433"))
    take("memory", "contradict", session.id("port 5433"))
    take("memory", "review", ship, "success")
    take("memory", "record-trigger", session.id("log a password"), "--false-positive")
    take("memory", "events")
    take("db", "maintain", "--dry-run")
    take("db", "maintain", named="done")
    take("memory", "retire", ship)


def read_memories(session: Session) -> None:
    take = session.take
    take("recall", "the storage database", *AT)
    take("recall", "the storage database", "--ranker", "hybrid", *AT, named="hybrid")
    take("recall", "postgres last year", "--into", "plan", "--since", "2020-01-01", *AT, named="into a set")
    take("recall", "xyzzy", *AT, named="nothing")
    take("memory", "list", "--limit", "2")
    take("memory", "show", session.id("ChromaDB"))
    take("memory", "history", session.id("ChromaDB"))
    take("context", "frames")
    assembled = take("assemble", "Which database?", "--budget", "60", "--record", *AT)
    take("context", "explain", "Which database?", "--frame", "decision", "--budget", "500", *AT)
    take("context", "project", "Which database?", "--no-git", *AT)
    shown = session.folder / "context.json"
    shown.write_text(json.dumps(assembled), encoding="utf-8")
    used = assembled["items"][0]["id"].partition("@")[0]
    take("context", "feedback", "--context", str(shown), "--used", used)
    take("context", "outcome", "success", "--context", str(shown))
    take("context", "observe", "We chose Postgres over ChromaDB and Redis.", "--dry-run", named="dry")
    take("context", "observe", "We chose Postgres over ChromaDB and Redis.")
    take("context", "learning", "on")
    take("context", "refresh", "Which database?", "--budget", "200", *AT)
    take("context", "refresh", "And the billing with Ana?", "--budget", "200", *AT, named="again")


def read_ledger(session: Session) -> None:
    take = session.take
    first, *_, last = (one["id"] for one in take("ledger", "list"))
    take("ledger", "show", last)
    take("ledger", "diff", last, first)
    take("ledger", "replay", last)
    take("ledger", "metrics", "--since", "2020-05-31", *AT)
    take("ledger", "purge", "--before", "2020-05-01", "--yes")
    take("db", "stats")
    take("db", "doctor")
    take("db", "doctor", "--repair")
    take("bug-report", form=True)


def hold(session: Session) -> None:
    take = session.take
    fact, decision = session.id("port 5433"), session.id("ChromaDB")
    take("working", "add", fact, decision, "--max-tokens", "40")
    take("working", "show")
    take("working", "touch", fact)
    take("working", "pin", fact)
    take("working", "unpin", fact)
    take("working", "assemble", "database", *AT)
    take("working", "evict", "5")
    take("working", "remove", fact)
    take("working", "clear")
    take("working", "events")
    take("working", "touch", fact, named="not marked")


def share(session: Session) -> None:
    take = session.take
    run("remember", "Ada likes tea.", *MADE, *ADA, db=session.db)
    take("space", "create", "team", "--admits", "read", *ADA)
    take("space", "join", "team", "--member", "ben", "--role", "passive", *ADA)
    take("space", "list", *ADA)
    take("space", "members", "team", *BEN)
    take("space", "promote", "team", "ben", *ADA)
    take("space", "demote", "team", "--member", "ben", *ADA)
    take("space", "fail-over", "team", "ada", *ADA)
    run("space", "promote", "team", "ada", *BEN, db=session.db)
    made = take("remember", "The demo is on Tuesday.", "--space", "team", *ADA, named="in a space")["memory"][
        "id"
    ]
    tea = run("recall", "tea", *ADA, "--json", db=session.db).json()["results"][0]["memory"]["id"]
    take("space", "share", "team", tea, *ADA)
    take("recall", "demo", "--space", "team", "--into", "plan", *AT, *ADA, named="in a space")
    take("memory", "forget", made, "--space", "team", *ADA, named="in a space")
    take("memory", "restore", made, "--space", "team", *ADA, named="in a space")
    take("space", "events", "team", *ADA)
    take("space", "leave", "team", "--member", "ben", *ADA)
    take("space", "disband", "team", "--yes", *ADA)


def converse(session: Session) -> None:
    take = session.take
    talk = session.folder / "weather.json"
    talk.write_text(json.dumps(TALK), encoding="utf-8")
    take("chat", "import", str(talk))
    take("chat", "show")
    take("chat", "show", "weather", named="one")
    take("chat", "summary", "weather")
    learned = take("learn", "from", "weather", form=True)["runs"][0]["id"]
    take("consolidate", form=True)
    take("learn", "runs", form=True)
    take("learn", "show", learned, form=True)
    take("learn", "undo", learned, form=True)
    take(
        "remember",
        "The user's sister Anna sings.",
        "--kind",
        "fact",
        "--subject",
        "user",
        *MADE,
        named="sister",
    )
    take("learn", "same", "Anna", "Annie", "--reason", "A nickname.", form=True)
    take("about", "my sister", form=True)
    take("chat", "window", "weather", "--groups", "1")
    take("chat", "request", "weather", "--memory", "layered")
    take("chat", "request", "weather", "--provider", "anthropic", "--cache", named="anthropic")


def exchange(session: Session) -> None:
    take, folder = session.take, session.folder
    (folder / "notes.md").write_text("# Notes\n\nIt runs.\n", encoding="utf-8")
    take("import", str(folder / "notes.md"), str(folder / "nothing.md"))
    take("export", "--out", str(folder / "all.jsonl"))
    take("db", "embed", "--embedder", "bundled")
    take("embedder", "use", "bundled", "--again")
    take("embedder", "use", "magic", named="of an unknown name")
    questions = folder / "questions.jsonl"
    question = {"question": "Which port?", "evidence": ["Postgres runs on port 5433."]}
    questions.write_text(json.dumps(question), encoding="utf-8")
    take("eval", "run", str(questions), "--budgets", "100", "--baselines", "none", form=True)
    (folder / "data").mkdir()
    lines = [{"role": "user", "content": "It runs.", "id": 1}, {"question": "What runs?", "evidence": 1}]
    (folder / "data" / "chat.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    take("eval", "kinds", str(folder / "data"), "--budgets", "100", "--peers", "bm25", form=True)
    take("eval", "losses", str(questions), "--budget", "100", form=True)
    take("demo", "--budgets", "500", "--project", str(folder), form=True)


def operate(session: Session) -> None:
    take = session.take
    take("db", "status")
    take("db", "agents")
    run("remember", "Ana likes tea.", *MADE, *ADA, "--user", "ana", db=session.db)
    take("recall", "tea", *AT, *ADA, "--user", "ana", named="of a user")
    take("db", "users")
    take("db", "purge-user", "ana", "--yes")
    key = take("keys", "create", "--agent", "ada", "--may", "read", form=True)["id"]
    take("keys", "list", form=True)
    take("keys", "revoke", key, form=True)
    take("db", "migrate")
    take("db", "copy", "--to", str(session.folder / "copy.db"))
    take("db", "reindex")
    take("db", "rekey", "--new-key", "7c" * 32)
    take("db", "vacuum")
    take("db", "vacuum", "--erase", named="erase")
    take("db", "index", "--agent", "ada")
    take("db", "distribute")
    take("db", "remove", "--agent", "ada", "--yes")
    for number in range(2):
        take("remember", f"Key {number} is AKIAIOSFODNN7QWERTY{number}.", named="a secret")
    marked = take("quarantine", "list")["memories"][0]["memory"]["id"]
    take("quarantine", "release", marked)
    take("quarantine", "purge", "--yes")
    take("memory", "trace-back", session.id("port 5433"))
    take("memory", "revoke", session.id("port 5433"), "--yes")
    take("memory", "purge", session.id("ChromaDB"), "--yes")
    take("memory", "show", "nothing-like-it", named="not found")
    take("recall", named="without a query")


@pytest.fixture
def session(tmp_path: Path) -> Session:
    session = Session(tmp_path)
    for part in (write_memories, read_memories, read_ledger, hold, share, converse, exchange, operate):
        part(session)
    return session


def test_every_command_prints_what_it_printed(session: Session) -> None:
    assert session.commands == set(COMMANDS) - UNTIL_INTERRUPTED
    printed = masked(steady(session.printed), db=session.db)
    if os.environ.get("GERMANE_WRITE_CLI_JSON"):
        text = json.dumps(printed, ensure_ascii=False, indent=1)
        PRINTED.write_text(re.sub(r"\n\s+(?=[\]}])", "", text) + "\n", encoding="utf-8")
    expected = json.loads(PRINTED.read_text(encoding="utf-8"))
    assert list(printed) == list(expected)
    for name, value in expected.items():
        assert printed[name] == value, name
