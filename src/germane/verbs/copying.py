"""copy: everything that a store holds, or what it holds of some agents, to another store.

Level: verbs. Unlike the other verbs it isn't one agent's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from germane.errors import InvalidInput, NotFound, StoreUnavailable
from germane.stores.opening import exists, location_of, open_store
from germane.stores.relational.agents.carrying import PARTS
from germane.stores.relational.agents.copying import AgentCopy, copy_agent, numbers_of, settle_names
from germane.stores.relational.connection import Connections
from germane.stores.relational.store import RelationalStore
from germane.verbs.checks import checking
from germane.verbs.embedding import Progress

__all__ = ["CopyReport", "copy_store"]

Done = TypeVar("Done")


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyReport:
    """What became of each agent; its figures are those of both stores, which were compared."""

    agents: tuple[AgentCopy, ...]

    @property
    def rows(self) -> int:
        """How many rows the agents have, those that had been copied before among them."""
        return sum(each.rows for each in self.agents)

    @property
    def copied(self) -> int:
        """How many of the agents were copied by this very call."""
        return sum(not each.was_there for each in self.agents)


@checking
def copy_store(
    source: str | Path,
    target: str | Path,
    *,
    agents: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> CopyReport:
    """Copy a store to another one, in a file or in PostgreSQL; `agents` names those to copy, None all.

    All that is kept goes along: memories with their versions and vectors, working sets, conversations,
    spaces, judgements, lives and the ledger. Each agent is copied in one transaction and proved by
    counts and SHA-256 before it is committed, so an interrupted call is gone on with by the same call, and
    what is there already is only compared. `progress` is told how many agents are done, and of how many.

    Raises StoreUnavailable without a source, NotFound for an agent that isn't in it, InvalidInput where the
    target holds other things of an agent, EmbedderMismatch, and what the stores raise.
    """
    _check_apart(source, target)
    out = open_store(source, embedding=None, read_only=True)
    try:
        into = open_store(target, embedding=None)
        try:
            return _copied(out, into, agents, progress)
        finally:
            into.close()
    finally:
        out.close()


def _copied(
    out: RelationalStore, into: RelationalStore, agents: Sequence[str] | None, progress: Progress | None
) -> CopyReport:
    known = out.agents()
    for name in agents or ():
        if name not in known:
            raise NotFound(name, name)
    _on_both(out, into, settle_names)
    numbers = out.doing(numbers_of), into.doing(numbers_of)
    wanted = known if agents is None else tuple(dict.fromkeys(agents))
    found: list[list[AgentCopy]] = []
    for part, tables in enumerate(PARTS):
        found.append([])
        for name in wanted:
            copying = partial(copy_agent, name=name, tables=tables, numbers=numbers)
            found[-1].append(_on_both(out, into, copying))
            if progress is not None:
                progress(part * len(wanted) + len(found[-1]), len(PARTS) * len(wanted))
    return CopyReport(agents=tuple(_joined(*parts) for parts in zip(*found, strict=True)))


def _on_both(
    out: RelationalStore, into: RelationalStore, work: Callable[[Connections, Connections], Done]
) -> Done:
    return out.doing(lambda source: into.doing(lambda target: work(source, target)))


def _joined(*parts: AgentCopy) -> AgentCopy:
    return AgentCopy(
        agent=parts[0].agent,
        rows=sum(each.rows for each in parts),
        sha256=sha256("".join(each.sha256 for each in parts).encode()).hexdigest(),
        was_there=all(each.was_there for each in parts),
    )


def _check_apart(source: str | Path, target: str | Path) -> None:
    if not exists(source):
        raise StoreUnavailable(f"There is no store at {source}, so there is nothing to copy.")
    if str(source) == str(target):
        raise InvalidInput(f"{location_of(source)} can't be copied to itself. Name another target.")
