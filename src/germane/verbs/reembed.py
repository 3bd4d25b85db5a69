"""reembed: another model makes the vectors of a whole store.

Level: verbs. Unlike the other verbs it isn't one agent's: the vectors of one store are all of one model.
"""

from __future__ import annotations

from pathlib import Path

from germane.errors import StoreUnavailable
from germane.model.stats import EmbeddingIdentity
from germane.protocols import Embedder
from germane.stores.opening import exists, open_store
from germane.stores.relational.store import RelationalStore
from germane.verbs.checks import checking
from germane.verbs.embedding import Backlog, Progress

__all__ = ["identity_of", "reembed"]


@checking
def reembed(
    location: str | Path, *, embedder: Embedder, again: bool = False, progress: Progress | None = None
) -> int:
    """Let another model make the vectors of all agents in a store; how many memories it embedded.

    The vectors of the model before go first, in one transaction; until its new vector is there, a
    memory is found by its words. A call that was interrupted is gone on with by the same call.
    `again` also drops the vectors that this very model made. `progress` is told after each batch how
    many are embedded, and of how many. Raises StoreUnavailable, StoreBusy or EmbeddingFailed.
    """
    if not exists(location):
        raise StoreUnavailable(f"There is no store at {location}, so there is nothing to embed.")
    store = open_store(location, embedding=identity_of(embedder), replace_embedding=True)
    try:
        if again:
            store.drop_vectors()
        return _embed_all(store, embedder, progress)
    finally:
        store.close()


def identity_of(embedder: Embedder) -> EmbeddingIdentity:
    """What a store keeps of a model, to tell it from others."""
    return EmbeddingIdentity(name=embedder.name, dimension=embedder.dimension)


def _embed_all(store: RelationalStore, embedder: Embedder, progress: Progress | None) -> int:
    agents = store.agents()
    total = sum(store.stats(agent).pending for agent in agents) if progress else 0
    done = 0

    def tell(embedded: int, _: int) -> None:
        if progress is not None:
            progress(done + embedded, max(total, done + embedded))

    for agent in agents:
        done += Backlog(store, agent, embedder).drain(progress=tell if progress else None)
    return done
