"""The tools of an agent's memory as functions, each with one text as its result, for models to call.

A text is within its budget, and has the ids of what it shows. No MCP in it.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from germane.errors import InvalidInput
from germane.model.text import counted

if TYPE_CHECKING:
    from germane.engine import Engine
    from germane.ledger import Assembly
    from germane.model.context import Context
    from germane.model.memory import Memory
    from germane.operations.search import RecallResult
    from germane.protocols import TokenCounter

__all__ = ["LEAST_BUDGET", "MOST_BUDGET", "TOOL_SETS", "WRITES", "MemoryTools", "tool_names"]

Words: TypeAlias = list[str] | str
"""A list of texts; models also send a single one."""

TOOL_SETS: Final[Mapping[str, Sequence[str]]] = {
    "read": ("context", "recall", "expand"),
    "core": ("context", "recall", "expand", "remember", "forget", "feedback"),
    "working": ("working_set", "working_set_add", "working_set_remove"),
    "conversation": ("search_conversations",),
    "spaces": ("spaces", "space_recall", "space_expand", "space_remember", "space_share"),
    "chatgpt": ("search", "fetch"),
}
"""The tools of each set; a read-only server has no tool that writes, whatever the set."""

WRITES: Final = frozenset(
    {
        "remember", "forget", "feedback",
        "working_set_add", "working_set_remove", "space_remember", "space_share",
    }
)  # fmt: skip
"""The tools that change something."""

MOST_BUDGET: Final = 20_000
"""Tokens that a result may have at most; hosts refuse or cut longer ones."""

LEAST_BUDGET: Final = 50
_REMEMBERED: Final = 64  # Contexts of an agent that `feedback` may still name where none is recorded.
_MOST_REMEMBERED: Final = 1024  # Of all agents.
_RESULTS: Final = 10


def tool_names(tools: str, *, read_only: bool = False) -> Sequence[str]:
    """The tools of sets joined by "+", such as "read+working"; "+working" adds to core.

    Raises InvalidInput for an unknown set.
    """
    names = [each or "core" for each in tools.split("+")]
    for name in names:
        if name not in TOOL_SETS:
            raise InvalidInput(
                f"tools={tools!r} has {name!r}, which is no set of tools. Use {', '.join(TOOL_SETS)}, or "
                "several joined by +."
            )
    found = dict.fromkeys(each for name in names for each in TOOL_SETS[name])
    return [each for each in found if not (read_only and each in WRITES)]


class MemoryTools:
    """The tools as functions of an engine, each with a text as its result. Threads may share it."""

    def __init__(
        self, engine_of_call: Callable[[], Engine], *, record: bool = False, budget_max: int = MOST_BUDGET
    ) -> None:
        """`engine_of_call` gives the engine of each call. With `record`, contexts go into the ledger.

        Raises InvalidInput for a `budget_max` below 50 or above 20,000.
        """
        if not LEAST_BUDGET <= budget_max <= MOST_BUDGET:
            raise InvalidInput(
                f"budget_max={budget_max} is out of range. Use {LEAST_BUDGET} to {MOST_BUDGET:,}."
            )
        self._engine_of_call = engine_of_call
        self._record = record
        self._most = budget_max
        self._guard = threading.Lock()
        self._contexts: OrderedDict[tuple[str, str | None, str], Context] = OrderedDict()

    @property
    def engine(self) -> Engine:
        """The engine of this call."""
        return self._engine_of_call()

    def close(self) -> None:
        """Close the engine of this call."""
        self.engine.close()

    def context(
        self, question: str, budget: int = 2000, plan: str = "layered", paths: Words | None = None
    ) -> str:
        """The text of a context, and a line with its ref and what was left out."""
        most = self._limit(budget)
        engine, free = self.engine, most
        given: dict[str, Any] = {"plan": plan, "record": self._record}
        if paths:
            given["paths"] = [paths] if isinstance(paths, str) else paths
        while True:
            # The line below the text counts as well, and is known only after it.
            made = engine.assemble(question, budget=free, ids=True, **given)
            text = f"{made.text}\n\n{self._summary(made)}".strip()
            excess = engine.counter.count(text) - _spendable(most, engine.counter)
            if excess <= 0:
                return text
            free -= excess
            if free < 0:
                return made.text

    def recall(  # noqa: PLR0917 - A tool's arguments are named.
        self,
        query: str,
        limit: int = 8,
        budget: int = 2000,
        kinds: Words = (),  # type: ignore[assignment] # A sequence of none.
        tags: Words = (),  # type: ignore[assignment] # As above.
        since: str | None = None,
        until: str | None = None,
    ) -> str:
        """One line a memory, as `RecallResult.text` has it; or why there is none."""
        found = self.engine.recall(
            query,
            limit=limit,
            budget=self._limit(budget),
            kinds=_words(kinds),
            tags=_words(tags),
            since=since,
            until=until,
        )
        return _listing(found, "memory")

    def expand(self, id: str, start: int = 0) -> str:  # noqa: A002 - The name that models see.
        """The whole text of a memory by its id, such as 7d8125f7, from a character on."""
        memory = self.engine.get(_bare(id))
        origin = f"\n({_origin(memory)})" if memory.source or memory.trust != "agent" else ""
        return self._page(f"{self.engine.expand(memory.ref)}{origin}", start, tool="expand")

    def remember(
        self,
        content: str,
        kind: str = "note",
        subject: str | None = None,
        tags: Words = (),  # type: ignore[assignment] # As above.
        replaces: str | None = None,
    ) -> str:
        """Store a memory; its id, and whether it was known."""
        engine = self.engine
        draft = {"content": content, "kind": kind, "subject": subject, "tags": _words(tags)}
        if replaces is not None:
            memory = engine.supersede(_bare(replaces), draft)
            return _quarantined(memory) or f"Stored as [{_short(memory.id)}], version {memory.version}."
        (done,) = engine.remember_many([draft])
        if marked := _quarantined(done.memory):
            return marked
        what = "Stored" if done.created else "Known already"
        return f"{what}: [{_short(done.memory.id)}]."

    def forget(self, id: str) -> str:  # noqa: A002 - As above.
        """Hide a memory from all results. The owner can restore it."""
        memory = self.engine.forget(_bare(id))
        return f"Forgotten: [{_short(memory.id)}]. The owner can restore it."

    def feedback(self, ref: str, used: Words, outcome: str | None = None) -> str:
        """Count which memories of a context were used, and how the task turned out."""
        shown, engine = self._shown(ref), self.engine
        ids = [_bare(each) for each in _words(used)]
        counts = engine.feedback(shown, ids)
        text = f"Counted {counted(counts.counted, 'memory')} as used."
        if outcome is not None:
            text += f" Outcome noted for {counted(engine.outcome(shown, outcome).memories, 'memory')}."
        return text

    def working_set(self, budget: int = 2000) -> str:
        """One line for each memory of the working set, the latest first, and how full the set is."""
        most, engine = self._limit(budget), self.engine
        working = engine.working_set()
        items = working.items()
        used = sum(each.tokens for each in items)
        lines = [f"({counted(len(items), 'memory')}, {used:,} of {counted(working.max_tokens, 'token')})"]
        for each in reversed(items):
            line = f"[{_short(each.memory.id)}] {each.memory.kind}: {each.memory.renditions.micro.text}"
            lines.append(f"{line} (pinned)" if each.pinned else line)
        return self._fitting(lines, most)

    def working_set_add(self, id: str, pinned: bool = False) -> str:  # noqa: A002 - As above.
        """Add a memory to the working set; others are evicted where the set is full."""
        added = self.engine.working_set().add(_bare(id), pinned=pinned)
        evicted = ", ".join(f"[{_short(each.id)}]" for each in added.evicted)
        return f"Added. Evicted: {evicted}." if evicted else "Added."

    def working_set_remove(self, id: str) -> str:  # noqa: A002 - As above.
        """Remove a memory from the working set; it stays stored."""
        self.engine.working_set().remove(_bare(id))
        return "Removed from the working set. It stays stored."

    def search_conversations(
        self,
        query: str,
        limit: int = 8,
        budget: int = 2000,
        since: str | None = None,
        until: str | None = None,
    ) -> str:
        """One line for each message of past conversations that fits the query best."""
        found = self.engine.recall(
            query,
            limit=limit,
            budget=self._limit(budget),
            kinds=["message"],
            conversations=True,
            since=since,
            until=until,
        )
        return _listing(found, "message")

    def spaces(self) -> str:
        """The spaces that the agent is a member of, with the members of each."""
        lines = [
            f"{each.name}: {', '.join(f'{one.agent} ({one.rights})' for one in each.members)}"
            for each in self.engine.spaces()
        ]
        return self._fitting(lines, self._most) if lines else "The agent is a member of no space."

    def space_recall(self, space: str, query: str, limit: int = 8, budget: int = 2000) -> str:
        """One line for each memory of a space that has most to do with the query."""
        with self.engine.space(space) as entered:
            found = entered.recall(query, limit=limit, budget=self._limit(budget))
        return _listing(found, "memory")

    def space_expand(self, space: str, id: str, start: int = 0) -> str:  # noqa: A002 - As above.
        """The whole text of a memory of a space, from a character on."""
        with self.engine.space(space) as entered:
            return self._page(entered.expand(_bare(id)), start, tool="space_expand")

    def space_remember(
        self,
        space: str,
        content: str,
        kind: str = "note",
        tags: Words = (),  # type: ignore[assignment] # As above.
    ) -> str:
        """Store a memory in a space; its id, and whether it was known."""
        with self.engine.space(space) as entered:
            (done,) = entered.remember_many([{"content": content, "kind": kind, "tags": _words(tags)}])
        if marked := _quarantined(done.memory):
            return marked
        what = "Stored" if done.created else "Known already"
        return f"{what}: [{_short(done.memory.id)}]."

    def space_share(self, space: str, id: str) -> str:  # noqa: A002 - As above.
        """Put a copy of one of the agent's own memories into a space; the id of the copy."""
        with self.engine.space(space) as entered:
            return f"Shared as [{_short(entered.share(_bare(id)).id)}]."

    def search(self, query: str) -> str:
        """Search the memory; returns results with ids for `fetch`."""
        found = self.engine.recall(query, limit=_RESULTS)
        results = [
            {"id": one.id, "title": one.memory.renditions.micro.text, "url": _uri(one.id)} for one in found
        ]
        while results and self._exceeds(_json({"results": results})):
            results.pop()
        return _json({"results": results})

    def fetch(self, id: str) -> str:  # noqa: A002 - The name that ChatGPT's connectors ask for.
        """The whole text of a search result."""
        memory = self.engine.get(_bare(id))

        def result(text: str, title: str = memory.renditions.micro.text) -> str:
            return _json(
                {
                    "id": memory.id,
                    "title": title,
                    "text": text,
                    "url": _uri(memory.id),
                    "metadata": {
                        "kind": memory.kind,
                        "date": memory.created_at.date().isoformat(),
                        "origin": _origin(memory),
                    },
                }
            )

        if self._exceeds(result("")):
            return self._page(self.engine.expand(memory.id), shape=partial(result, title=""))
        return self._page(self.engine.expand(memory.id), shape=result)

    def stats(self) -> str:
        """How much the memory holds, by kind."""
        figures = self.engine.stats()
        kinds = ", ".join(counted(count, kind) for kind, count in figures.by_kind.items())
        return f"{counted(figures.memories, 'memory')} of agent {figures.agent}: {kinds or 'none'}."

    def refs(self) -> Sequence[str]:
        """The refs of contexts that `feedback` takes, the latest first."""
        engine = self.engine
        with self._guard:
            known = [ref for agent, user, ref in reversed(self._contexts) if (agent, user) == _owner(engine)]
        recorded = engine.ledger().list(limit=_REMEMBERED) if self._record else ()
        return [*known, *(each.id for each in recorded)]

    def tags(self) -> Sequence[str]:
        """The tags of the newest memories, the most frequent first."""
        counts: dict[str, int] = {}
        for memory in self.engine.memories(limit=1000):
            for tag in memory.tags:
                counts[tag] = counts.get(tag, 0) + 1
        return sorted(counts, key=lambda tag: (-counts[tag], tag))

    def explanation(self, ref: str) -> str:
        """What a context showed and left out, and why, by its ref. Raises GermaneError for an unknown one."""
        shown = self._shown(ref)
        if hasattr(shown, "explain"):
            return str(shown.explain())
        rows = (f"{one.version_id}  {one.kind}  {one.level or one.reason}" for one in shown.entries)
        return "\n".join([shown.question, *rows])

    def _limit(self, budget: int) -> int:
        if not budget >= LEAST_BUDGET:
            raise InvalidInput(f"budget={budget} is too small. Use {LEAST_BUDGET} to {self._most:,} tokens.")
        return min(budget, self._most)

    def _summary(self, made: Context) -> str:
        """The line below a context: its ref for `feedback`, and what was left out."""
        ref = made.ref or self._remember_context(made)
        reasons: dict[str, int] = {}
        for entry in made.trace.excluded:
            reason = str(entry.reason)
            name = "already shown" if reason == "duplicate" else reason.replace("_", " ")
            reasons[name] = reasons.get(name, 0) + 1
        left = ", ".join(f"{count} {name}" for name, count in sorted(reasons.items()))
        left = f"; memories and messages left out: {left}" if left else ""
        return f"(ref {ref}; {counted(len(made.items), 'memory')}{left})"

    def _remember_context(self, made: Context) -> str:
        given = f"{made.trace.question.text}\0{made.text}"
        ref, owner = sha256(given.encode("utf-8", "replace")).hexdigest()[:8], _owner(self.engine)
        with self._guard:
            self._contexts[*owner, ref] = made
            own = [each for each in self._contexts if each[:2] == owner]
            for oldest in [*own[:-_REMEMBERED], *list(self._contexts)[:-_MOST_REMEMBERED]]:
                self._contexts.pop(oldest, None)
        return ref

    def _shown(self, ref: str) -> Context | Assembly:
        with self._guard:
            known = self._contexts.get((*_owner(self.engine), ref))
        return self.engine.ledger().show(ref) if known is None else known

    def _exceeds(self, text: str, most: int | None = None) -> bool:
        counter = self.engine.counter
        return counter.count(text) > _spendable(most or self._most, counter)

    def _fitting(self, lines: Iterable[str], most: int) -> str:
        """The first lines that fit, and how many are missing."""
        shown = list(lines)
        total = len(shown)
        while True:
            missing = total - len(shown)
            text = "\n".join([*shown, f"({missing} more; a larger budget shows them.)"] if missing else shown)
            if not shown or not self._exceeds(text, most):
                return text
            shown.pop()

    def _page(self, whole: str, start: int = 0, *, tool: str = "", shape: Callable[[str], str] = str) -> str:
        """A text from a character on, as far as it fits, and where it goes on; `shape` makes the result.

        `tool` is the name of the tool that takes `start`, if any.
        """
        if not 0 <= start <= len(whole):
            raise InvalidInput(
                f"start={start} is outside this text of {len(whole):,} characters. Use 0 for its beginning, "
                "or the number at the end of its last part."
            )
        # What begins inside a line must not look like the beginning of one.
        first = f"(from character {start}) " if start else ""
        if not self._exceeds(shape(first + whole[start:])):
            return shape(first + whole[start:])

        def part(end: int) -> str:
            more = f"; `{tool}` with start={end} shows more" if tool else ""
            return shape(f"{first}{whole[start:end]}\n(cut after {end:,} of {len(whole):,} characters{more})")

        fits, exceeds = start, len(whole)
        while exceeds - fits > 1:
            middle = (fits + exceeds) // 2
            fits, exceeds = (fits, middle) if self._exceeds(part(middle)) else (middle, exceeds)
        if fits == start:
            raise InvalidInput(
                f"No part of this memory fits {self._most} tokens, the limit of this server. "
                "Raise --budget-max."
            )
        return part(fits)


def _owner(engine: Engine) -> tuple[str, str | None]:
    return engine.agent, engine.user


def _listing(found: RecallResult, what: str) -> str:
    if found.text:
        return found.text
    why = found.empty_reason or "the budget is too small for one line"
    return f"No {what} to show: {str(why).replace('_', ' ')}."


def _words(given: Words | Sequence[str]) -> Sequence[str]:
    return [given] if isinstance(given, str) else given


def _bare(name: str) -> str:
    """An id without the brackets in which results show it."""
    return name.strip("[] ")


def _short(memory_id: str) -> str:
    return memory_id[-8:]


def _origin(memory: Memory) -> str:
    """Whose word a memory is, its source and its day."""
    from germane.model.context import origin_of  # noqa: PLC0415 - The first answer of a server doesn't count.

    return origin_of(memory.trust, memory.source, memory.created_at)


def _quarantined(memory: Memory) -> str:
    """What a tool answers about a memory that went to quarantine; empty for any other."""
    from germane.provenance import quarantine_of  # noqa: PLC0415 - As above.

    rules = ", ".join(quarantine_of(memory))
    return f"Put into quarantine, since it matches {rules}: no result shows it." if rules else ""


def _uri(memory_id: str) -> str:
    return f"germane://memory/{memory_id}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _spendable(budget: int, counter: TokenCounter) -> int:
    from germane.tokens import spendable  # noqa: PLC0415 - The first answer of a server doesn't count.

    return spendable(budget, counter)
