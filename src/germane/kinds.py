"""What a memory can be: the open registry of kinds.

A kind says in which section its memories stand, how it ranks against other kinds, how its
renditions are worded and which lifecycle it follows. Sections and wording follow the note on
context management that the layered plan comes from; the priorities 1 to 7 are those of the
decision record that the scoped plan comes from, and a kind that neither names comes after them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf

from germane.errors import InvalidInput, UnknownKind, shown
from germane.lifecycle import LIFECYCLES, UNSTAGED
from germane.model.memory import Memory
from germane.model.validation import checked_fields

__all__ = ["BUILT_IN", "Kind", "Kinds", "TemplatePart"]


@dataclass(frozen=True, slots=True)
@checked_fields(least=(0, inf))
class TemplatePart:
    """A part of a rendition, with fields in braces.

    A piece one of whose fields is empty is left out. A `fixed` piece stays whole when the
    rendition has to be shortened; the others give way from the last to the first. The pieces before one
    leave it `least` tokens, where it has so many.
    """

    text: str
    fixed: bool = False
    least: int = 0


Template = tuple[TemplatePart, ...]

_CONTENT = TemplatePart("{content}")
_PLAIN: Template = (_CONTENT,)

_LABELS = {
    **dict.fromkeys(("absolute", "block"), "Never"),
    **dict.fromkeys(("ask", "confirm", "approve", "escalate"), "Ask first"),
}


def _never(_: Memory) -> bool:
    return False


def _anywhere(_: Memory) -> int:
    return 0


def _stops_the_agent(memory: Memory) -> bool:
    """Whether a constraint forbids rather than warns: such a one is never left out."""
    return memory.metadata.get("action") in ("block", "absolute")


def _by_action(memory: Memory) -> int:
    """What is forbidden for good stands before what is forbidden, what needs a question, and a warning."""
    action = str(memory.metadata.get("action"))
    return {"absolute": 0, "block": 1}.get(action, 2 if constraint_label(action) == "Ask first" else 3)


def constraint_label(action: str) -> str:
    """What a constraint of this action tells the agent: "Never", "Ask first" or "Careful"."""
    return _LABELS.get(action.lower(), "Careful")


def _task_first(memory: Memory) -> int:
    return int(memory.metadata.get("role") == "thread")


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields()
class Kind:
    """A kind of memory.

    `section` names the section of the layered plan. `priority` orders kinds where a plan fills by
    kind (1 comes first). `micro`, `summary` and `full` word the renditions; their fields are
    `content`, `subject`, `outcome`, `confidence`, `assessment` (outcome and confidence as far as
    they say something), `about` (the subject, unless the content names it), `constraint` (what the action of
    a constraint means), those of a decision record (`headline`, `status`, `decision`, `reason`,
    `consequence`), and every key of the metadata. `title` heads an item where a section gives each its own
    heading.
    `requires` tells the memories that no budget may drop. Where a section shows the most important ones
    whatever the question is, those of a smaller `place` come first. `lifecycle` names how they age.
    """

    name: str
    section: str = "facts"
    priority: int = 8
    micro: Template = _PLAIN
    summary: Template = _PLAIN
    full: Template = _PLAIN
    title: Template = (TemplatePart("{subject}"),)
    lifecycle: str = "permanent"
    requires: Callable[[Memory], bool] = _never
    place: Callable[[Memory], int] = _anywhere

    def __post_init__(self) -> None:
        if not self.name or not self.name.replace("_", "").replace("-", "").isalnum():
            raise InvalidInput(
                f"Kind name {self.name!r} can't be used: take letters, digits, '-' and '_', such as 'ticket'."
            )
        if self.lifecycle not in (*LIFECYCLES, *UNSTAGED):
            raise InvalidInput(
                f"lifecycle={self.lifecycle!r} of kind {self.name!r} is unknown: take one of "
                f"{', '.join((*LIFECYCLES, *UNSTAGED))}."
            )


@dataclass(frozen=True, slots=True)
class Kinds:
    """The kinds that an engine knows. Immutable: `with_kinds` returns a larger registry."""

    by_name: Mapping[str, Kind] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(frozenset(self.by_name))

    def __iter__(self) -> Iterator[Kind]:
        return iter(self.by_name.values())

    def __contains__(self, name: object) -> bool:
        return name in self.by_name

    def require(self, name: str) -> Kind:
        """The kind of that name. Raises UnknownKind, which names the known ones."""
        try:
            return self.by_name[name]
        except KeyError:
            raise UnknownKind(name, tuple(sorted(self.by_name))) from None

    def of(self, memory: Memory) -> Kind:
        """The kind of a stored memory; one that this engine doesn't know is shown as a plain fact."""
        return self.by_name.get(memory.kind) or Kind(name=memory.kind)

    def in_section(self, section: str) -> tuple[str, ...]:
        """The names of the kinds that stand in a section, in order of priority."""
        kinds = [kind for kind in self if kind.section == section]
        return tuple(kind.name for kind in sorted(kinds, key=lambda kind: (kind.priority, kind.name)))

    def strict(self) -> Mapping[str, Callable[[Memory], bool]]:
        """By the name of each kind that has memories which no budget may drop: whether a memory is such."""
        return {name: kind.requires for name, kind in self.by_name.items() if kind.requires is not _never}

    def with_kinds(self, kinds: Iterable[Kind]) -> Kinds:
        """This registry with more kinds; one of a known name replaces it. Raises InvalidInput for no kind."""
        kinds = tuple(kinds)
        for kind in kinds:
            if not isinstance(kind, Kind):
                raise InvalidInput(f"{shown(kind)} is no kind; pass germane.Kind(name=...).")
        return Kinds({**self.by_name, **{kind.name: kind for kind in kinds}})


_CONSTRAINT: Template = (
    TemplatePart("**{constraint}:** ", fixed=True),
    _CONTENT,
    TemplatePart(" — {reason}"),
)
_FACT: Template = (TemplatePart("{about}: ", fixed=True), _CONTENT)
_PROCEDURE: Template = (_CONTENT, TemplatePart("\n{steps_lines}"))
_ADR: Template = (TemplatePart("{headline}"), TemplatePart(" [{status}]", fixed=True))
_DECISION: Template = (_CONTENT, TemplatePart(" [{assessment}]", fixed=True))
_EPISODE: Template = (TemplatePart("{title} — "), _CONTENT)
_COMMIT: Template = (_CONTENT, TemplatePart(" ({day}, {author}, {short})", fixed=True))

CHANGELOG = "changelog"
"""What one release changed."""

COMMIT = "commit"
"""What was changed once. Histories hold thousands, so they come after every other kind."""


MESSAGE = "message"
"""A message of a conversation where it stands among memories. It is stored in its conversation alone."""


def _fact(name: str, *, section: str, priority: int, place: Callable[[Memory], int] = _anywhere) -> Kind:
    """A kind of facts: each names its subject, and ages as facts do."""
    return Kind(
        name=name,
        section=section,
        priority=priority,
        micro=_FACT,
        summary=_FACT,
        full=_FACT,
        lifecycle="fact",
        place=place,
    )


PROFILE = ("rule", "person", "preference")
"""What is known of whom the agent works for: shown whatever the question, and answers questions as well."""

USER = "user"
"""The subject of facts about the user."""

# "The user" before one of these names a part of some software; "User" alone is a person only before a verb.
_SAYS_OF_USER = re.compile(
    r"\s*(?:the\s+user(?!\s+(?:accounts?|agents?|api|base|class|data|database|endpoint|experience|fields?|flow"
    r"|groups?|guide|ids?|input|interface|keys?|lists?|manual|model|names?|objects?|pages?|profiles?|queue"
    r"|records?|research|roles?|schema|service|sessions?|settings|store|stor(?:y|ies)|tables?|testing|tokens?"
    r"|types?)\b)(?:['’]s)?"
    r"|user(?:['’]s|\s+(?:is|was|has|does|likes|loves|hates|prefers|wants|needs|lives|works|speaks|uses|owns"
    r"|always|never|usually)))\s",
    re.IGNORECASE,
)


def subject_of(kind: Kind, content: str) -> str | None:
    """The subject that a fact without one names itself: the user, where its first words say so."""
    return USER if kind.section == "facts" and _SAYS_OF_USER.match(content) else None


BUILT_IN = Kinds().with_kinds(
    [
        Kind(name="identity", section="identity", priority=0),
        _fact("rule", section="constraints", priority=1, place=lambda _: 3),
        _fact("person", section="user", priority=2, place=lambda _: 1),
        _fact("preference", section="user", priority=3),
        Kind(
            name="constraint",
            section="constraints",
            priority=0,
            micro=_CONSTRAINT,
            summary=_CONSTRAINT,
            full=_CONSTRAINT,
            lifecycle="constraint",
            requires=_stops_the_agent,
            place=_by_action,
        ),
        Kind(name="focus", section="focus", priority=0, lifecycle="focus", place=_task_first),
        Kind(
            name="adr",
            section="decisions",
            priority=1,
            micro=(*_ADR, TemplatePart(": {decision}")),
            summary=(
                *_ADR,
                TemplatePart(": {decision}", least=40),
                TemplatePart(" — {reason}", least=35),
                TemplatePart(" → {consequence}"),
            ),
            lifecycle="decision",
        ),
        Kind(name="pattern", section="decisions", priority=2),
        Kind(name="iplan", section="procedures", priority=3, lifecycle="procedure"),
        Kind(
            name="procedure",
            section="procedures",
            priority=3,
            micro=(_CONTENT, TemplatePart(" ({steps})")),
            summary=_PROCEDURE,
            full=_PROCEDURE,
            title=(TemplatePart("{name}"),),
            lifecycle="procedure",
        ),
        Kind(name="module", section="facts", priority=4),
        Kind(
            name="decision",
            section="decisions",
            priority=5,
            micro=_DECISION,
            summary=(
                *_DECISION,
                TemplatePart(" — {reasons}", least=35),
                TemplatePart(" → {result}", least=20),
            ),
            full=(*_DECISION, TemplatePart("\nReasons: {reasons}"), TemplatePart("\nResult: {result}")),
            lifecycle="decision",
        ),
        _fact("fact", section="facts", priority=5),
        Kind(name="dependency", section="facts", priority=6),
        Kind(name=CHANGELOG, section="episodes", priority=7),
        Kind(
            name="episode",
            section="episodes",
            priority=7,
            micro=_EPISODE,
            summary=(*_EPISODE, TemplatePart(" ({duration})", fixed=True)),
            lifecycle="episode",
        ),
        Kind(name="calibration", section="calibration", priority=7),
        Kind(
            name=COMMIT,
            section="history",
            priority=9,
            micro=(TemplatePart("{headline}"), TemplatePart(" ({day})", fixed=True)),
            summary=_COMMIT,
            full=_COMMIT,
        ),
        Kind(name="note", section="facts", priority=8),
    ]
)
"""The kinds that every engine knows."""
