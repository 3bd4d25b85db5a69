"""Where memories come from: the derivation of a memory, and what was removed with a source.

Nothing here reads a clock, a random source or a file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from germane.model.context import origin_of
from germane.model.extraction import ProposalOutcome
from germane.model.memory import MEMBERS, Memory, Status, Trust, split_id
from germane.model.text import cut, day_in_words, line_of

__all__ = [
    "DERIVED_FROM",
    "Derivation",
    "DerivationStep",
    "ImportOrigin",
    "LearningOrigin",
    "QuarantinedMemory",
    "QuotedMessage",
    "Revocation",
    "VersionOrigin",
]

DERIVED_FROM: Final = "_derived_from"
"""The metadata that names the memories from which one was derived: a list of ids, or a mapping by ids."""

QUARANTINE: Final = "_quarantine"
"""The metadata of a memory in quarantine: the rules that marked it, and what it replaces once released."""
DAMAGED: Final = "damaged"
"""The rule by which a repair puts memories into quarantine that differ from their checksum."""
RELEASED: Final = "_released"
"""The metadata of a memory that was released: the rules that had marked it, and when it was released."""

ORIGIN: Final = "origin"
"""The metadata of an imported memory: the project, the file and the place in it."""

CONVERSATION: Final = "conversation:"
"""What the source of a memory learned from a conversation begins with."""
_LABEL: Final = 60
_BOUNDARIES: Final = ("#", "/", "@", ":", "~", "?", "\\")


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionOrigin:
    """One version of a memory: whose word it is, from which source and session, and since when it stands."""

    version: int
    at: datetime
    trust: Trust
    source: str | None = None
    session: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedMessage:
    """A message whose words a memory was learned from; `role` and `at` are None once the message is gone."""

    message: str
    session: str
    text: str
    role: str | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningOrigin:
    """A learning run that stored or changed a memory, and what it decided."""

    run: str
    extractor: str
    at: datetime
    outcome: ProposalOutcome
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOrigin:
    """The import that a memory came in with: its project, the file, and the place in the file."""

    project: str
    file: str
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivationStep:
    """A memory of a derivation, with all that is recorded of its origin.

    `sources` are the ids of the memories from which it was derived, and `merged` of those with the same text
    that were merged into it.
    """

    memory: Memory
    versions: tuple[VersionOrigin, ...]
    sources: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    imported: ImportOrigin | None = None
    quotes: tuple[QuotedMessage, ...] = ()
    runs: tuple[LearningOrigin, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivation:
    """The derivation of a memory: the memory itself, then its sources and their sources, each once.

    `gone` are the ids of sources that are no longer stored.
    """

    steps: tuple[DerivationStep, ...]
    gone: tuple[str, ...] = ()

    @property
    def memory(self) -> Memory:
        """The memory that was traced back."""
        return self.steps[0].memory

    def __str__(self) -> str:
        """The derivation as indented lines; a memory that stands several times is written out once."""
        by_id = {each.memory.id: each for each in self.steps}
        lines: list[str] = []
        waiting, written = [(self.memory.id, 0)], set[str]()
        while waiting:
            name, depth = waiting.pop()
            step, indent = by_id.get(name), "  " * depth
            if step is None or name in written:
                lines.append(
                    f"{indent}{name[-8:]}  {'(no longer stored)' if step is None else '(see above)'}"
                )
                continue
            written.add(name)
            lines += [f"{indent}{line}" for line in _lines(step)]
            waiting += [(each, depth + 1) for each in reversed(step.sources)]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocation:
    """What was removed with a source, or would be by a `dry_run`.

    `versions` names the removed versions as `id@n`, and `restored` the memories whose earlier text stands
    again, or which no longer count as merged into a removed one. `contexts` are the ids of the recorded
    assemblies that showed any of the removed. `messages` counts those of the purged conversation.
    """

    source: str
    versions: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()
    messages: int = 0
    dry_run: bool = False

    @property
    def memories(self) -> tuple[str, ...]:
        """The ids of the memories of which a version was removed, each once."""
        return tuple(dict.fromkeys(split_id(each)[0] for each in self.versions))


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantinedMemory:
    """A memory in quarantine, the names of the rules that marked it, and since when.

    `replaces` is the id of the memory whose next version it becomes when it is released; None for none.
    """

    memory: Memory
    rules: tuple[str, ...]
    at: datetime
    replaces: str | None = None


def quarantine_of(memory: Memory) -> tuple[str, ...]:
    """The rules that keep a memory in quarantine; none for one that isn't."""
    noted = memory.metadata.get(QUARANTINE) if memory.status is Status.FORGOTTEN else None
    return tuple(map(str, noted.get("rules", ()))) if isinstance(noted, Mapping) else ()


def is_damaged(memory: Memory) -> bool:
    """Whether a repair marked this version as different from what was stored."""
    noted = memory.metadata.get(QUARANTINE)
    return isinstance(noted, Mapping) and DAMAGED in noted.get("rules", ())


def sources_of(memory: Memory) -> tuple[str, ...]:
    """The ids of the memories from which a version was derived, as its metadata names them."""
    found: dict[str, None] = {}
    for name in (MEMBERS, DERIVED_FROM):
        named = memory.metadata.get(name)
        listed = named if isinstance(named, Mapping | list | tuple) else ()
        found.update(dict.fromkeys(split_id(each)[0] for each in listed if isinstance(each, str) and each))
    return tuple(found)


def import_of(memory: Memory) -> ImportOrigin | None:
    """The import that a memory came in with; None for any other."""
    noted = memory.metadata.get(ORIGIN)
    if not isinstance(noted, Mapping):
        return None
    texts = [noted.get(name) for name in ("project", "file", "key")]
    if not all(isinstance(each, str) for each in texts):
        return None
    project, file, place = map(str, texts)
    return ImportOrigin(project=project, file=file, place=place)


def comes_from(memory: Memory, source: str) -> bool:
    """Whether a version came from a source directly.

    A source is the id of a memory, a session, an import's project, or the beginning of the text in `source`
    or of an imported file, up to its end or to a separator.
    """
    if source in (memory.id, memory.session):
        return True
    imported = import_of(memory)
    named = [memory.source, *(() if imported is None else (imported.project, imported.file, imported.place))]
    names = [source, f"{CONVERSATION}{source}"]
    return any(_is_within(text, name) for text in named if text for name in names)


def _is_within(text: str, name: str) -> bool:
    return text.startswith(name) and (
        len(text) == len(name) or name.endswith(_BOUNDARIES) or text[len(name)] in _BOUNDARIES
    )


def derived(versions: Sequence[Memory], is_source: Callable[[Memory], bool]) -> frozenset[str]:
    """The names `id@n` of the versions that come from a source, directly or by others.

    What names a memory as its source is derived where any version of that memory is.
    """
    found = {each.version_id for each in versions if is_source(each)}
    while True:
        ids = {split_id(each)[0] for each in found}
        more = {each.version_id for each in versions if not ids.isdisjoint(sources_of(each))}
        if more <= found:
            return frozenset(found)
        found |= more


def remaining_of(versions: Sequence[Memory], gone: Collection[str]) -> tuple[Memory, ...]:
    """The versions to store again after whole memories with any of the `gone` versions are purged.

    A purge of a memory takes all its versions along, and the memories that were merged into it. What isn't
    gone of these is returned as it is to stand: each version replaced by the next one, and the last one
    current where nothing replaces it any more.
    """
    chains: dict[str, list[Memory]] = {}
    for each in sorted(versions, key=lambda one: one.version):
        chains.setdefault(each.id, []).append(each)
    purged = {split_id(each)[0] for each in gone} & chains.keys()
    while more := {name for name in chains.keys() - purged if _merged_into(chains[name][-1]) in purged}:
        purged |= more
    left = {
        name: remaining
        for name, chain in chains.items()
        if (remaining := [each for each in chain if each.version_id not in gone])
    }
    found: list[Memory] = []
    for name in sorted(purged & left.keys()):
        *former, last = left[name]
        followers = left[name][1:]
        found += [
            one.evolve(superseded_by=after.version_id) for one, after in zip(former, followers, strict=True)
        ]
        found.append(_last(last, chains[name], left))
    return tuple(found)


def _merged_into(last: Memory) -> str | None:
    """The id of the memory into which one was merged whose last version this is; None for none."""
    return None if last.superseded_by is None else split_id(last.superseded_by)[0]


def _last(last: Memory, chain: Sequence[Memory], left: Mapping[str, Sequence[Memory]]) -> Memory:
    """The last version that is left of a memory, as it is to stand."""
    head = chain[-1]
    into = left.get(_merged_into(head) or "")
    if into:
        return last.evolve(superseded_by=into[-1].version_id, status=Status.SUPERSEDED)
    if last is head and last.superseded_by is None:
        return last
    after = next((each for each in chain if each.version > last.version), None)
    ended = after is not None and after.valid_from is not None and last.valid_until == after.valid_from
    return last.evolve(
        superseded_by=None,
        status=Status.FORGOTTEN if head.status is Status.FORGOTTEN else Status.ACTIVE,
        valid_until=None if ended else last.valid_until,
    )


def _lines(step: DerivationStep) -> Iterable[str]:
    memory = step.memory
    yield f"{memory.id[-8:]}  {memory.kind}: {cut(line_of(memory.content), _LABEL)}"
    for each in step.versions:
        session = f", session {each.session}" if each.session else ""
        yield f"  version {each.version}: {origin_of(each.trust, each.source, each.at)}{session}"
    if step.imported is not None:
        yield f"  imported from {step.imported.place}, project {step.imported.project}"
    for run in step.runs:
        yield f"  learned by {run.extractor} on {day_in_words(run.at)} ({run.outcome}), run {run.run[-8:]}"
    for quote in step.quotes:
        of = quote.role or "a message that is gone"
        day = "" if quote.at is None else f" on {day_in_words(quote.at)}"
        yield f"  quotes {of}{day} in {quote.session}: {cut(line_of(quote.text), _LABEL)}"
    if step.merged:
        yield f"  merged with {', '.join(each[-8:] for each in step.merged)}"
