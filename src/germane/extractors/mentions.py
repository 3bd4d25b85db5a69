"""Whom a memory names, and what it says of their names: "Anna is the user's sister", "Bob goes by Robbie".

Pure, and for English as far as it reads sentences; a memory's subject is read in any language.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple, TypeAlias

import regex

from germane.extractors.gate import LONGEST
from germane.model.memory import Memory
from germane.retrieval.tokenizer import query_terms

Name: TypeAlias = tuple[str, ...]
"""A name as its words, case folded; an initial ends in a full stop."""


class Relation(NamedTuple):
    """What somebody is to another: the user's older sister. `which` may be empty."""

    owner: Name
    relation: str
    which: str = ""


Node: TypeAlias = "Name | Relation"
"""A name, or a relation that stands for somebody."""
USER: Final[Name] = ("user",)
"""Whom the agent talks with, as the subject of memories names them."""
NAMES_METADATA: Final = "_names"
"""The metadata of a memory that decides whether two names are one entity: the names, and whether."""


class Tie(NamedTuple):
    """What a memory says of two names: that they are one entity, or that they aren't."""

    one: Node
    other: Node
    same: bool
    memory: str
    decided: bool = False
    reason: str = "A memory states it."


@dataclass(frozen=True, slots=True)
class Mentions:
    """A memory with the names in it and how they are written, whom it is about, and what it says of them.

    `people` are names that it uses as those of people, `several` relations of which there are more than one.
    """

    memory: Memory
    written: dict[Node, str]
    about: Node | None
    ties: tuple[Tie, ...]
    people: frozenset[Name]
    several: frozenset[Relation]


_RELATIONS: Final = {
    "family": "sister brother mother father son daughter grandmother grandfather",
    "couple": "wife husband partner girlfriend boyfriend fiance",
    "work": "boss manager supervisor",
    "care": "doctor dentist therapist landlord lawyer accountant",
    "pet": "dog cat puppy kitten horse parrot rabbit hamster",
    "loose": "friend colleague cousin niece nephew aunt uncle neighbor roommate flatmate teacher coach "
    "mentor child kid",
}
_CLASS: Final = {word: name for name, words in _RELATIONS.items() for word in words.split()}
_USUAL: Final = {
    **dict.fromkeys(("mom", "mum"), "mother"),
    "dad": "father",
    "grandma": "grandmother",
    "grandpa": "grandfather",
    "neighbour": "neighbor",
    "fiancé": "fiance",
    "fiancée": "fiance",
    "fiancee": "fiance",
    "team lead": "supervisor",
    "tech lead": "supervisor",
}
_LONGEST_FIRST: Final = sorted({*_CLASS, *_USUAL}, key=lambda word: (-len(word), word))
_RELATIVE: Final = rf"(?:best friend|{'|'.join(_LONGEST_FIRST)})(?:-in-law)?"
_WORD: Final = r"\b\p{Lu}[\p{L}\p{M}\p{N}-]*+(?:['’](?!s\b)[\p{L}\p{M}]++)*+"
_TITLES: Final = frozenset(("dr", "mr", "mrs", "ms", "mx", "prof", "mme"))
_TITLE: Final = r"\b(?:Dr|Mr|Mrs|Ms|Mx|Prof|Mme)\.? "
_NAME: Final = rf"(?:{_TITLE})?{_WORD}(?: (?:\p{{Lu}}\.|{_WORD})){{0,3}}+"
_OWNED: Final = (
    rf"(?:\b(?P<self>[Mm]y|(?:[Tt]he )?[Uu]ser['’]s|[Tt]heir)|(?P<owner>{_NAME})['’]s?) "
    r"(?:(?P<which>older|younger|elder|eldest|youngest|little|big|twin|late) )?"
    rf"(?P<relation>(?:ex-)?{_RELATIVE})\b"
)
_ENDED: Final = r"(?=[.,;:!?)]|$| (?:(?:and|but|since)\b|\())"
"""After a name that is stated, so that "her name is Latin for grace" gives none."""
_GIVES_NAME: Final = (
    r"(?:['’]s (?:full |first )?name is|,? (?:is )?(?:now )?(?:called|named)|,? whose name is)"
)
_PLACED: Final = r"(?i:in|at|to|from|near|of|for) "
_BESIDE: Final = rf"(?<!\b{_PLACED})\b(?!{_PLACED})(?P<name>{_NAME})"
_NO_LIST: Final = r"(?!and\b|or\b)"
_RELATED: Final = tuple(
    regex.compile(text)
    for text in (
        rf"{_OWNED}{_GIVES_NAME} (?P<name>{_NAME}){_ENDED}",
        rf"{_OWNED} is (?P<name>{_TITLE}{_NAME}|{_WORD} (?:\p{{Lu}}\.|{_WORD})){_ENDED}",
        rf"{_OWNED} (?P<name>{_NAME})",
        rf"^{_OWNED}, (?P<name>{_NAME})(?=, {_NO_LIST}\p{{Ll}})",
        rf"(?P<name>{_NAME}) is {_OWNED}(?!['’])",
        rf"{_BESIDE},? \(?{_OWNED}(?=\)|[.!]?$|, {_NO_LIST})",
    )
)
_CALLED: Final = regex.compile(
    rf"(?:(?P<self>\b[Mm]y|\b(?:[Tt]he )?[Uu]ser['’]s)|(?P<owner>{_NAME})['’]s?) "
    rf"(?:full |first |real |nick|pet )?name is (?P<name>{_NAME}){_ENDED}"
    rf"|(?:(?P<self>\b[Tt]he user|\bUser|\bI)|(?P<owner>{_NAME})) "
    r"(?:is (?:also )?(?:called|known as|nicknamed)|goes by|go by|(?:prefers|likes) to be called) "
    rf"(?!\S*\d)(?P<name>{_NAME}){_ENDED}|^(?P<self>[Cc]all me) (?P<name>{_NAME}){_ENDED}"
    rf"|^(?P<self>The user) changed name: the name is (?P<name>{_NAME}){_ENDED}"
)
_SAME: Final = regex.compile(
    rf"(?P<one>{_NAME}),? (?:and (?P<other>{_NAME}) are the same(?: person)?|is the same(?: person)? as "
    rf"(?P<other>{_NAME})|(?:aka|a\.k\.a\.|alias) (?P<other>{_NAME}))"
)
_APART: Final = regex.compile(
    rf"(?P<one>{_NAME}) (?:and (?P<other>{_NAME}) are (?:two |different|not the same)|"
    rf"is not (?P<other>{_NAME}))"
)
_SEVERAL: Final = regex.compile(
    rf"\b(?:(?P<self>[Tt]he user|I|User)|(?P<owner>{_NAME})) (?:has|have) (?:two|three|four|five|six|\d+) "
    rf"(?:\w+ )?(?P<relation>{_RELATIVE})(?:s|es)\b"
)
_PERSON: Final = regex.compile(
    rf"(?P<name>{_NAME})(?: (?:lives in|works (?:as|for|at)|studies|was born|loves|hates|likes|enjoys|speaks|"
    r"is \d+ years|is (?:allergic|married|engaged|pregnant|vegan|vegetarian|retired)|"
    rf"has (?:an?|one|two|three|four) (?:{_RELATIVE})|got married)\b|['’]s (?:birthday|{_RELATIVE})\b)"
)
_DOUBT: Final = regex.compile(
    r"\b(?:not|never|no longer|used to|former(?:ly)?|was|were|maybe|perhaps|might|probably|if|would|"
    r"\w+n['’]t)\b",
    regex.IGNORECASE,
)
_SENTENCES: Final = regex.compile(r"(?<!\b(?:\p{Lu}|Dr|Mr|Mrs|Ms|Mx|Prof|Mme)\.)(?<=[.!?])\s+|\n+")
_SELF: Final = frozenset({"user", "me", "i", "myself"})
_DAYS: Final = (
    "monday tuesday wednesday thursday friday saturday sunday yesterday today tomorrow january february "
    "march april may june july august september october november december call"
)
_NEVER: Final = frozenset(_DAYS.split())
"""Words with a capital that are no names."""


def node_of(text: str) -> Node | None:
    """The name or the relation that a text is as a whole: "Anna K.", "my sister", "the user"."""
    plain = " ".join(unicodedata.normalize("NFC", text).split()).strip(" ,;:")
    plain = regex.sub(r"(?i)^the (?=user\b)|(?<=\S) \(.*\)$", "", plain)
    if plain.casefold() in _SELF:
        return USER
    owned = regex.fullmatch(
        r"(?:(?P<self>my|user['’]s)|(?P<owner>.+?)['’]s?) "
        r"(?:(?P<which>older|younger|elder|eldest|youngest|little|big|twin|late) )?"
        rf"(?P<relation>(?:ex-)?{_RELATIVE})",
        plain,
        regex.IGNORECASE,
    )
    if owned is not None:
        return _relation(owned)
    return name_of(plain) or None


def name_of(text: str) -> Name:
    """The words of a name, without those that are none, such as a weekday."""
    words = [word.casefold() for word in regex.sub(r"['’]s?$", "", text).replace("’", "'").split()]
    if words and words[0].rstrip(".") in _TITLES:
        words[0] = words[0].rstrip(".")
    while len(words) > 1 and (words[0] in _NEVER or _is_stop_word(words[0])):
        words.pop(0)
    while len(words) > 1 and words[-1] in _NEVER:
        words.pop()
    return tuple(
        f"{word}." if len(word) == 1 and word.isascii() and word.isalpha() else word for word in words
    )


def extends(longer: Name, name: Name) -> bool:
    """Whether a name may be a longer form of another: "Anna Kowalska" of "Anna" and of "Anna K."."""
    if longer == name or len(name) > len(longer):
        return False
    pairs = zip(name, longer, strict=False)
    return all(one == other or (one.endswith(".") and other.startswith(one[:-1])) for one, other in pairs)


def conflict(one: Relation, other: Relation) -> bool:
    """Whether one person is hardly both: the user's sister and the user's boss."""
    mine, theirs = _class_of(one), _class_of(other)
    if "loose" in (mine, theirs):
        return False
    if mine != theirs or one.owner != other.owner:
        return True
    return mine in ("family", "care", "pet") and one.relation != other.relation


def is_loose(relation: Relation) -> bool:
    """Whether one usually has several of it, so that it names nobody: "the user's friend"."""
    return _class_of(relation) == "loose"


def mentions(memory: Memory, wanted: Collection[Node] = ()) -> Mentions:
    """Whom a memory names, and what it says of their names; of a long text only the subject is read.

    Names are capitalised words. The `wanted` ones are also found in lower case, and in scripts without case.
    """
    subject = None if memory.subject is None else node_of(memory.subject)
    written: dict[Node, str] = {}
    if subject is not None and memory.subject is not None:
        written[subject] = memory.subject.strip()
    ties = list(_decided(memory, written))
    people: set[Name] = set()
    several: set[Relation] = set()
    about = subject
    content = unicodedata.normalize("NFC", memory.content) if len(memory.content) <= LONGEST else ""
    if ties:
        return Mentions(memory, written, None, tuple(ties), frozenset(), frozenset())
    for sentence in _SENTENCES.split(content):
        found = dict(_names_in(sentence))
        written |= {node: text for node, (_, text) in found.items() if node not in written}
        if sentence and content.startswith(sentence):
            first = [node for node, (place, _) in found.items() if place == 0]
            about = max(first, key=lambda node: isinstance(node, Relation), default=about)
        written |= {name: text for name, text in _wanted_in(sentence, wanted) if name not in written}
        ties += _ties_in(sentence, memory.id)
        people.update(filter(None, (name_of(match["name"]) for match in _PERSON.finditer(sentence))))
        several.update(map(_relation, _SEVERAL.finditer(sentence)))
    return Mentions(memory, written, about, tuple(ties), frozenset(people), frozenset(several))


def _names_in(sentence: str) -> Iterator[tuple[Node, tuple[int, str]]]:
    """The names and relations of a sentence, each with its place and its text."""
    for match in regex.finditer(_OWNED, sentence):
        relation = _relation(match)
        yield relation, (match.start(), relation_text(relation, match["owner"]))
    for match in regex.finditer(rf"\b(?:{_NAME})", sentence):
        name = name_of(match[0])
        if name[0] in _SELF or (len(name) == 1 and (name[0] in _NEVER or _is_stop_word(name[0]))):
            continue
        yield name, (match.start(), " ".join(match[0].split()[-len(name) :]))
    if user := regex.search(r"\b(?:[Tt]he user|User)\b(?!['’])", sentence):
        yield USER, (user.start(), "the user")


def _wanted_in(sentence: str, wanted: Collection[Node]) -> Iterator[tuple[Node, str]]:
    for name in wanted:
        words = "" if isinstance(name, Relation) or name == USER else " ".join(name)
        bounds = (r"(?<!\w)", r"(?!\w)") if words.upper() != words else ("", "")
        pattern = f"{bounds[0]}{regex.escape(words)}{bounds[1]}"
        # With a capital it is a name by itself, or a part of another one.
        if words and (match := regex.search(pattern, sentence)):
            yield name, match[0]


def relation_text(relation: Relation, owner: str | None = None) -> str:
    """How a relation is shown: "the user's older sister"."""
    whose = "the user" if relation.owner == USER else owner or " ".join(relation.owner).title()
    return " ".join(filter(None, [f"{whose}'s", relation.which, relation.relation]))


def _ties_in(sentence: str, memory_id: str) -> Iterator[Tie]:
    for match in _APART.finditer(sentence):
        yield Tie(name_of(match["one"]), name_of(match["other"]), same=False, memory=memory_id)
    if _DOUBT.search(sentence):
        return
    for match in _SAME.finditer(sentence):
        yield Tie(name_of(match["one"]), name_of(match["other"]), same=True, memory=memory_id)
    for match in _CALLED.finditer(sentence):
        owner = USER if match["self"] else name_of(match["owner"])
        yield Tie(owner, name_of(match["name"]), same=True, memory=memory_id)
    for pattern in _RELATED:
        for match in pattern.finditer(sentence):
            name = name_of(match["name"])
            if name[0] not in _NEVER and not _is_stop_word(name[0]):
                yield Tie(_relation(match), name, same=True, memory=memory_id)


def _decided(memory: Memory, written: dict[Node, str]) -> Iterator[Tie]:
    """What a memory of `Engine.same_name` decides, whose names are written down as it has them."""
    decision = memory.metadata.get(NAMES_METADATA)
    if not isinstance(decision, Mapping):
        return
    names = {node: str(each) for each in decision.get("names") or () if (node := node_of(str(each)))}
    if len(names) == 2:  # noqa: PLR2004 - A pair.
        written |= names
        reason = str(decision.get("reason") or "It was decided.")
        same = bool(decision.get("same"))
        one, other = names
        yield Tie(one, other, same=same, memory=memory.id, decided=True, reason=reason)


def _relation(match: regex.Match[str]) -> Relation:
    groups = match.groupdict()
    owner = USER if groups.get("self") else name_of(groups["owner"])
    word = groups["relation"].casefold()
    bare = word.removeprefix("ex-").removesuffix("-in-law")
    word = word.replace(bare, _USUAL.get(bare, bare))
    return Relation(USER if owner[0] in _SELF else owner, word, (groups.get("which") or "").casefold())


def _class_of(relation: Relation) -> str:
    word = relation.relation
    return word if word.startswith("ex-") or word.endswith("-in-law") else _CLASS.get(word, "loose")


@cache
def _is_stop_word(word: str) -> bool:
    return not query_terms(word)
