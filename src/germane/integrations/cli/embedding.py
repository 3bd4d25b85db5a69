"""embed and reembed: vectors for the memories that wait for one, and those of another model for all.

Level: integrations.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

import germane
from germane import InvalidInput
from germane.integrations.cli.opening import DEFAULT_AGENT, DEFAULT_DATABASE, check_is_there, embedder_named
from germane.integrations.cli.options import Agent, Database, Json
from germane.integrations.cli.output import print_json, print_text
from germane.stores.opening import location_of

__all__ = ["COMMANDS"]

_Limit = Annotated[
    int | None,
    typer.Option("--limit", metavar="COUNT", help="At most so many memories, newest first.", min=1),
]
_Embedder = Annotated[
    str,
    typer.Option(
        "--embedder",
        metavar="NAME",
        help="Which model: static, which comes with germane, or onnx (pip install 'germane[onnx]').",
    ),
]
_Again = Annotated[bool, typer.Option("--again", help="Drop the vectors of this same model too.")]
_AnyAgent = Annotated[
    str,
    typer.Option(
        "--agent",
        envvar="GERMANE_AGENT",
        metavar="NAME",
        help="Makes no difference: one store has vectors of one model, so every agent's are replaced.",
    ),
]
_Yes = Annotated[bool, typer.Option("--yes", help="Do it: the vectors of the model before are lost.")]


def _embed(
    embedder: _Embedder = "static",
    limit: _Limit = None,
    database: Database = DEFAULT_DATABASE,
    agent: Agent = DEFAULT_AGENT,
    as_json: Json = False,
) -> None:
    """Make vectors for the memories that wait for one."""
    check_is_there(database)
    with germane.open(database, agent=agent, embedder=embedder_named(embedder)) as engine:
        count = engine.embed_pending(limit=limit, progress=_progress(as_json=as_json))
        left = engine.stats().pending
    if as_json:
        print_json({"embedded": count, "pending": left})
    else:
        print_text(f"Embedded {count:,} memories; {left:,} wait.")


def _reembed(
    *,
    embedder: _Embedder = "static",
    again: _Again = False,
    yes: _Yes = False,
    database: Database = DEFAULT_DATABASE,
    agent: _AnyAgent = DEFAULT_AGENT,  # noqa: ARG001 - every command takes it, so that a script needn't ask.
    as_json: Json = False,
) -> None:
    """Replace the vectors of every agent in the store by those of another model.

    If it is interrupted, the same command goes on where it was.
    """
    check_is_there(database)
    model = embedder_named(embedder)
    if not yes:
        raise InvalidInput(
            f"This removes the vectors that another model made in {location_of(database)}, those of every "
            f"agent, and makes new ones with {model.name!r}. Say --yes if that is what you want."
        )
    count = germane.reembed(database, embedder=model, again=again, progress=_progress(as_json=as_json))
    if as_json:
        print_json({"embedded": count, "model": model.name})
    else:
        print_text(f"Embedded {count:,} memories with {model.name}.")


def _progress(*, as_json: bool) -> Callable[[int, int], None] | None:
    """Count on the terminal, if somebody sits at one."""
    if as_json or not sys.stderr.isatty():
        return None

    def tell(done: int, total: int) -> None:
        typer.echo(f"\r{done:,} of {total:,}", nl=done >= total, err=True)

    return tell


COMMANDS: dict[str, Callable[..., Any]] = {
    "embed": _embed,
    "reembed": _reembed,
    "db reembed": _reembed,
}
"""The commands of this file by name."""
