"""What a new fact does to those that are known: it confirms the one that says the same, or replaces one.

Level: verbs. Asked for by `remember(..., reconcile=True)`. Vectors alone can't tell the limits of 40 and of
50 MB apart, so nothing counts as the same whose numbers or negations differ.
"""

from __future__ import annotations

from germane.errors import InvalidInput
from germane.model.draft import Remembered
from germane.model.memory import Memory, Trust
from germane.model.query import Filter, Query, Slice
from germane.model.stage import Cause, Sign
from germane.model.upkeep import Reconcile
from germane.ranking.alike import could_be_same, normalised
from germane.retrieval.terms import query_terms
from germane.verbs.embed import embed_texts, vectors_to_store
from germane.verbs.living import move
from germane.verbs.session import Session
from germane.verbs.versions import store_version

__all__ = ["reconciled", "rules_of"]

_LOOKED_AT = 20
_TRUST = {trust: place for place, trust in enumerate(Trust)}


def rules_of(reconcile: bool | Reconcile) -> Reconcile | None:
    """The rules that a caller asks for; None for none. Raises InvalidInput."""
    if isinstance(reconcile, Reconcile):
        return reconcile
    if not isinstance(reconcile, bool):
        raise InvalidInput(f"reconcile={reconcile!r} is no rule. Pass True, False or a germane.Reconcile.")
    return Reconcile() if reconcile else None


def reconciled(session: Session, memory: Memory, rules: Reconcile) -> Remembered | None:
    """What became of a fact that confirms or replaces a known one; None for one that does neither.

    Who is trusted less replaces nobody: what an external source says of a subject stands beside it.
    """
    if session.kinds.of(memory).lifecycle != "fact":
        return None
    known = _near(session, memory)
    for other, cosine in known:
        if _about_one(memory, other) and _says_the_same(memory, other, cosine, rules):
            after = move(session, other, Sign.CONFIRM, cause=Cause.ALIKE)
            return Remembered(memory=after, created=False)
    for other, cosine in known:
        named = memory.subject is not None and other.subject is not None
        if named and _about_one(memory, other) and cosine > rules.supersede:
            if _TRUST[memory.trust] > _TRUST[other.trust]:
                continue
            new = memory.evolve(id=other.id, version=other.version + 1)
            vector = vectors_to_store(session.embedder, [new.content])[0]
            after = store_version(session, other, new, vector, cause=Cause.SUBJECT)
            return Remembered(memory=after, created=True)
    return None


def _near(session: Session, memory: Memory) -> list[tuple[Memory, float]]:
    """The active facts of kind and scope that are most like it, the most alike first, with their cosines.

    What says the very same is left to the store, which recognises it.
    """
    vector = embed_texts(session.embedder, [memory.content])[0]
    query = Query(
        text=memory.content,
        terms=query_terms(memory.content, language=session.language),
        vector=vector,
        filter=Filter(kinds=(memory.kind,), scopes=(memory.scope,)),
        slices=(Slice(limit=_LOOKED_AT),),
    )
    found = session.store.search(session.agent, query).slices[0]
    others = [each.memory for each in found]
    if any(other.content_hash == memory.content_hash for other in others):
        return []
    vectors = embed_texts(session.embedder, [other.content for other in others])
    near = [
        (other, 0.0 if vector is None or row is None else float(vector @ row))
        for other, row in zip(others, vectors, strict=True)
    ]
    return sorted(near, key=lambda each: (-each[1], each[0].id))


def _about_one(memory: Memory, other: Memory) -> bool:
    """Whether both are about one subject, as far as they name any."""
    return memory.subject is None or (other.subject or "").casefold() == memory.subject.casefold()


def _says_the_same(memory: Memory, other: Memory, cosine: float, rules: Reconcile) -> bool:
    if normalised(memory.content) == normalised(other.content):
        return True
    return cosine > rules.confirm and could_be_same(memory.content, other.content)
