"""db remove: an agent with all that the store holds of it.

Level: integrations.
"""

from __future__ import annotations

from typing import Annotated

import germane
from germane import InvalidInput
from germane.integrations.cli.command import Call, command
from germane.integrations.cli.options import Yes, opt
from germane.integrations.cli.output import print_text
from germane.integrations.shapes import to_json
from germane.stores.opening import is_address

_Named = Annotated[str | None, opt("--agent NAME", "Which agent.")]


@command("db remove")
def _remove(call: Call, *, agent: _Named = None, yes: Yes = False) -> None:
    """It leaves its spaces, and those end in which nobody else is. If it is interrupted, run it again. In
    PostgreSQL run `germane db vacuum --erase` afterwards, so that no bytes are left either.
    """
    if agent is None:
        raise InvalidInput("Say which agent: --agent NAME.")
    with call.progress("rows") as tell:
        removal = germane.remove_agent(call.database, agent, confirm=yes, progress=tell)
    if call.prints({"location": call.location, **to_json(removal)}):
        return
    print_text(_said(removal, call.location))
    if removal.rows and is_address(call.database):
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
