"""db: what an operator does to a whole store, in a file or in PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from germane import InvalidInput
from germane.cli.options import ANY_AGENT, Call, Yes, any_agent, check_is_there, command, embedder_named, opt
from germane.cli.output import print_table, print_text, to_json, warn
from germane.cli.reports import size_of
from germane.model.text import table
from germane.stores import (
    Removal,
    copy_store,
    distribute_store,
    erase_purged,
    index_vectors,
    migrate_store,
    reembed,
    reindex_store,
    remove_agent,
    store_agents,
    store_status,
    vacuum_store,
)
from germane.stores.location import is_address, location_of

if TYPE_CHECKING:
    from germane.stores import DatabaseStatus

_Partitions = Annotated[
    int,
    opt(
        "--partitions COUNT",
        "Give the tables of a new PostgreSQL store so many hash partitions by agent.",
        min=0,
    ),
]
_Role = Annotated[
    str | None, opt("--grant ROLE", "Let this database role use the store: one agent at a time, no more.")
]
_Remove = Annotated[bool, opt("--unindex", "Take the index away again.")]
_Named = Annotated[str | None, opt("--agent NAME", "Whose vectors: an agent with very many.")]
_Erase = Annotated[
    bool, opt("--erase", "Leave no bytes of what was purged: in PostgreSQL, write the tables concerned anew.")
]
_SHOWN = 50


@command("db status", agent=ANY_AGENT)
def _status(call: Call) -> None:
    status = store_status(call.database)
    call.answer(status, lambda: "\n".join(table(_rows(status))))


@command("db agents", agent=ANY_AGENT)
def _list_agents(call: Call) -> None:
    """Spaces are among them, as `space:` and their name."""
    found = store_agents(call.database)
    if call.prints({"location": call.location, "agents": found}):
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


@command("db migrate", agent=ANY_AGENT)
def _migrate(call: Call, *, partitions: _Partitions = 0, role: _Role = None) -> None:
    """Run it again after an interruption, or to grant the rights to a further role."""
    applied = migrate_store(call.database, partitions=partitions, role=role)
    said = f"applied {', '.join(applied)}" if applied else "nothing was missing"
    lines = [f"{call.location}: {said}."]
    if role is not None:
        lines.append(f"Role {role} may use it, one agent at a time.")
    call.answer({"location": call.location, "applied": applied, "granted": role}, "\n".join(lines))


@command("db reindex", agent=ANY_AGENT)
def _reindex(call: Call) -> None:
    with call.progress("tables") as tell:
        reindex_store(call.database, progress=tell)
    call.answer({"location": call.location, "done": True}, f"{call.location}: the indexes were built anew.")


@command("db vacuum", agent=ANY_AGENT)
def _vacuum(call: Call, *, erase: _Erase = False) -> None:
    """With --erase whoever needs one of the tables waits while it is written. It can be interrupted: what is
    due stays due, and `germane db status` says so.
    """
    if erase:
        _erase(call)
        return
    with call.progress("tables") as tell:
        vacuum_store(call.database, progress=tell)
    said = f"{call.location}: the room of what was deleted can be used again."
    call.answer({"location": call.location, "done": True}, said)


def _erase(call: Call) -> None:
    with call.progress("steps") as tell:
        erasure = erase_purged(call.database, progress=tell)
    written = f", and {len(erasure.tables):,} tables were written anew" if erasure.tables else ""
    lines = [
        f"{call.location}: nothing of what was purged is left in its tables{written}.",
        "Where it may be left:",
        *(f"- {each}" for each in erasure.left),
    ]
    call.answer({"location": call.location, **to_json(erasure)}, "\n".join(lines))


@command("db index")
def _index(call: Call, *, agent: _Named = None, unindex: _Remove = False) -> None:
    """It is asked from 20,000 memories on; what is smaller is kept in the processes that ask about it. It
    finds nearly all of the nearest, so results may differ from exact ones. Nobody waits while it is built.
    """
    if agent is None:
        raise InvalidInput("Say whose vectors: --agent NAME.")
    with call.progress("blocks") as tell:
        vectors = index_vectors(call.database, agent, remove=unindex, progress=tell)
    call.answer(
        {"location": call.location, "agent": agent, "vectors": vectors, "indexed": not unindex},
        f"{agent}: {vectors:,} vectors, {'without an index' if unindex else 'indexed'}.",
    )


@command("db distribute", agent=ANY_AGENT)
def _distribute(call: Call) -> None:
    with call.progress("tables") as tell:
        spread = distribute_store(call.database, progress=tell)
    call.answer(
        {"location": call.location, "distributed": spread},
        f"{call.location}: {len(spread)} tables were distributed.",
    )


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


# db copy: a store to another one, agent by agent.

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
        report = copy_store(given, target, agents=agents or None, progress=tell)
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


# db remove: an agent with all that the store holds of it.

_RemovedNamed = Annotated[str | None, opt("--agent NAME", "Which agent.")]


@command("db remove")
def _remove(call: Call, *, agent: _RemovedNamed = None, yes: Yes = False) -> None:
    """It leaves its spaces, and those end in which nobody else is. If it is interrupted, run it again. In
    PostgreSQL run `germane db vacuum --erase` afterwards, so that no bytes are left either.
    """
    if agent is None:
        raise InvalidInput("Say which agent: --agent NAME.")
    with call.progress("rows") as tell:
        removal = remove_agent(call.database, agent, confirm=yes, progress=tell)
    if call.prints({"location": call.location, **to_json(removal)}):
        return
    print_text(_removal_line(removal, call.location))
    if removal.rows and is_address(call.database):
        print_text("To leave no bytes either: germane db vacuum --erase")


def _removal_line(removal: Removal, location: str) -> str:
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


# embed and reembed: vectors for the memories that wait for one, and those of another model for all.

_Limit = Annotated[int | None, opt("--limit COUNT", "At most so many memories, newest first.", min=1)]
_Embedder = Annotated[
    str,
    opt(
        "--embedder NAME",
        "Which model: static, which comes with germane, or onnx (pip install 'germane[onnx]').",
    ),
]
_Again = Annotated[bool, opt("--again", "Drop the vectors of this same model too.")]
_ANY_AGENT = any_agent("one store has vectors of one model, so every agent's are replaced.")
_Yes = Annotated[bool, opt("--yes", "Do it: the vectors of the model before are lost.")]


@command("embed")
def _embed(call: Call, embedder: _Embedder = "static", limit: _Limit = None) -> None:
    with (
        call.open(writes=True, embedder=embedder_named(embedder)) as engine,
        call.progress("memories") as tell,
    ):
        count = engine.embed_pending(limit=limit, progress=tell)
        left = engine.stats().pending
    call.answer({"embedded": count, "pending": left}, f"Embedded {count:,} memories; {left:,} wait.")


@command("reembed", agent=_ANY_AGENT)
@command("db reembed", agent=_ANY_AGENT)
def _reembed(call: Call, *, embedder: _Embedder = "static", again: _Again = False, yes: _Yes = False) -> None:
    """If it is interrupted, the same command goes on where it was."""
    check_is_there(call.database)
    model = embedder_named(embedder)
    if not yes:
        raise InvalidInput(
            f"This removes the vectors that another model made in {call.location}, those of every "
            f"agent, and makes new ones with {model.name!r}. Say --yes if that is what you want."
        )
    with call.progress("memories") as tell:
        count = reembed(call.database, embedder=model, again=again, progress=tell)
    call.answer({"embedded": count, "model": model.name}, f"Embedded {count:,} memories with {model.name}.")
