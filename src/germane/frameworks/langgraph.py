"""LangGraph's long-term memory in germane (extra `langgraph`): the store of `graph.compile(store=...)`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeAlias

from germane.engine import Engine
from germane.errors import MissingExtra, NotFound
from germane.frameworks.langgraph_item import FIELD, item_of, key_of, passes, path_of, readable
from germane.frameworks.shared import Deletion, current, remove, to_the_end
from germane.model.memory import Memory

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
        tokenize_path,
        validate_op_namespace,
    )
except ImportError as error:
    raise MissingExtra(feature="The store for LangGraph", extra="langgraph") from error

__all__ = ["LangGraphStore"]

_Namespace: TypeAlias = tuple[str, ...]


class LangGraphStore(BaseStore):
    """Items as memories of an agent: the value is stored as JSON, and its text is what germane ranks.

    `search(query=...)` ranks by words and meaning, with germane's scores, which aren't cosines. The same
    memories take part in `engine.recall` and `engine.assemble`. A put on a known key makes the next version
    of its memory. `fields` are the paths of the values that `query` searches, "$" for all of a value; the
    argument `index` of a put overrides it. `ttl` sets the default time to live in minutes and whether
    reading renews it, as in LangGraph's own stores; expired items are purged by `engine.maintain()`.
    `delete="forget"` keeps deleted items restorable in the engine; the default leaves nothing of them.

    Threads and event loops may share a store. Closing the engine is up to its owner.
    """

    supports_ttl = True

    def __init__(
        self,
        engine: Engine,
        *,
        fields: Sequence[str] = ("$",),
        ttl: TTLConfig | None = None,
        delete: Deletion = "purge",
    ) -> None:
        self._engine = engine
        self._fields = tuple(fields)
        self._delete = delete
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """The results of operations, in their order. Reads see the store as it is before the puts.

        Of several puts on a key the last one counts. Raises InvalidNamespaceError before any is done, and
        germane's InvalidInput for a value that isn't JSON.
        """
        known = list(ops)
        for op in known:
            validate_op_namespace(op)
        results = [self._read(op) for op in known]
        puts = {(op.namespace, op.key): op for op in known if isinstance(op, PutOp)}
        for put in puts.values():
            self._put(put)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`, on a worker thread. A cancelled call still finishes what it began."""
        return await to_the_end(lambda: self.batch(list(ops)))

    def _read(self, op: Op) -> Result:
        match op:
            case GetOp():
                memory = self._memory(op.namespace, op.key)
                if memory is not None and op.refresh_ttl:
                    self._renew(memory)
                return None if memory is None else Item(**_fields_of(memory))
            case SearchOp():
                found = self._ranked(op) if op.query else self._listed(op)
                for memory, _ in found:
                    if op.refresh_ttl:
                        self._renew(memory)
                return [SearchItem(**_fields_of(memory), score=score) for memory, score in found]
            case ListNamespacesOp():
                return self._namespaces(op)
            case PutOp():
                return None
        raise ValueError(f"Unknown operation type: {type(op)}")

    def _memory(self, namespace: _Namespace, key: str) -> Memory | None:
        return current(self._engine, key_of(namespace, key))

    def _put(self, op: PutOp) -> None:
        known = self._memory(op.namespace, op.key)
        still_expires = known is not None and known.expires_at is not None and op.ttl is None
        if known is not None and (op.value is None or still_expires):
            # A memory would keep its expiry, so one without a time to live takes its place.
            with suppress(NotFound):  # Another thread was first.
                remove(self._engine, [known.id], self._delete if op.value is None else "purge")
        if op.value is None:
            return
        value = dict(op.value)
        texts = _texts(value, self._fields if op.index is None else op.index or ())
        created = None if known is None else _created_at(known).isoformat()
        item = item_of(op.namespace, op.key, value, searched=bool(texts), ttl=op.ttl, created_at=created)
        self._store("\n".join(texts) or readable(value) or op.key or "(empty)", item)

    def _store(self, content: str, item: Mapping[str, Any]) -> None:
        self._engine.remember(
            content,
            key=key_of(item["namespace"], item["key"]),
            metadata={FIELD: item},
            ttl=None if item["ttl"] is None else 60 * item["ttl"],
            force=True,
        )

    def _renew(self, memory: Memory) -> None:
        item = memory.metadata[FIELD]
        if item["ttl"] is not None:
            # The same text again makes no version.
            self._store(memory.content, item)

    def _ranked(self, op: SearchOp) -> list[tuple[Memory, float | None]]:
        """What the query finds, best first, and then items that aren't searched, without a score."""
        wanted = op.offset + op.limit
        where = _within(op.namespace_prefix)
        found: list[tuple[Memory, float | None]] = []
        limit = wanted
        while True:
            results = self._engine.recall(
                op.query or "", limit=limit, where={**where, f"{FIELD}.searched": True}, gate=False
            )
            found = [(one.memory, one.score) for one in results if passes(_value(one.memory), op.filter)]
            if len(found) >= wanted or len(results) < limit:
                break
            limit *= 4
        if len(found) < wanted:
            scored = {memory.id for memory, _ in found}
            rest = (memory for memory in self._all(where) if memory.id not in scored)
            found += [(memory, None) for memory in rest if passes(_value(memory), op.filter)]
        return found[op.offset : wanted]

    def _listed(self, op: SearchOp) -> list[tuple[Memory, float | None]]:
        wanted = op.offset + op.limit
        every = self._all(_within(op.namespace_prefix), None if op.filter else wanted)
        passing = [memory for memory in every if passes(_value(memory), op.filter)]
        return [(memory, None) for memory in passing[op.offset : wanted]]

    def _namespaces(self, op: ListNamespacesOp) -> list[_Namespace]:
        depth = op.max_depth
        every = {_namespace(memory) for memory in self._all(_within(()))}
        matching = {
            namespace[:depth]
            for namespace in every
            if all(_matches(condition, namespace) for condition in op.match_conditions or ())
        }
        return sorted(matching)[op.offset : op.offset + op.limit]

    def _all(self, where: Mapping[str, Any], limit: int | None = None) -> Sequence[Memory]:
        """The items under a prefix, the latest put first. One read: others may delete items meanwhile."""
        return self._engine.memories(where, order="newest", limit=limit)


def _fields_of(memory: Memory) -> dict[str, Any]:
    item = memory.metadata[FIELD]
    return {
        "namespace": _namespace(memory),
        "key": item["key"],
        "value": _value(memory),
        "created_at": _created_at(memory),
        "updated_at": memory.updated_at,
    }


def _value(memory: Memory) -> dict[str, Any]:
    value: dict[str, Any] = memory.metadata[FIELD]["value"]
    return value


def _created_at(memory: Memory) -> datetime:
    """When the item was put first; a later version of its memory has a time of its own."""
    first = memory.metadata[FIELD]["created_at"]
    return memory.created_at if first is None else datetime.fromisoformat(first)


def _namespace(memory: Memory) -> _Namespace:
    return tuple(memory.metadata[FIELD]["namespace"])


def _within(prefix: _Namespace) -> dict[str, Any]:
    """The condition of items whose namespace begins with these labels."""
    return {f"{FIELD}.path": {"$startswith": path_of(prefix)} if prefix else {"$exists": True}}


def _texts(value: Mapping[str, Any], fields: Sequence[str]) -> list[str]:
    """The texts of a value that a query searches."""
    if "$" in fields:
        return [text] if (text := readable(value)) else []
    paths = [tokenize_path(field) for field in fields]
    return [text for path in paths for text in get_text_at_path(value, path) if text.strip()]


def _matches(condition: MatchCondition, namespace: _Namespace) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    labels = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(labels, path, strict=True))
