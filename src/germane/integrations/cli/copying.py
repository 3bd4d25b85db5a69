"""db copy: a store to another one, agent by agent.

Level: integrations.
"""

from __future__ import annotations

from typing import Annotated

import germane
from germane.integrations.cli.command import Call, command
from germane.integrations.cli.options import opt
from germane.integrations.cli.output import print_table, print_text
from germane.stores.opening import location_of

_Source = Annotated[str | None, opt("--from STORE", "What to copy, a file or an address; --db if not said.")]
_Into = Annotated[str, opt("--to STORE", "Where to, a file or an address.")]
_Agents = Annotated[
    list[str] | None, opt("--agent NAME", "Copy this agent alone. Repeatable; all if not said.")
]


@command("db copy", agent=None)
def _copy(call: Call, *, source: _Source = None, target: _Into, agents: _Agents = None) -> None:
    """Each agent is copied whole and proved to be the same before it is stored, or not at all. If it is
    interrupted, the same command goes on where it was.
    """
    given = call.database if source is None else source
    with call.progress("steps") as tell:
        report = germane.copy_store(given, target, agents=agents or None, progress=tell)
    figures = {"copied": report.copied, "rows": report.rows, "agents": report.agents}
    if call.prints({"from": location_of(given), "to": location_of(target), **figures}):
        return
    print_table(
        ("AGENT", "ROWS", "SHA-256", ""),
        [
            (each.agent, f"{each.rows:,}", each.sha256[:16], "was there" if each.was_there else "copied")
            for each in report.agents
        ],
        right=(1,),
    )
    print_text(
        f"{report.copied:,} of {len(report.agents):,} agents were copied to {location_of(target)}, and all "
        f"{report.rows:,} rows are the same there."
    )
