"""The verbs that write: remember, revise, forget, restore, purge, and what embeds the written.

Level: engine. No policy: each verb has its own room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from germane import verbs
from germane.engine.surface import Surface
from germane.model.memory import Memory, Outcome, Trust
from germane.model.scope import GLOBAL, Scope

if TYPE_CHECKING:
    from germane.model.draft import Draft, Remembered
    from germane.model.stage import Standing
    from germane.model.upkeep import Reconcile
    from germane.verbs.embedding import Progress
    from germane.verbs.weighing import Quality

__all__ = ["Writing"]


class Writing(Surface):
    """What changes which memories there are, and what they say."""

    def remember(
        self,
        content: str,
        *,
        kind: str = "note",
        subject: str | None = None,
        tags: Sequence[str] = (),
        scope: Scope | str = GLOBAL,
        importance: float | None = None,
        confidence: float | None = None,
        outcome: Outcome | str | None = None,
        trust: Trust | str | None = None,
        source: str | None = None,
        pinned: bool = False,
        created_at: datetime | None = None,
        updated_at: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        reconcile: bool | Reconcile = False,
        quality: Quality = "mark",
        force: bool = False,
    ) -> Memory:
        """Store one memory and return it as it is stored.

        The same memory said again (same kind, content, subject, scope and source) is counted, not
        doubled, and confirmed where it is a fact; a forgotten one becomes active again. For `reconcile`,
        `quality` and `force` see `remember_many`. `created_at` and `updated_at` are the
        times of its source: the first is both where the second is left out, and without them both are now.
        Raises InvalidInput, UnknownKind or NotWorthKeeping.
        """
        draft = {
            "content": content,
            "kind": kind,
            "subject": subject,
            "tags": tags,
            "scope": scope,
            "importance": importance,
            "confidence": confidence,
            "outcome": outcome,
            "trust": trust,
            "source": source,
            "pinned": pinned,
            "created_at": created_at,
            "updated_at": updated_at,
            "metadata": metadata or {},
        }
        judged: Quality = "keep" if force else quality
        return self.remember_many([draft], reconcile=reconcile, quality=judged)[0].memory

    def remember_many(
        self,
        drafts: Iterable[Draft | str | Mapping[str, Any]],
        *,
        revive: bool = True,
        reconcile: bool | Reconcile = False,
        quality: Quality = "mark",
        force: bool = False,
    ) -> tuple[Remembered, ...]:
        """Store many memories, a thousand to a transaction; all are checked before the first is stored.

        `revive=False` leaves a forgotten memory forgotten that the drafts hold again, as an import
        should. With `reconcile` a fact that says nearly the same as a known one confirms it, and one that
        says something similar of the same subject replaces it. What is hardly worth keeping (empty talk,
        passing states, answers that answer nothing) is stored with a mark, or refused with
        `quality="refuse"`; `force` asks no such question. Raises InvalidInput, UnknownKind or
        NotWorthKeeping.
        """
        judged: Quality = "keep" if force else quality
        with self._embedding.woken():
            return verbs.accepting.remember_many(
                self._session, drafts, revive=revive, reconcile=reconcile, quality=judged
            )

    def adopt(
        self, memories: Iterable[Memory], *, standings: Mapping[str, Standing] | None = None
    ) -> tuple[Remembered, ...]:
        """Store whole memories as they are: from an export, or from another store.

        Ids, versions, statuses, stages and times are kept; the memories become this agent's. `standings` says
        by `Memory.ref` what was counted of their lives (see `Engine.standings`). One that is there already
        stays as it is, and a later version of one becomes the current one.
        """
        with self._embedding.woken():
            return verbs.remember.adopt(self._session, memories, standings=standings)

    def revise(
        self,
        memory_id: str,
        content: str | None = None,
        *,
        subject: str | None = None,
        tags: Sequence[str] | None = None,
        importance: float | None = None,
        confidence: float | None = None,
        outcome: Outcome | str | None = None,
        pinned: bool | None = None,
        metadata: Mapping[str, Any] | None = None,
        expected: int | None = None,
    ) -> Memory:
        """Store the next version of a memory and return it; the version before stays as history.

        The id stays, and only what is named changes. With `expected`, the number of the version that was
        read, nothing is done where another version is current. Raises NotFound, InvalidInput, or
        StaleRevision for that, and when somebody else revises it at the same time.
        """
        changes = verbs.lifecycle.Changes(
            content=content,
            subject=subject,
            tags=tags,
            importance=importance,
            confidence=confidence,
            outcome=outcome,
            pinned=pinned,
            metadata=metadata,
        )
        with self._embedding.woken():
            return verbs.lifecycle.revise(self._session, memory_id, changes, expected=expected)

    def supersede(
        self, memory_id: str, draft: Draft | Mapping[str, Any], *, expected: int | None = None
    ) -> Memory:
        """Store a draft as the next version of a memory and return it, as when its source was edited.

        Unlike `revise` it may change the kind, scope, source and time as well. What the draft leaves at
        None stays as it was, and so does a pin. Raises NotFound, InvalidInput, or StaleRevision, as
        `revise` does.
        """
        with self._embedding.woken():
            return verbs.lifecycle.supersede(self._session, memory_id, draft, expected=expected)

    def forget(self, memory_id: str) -> Memory:
        """Keep a memory out of every result until it is restored. Raises NotFound."""
        return verbs.lifecycle.forget(self._session, memory_id)

    def forget_many(self, memory_ids: Iterable[str]) -> tuple[Memory, ...]:
        """Keep memories out of every result, in one transaction: all of them or none. Raises NotFound."""
        return verbs.lifecycle.forget_many(self._session, memory_ids)

    def restore(self, memory_id: str) -> Memory:
        """Undo a forget. Raises NotFound, or InvalidInput when the memory isn't forgotten."""
        with self._embedding.woken():
            return verbs.lifecycle.restore(self._session, memory_id)

    def purge(self, memory_id: str, *, confirm: bool = False) -> int:
        """Remove a memory, all its versions, and every trace of their text from the store.

        Returns how many versions went. It can't be undone, so it needs `confirm=True`. Raises
        PurgeNotConfirmed or NotFound.
        """
        return verbs.lifecycle.purge(self._session, memory_id, confirm=confirm)

    def purge_many(self, memory_ids: Iterable[str], *, confirm: bool = False) -> int:
        """Remove memories as `purge` does, in one transaction: all of them or none.

        Returns how many versions went. Raises PurgeNotConfirmed or NotFound.
        """
        return verbs.lifecycle.purge_many(self._session, memory_ids, confirm=confirm)

    def embed_pending(self, *, limit: int | None = None, progress: Progress | None = None) -> int:
        """Embed the memories that wait for a vector, at most `limit`, newest first; how many it were.

        Memories wait that were stored without an embedder or with one that isn't `eager`. `progress` is
        told after each batch how many are embedded, and of how many. Raises InvalidInput without an
        embedder, and EmbeddingFailed for what can't be embedded, after all else is.
        """
        return self._embedding.embed_pending(limit=limit, progress=progress)
