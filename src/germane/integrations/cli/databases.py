"""db: what an operator does to a whole store, in a file or in PostgreSQL.

Level: integrations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

import germane
from germane import InvalidInput
from germane.integrations.cli.inspecting import size_of
from germane.integrations.cli.opening import DEFAULT_AGENT, DEFAULT_DATABASE
from germane.integrations.cli.options import Database, Json
from germane.integrations.cli.output import print_json, print_table, print_text, warn
from germane.integrations.cli.progress import progress_of
from germane.model.columns import table
from germane.stores.opening import location_of

if TYPE_CHECKING:
    from germane import DatabaseStatus

__all__ = ["COMMANDS", "AnyAgent"]

AnyAgent = Annotated[
    str,
    typer.Option(
        "--agent", envvar="GERMANE_AGENT", metavar="NAME", help="Makes no difference: it is about all agents."
    ),
]
_Partitions = Annotated[
    int,
    typer.Option(
        "--partitions",
        metavar="COUNT",
        help="Give the tables of a new PostgreSQL store so many hash partitions by agent.",
        min=0,
    ),
]
_Role = Annotated[
    str | None,
    typer.Option(
        "--grant", metavar="ROLE", help="Let this database role use the store: one agent at a time, no more."
    ),
]
_Remove = Annotated[bool, typer.Option("--unindex", help="Take the index away again.")]
_Named = Annotated[
    str | None, typer.Option("--agent", metavar="NAME", help="Whose vectors: an agent with very many.")
]
_Erase = Annotated[
    bool,
    typer.Option(
        "--erase", help="Leave no bytes of what was purged: in PostgreSQL, write the tables concerned anew."
    ),
]
_SHOWN = 50


def _status(
    *,
    database: Database = DEFAULT_DATABASE,
    agent: AnyAgent = DEFAULT_AGENT,  # noqa: ARG001 - Every command takes it, so that a script needn't ask.
    as_json: Json = False,
) -> None:
    """What a store is kept in, by which schema, and how much it holds."""
    status = germane.store_status(database)
    if as_json:
        from germane.integrations.database_shapes import status_shape  # noqa: PLC0415 - For programs alone.

        print_json(status_shape(status))
    else:
        print_text("\n".join(table(_rows(status))))


def _list_agents(
    *,
    database: Database = DEFAULT_DATABASE,
    agent: AnyAgent = DEFAULT_AGENT,  # noqa: ARG001 - As above.
    as_json: Json = False,
) -> None:
    """Whose memories a store holds, how many, and when each last wrote one.

    Spaces are among them, as `space:` and their name.
    """
    found = germane.store_agents(database)
    if as_json:
        from germane.integrations.database_shapes import agents_shape  # noqa: PLC0415 - For programs alone.

        print_json({"location": location_of(database), "agents": agents_shape(found)})
        return
    rows = [
        (
            each.name,
            "?" if each.memories is None else f"{each.memories:,}",
            f"{each.written_at:%Y-%m-%d %H:%M}" if each.written_at else "",
        )
        for each in found
    ]
    print_table(("agent", "memories", "last written"), rows, right=(1,))
    if any(each.memories is None for each in found):
        warn(
            "Note: this user may see one agent at a time, so only the names are shown. Use the address of "
            "the user who owns the tables."
        )


def _migrate(
    *,
    partitions: _Partitions = 0,
    role: _Role = None,
    database: Database = DEFAULT_DATABASE,
    agent: AnyAgent = DEFAULT_AGENT,  # noqa: ARG001 - As above.
    as_json: Json = False,
) -> None:
    """Make a store, or bring it to the schema of this version.

    Run it again after an interruption, or to grant the rights to a further role.
    """
    applied = germane.migrate_store(database, partitions=partitions, role=role)
    if as_json:
        print_json({"location": location_of(database), "applied": list(applied), "granted": role})
        return
    said = f"applied {', '.join(applied)}" if applied else "nothing was missing"
    print_text(f"{location_of(database)}: {said}.")
    if role is not None:
        print_text(f"Role {role} may use it, one agent at a time.")


def _reindex(
    *,
    database: Database = DEFAULT_DATABASE,
    agent: AnyAgent = DEFAULT_AGENT,  # noqa: ARG001 - As above.
    as_json: Json = False,
) -> None:
    """Build the indexes of a store anew, and index words anew that an older tokenizer indexed."""
    with progress_of("tables", quiet=as_json) as tell:
        germane.reindex_store(database, progress=tell)
    _print_done(database, "the indexes were built anew", as_json=as_json)


def _vacuum(
    *,
    erase: _Erase = False,
    database: Database = DEFAULT_DATABASE,
    agent: AnyAgent = DEFAULT_AGENT,  # noqa: ARG001 - As above.
    as_json: Json = False,
) -> None:
    """Give back the room of what was deleted, or erase what was purged.

    With --erase whoever needs one of the tables waits while it is written. It can be interrupted: what is due
    stays due, and `germane db status` says so.
    """
    if erase:
        _erase(database, as_json=as_json)
        return
    with progress_of("tables", quiet=as_json) as tell:
        germane.vacuum_store(database, progress=tell)
    _print_done(database, "the room of what was deleted can be used again", as_json=as_json)


def _erase(database: str, *, as_json: bool) -> None:
    with progress_of("steps", quiet=as_json) as tell:
        erasure = germane.erase_purged(database, progress=tell)
    if as_json:
        print_json(
            {"location": location_of(database), "tables": list(erasure.tables), "left": list(erasure.left)}
        )
        return
    written = f", and {len(erasure.tables):,} tables were written anew" if erasure.tables else ""
    print_text(f"{location_of(database)}: nothing of what was purged is left in its tables{written}.")
    print_text("\n".join(["Where it may be left:", *(f"- {each}" for each in erasure.left)]))


def _index(
    *,
    agent: _Named = None,
    unindex: _Remove = False,
    database: Database = DEFAULT_DATABASE,
    as_json: Json = False,
) -> None:
    """Give one agent's vectors in PostgreSQL an index (HNSW), or take it away.

    It is asked from 20,000 memories on; what is smaller is kept in the processes that ask about it. It finds
    nearly all of the nearest, so results may differ from exact ones. Nobody waits while it is built.
    """
    if agent is None:
        raise InvalidInput("Say whose vectors: --agent NAME.")
    with progress_of("blocks", quiet=as_json) as tell:
        vectors = germane.index_vectors(database, agent, remove=unindex, progress=tell)
    if as_json:
        print_json(
            {"location": location_of(database), "agent": agent, "vectors": vectors, "indexed": not unindex}
        )
    else:
        print_text(f"{agent}: {vectors:,} vectors, {'without an index' if unindex else 'indexed'}.")


def _distribute(
    *,
    database: Database = DEFAULT_DATABASE,
    agent: AnyAgent = DEFAULT_AGENT,  # noqa: ARG001 - As above.
    as_json: Json = False,
) -> None:
    """Spread the tables of a store over the servers of a Citus cluster, by agent."""
    with progress_of("tables", quiet=as_json) as tell:
        spread = germane.distribute_store(database, progress=tell)
    if as_json:
        print_json({"location": location_of(database), "distributed": list(spread)})
    else:
        print_text(f"{location_of(database)}: {len(spread)} tables were distributed.")


def _print_done(database: str, what: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"location": location_of(database), "done": True})
    else:
        print_text(f"{location_of(database)}: {what}.")


def _rows(status: DatabaseStatus) -> list[tuple[str, str]]:
    kept = [status.engine, *(f"{name} {version}" for name, version in status.extensions)]
    if status.standby:
        kept.append("a standby")
    rows = [
        ("Store", status.location),
        ("Kept in", ", ".join(kept)),
        ("Schema", f"{status.schema_version} of {status.newest_version}"),
        ("Agents", f"{status.agents:,}"),
        ("Memories", "not for this user to see" if status.memories is None else f"{status.memories:,}"),
        ("Size", size_of(status.bytes)),
    ]
    if status.pending:
        rows.append(("Pending", ", ".join(status.pending)))
    if status.due:
        rows.append(("To erase", _owed(status.due)))
    if status.removing:
        rows.append(("Half removed", f"{_agents(status.removing)}; run `germane db remove` again"))
    if status.embedding is not None:
        rows.append(("Vectors by", str(status.embedding)))
    if status.partitions:
        rows.append(("Partitions", f"{status.partitions:,} of each table"))
    if status.replicas:
        rows.append(("Replicas", f"{status.replicas:,}"))
    if status.distributed:
        rows.append(("Distributed", "by Citus"))
    rows.extend(
        (
            "Indexed",
            f"{each.vectors:,} vectors of {each.agent}, {size_of(each.bytes)}"
            + ("" if each.valid else "; half built: run `germane db index` again"),
        )
        for each in status.indexes[:_SHOWN]
    )
    if len(status.indexes) > _SHOWN:
        rows.append(("", f"and {len(status.indexes) - _SHOWN:,} agents more; --json lists all of them"))
    return rows


def _owed(due: int) -> str:
    return f"what was purged of {_agents(due)}: `germane db vacuum --erase`"


def _agents(count: int) -> str:
    return f"{count:,} agent{'' if count == 1 else 's'}"


COMMANDS: dict[str, Callable[..., Any]] = {
    "db status": _status,
    "db agents": _list_agents,
    "db migrate": _migrate,
    "db reindex": _reindex,
    "db vacuum": _vacuum,
    "db index": _index,
    "db distribute": _distribute,
}
"""The commands of this file by name."""
