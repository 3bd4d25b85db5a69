"""db remove: an agent with all that the store holds of it.

Level: integrations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

import germane
from germane import InvalidInput
from germane.integrations.cli.opening import DEFAULT_DATABASE
from germane.integrations.cli.options import Database, Json
from germane.integrations.cli.output import print_json, print_text
from germane.integrations.cli.progress import progress_of
from germane.stores.opening import is_address, location_of

__all__ = ["COMMANDS"]

_Named = Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Which agent.")]
_Yes = Annotated[bool, typer.Option("--yes", help="Confirm that it can't be undone.")]


def _remove(
    *,
    agent: _Named = None,
    yes: _Yes = False,
    database: Database = DEFAULT_DATABASE,
    as_json: Json = False,
) -> None:
    """Remove an agent for good, with all that the store holds of it.

    It leaves its spaces, and those end in which nobody else is. If it is interrupted, run it again. In
    PostgreSQL run `germane db vacuum --erase` afterwards, so that no bytes are left either.
    """
    if agent is None:
        raise InvalidInput("Say which agent: --agent NAME.")
    with progress_of("rows", quiet=as_json) as tell:
        removal = germane.remove_agent(database, agent, confirm=yes, progress=tell)
    if as_json:
        print_json(
            {
                "location": location_of(database),
                "agent": removal.agent,
                "was_there": removal.was_there,
                "rows": removal.rows,
                "left": list(removal.left),
                "ended": list(removal.ended),
                "finished": removal.finished,
            }
        )
        return
    print_text(_said(removal, location_of(database)))
    if removal.rows and is_address(database):
        print_text("To leave no bytes either: germane db vacuum --erase")


def _said(removal: germane.Removal, location: str) -> str:
    if removal.was_there:
        lines = [f"{location}: {removal.agent} is removed, {removal.rows:,} rows in all."]
    else:
        lines = [f"{location}: there is no agent {removal.agent}."]
    if removal.finished:
        lines.append(f"Removals finished that were interrupted: {removal.finished:,}.")
    if removal.left:
        lines.append(f"It has left the spaces {', '.join(removal.left)}; what it put there stays.")
    if removal.ended:
        lines.append(f"These spaces went with it: {', '.join(removal.ended)}.")
    return "\n".join(lines)


COMMANDS: dict[str, Callable[..., Any]] = {"db remove": _remove}
"""The commands of this file by name."""
