"""How much of a context an agent's memories would take.

Level: stores (imports model).
"""

from __future__ import annotations

from collections.abc import Mapping

from germane.model.scope import Scope
from germane.model.stats import LARGE, LargeMemory
from germane.stores.relational.connection import Connection
from germane.stores.relational.rows import id_text, span

__all__ = ["weights_of"]

_MOST = 10


def weights_of(connection: Connection, agent: int) -> tuple[Mapping[str, int], tuple[LargeMemory, ...]]:
    """The tokens of an agent's active memories by the name of their scope, and the longest of them."""
    by_scope = connection.run("tokens_by_scope", span(agent)).fetchall()
    rows = connection.run("largest", {**span(agent), "least": LARGE, "most": _MOST})
    large = tuple(
        LargeMemory(
            id=id_text(raw), kind=kind, scope=str(Scope(name=scope, value=value)), label=label, tokens=tokens
        )
        for raw, kind, scope, value, label, tokens in rows
    )
    return dict(sorted(by_scope)), large
