"""What a proposal does to what is known: it is new, confirms, revises, contradicts, or adds nothing.

Pure. An extractor proposes and these rules decide, by the words of both texts and by their vectors: vectors
alone can't tell Thursday from Friday.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import regex

from germane.extractors.changes import Change, change_of, on_other_topics, opposes, says_change, stays
from germane.extractors.conflicts import CONTRADICTS, REVISES, Remark, conflict, is_comparable
from germane.extractors.references import is_state
from germane.extractors.statements import with_subject
from germane.lifecycle import NEARLY_IDENTICAL, is_trusted_less
from germane.model.extraction import Proposal, ProposalOutcome
from germane.model.memory import Memory, Status
from germane.model.text import text_cache
from germane.ranking.similarity import could_be_same, normalised, words_of
from germane.retrieval.tokenizer import query_terms

_DENIES: Final = regex.compile(
    r"\b(?:not|never|no longer|any ?more|any longer|stop(?:ped|s)?|quit|gave up|given up|without|cannot|"
    r"\w+n['’]t|hates?|dislikes?|detests?)\b",
    regex.IGNORECASE,
)
_ENDS: Final = regex.compile(
    r"\b(?:no longer|any ?more|any longer|stop(?:ped|s)?|quit|gave up|given up)\b", regex.IGNORECASE
)
_FEELING: Final = (
    "love like enjoy adore prefer hate dislike detest stand fan fond longer anymore more stop quit give gave "
    "given up really very much always never user also now still can cannot"
)
_USER: Final = "user"
_STATEMENT: Final = 300
"""Characters of a memory that states one thing; a longer one isn't compared by likelihood."""
_FRAME: Final = 2
"""The words that two statements with different names share at least, so that one replaces the other."""
_USUAL: Final = {
    "named": "name is",
    "works": "works at",
    "cannot": "can't",
    "owns": "has",
    "age": "",
    "set": "is",
}
_SAME_WORDS: Final = regex.compile(
    r"(?P<named>'s name is\b|\b(?:is |are )?(?:called|named)\b)|\b(?P<works>works? (?:for|at))\b"
    r"|\b(?P<cannot>cannot|can not)\b|\b(?P<owns>owns?|has got)\b|\b(?P<age>years old)\b"
    r"|\b(?P<set>is (?:scheduled|set|planned) for|is on|takes place on|: )"
)
_WORDS: Final = regex.compile(r"[\p{L}\p{M}\p{N}][\p{L}\p{M}\p{N}'-]*(?:[.,:]\p{N}+)*")
_LEFT_OUT: Final = frozenset(("a", "an", "the", "is", "are", "on", "at", "every", "each", "our"))
_WEEKDAY: Final = regex.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?")
_DAY_FIRST: Final = regex.compile(
    r"\b(\d{1,2})(?:st|nd|rd|th)?(?: of)? ((?:january|february|march|april|may|june|july|august|september|"
    r"october|november|december)\b)"
)
_VALUE: Final = regex.compile(r"(?<=\S )\p{Lu}[\p{L}\p{M}\p{N}'’-]*|\d+(?:[.,:]\d+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a proposal does: the outcome, the reason, and the known memory that it concerns, if any."""

    outcome: ProposalOutcome
    reason: str
    target: Memory | None = None


def verdict(
    new: Memory,
    proposal: Proposal,
    *,
    keyed: Memory | None = None,
    named: Memory | None = None,
    near: Sequence[tuple[Memory, float]] = (),
    language: str = "english",
    user: str | None = None,
) -> Verdict:
    """What becomes of a proposal, given as the memory `new` that it would be.

    `keyed` is the current memory of its subject and attribute, `named` the one that it says it replaces, and
    `near` the active memories most like it, each with its cosine (0 without an embedder), the most alike
    first. Whoever is trusted less replaces nobody. `user` is the user's name, where it is known: what a
    memory says of that name is a statement about the user.
    """
    found = _verdict(
        _of_user(new, user),
        proposal,
        keyed=keyed and _of_user(keyed, user),
        named=named and _of_user(named, user),
        near=[(_of_user(other, user), cosine) for other, cosine in near],
        language=language,
    )
    known = {each.id: each for each in (keyed, named, *(other for other, _ in near)) if each is not None}
    return found if found.target is None else replace(found, target=known[found.target.id])


def clash(new: Memory, remark: Remark, near: Sequence[tuple[Memory, float]]) -> Verdict | None:
    """What a remark does to the one memory near that it most likely speaks against; None where it's unlikely.

    `near` have their cosines by the bundled embedder, the most alike first.
    """
    found = [
        (conflict(remark, with_subject(other.content), cosine=cosine, rank=rank), other)
        for rank, (other, cosine) in enumerate(near)
        if len(other.content) <= _STATEMENT
        and is_state(other.content)
        and is_comparable(remark, other.content)
        and _about_one(new, other)
    ]
    likely, other = max(found, key=lambda each: each[0].likelihood, default=(None, None))
    if likely is None or other is None or likely.likelihood < CONTRADICTS:
        return None
    if likely.replaces >= REVISES:
        return _revised(new, other, f"It replaces this memory, with a likelihood of {likely.replaces:.0%}.")
    return _contradicts(
        other, f"It speaks against this memory, with a likelihood of {likely.likelihood:.0%}."
    )


def _of_user(memory: Memory, user: str | None) -> Memory:
    """A memory as it reads with "the user" for the user's name, or for no subject: "Ann lives in Oslo"."""
    content, is_theirs = with_subject(memory.content), False
    if user is not None:
        name = regex.escape(user)
        content = regex.sub(rf"^{name}(?=['’]s\b| )", "The user", content, flags=regex.IGNORECASE)
        is_theirs = memory.subject is not None and memory.subject.casefold() == user.casefold()
    if content == memory.content and not is_theirs:
        return memory
    return memory.evolve(content=content, subject=_USER if is_theirs else memory.subject)


def _verdict(
    new: Memory,
    proposal: Proposal,
    *,
    keyed: Memory | None,
    named: Memory | None,
    near: Sequence[tuple[Memory, float]],
    language: str,
) -> Verdict:
    same = _same(new, keyed, near, language)
    is_changed = same is not None and named is not None and same.id == named.id
    if same is not None and (not is_changed or normalised(new.content) == normalised(same.content)):
        return _known(new, same)
    if named is not None:
        related = _related(new, named, language)
        return _revised(new, named, "It says that it replaces this memory.", related=related)
    if keyed is not None:
        another = None if proposal.attribute is None else _another(new, keyed, proposal, language)
        if another is not None:
            return another
        reason = f"{proposal.attribute} has one value at a time, and a new one was stated."
        if proposal.attribute is None:
            reason = "It was replaced, and is stated again."
        return _revised(new, keyed, reason)
    for other, _ in near:
        found = _against(new, other, proposal, language) if _about_one(new, other) else None
        if found is not None:
            return found
    return Verdict(outcome=ProposalOutcome.NEW, reason="Nothing known says it or speaks against it.")


def _same(
    new: Memory, keyed: Memory | None, near: Sequence[tuple[Memory, float]], language: str
) -> Memory | None:
    """The known memory that says the same, if there is one."""
    if keyed is not None and _says_same(new, keyed, 0.0, language, keyed=True):
        return keyed
    return next((other for other, cosine in near if _says_same(new, other, cosine, language)), None)


def _known(new: Memory, same: Memory) -> Verdict:
    nothing, confirmed = ProposalOutcome.NOTHING, ProposalOutcome.CONFIRMED
    if same.status is Status.FORGOTTEN:
        return Verdict(outcome=nothing, reason="It was forgotten.", target=same)
    if same.source == new.source and new.source is not None:
        return Verdict(outcome=nothing, reason="It was learned from this message.", target=same)
    return Verdict(outcome=confirmed, reason="A known memory says the same.", target=same)


def _against(new: Memory, other: Memory, proposal: Proposal, language: str) -> Verdict | None:
    """What becomes of a proposal that speaks against a memory of the same subject; None where it doesn't."""
    attribute, quoted = proposal.attribute, "\n".join(each.text for each in proposal.quotes)
    is_denial = _opposes(new.content, other.content, language)
    ends = is_denial and bool(_ENDS.search(new.content) or _ENDS.search(other.content))
    if not is_denial and attribute is not None and _other_value(new, other, language):
        return _another(new, other, proposal, language) or _revised(
            new, other, f"It has another value of {attribute}."
        )
    change = None
    if not is_denial:
        about = new.subject or ""
        change = change_of(new.content, other.content, subject=about, language=language, quoted=quoted)
        if change is None and _is_replaced(new, other, quoted, language):
            change = Change("value", stated=True)
    if change is not None and change.stated:
        return _revised(new, other, f"It says that the {change.value} has changed.")
    if change is not None:
        return _contradicts(other, f"A known memory has another {change.value}.")
    if not is_denial and not opposes(new.content, other.content, language):
        return None
    if ends or (not is_denial and says_change(f"{new.content}\n{quoted}", language)):
        return _revised(new, other, "It says that this ended or began again.")
    return _contradicts(other, "A known memory says the opposite.")


def _is_replaced(new: Memory, other: Memory, quoted: str, language: str) -> bool:
    """Whether a statement says that there is another name now, in at least two of the same words."""
    if new.kind == "preference" or not says_change(f"{new.content}\n{quoted}", language):
        return False
    shared = _without(other, _values(other.content), language)
    return len(shared) >= _FRAME and _other_value(new, other, language)


def _another(new: Memory, other: Memory, proposal: Proposal, language: str) -> Verdict | None:
    """The contradiction of a new value of what one has for good; None where it may change or is corrected."""
    words = "\n".join((new.content, *(each.text for each in proposal.quotes)))
    if not (stays(new.content, language) and stays(other.content, language)) or says_change(words, language):
        return None
    return _contradicts(other, f"A known memory has another {proposal.attribute}, which stays the same.")


def _revised(new: Memory, other: Memory, reason: str, *, related: bool = True) -> Verdict:
    if new.created_at < other.created_at and new.valid_from is None:
        return Verdict(
            outcome=ProposalOutcome.NOTHING, reason="A later statement of it is known.", target=other
        )
    if not is_trusted(new, other):
        return _contradicts(other, f"It is the word of {new.trust}, and this memory that of {other.trust}.")
    if not related:
        return _contradicts(other, "It names a memory that is about something else.")
    return Verdict(outcome=ProposalOutcome.REVISED, reason=reason, target=other)


def _contradicts(other: Memory, reason: str) -> Verdict:
    return Verdict(outcome=ProposalOutcome.CONTRADICTED, reason=reason, target=other)


def is_trusted(new: Memory, other: Memory) -> bool:
    """Whether `new` is trusted as much as `other`, so that it may count against it."""
    return not is_trusted_less(new, other)


def _about_one(new: Memory, other: Memory) -> bool:
    if new.subject is None or other.subject is None:
        return True
    return new.subject.casefold() == other.subject.casefold()


def _says_same(new: Memory, other: Memory, cosine: float, language: str, *, keyed: bool = False) -> bool:
    """Whether two memories state the same, of the same subject and of kinds that age alike."""
    if not _about_one(new, other):
        return False
    if normalised(new.content) == normalised(other.content):
        return True
    if cosine > NEARLY_IDENTICAL and could_be_same(new.content, other.content):
        return True
    if language == "english" and _wording(new.content) == _wording(other.content):
        return True
    if keyed:
        mine, theirs = _values(new.content), _values(other.content)
        return bool(mine) and mine <= theirs and _denies(new.content) == _denies(other.content)
    alike = new.kind == other.kind == "preference"
    return (
        alike
        and _denies(new.content) == _denies(other.content)
        and bool(core := _core(new.content, language))
        and core == _core(other.content, language)
        and _values(new.content) == _values(other.content)
    )


@text_cache(10_000)
def _wording(text: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """The words of a statement in their order, and apart from them its weekdays, which stand anywhere.

    Words that state the same are one, and articles and the like are left out: "the dog is called Rex" and
    "the dog's name is Rex", "on 3 May" and "on May 3".
    """
    plain = _SAME_WORDS.sub(_usual, text.casefold().replace("’", "'").rstrip(" .!"))
    plain = _DAY_FIRST.sub(r"\2 \1", plain)
    words = [word for word in _WORDS.findall(plain) if word not in _LEFT_OUT]
    days = frozenset(word for word in words if _WEEKDAY.fullmatch(word))
    return tuple(_stem(word) for word in words if word not in days), days


def _usual(match: regex.Match[str]) -> str:
    return _USUAL[next(name for name, found in match.groupdict().items() if found)]


def _stem(word: str) -> str:
    """The stem of a word; a figure stays whole, since 9:45 isn't 9:00."""
    return word if any(map(str.isdigit, word)) else next(iter(query_terms(word)), word)


def _opposes(one: str, other: str, language: str) -> bool:
    """Whether one text denies what the other states: the same words but for the denial."""
    core = _core(one, language)
    return bool(core) and core == _core(other, language) and _denies(one) != _denies(other)


def _denies(text: str) -> bool:
    return _DENIES.search(text) is not None


def _core(text: str, language: str) -> frozenset[str]:
    """The terms of a text without denials and words of liking."""
    bare = _DENIES.sub(" ", text)
    feeling = set(query_terms(_FEELING, language=language))
    return frozenset(query_terms(bare, language=language)) - feeling


def _values(text: str) -> frozenset[str]:
    """The names and figures of a text after its first word."""
    return frozenset(word for found in _VALUE.findall(text) for word in words_of(found))


def _other_value(new: Memory, other: Memory, language: str) -> bool:
    """Whether two memories say the same with other names or figures: "lives in Rome", "lives in Oslo"."""
    if on_other_topics(new.content, other.content, language):
        return False
    mine, theirs = _values(new.content), _values(other.content)
    if not mine or not theirs or mine & theirs or _denies(new.content) != _denies(other.content):
        return False
    rest = _without(other, theirs, language)
    return bool(rest) and rest <= _without(new, mine, language)


def _without(memory: Memory, values: frozenset[str], language: str) -> frozenset[str]:
    """The terms of a memory without its values and its subject."""
    terms = frozenset(query_terms(memory.content, language=language))
    about = f"{memory.subject or ''} user {' '.join(values)}"
    return terms - frozenset(query_terms(about, language=language))


def _related(new: Memory, other: Memory, language: str) -> bool:
    """Whether two memories are about the same thing: of one subject, with a telling word in common."""
    if not _about_one(new, other):
        return False
    mine = frozenset(query_terms(new.content, language=language)) - {"user"}
    theirs = frozenset(query_terms(other.content, language=language)) - {"user"}
    return bool(mine & theirs) or (new.key is not None and new.key == other.key)
