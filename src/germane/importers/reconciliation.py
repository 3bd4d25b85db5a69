"""Matching the drafts of a source with the stored memories from it.

The functions are pure; `germane.importers.sync` writes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from operator import attrgetter
from typing import TypeVar

from germane.model.memory import Draft, Memory, Scope, Status
from germane.operations.drafts import QUALITY_FLAG
from germane.operations.read import OUTDATED
from germane.provenance import ORIGIN

_POSITIONS = frozenset({"line", "part", "parts"})
"""Metadata of the position in the file, which an edit above changes; such a change isn't an edit."""

_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The origin of a memory: the project, the file, the place in the file, and a digest of its content.

    `gone` is set if an import forgot the memory because the source no longer contained it. If the text
    returns, the memory is restored, unlike one that a person has forgotten.
    """

    project: str
    file: str
    key: str
    digest: str
    gone: bool = False

    def noted(self) -> dict[str, object]:
        """The origin as metadata."""
        noted = {each.name: getattr(self, each.name) for each in dataclass_fields(self)}
        return {name: value for name, value in noted.items() if value is not False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """The result of matching: drafts to store as new, memories with the drafts that replace or restore them,
    drafts that are stored already, and memories that are no longer in the source. `moved` are those of
    `changed` that were detected by similarity.
    """

    new: tuple[Draft, ...]
    changed: tuple[tuple[Memory, Draft], ...]
    known: tuple[tuple[Memory, Draft], ...]
    gone: tuple[Memory, ...]
    moved: tuple[ContinuedMemory, ...] = ()


def origin_of(memory: Memory) -> Origin | None:
    """The origin in the metadata of a memory; None without one."""
    noted = memory.metadata.get(ORIGIN)
    texts = ("project", "file", "key", "digest")
    if not isinstance(noted, dict) or not all(isinstance(noted.get(name), str) for name in texts):
        return None
    return Origin(**{name: noted[name] for name in texts}, gone=noted.get("gone") is True)


def stands_as_it_was(head: Memory, draft: Draft) -> bool:
    """Whether a draft has the same place and content as the imported memory."""
    origin = origin_of(head)
    noted = _noted(draft)
    return origin is not None and (origin.key, origin.digest) == (noted["key"], noted["digest"])


def distinct(drafts: Iterable[Draft], *, project: str, file: str) -> tuple[Draft, ...]:
    """The drafts of one file, each with its origin and a unique source.

    Further drafts of the same source, such as a version that a changelog lists twice, are numbered.
    """
    seen: dict[str, int] = {}
    numbered = []
    for draft in drafts:
        source = draft.source or file
        count = seen[source] = seen.get(source, 0) + 1
        while count > 1 and f"{source}~{count}" in seen:
            count += 1
        key = source if count == 1 else f"{source}~{count}"
        seen.setdefault(key, 1)
        origin = Origin(project=project, file=file, key=key, digest=_digest(draft))
        numbered.append(replace(draft, source=key, metadata={**draft.metadata, ORIGIN: origin.noted()}))
    return tuple(numbered)


def matched(drafts: Sequence[Draft], heads: Sequence[Memory], *, lost: Collection[str] = ()) -> Matches:
    """Pair the drafts of files with the latest versions of the memories from these files.

    In this order: the same content in the same place; the same content in another place (moved); other
    content in the same place (edited); a file that was split into sections or joined from them; for the
    `lost` files, a draft with most of their unique text (moved and edited). A memory that a person has
    forgotten is known as long as its text exists, and never superseded. Of equal candidates the older memory
    is paired, so the result doesn't depend on an order.
    """
    left = sorted(heads, key=lambda head: head.id)
    pairs: list[tuple[Memory, Draft]] = []
    todo = list(drafts)
    for of_draft, of_memory in _PASSES:
        todo, left = _paired(todo, left, of_draft, of_memory, pairs)
    moved = continued([head for head in left if _file(head) in lost and _editable(head)], todo, heads)
    pairs += [(one.head, one.draft) for one in moved]
    paired = {id(one.draft) for one in moved} | {id(one.head) for one in moved}
    todo = [draft for draft in todo if id(draft) not in paired]
    left = [head for head in left if id(head) not in paired]
    by_draft = {id(draft): (head, draft) for head, draft in pairs}
    ordered = [by_draft[id(draft)] for draft in drafts if id(draft) in by_draft]
    return Matches(
        new=tuple(todo),
        changed=tuple(pair for pair in ordered if not _is_known(*pair)),
        known=tuple(pair for pair in ordered if _is_known(*pair)),
        gone=tuple(head for head in left if head.status is not Status.FORGOTTEN),
        moved=tuple(moved),
    )


def _paired(
    drafts: list[Draft],
    heads: list[Memory],
    of_draft: Callable[[Draft], _Key],
    of_memory: Callable[[Memory], _Key | None],
    pairs: list[tuple[Memory, Draft]],
) -> tuple[list[Draft], list[Memory]]:
    waiting: dict[_Key, list[Memory]] = defaultdict(list)
    for head in heads:
        if (key := of_memory(head)) is not None:
            waiting[key].append(head)
    taken: set[str] = set()
    unpaired = []
    for draft in drafts:
        fitting = waiting.get(of_draft(draft))
        if fitting:
            head = fitting.pop(0)
            taken.add(head.id)
            pairs.append((head, draft))
        else:
            unpaired.append(draft)
    return unpaired, [head for head in heads if head.id not in taken]


def place_of(memory: Memory) -> str | None:
    """The place of a memory's text in its source; without an origin, the source of the memory."""
    origin = origin_of(memory)
    return origin.key if origin else memory.source


def _file(memory: Memory) -> str:
    origin = origin_of(memory)
    return origin.file if origin else ""


def _noted(draft: Draft) -> dict[str, str]:
    noted: dict[str, str] = draft.metadata[ORIGIN]
    return noted


def _editable(memory: Memory) -> str | None:
    origin = origin_of(memory)
    by_hand = memory.status is Status.FORGOTTEN and not (origin and origin.gone)
    return None if by_hand else place_of(memory)


def _grown(memory: Memory) -> tuple[str, bool] | None:
    """The key of pairing for a file that was split into sections or joined from them."""
    origin = origin_of(memory)
    if origin is None or _editable(memory) is None:
        return None
    return origin.file, not origin.key.endswith(origin.file)


_PASSES: tuple[tuple[Callable[[Draft], Hashable], Callable[[Memory], Hashable | None]], ...] = (
    (
        lambda d: (_noted(d)["key"], _noted(d)["digest"]),
        lambda m: (origin.key, origin.digest) if (origin := origin_of(m)) else None,
    ),
    (lambda d: (_noted(d)["key"], d.kind, d.content), lambda m: (str(place_of(m)), m.kind, m.content)),
    (lambda d: (_noted(d)["file"], d.kind, d.content), lambda m: (_file(m), m.kind, m.content)),
    (lambda d: (d.kind, d.content), lambda m: (m.kind, m.content)),
    (lambda d: (_noted(d)["key"],), lambda m: (place,) if (place := _editable(m)) else None),
    (lambda d: (_noted(d)["file"], _noted(d)["key"].endswith(_noted(d)["file"])), _grown),
)


def _is_known(head: Memory, draft: Draft) -> bool:
    """Whether nothing has to be written: the content is the same, or a person has forgotten the memory."""
    origin = origin_of(head)
    if head.status is Status.FORGOTTEN:
        return not (origin and origin.gone)
    if origin is None:
        parts = attrgetter("kind", "content", "subject", "source")
        return (*parts(head), str(head.scope)) == (*parts(draft), str(draft.scope))
    noted = _noted(draft)
    if (origin.key, origin.gone) != (noted["key"], False):
        return False
    return origin.digest == noted["digest"] or _adds_nothing(head, draft)


def _adds_nothing(head: Memory, draft: Draft) -> bool:
    """Whether all fields of a draft are stored, even if another version of germane stored another digest."""
    names = [each.name for each in dataclass_fields(Draft) if getattr(draft, each.name) is not None]
    stored = Draft(**{name: getattr(head, name) for name in names})
    given = replace(draft, scope=Scope.parse(draft.scope))
    # Metadata that storing added isn't part of the draft.
    added = {ORIGIN, *({QUALITY_FLAG, OUTDATED} - draft.metadata.keys())}
    first, second = (
        replace(each, metadata={name: value for name, value in each.metadata.items() if name not in added})
        for each in (stored, given)
    )
    return _digest(first) == _digest(second)


def _digest(draft: Draft) -> str:
    """The digest of a draft without its place, unchanged if the text only moved within its file."""
    # Defaults are omitted, so that a new field of drafts doesn't change the digests of old texts.
    values = ((each, getattr(draft, each.name)) for each in dataclass_fields(Draft) if each.name != "source")
    fields = {each.name: value for each, value in values if value != each.default}
    fields["tags"] = sorted(draft.tags)
    fields["metadata"] = {name: value for name, value in draft.metadata.items() if name not in _POSITIONS}
    text = json.dumps(fields, ensure_ascii=True, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# Detecting texts that were moved to another file and edited.
#
# A missed move is better than joining two texts that are only similar: text that many memories share, such as
# a template's, isn't counted.

LEAST_SHARE = 0.6
"""The minimum share of the old memory's unique text that the new text must contain."""

_FEWEST = 8
"""The minimum number of unique runs of three words for a detection."""
_RUN = 3
_BY_NAME = frozenset({"dependency", "changelog"})
"""Kinds that the name of a package or version distinguishes, however similar their texts are."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuedMemory:
    """A memory, the draft with most of its unique text, and the share of that text, from 0 to 1."""

    head: Memory
    draft: Draft
    share: float


def continued(
    lost: Sequence[Memory], drafts: Sequence[Draft], known: Sequence[Memory]
) -> list[ContinuedMemory]:
    """The memories of `lost` that a draft of the same kind continues, in the order of the drafts.

    The measure is the share of the runs of three words that no other memory of `known` has. A pair must be
    the best for both the memory and the draft; of equally good pairs none is taken.
    """
    if not lost or not drafts:
        return []
    seen = Counter(run for memory in known for run in _runs(memory.content))
    own = {memory.id: {run for run in _runs(memory.content) if seen[run] <= 1} for memory in lost}
    pairs = [
        ContinuedMemory(head=head, draft=draft, share=len(own[head.id] & runs) / len(own[head.id]))
        for draft in drafts
        if draft.kind not in _BY_NAME
        for runs in (_runs(draft.content),)
        for head in lost
        if head.kind == draft.kind and len(own[head.id]) >= _FEWEST
    ]
    pairs = [pair for pair in pairs if pair.share >= LEAST_SHARE]
    return [
        pair
        for pair in pairs
        if not any(
            other is not pair
            and (other.head is pair.head or other.draft is pair.draft)
            and other.share >= pair.share
            for other in pairs
        )
    ]


def _runs(text: str) -> set[tuple[str, ...]]:
    words = _WORD.findall(text.casefold())
    return {tuple(words[start : start + _RUN]) for start in range(len(words) - _RUN + 1)}
