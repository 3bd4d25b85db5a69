"""The options that commands share, each with its one help text.

Level: integrations.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from germane.integrations.cli.opening import DEFAULT_AGENT

_TIME = "ISO 8601; without an offset it is UTC"
_NAMED = "ISO 8601, in UTC without an offset, or words: last week, 3 days ago, May 2023"

Database = Annotated[
    str,
    typer.Option(
        "--db",
        envvar="GERMANE_DB",
        metavar="STORE",
        help="Where the memories are: a file, or the address of a PostgreSQL database.",
    ),
]
Agent = Annotated[
    str, typer.Option("--agent", envvar="GERMANE_AGENT", metavar="NAME", help="Whose memories they are.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def any_agent(why: str) -> tuple[Any, str]:
    """An `--agent` that every command takes and that makes no difference here, with its default."""
    help_line = f"Makes no difference: {why}"
    option = typer.Option("--agent", envvar="GERMANE_AGENT", metavar="NAME", help=help_line)
    return Annotated[str, option], DEFAULT_AGENT


ANY_AGENT = any_agent("it is about all agents.")

Force = Annotated[bool, typer.Option("--force", help="Store it even if it is hardly worth keeping.")]
Reconciling = Annotated[
    bool, typer.Option("--reconcile", help="A fact confirms a known one that says the same, or replaces one.")
]
Target = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="A memory's id, or its beginning or end (4 characters or more); ID@2 is its version 2.",
    ),
]
QueryText = Annotated[str, typer.Argument(metavar="QUERY", help="What it is about, in any words.")]

KindFilter = Annotated[
    list[str] | None, typer.Option("--kind", metavar="KIND", help="Only memories of this kind. Repeatable.")
]
TagFilter = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="Only memories with this tag or one below it. Repeatable."),
]
SourceFilter = Annotated[
    str | None, typer.Option("--source", metavar="TEXT", help="Only memories from this very source.")
]
MetaFilter = Annotated[
    list[str] | None,
    typer.Option(
        "--meta", metavar="KEY=VALUE", help="Only memories with this field and this value. Repeatable."
    ),
]
Scopes = Annotated[
    list[str] | None,
    typer.Option(
        "--scope", metavar="SCOPE", help="Only memories of this scope, such as task:T-42. Repeatable."
    ),
]
WithSpaces = Annotated[
    list[str] | None,
    typer.Option("--with-space", metavar="SPACE", help="What this space holds takes part too. Repeatable."),
]
Since = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help=f"Only memories made at or after it ({_NAMED}).")
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help=f"Only memories made before it ({_NAMED}).")
]
MinImportance = Annotated[
    float | None,
    typer.Option("--min-importance", metavar="0-10", help="Only memories at least as important."),
]
Now = Annotated[
    str | None,
    typer.Option("--now", metavar="TIME", help=f"Answer as if it were this moment, to replay ({_TIME})."),
]
Budget = Annotated[
    int | None,
    typer.Option(
        "--budget", metavar="TOKENS", help="The most tokens the text may have; the frame's total if not said."
    ),
]
PlanName = Annotated[
    str,
    typer.Option(
        "--plan", metavar="PLAN", help="How the text is laid out: layered, newton_exact, relevance or scoped."
    ),
]
FrameName = Annotated[
    str,
    typer.Option(
        "--frame",
        metavar="FRAME",
        help="What the agent is doing: conversation, question, task, decision, debug or creative, one of "
        "--frames, or auto for what the query says.",
    ),
]
NamedFrame = Annotated[
    str | None,
    typer.Option(
        "--frame",
        metavar="FRAME",
        help="What the agent is doing: conversation, question, task, decision, debug or creative, one of "
        "--frames, or auto for what the query says. Default: task.",
    ),
]
Guidance = Annotated[
    bool | None,
    typer.Option(
        "--guidance/--no-guidance",
        help="Add the frame's own text where the budget allows. Default: only with a named --frame.",
    ),
]
Gate = Annotated[
    bool | None,
    typer.Option(
        "--gate/--no-gate",
        help="Leave out what has nothing to do with the query. Default: unless all memories fit.",
    ),
]
Dates = Annotated[
    bool, typer.Option("--dates/--no-dates", help="End facts, decisions and episodes with their day.")
]
Sources = Annotated[
    bool,
    typer.Option("--sources/--no-sources", help="End facts, decisions and episodes with a short source."),
]
Ids = Annotated[bool, typer.Option("--ids", help="End each item with a short id that `germane show` takes.")]
FramesFile = Annotated[
    Path | None,
    typer.Option("--frames", metavar="FILE", help="Further frames, a TOML file with a table for each."),
]
TalkFile = Annotated[
    Path | None,
    typer.Option(
        "--conversation", metavar="FILE", help="What was said so far; what it contains is left out."
    ),
]
Counter = Annotated[
    str,
    typer.Option("--counter", metavar="NAME", help="Who counts tokens: a counter or the name of a model."),
]
Pins = Annotated[
    list[str] | None,
    typer.Option("--pin", metavar="ID", help="A memory that must stand in the text. Repeatable."),
]

Record = Annotated[bool, typer.Option("--record", help="Keep an account in the ledger: `germane ledger`.")]

MemoryText = Annotated[
    str, typer.Argument(metavar="TEXT", help="What to remember; - reads it from the standard input.")
]
KindName = Annotated[
    str, typer.Option("--kind", metavar="KIND", help="What it is: note, fact, decision, procedure and so on.")
]
ScopeName = Annotated[
    str, typer.Option("--scope", metavar="SCOPE", help="Where it applies: global, task:T-42, path:src.")
]
TrustName = Annotated[
    str | None, typer.Option("--trust", metavar="TRUST", help="Whose word it is: owner, agent or external.")
]
SourceText = Annotated[str | None, typer.Option("--source", metavar="TEXT", help="Where the text came from.")]
Pinned = Annotated[bool, typer.Option("--pinned", help="Mark it as one to be kept in view.")]
CreatedAt = Annotated[
    str | None,
    typer.Option("--created-at", metavar="TIME", help=f"When it came about, if not now ({_TIME})."),
]
Subject = Annotated[
    str | None, typer.Option("--subject", metavar="TEXT", help="What or whom it is about, in a word or two.")
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="A tag, such as storage:cache. Repeatable.")
]
Importance = Annotated[
    float | None, typer.Option("--importance", metavar="0-10", help="How much it matters; 1 if not said.")
]
Confidence = Annotated[
    float | None, typer.Option("--confidence", metavar="0-1", help="How sure it is; 1 if not said.")
]
OutcomeName = Annotated[
    str | None,
    typer.Option(
        "--outcome",
        metavar="OUTCOME",
        help="How it turned out: success, partial, pending, failure or abandoned.",
    ),
]
Meta = Annotated[
    list[str] | None,
    typer.Option(
        "--meta",
        metavar="KEY=VALUE",
        help="A field of its kind or your own; a VALUE that is JSON is read as JSON. Repeatable.",
    ),
]
