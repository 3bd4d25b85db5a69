"""db copy: a store to another one, agent by agent.

Level: integrations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

import germane
from germane.integrations.cli.opening import DEFAULT_DATABASE
from germane.integrations.cli.options import Database, Json
from germane.integrations.cli.output import print_json, print_table, print_text
from germane.integrations.cli.progress import progress_of
from germane.stores.opening import location_of

__all__ = ["COMMANDS"]

_Source = Annotated[
    str | None,
    typer.Option("--from", metavar="STORE", help="What to copy, a file or an address; --db if not said."),
]
_Into = Annotated[str, typer.Option("--to", metavar="STORE", help="Where to, a file or an address.")]
_Agents = Annotated[
    list[str] | None,
    typer.Option("--agent", metavar="NAME", help="Copy this agent alone. Repeatable; all if not said."),
]


def _copy(
    *,
    source: _Source = None,
    target: _Into,
    agents: _Agents = None,
    database: Database = DEFAULT_DATABASE,
    as_json: Json = False,
) -> None:
    """Copy a store to another one, in either direction between a file and PostgreSQL.

    Each agent is copied whole and proved to be the same before it is stored, or not at all. If it is
    interrupted, the same command goes on where it was.
    """
    given = database if source is None else source
    with progress_of("steps", quiet=as_json) as tell:
        report = germane.copy_store(given, target, agents=agents or None, progress=tell)
    if as_json:
        print_json(
            {
                "from": location_of(given),
                "to": location_of(target),
                "copied": report.copied,
                "rows": report.rows,
                "agents": [
                    {
                        "agent": each.agent,
                        "rows": each.rows,
                        "sha256": each.sha256,
                        "was_there": each.was_there,
                    }
                    for each in report.agents
                ],
            }
        )
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


COMMANDS: dict[str, Callable[..., Any]] = {"db copy": _copy}
"""The commands of this file by name."""
