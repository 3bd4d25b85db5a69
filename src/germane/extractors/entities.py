"""Entities: which of the names in memories stand for one person or thing, and why.

Pure. Names are merged where a memory states it, where a relation has one name, and where a short form stands
beside one long form in a session. Names that fit two entities stay apart. The result depends on the memories
alone, not on their order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import combinations

from germane.extractors.mentions import (
    USER,
    Mentions,
    Name,
    Node,
    Relation,
    Tie,
    conflict,
    extends,
    is_loose,
    mentions,
    relation_text,
)
from germane.model.extraction import NameMerge
from germane.model.memory import Memory, Status, Trust


class Resolution:
    """The names of some memories, merged into entities; an entity is the set of its names.

    Names are merged by what holds at `now`, and by no word of an external source. What memories mention is
    attributed to entities whenever it was. The `wanted` names are found in lower case too.
    """

    def __init__(self, memories: Iterable[Memory], *, now: datetime, wanted: Collection[Node] = ()) -> None:
        found = {each.version_id: each for each in memories}
        self.mentions = tuple(mentions(found[each], wanted) for each in sorted(found))
        self._evidence = tuple(each for each in self.mentions if _counts(each.memory, now))
        self._ties = sorted({tie for each in self._evidence for tie in each.ties}, key=_place)
        self._groups = _Groups(_apart(self._ties))
        self._open: dict[Node, tuple[Node, ...]] = {}
        self._why: dict[Node, str] = {}
        self._may_be: dict[Node, Node] = {}
        self._named: dict[Relation, dict[Name, list[str]]] = {}
        self._merge_stated()
        self._merge_relations()
        self._merge_short_forms()
        self._in_session = self._sessions()

    def entities_of(self, node: Node) -> tuple[frozenset[Node], ...]:
        """The entities that a name fits: one, or several that stay apart."""
        roots = dict.fromkeys(map(self._groups.root, self.options(node)))
        return tuple(self._groups.members(root) for root in roots)

    def options(self, node: Node) -> tuple[Node, ...]:
        """The names that a name may stand for: itself, unless it fits several entities."""
        own = self._canonical(node)
        return self._open.get(own, (own,))

    def notes_of(self, names: Collection[Node]) -> Iterator[str]:
        """Why some of these names aren't merged with others."""
        for node in sorted(names, key=_text_key):
            if node in self._why:
                yield self._why[node]
            if node in self._may_be:
                yield (
                    f"{self.text(node)} may be {self.text(self._may_be[node])}: no statement and no shared "
                    "session says so."
                )

    def merges_of(self, entity: Collection[Node]) -> tuple[NameMerge, ...]:
        """Why the names of an entity are one."""
        return tuple(
            NameMerge(
                names=(self.text(one), self.text(other)),
                reason=reason,
                memories=memories,
                decided=decided,
            )
            for (one, other), (reason, memories, decided) in self._groups.reasons.items()
            if one in entity
        )

    def attributed(self, mention: Mentions) -> tuple[set[Node], set[Node]]:
        """The roots of the entities that a memory mentions, and of those that it may mention."""
        sure, unsure = self._sure(mention)
        written = set(map(self._canonical, mention.written))
        present = sure | self._in_session.get(mention.memory.session or "", set())
        possible: set[Node] = set()
        for node in unsure:
            # "My boss Anna" is the boss, whoever else of that name the session mentions.
            options = written.intersection(self._open[node]) or self._open[node]
            roots = set(map(self._groups.root, options))
            near = roots & present
            sure, possible = (sure | near, possible) if len(near) == 1 else (sure, possible | roots)
        return sure, possible - sure

    def root(self, node: Node) -> Node:
        """The name by which the entity of a name is compared."""
        return self._groups.root(self._canonical(node))

    def text(self, node: Node) -> str:
        """How a name is mostly written."""
        texts = Counter(each.written[node] for each in self.mentions if node in each.written)
        if node == USER:
            return "the user"
        if not texts:
            return relation_text(node) if isinstance(node, Relation) else " ".join(node)
        return min(texts.items(), key=lambda each: (-each[1], each[0]))[0]

    def shown(self, entity: Iterable[Node]) -> tuple[str, ...]:
        """The names of an entity as they are written: the longest name first, then relations and the user."""
        nodes = set(entity)
        ordered = sorted(nodes, key=lambda node: (node == USER, isinstance(node, Relation), *_text_key(node)))
        # A name that several have doesn't name this one alone.
        shared = sorted(
            name
            for relation, names in self._named.items()
            for name in names
            if relation in nodes and name in self._open
        )
        return tuple(dict.fromkeys(map(self.text, (*ordered, *shared))))

    def _canonical(self, node: Node) -> Node:
        """A relation of somebody who is the user is one of the user's."""
        is_users = isinstance(node, Relation) and self._groups.root(node.owner) == self._groups.root(USER)
        return node._replace(owner=USER) if is_users and isinstance(node, Relation) else node

    def _merge_stated(self) -> None:
        """Merge what was decided and what memories state of two names."""
        for tie in self._ties:
            related = isinstance(tie.one, Relation) or isinstance(tie.other, Relation)
            if tie.same and (tie.decided or not related):
                self._groups.join(tie.one, tie.other, tie.reason, (tie.memory,), decided=tie.decided)

    def _merge_relations(self) -> None:
        """Merge a relation with its name, unless it has several names or the name is of two relations."""
        named = self._named
        for tie in self._ties:
            if tie.same and not tie.decided and isinstance(tie.one, Relation):
                relation = self._canonical(tie.one)
                named.setdefault(relation, {}).setdefault(tie.other, []).append(tie.memory)  # type: ignore[arg-type]  # The other one is a name.
        for name in sorted({name for of in named.values() for name in of}):
            if relations := self._torn(name):
                texts = sorted(map(self.text, relations))
                self._open[name] = tuple(sorted(relations, key=_text_key))
                self._why[name] = f"{self.text(name)} is the name of {' and of '.join(texts)}."
        several = {self._canonical(each) for found in self._evidence for each in found.several}
        for relation in sorted(named, key=_text_key):
            if not is_loose(relation):
                self._merge_relation(relation, is_of_several=relation in several)

    def _merge_relation(self, relation: Relation, *, is_of_several: bool) -> None:
        # The name of an older sister is one more name of a sister.
        names = {
            name
            for other, others in self._named.items()
            if other == relation or (not relation.which and other._replace(which="") == relation)
            for name in others
        }
        if is_of_several:
            self._leave_open(relation, names, "There are several of them.")
        elif not all(self._is_one(one, other) for one, other in combinations(sorted(names), 2)):
            self._leave_open(relation, names, "It has several names.")
        else:
            for name, memories in sorted(self._named[relation].items()):
                if name not in self._open:
                    reason = f"It is the name of {relation_text(relation)}."
                    self._groups.join(relation, name, reason, tuple(sorted(set(memories))))

    def _torn(self, name: Name) -> Sequence[Relation | Name]:
        """The relations that a name has, where one person is hardly all of them; else none."""
        own = [relation for relation, names in self._named.items() if name in names]
        if any(conflict(one, other) for one, other in combinations(own, 2)):
            return own
        is_users = self._groups.root(name) == self._groups.root(USER)
        return [*own, USER] if is_users and any(each.owner == USER for each in own) else ()

    def _is_one(self, one: Name, other: Name) -> bool:
        joined = self._groups.root(one) == self._groups.root(other)
        return joined or ((extends(one, other) or extends(other, one)) and self._groups.may_join(one, other))

    def _leave_open(self, relation: Relation, names: Iterable[Name], why: str) -> None:
        self._open[relation] = tuple(sorted(names))
        texts = ", ".join(sorted(map(self.text, names)))
        self._why[relation] = f"{_capital(relation_text(relation))} may be {texts}. {why}"

    def _merge_short_forms(self) -> None:
        """Merge a name with its one longer form, where both stand in a session and one is a person's."""
        names = {
            node for each in self._evidence for node in each.written if not isinstance(node, Relation)
        } - {USER}
        first: dict[str, list[Name]] = {}
        for name in names:
            first.setdefault(name[0], []).append(name)
        places = {name: self._places(name) for alike in first.values() if len(alike) > 1 for name in alike}
        for name in sorted(places, key=lambda each: (-len(each), each)):
            longer = sorted(each for each in first[name[0]] if extends(each, name))
            if not longer or name in self._open:
                continue
            roots = {self._groups.root(each) for each in longer}
            own = self._groups.root(name)
            if own in roots and len(roots) == 1:
                continue
            if len(roots - {own}) > 1 or (own in roots and len(roots) > 1):
                self._open[name] = tuple(longer)
                self._why[name] = f"{self.text(name)} may be {', '.join(map(self.text, longer))}."
                continue
            self._merge_short(name, longer, places)

    def _merge_short(
        self, name: Name, longer: Sequence[Name], places: Mapping[Name, tuple[set[str], set[str]]]
    ) -> None:
        sessions, memories = places[name]
        group = self._groups.members(self._groups.root(longer[0])) | self._groups.members(
            self._groups.root(name)
        )
        people = {each for found in self._evidence for each in found.people}
        is_person = any(each in people or isinstance(each, Relation) or each == USER for each in group)
        shared = sorted({session for each in longer for session in sessions & places[each][0]})
        together = any(memories & places[each][1] for each in longer)
        torn = self._torn_relations(group)
        if shared and not together and (is_person or len(longer[0][-1].strip(".")) == 1) and not torn:
            reason = f"It stands beside its short form in session {shared[0]}."
            self._groups.join(longer[0], name, reason, ())
        elif is_person and not together and not torn:
            self._may_be[name] = longer[0]

    def _torn_relations(self, group: Collection[Node]) -> bool:
        relations = [each for each in group if isinstance(each, Relation)]
        return any(conflict(one, other) for one, other in combinations(relations, 2))

    def _places(self, name: Name) -> tuple[set[str], set[str]]:
        """The sessions and the memories that have a name."""
        having = [each.memory for each in self._evidence if name in each.written]
        return {each.session for each in having if each.session}, {each.id for each in having}

    def _sessions(self) -> dict[str, set[Node]]:
        found: dict[str, set[Node]] = {}
        for each in self.mentions:
            if each.memory.session:
                found.setdefault(each.memory.session, set()).update(self._sure(each)[0])
        return found

    def _sure(self, mention: Mentions) -> tuple[set[Node], set[Node]]:
        nodes = set(map(self._canonical, mention.written))
        unsure = {node for node in nodes if node in self._open}
        return {self._groups.root(node) for node in nodes - unsure}, unsure


class _Groups:
    """Names joined into groups; two that are apart are never in one. Joins are made in a fixed order."""

    def __init__(self, apart: Collection[frozenset[Node]]) -> None:
        self._apart = apart
        self._members: dict[Node, frozenset[Node]] = {}
        self.reasons: dict[tuple[Node, Node], tuple[str, tuple[str, ...], bool]] = {}

    def root(self, node: Node) -> Node:
        """The first of the names of a group."""
        return min(self.members(node), key=_text_key)

    def members(self, node: Node) -> frozenset[Node]:
        """All names of a group."""
        return self._members.get(node, frozenset((node,)))

    def may_join(self, one: Node, other: Node) -> bool:
        """Whether no names of the two groups are apart."""
        pairs = (frozenset((a, b)) for a in self.members(one) for b in self.members(other))
        return not any(pair in self._apart for pair in pairs)

    def join(
        self, one: Node, other: Node, reason: str, memories: tuple[str, ...], *, decided: bool = False
    ) -> None:
        """Make one group of two, with the reason; nothing where names of them are apart."""
        if one == other or not self.may_join(one, other):
            return
        known = self.reasons.get((one, other))
        if known is not None:
            memories = tuple(sorted({*known[1], *memories}))
            reason, decided = (known[0], True) if known[2] else (reason, decided)
        self.reasons[one, other] = reason, memories, decided
        group = self.members(one) | self.members(other)
        self._members.update(dict.fromkeys(group, group))


def _counts(memory: Memory, now: datetime) -> bool:
    """Whether a memory says now, and by a trusted word, which names are one."""
    stands = memory.status is Status.ACTIVE and memory.superseded_by is None
    return stands and memory.holds(now, now) and memory.trust is not Trust.EXTERNAL


def _apart(ties: Collection[Tie]) -> frozenset[frozenset[Node]]:
    """The pairs of names that aren't one entity; a decision prevails over what memories state."""
    decided = {frozenset((tie.one, tie.other)): tie.same for tie in ties if tie.decided}
    stated = {frozenset((tie.one, tie.other)) for tie in ties if not tie.same}
    return frozenset(pair for pair in stated if not decided.get(pair, False))


def _place(tie: Tie) -> tuple[bool, str, str, str]:
    return not tie.decided, str(tie.one), str(tie.other), tie.memory


def _text_key(node: Node) -> tuple[int, str]:
    return -len(node) if not isinstance(node, Relation) else 0, str(node)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
