"""The options that commands share, each with its one help text.

Level: integrations.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from germane.integrations.cli.opening import DEFAULT_AGENT


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
    str, opt("--plan PLAN", "How the text is laid out: layered, newton_exact, relevance or scoped.")
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
