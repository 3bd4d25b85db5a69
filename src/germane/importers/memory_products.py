"""Memories of mem0, LangGraph, Letta, Graphiti and Zep, and the reference MCP memory server, as drafts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from germane.errors import MissingExtra
from germane.frameworks.langgraph_item import FIELD, item_of, key_of, readable
from germane.importers.dialogue import message_turns
from germane.importers.foreign import (
    NO_VECTORS,
    LeaveOut,
    foreign_draft,
    objects_in,
    placed,
    points_of,
    rows_of,
    tables_of,
    text_in,
)
from germane.importers.records import parse_object
from germane.importers.sources import (
    FieldError,
    as_stamp,
    as_texts,
    numbered_lines,
    turn_draft,
    unreadable,
)
from germane.model.memory import Draft
from germane.stores.location import location_of


def _expired(value: object, name: str, leave_out: LeaveOut) -> tuple[datetime | None, bool]:
    """When something expires, and whether that is over, which is counted."""
    at = as_stamp(value, name=name)
    is_over = at is not None and at <= datetime.now(UTC)
    if is_over:
        leave_out("memories that have expired")
    return at, is_over


# mem0: what `get_all` returns, the local Qdrant folder, and the log of changes.

_MEM0_TEXTS: Final = ("memory", "data")
_MEM0_OWN: Final = frozenset(
    {"id", "memory", "data", "hash", "created_at", "updated_at", "score", "text_lemmatized", "metadata"}
    | {"user_id", "run_id", "categories", "expiration_date", "vector"}
)


def is_mem0(value: object) -> bool:
    """Whether a JSON value is what mem0's `get_all` returns: memories, with or without `results`."""
    first = next(iter(objects_in(value, "results", "memories")), {})
    return isinstance(first.get("memory"), str) and "id" in first


def read_mem0(value: object, path: Path, leave_out: LeaveOut) -> Iterator[Draft]:
    """The memories of an export: users and runs as users and sessions, other fields as metadata."""
    for number, fields in enumerate(objects_in(value, "results", "memories"), 1):
        with placed(path, f"memory {number}"):
            yield from _mem0_draft(fields, leave_out)
    leave_out("relations of mem0's graph", len(objects_in(value, "relations")))


def read_mem0_files(path: Path, leave_out: LeaveOut) -> Iterator[Draft]:
    """The memories of a local Qdrant folder, of a collection of it, or of mem0's log of changes."""
    collections = sorted(path.glob("collection/*/storage.sqlite")) if path.is_dir() else [path]
    for file in collections:
        name = file.parent.name
        if "points" not in tables_of(file):
            yield from _mem0_history(file, leave_out)
            continue
        if name.startswith("mem0migrations") or name.endswith("_entities"):
            leave_out(f"entries of {name!r}, which mem0 derives from the memories", len([*points_of(file)]))
            continue
        for number, point in enumerate(points_of(file), 1):
            leave_out(NO_VECTORS, 1 if point.get("vector") else 0)
            with placed(file, f"point {number}"):
                yield from _mem0_draft({**(point.get("payload") or {}), "id": point["id"]}, leave_out)


def _mem0_draft(fields: Mapping[str, Any], leave_out: LeaveOut) -> Iterator[Draft]:
    content = next((text for name in _MEM0_TEXTS if (text := text_in(fields, name))), "")
    expires, is_over = _expired(fields.get("expiration_date"), "expiration_date", leave_out)
    if not content or is_over:
        leave_out("memories without a text", 0 if content else 1)
        return
    own = {name: value for name, value in fields.items() if name not in _MEM0_OWN}
    given = fields.get("metadata")
    yield foreign_draft(
        content,
        f"mem0:{fields['id']}",
        created=fields.get("created_at"),
        updated=fields.get("updated_at"),
        user=fields.get("user_id"),
        session=str(fields["run_id"]) if fields.get("run_id") else None,
        tags=as_texts(fields.get("categories"), name="categories"),
        expires_at=expires,
        metadata={**own, **(given if isinstance(given, Mapping) else {})},
    )


def _mem0_history(path: Path, leave_out: LeaveOut) -> Iterator[Draft]:
    """The latest text of each memory in the log of changes, which doesn't have users or metadata."""
    latest: dict[str, Mapping[str, Any]] = {}
    count = 0
    for row in rows_of(path, "SELECT * FROM history ORDER BY COALESCE(updated_at, created_at), rowid"):
        count += 1
        first = latest.get(row["memory_id"], row)
        latest[row["memory_id"]] = {**row, "created_at": first["created_at"] or row["created_at"]}
    gone = [each for each in latest.values() if each["event"] == "DELETE" or each["is_deleted"]]
    current = [each for each in latest.values() if each not in gone]
    leave_out("deleted memories", len(gone))
    leave_out("earlier versions of memories", count - len(latest))
    leave_out(
        "memories' users and metadata: this file lacks them, and the Qdrant folder has them", len(current)
    )
    for each in current:
        fields = {"id": each["memory_id"], "memory": each["new_memory"], "role": each.get("role")}
        times = {name: each[name] for name in ("created_at", "updated_at")}
        with placed(path, f"memory {each['memory_id']}"):
            yield from _mem0_draft({**fields, **times}, leave_out)


# LangGraph: the tables of its SQLite and PostgreSQL stores.


def read_langgraph_file(path: Path, leave_out: LeaveOut) -> Iterator[Draft]:
    """The items of an SQLite store of LangGraph."""
    if "store_vectors" in tables_of(path):
        leave_out(NO_VECTORS, next(iter(rows_of(path, "SELECT count(*) AS n FROM store_vectors")))["n"])
    yield from _items(rows_of(path, "SELECT * FROM store ORDER BY prefix, key"), str(path), leave_out)


def read_langgraph_address(address: str, leave_out: LeaveOut) -> Iterator[Draft]:
    """The items of a PostgreSQL store of LangGraph. Raises UnreadableSource and MissingExtra."""
    try:
        import psycopg  # noqa: PLC0415 - An optional dependency, needed only here.
        from psycopg.rows import dict_row  # noqa: PLC0415 - As above.
    except ImportError as error:
        raise MissingExtra(feature="Importing from PostgreSQL", extra="postgres") from error
    place = location_of(address)
    try:
        with psycopg.connect(address, row_factory=dict_row) as connection:
            connection.read_only = True
            if connection.execute("SELECT to_regclass('store_vectors') AS t").fetchone() != {"t": None}:
                counted = connection.execute("SELECT count(*) AS n FROM store_vectors").fetchone()
                leave_out(NO_VECTORS, counted["n"] if counted else 0)
            with connection.cursor(name="germane_items") as cursor:
                yield from _items(
                    cursor.execute("SELECT * FROM store ORDER BY prefix, key"), place, leave_out
                )
    except psycopg.Error as error:
        reason = (
            f"PostgreSQL refused it ({str(error).strip()}). The address must be that of a LangGraph store"
        )
        raise unreadable(place, reason) from error


def _items(rows: Iterable[Mapping[str, Any]], place: str, leave_out: LeaveOut) -> Iterator[Draft]:
    """The items as `germane.frameworks.langgraph` stores them, so that its store shows them again."""
    for row in rows:
        namespace, key = tuple(str(row["prefix"]).split(".")), str(row["key"])
        with placed(place, f"the item {key!r} of {row['prefix']!r}"):
            value = row["value"]
            try:
                value = json.loads(value) if isinstance(value, str | bytes) else value
            except ValueError as error:
                raise FieldError(f"the value is no JSON ({error})") from error
            if not isinstance(value, Mapping):
                raise FieldError(f"the value must be an object, and is {value!r}")
            expires, is_over = _expired(row.get("expires_at"), "expires_at", leave_out)
            if is_over:
                continue
            text = readable(value)
            item = item_of(namespace, key, value, searched=bool(text), ttl=row.get("ttl_minutes"))
            name = key_of(namespace, key)
            yield foreign_draft(
                text or key or "(empty)",
                f"langgraph:{name}",
                kind="note",
                key=name,
                created=row["created_at"],
                updated=row["updated_at"],
                expires_at=expires,
                metadata={FIELD: item},
            )


# Letta: agent files, the current ones with several agents, and the first ones with one.


_SPEAK: Final = "send_message"
"""The tool by which agents of Letta answer."""


def is_letta(value: object) -> bool:
    """Whether a JSON value is an agent file of Letta."""
    return isinstance(value, Mapping) and (
        {"agents", "blocks"} <= value.keys() or {"core_memory", "agent_type"} <= value.keys()
    )


def read_letta(value: Mapping[str, Any], path: Path, leave_out: LeaveOut) -> Iterator[Draft]:
    """The memory blocks as memories and the messages as turns of a session; the rest is counted."""
    agents = objects_in(value, "agents") or [{**value, "id": value.get("name")}]
    blocks = objects_in(value, "blocks") or objects_in(value, "core_memory")
    owners: dict[str, list[str]] = {}
    for agent in agents:
        for block_id in agent.get("block_ids") or ():
            owners.setdefault(str(block_id), []).append(text_in(agent, "name"))
    for number, block in enumerate(blocks, 1):
        with placed(path, f"block {number}"):
            names = owners.get(str(block.get("id"))) or [text_in(agents[0], "name")]
            yield from _block(block, names, leave_out)
    for agent in agents:
        name = text_in(agent, "name") or "agent"
        given = objects_in(agent, "messages")
        spoken = [each for each in given if each.get("role") != "system"]
        messages = [each for each in spoken if (each.get("role"), each.get("name")) != ("tool", _SPEAK)]
        leave_out("system messages", len(given) - len(spoken))
        leave_out(f"receipts of {_SPEAK!r}", len(spoken) - len(messages))
        with placed(path, f"the messages of {name!r}"):
            # A turn is known by its message's id, since an export has only the latest messages.
            for turn in message_turns([*map(_letta_message, messages)]):
                at = messages[turn.index].get("id") or turn.index
                yield turn_draft(
                    turn, session=name, source=f"letta:{name}#{at}", metadata={"letta_agent": name}
                )
        for each in ("system", "llm_config", "embedding_config", "tool_exec_environment_variables"):
            leave_out(f"settings {each!r} of an agent", 1 if agent.get(each) else 0)
    for each in ("tools", "groups", "files", "sources", "mcp_servers", "skills"):
        leave_out(f"{each}, which aren't memories", len(objects_in(value, each)))


def _block(block: Mapping[str, Any], agents: list[str], leave_out: LeaveOut) -> Iterator[Draft]:
    label = text_in(block, "label") or "block"
    if not text_in(block, "value"):
        leave_out("memory blocks without a text")
        return
    yield foreign_draft(
        text_in(block, "value"),
        f"letta:{'+'.join(agents)}#block:{label}",
        kind="identity" if label == "persona" else "fact",
        subject=label,
        created=block.get("created_at"),
        updated=block.get("updated_at"),
        metadata={
            "letta_agent": ", ".join(agents),
            "description": block.get("description"),
            "read_only": block.get("read_only") or None,
            **(block.get("metadata") or {}),
        },
    )


def _letta_message(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message in OpenAI's format: without thoughts, and with the words of `send_message` as text."""
    content = message.get("content")
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, Mapping) and "text" in part]
        content = [{"type": "text", "text": _spoken(str(part["text"]))} for part in parts]
    functions = [call.get("function") or {} for call in objects_in(message, "tool_calls")]
    words = [_spoken(str(each.get("arguments"))) for each in functions if each.get("name") == _SPEAK]
    if words and len(words) == len(functions):
        return {"role": "assistant", "content": "\n".join(words), "created_at": message.get("created_at")}
    role = message.get("role")
    return {
        **message,
        "role": "assistant" if role == "approval" else role,
        "content": content or message.get("text"),
    }


def _spoken(text: str) -> str:
    """The words alone: Letta wraps a message into JSON with its type and time."""
    if text.startswith("{"):
        try:
            fields = json.loads(text)
        except ValueError:
            return text
        return str(fields["message"]) if isinstance(fields.get("message"), str) else text
    return text


# Graphiti and Zep: the facts, entities and episodes of a graph as JSON.


def is_graph(value: object) -> bool:
    """Whether a JSON value has facts, entities or episodes of Graphiti or Zep."""
    if isinstance(value, list):
        first = value[0] if value and isinstance(value[0], Mapping) else {}
        return "uuid" in first and "fact" in first
    several = [objects_in(value, name) for name in ("edges", "nodes", "episodes")]
    return any("uuid" in each[0] or "uuid_" in each[0] for each in several if each)


def read_graph(value: Any, path: Path, leave_out: LeaveOut) -> Iterator[Draft]:
    """Facts with their validity, summaries of entities, and episodes; groups as users."""
    nodes = objects_in(value, "nodes") if isinstance(value, Mapping) else []
    names = {_uuid(node): text_in(node, "name") for node in nodes}
    user = value.get("user_id") if isinstance(value, Mapping) else None
    for number, edge in enumerate(objects_in(value, "edges"), 1):
        with placed(path, f"edge {number}"):
            yield from _graph_fact(edge, names, user, leave_out)
    for number, node in enumerate(nodes, 1):
        with placed(path, f"node {number}"):
            if summary := text_in(node, "summary"):
                labels = [str(label) for label in node.get("labels") or () if label != "Entity"]
                yield foreign_draft(
                    summary,
                    f"graphiti:{_uuid(node)}",
                    subject=text_in(node, "name") or None,
                    tags=labels,
                    created=node.get("created_at"),
                    user=_group(node, user),
                    metadata=_attributes(node),
                )
            leave_out("entities without a summary; facts name them", 0 if summary else 1)
            leave_out(NO_VECTORS, 1 if node.get("name_embedding") else 0)
    for number, episode in enumerate(objects_in(value, "episodes"), 1):
        with placed(path, f"episode {number}"):
            yield from _graph_episode(episode, user, leave_out)
    for name in ("communities", "episodic_edges", "community_edges", "sagas"):
        leave_out(f"{name}, which Graphiti derives", len(objects_in(value, name)))


def _graph_fact(
    edge: Mapping[str, Any], names: Mapping[str, str], user: object, leave_out: LeaveOut
) -> Iterator[Draft]:
    leave_out(NO_VECTORS, 1 if edge.get("fact_embedding") else 0)
    ends = [names.get(str(edge.get(f"{end}_node_uuid")), "") for end in ("source", "target")]
    content = text_in(edge, "fact") or " ".join(filter(None, [ends[0], text_in(edge, "name"), ends[1]]))
    since = as_stamp(edge.get("valid_at"), name="valid_at")
    ended = edge.get("invalid_at") or edge.get("expired_at")
    until = as_stamp(ended, name="invalid_at")
    if not content:
        leave_out("edges without a fact")
        return
    yield foreign_draft(
        content,
        f"graphiti:{_uuid(edge)}",
        subject=ends[0] or None,
        created=edge.get("created_at"),
        user=_group(edge, user),
        valid_from=since,
        # A fact that ended as it began says nothing of when it was true.
        valid_until=until if since is None or until is None or until > since else None,
        metadata={
            "relation": text_in(edge, "name"),
            "object": ends[1],
            "ended": str(ended)
            if ended and since is not None and until is not None and until <= since
            else None,
            **_attributes(edge),
        },
    )


def _graph_episode(episode: Mapping[str, Any], user: object, leave_out: LeaveOut) -> Iterator[Draft]:
    content = text_in(episode, "content")
    if not content:
        leave_out("episodes without a text")
        return
    session = episode.get("thread_id") or episode.get("session_id")
    speaker = text_in(episode, "role") or text_in(episode, "role_type")
    yield foreign_draft(
        f"{speaker}: {content}" if speaker else content,
        f"graphiti:{_uuid(episode)}",
        kind="episode",
        created=episode.get("valid_at") or episode.get("created_at"),
        user=_group(episode, user),
        session=str(session) if session else None,
        metadata={
            "name": text_in(episode, "name"),
            "source": text_in(episode, "source"),
            "description": text_in(episode, "source_description"),
            "role": episode.get("role_type"),
        },
    )


def _uuid(fields: Mapping[str, Any]) -> str:
    uuid = fields.get("uuid") or fields.get("uuid_")
    if not isinstance(uuid, str):
        raise FieldError("'uuid' is missing")
    return uuid


def _group(fields: Mapping[str, Any], user: object) -> object:
    return user or {"_default_": None, "default": None}.get(
        text_in(fields, "group_id"), fields.get("group_id")
    )


def _attributes(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    given = fields.get("attributes")
    return given if isinstance(given, Mapping) else {}


# The reference MCP memory server: entities with observations, and relations, one a line.


def is_mcp_memory(fields: Mapping[str, Any]) -> bool:
    """Whether the JSON object of a line is an entity or a relation of the reference memory server."""
    return (fields.get("type") == "entity" and "entityType" in fields) or (
        fields.get("type") == "relation" and "relationType" in fields
    )


def read_mcp_memory(path: Path, leave_out: LeaveOut) -> Iterator[Draft]:
    """One fact for each observation and each relation; an entity without any is one as well."""
    for number, line in numbered_lines(path):
        fields = parse_object(line, path, number)
        try:
            if fields.get("type") == "entity":
                yield from _entity(fields)
            elif fields.get("type") == "relation":
                ends = [_named(fields, each) for each in ("from", "relationType", "to")]
                yield foreign_draft(
                    " ".join(ends),
                    f"mcp-memory:{json.dumps(ends, ensure_ascii=False)}",
                    subject=ends[0],
                    metadata={"relation": ends[1], "object": ends[2]},
                )
            else:
                leave_out(f"lines of type {fields.get('type')!r}")
        except FieldError as error:
            raise unreadable(path, f"{error}. Correct it, or remove the line", line=number) from error


def _entity(fields: Mapping[str, Any]) -> Iterator[Draft]:
    name, entity_type = _named(fields, "name"), _named(fields, "entityType")
    observations = fields.get("observations")
    if not isinstance(observations, list) or not all(isinstance(each, str) for each in observations):
        raise FieldError(f"'observations' must be a list of texts, and is {observations!r}")
    texts = [each.strip() for each in observations if each.strip()]
    for text in texts or [f"is of type {entity_type}"]:
        # The server adds and deletes observations and never edits one, so its text identifies it.
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        yield foreign_draft(
            f"{name}: {text}" if texts else f"{name} {text}",
            f"mcp-memory:{name}#{digest}",
            subject=name,
            metadata={"entity_type": entity_type},
        )


def _named(fields: Mapping[str, Any], name: str) -> str:
    if not (text := text_in(fields, name)):
        raise FieldError(f"{name!r} must be a text, and is {fields.get(name)!r}")
    return text
