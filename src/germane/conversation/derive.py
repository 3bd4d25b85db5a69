"""What to search a conversation for, where the last prompt alone says too little.

Level: ranking (imports model and conversation). Pure: no model is asked. What a text's terms are and
how rare each is comes in as functions, since that is the other wing's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import regex

from germane.conversation.groups import groups_of, opens_group
from germane.model.conversation import DerivedQuery
from germane.model.message import Group, Message, Role

__all__ = ["ENOUGH", "Rarity", "TermsOf", "derive_query", "prompt_of"]

TermsOf: TypeAlias = Callable[[str], Sequence[str]]
"""The distinct terms that a text asks an index for; none for a text that says nothing."""

Rarity: TypeAlias = Callable[[Sequence[str]], Sequence[float]]
"""How rare each of these terms is in the language at large: natural logarithms, 0 for what all texts have."""

ENOUGH: Final = 11.0
"""What a prompt's terms say together from which on it needs nothing beside it: about two telling words."""

_RARE: Final = 5.0  # Below it a word is common talk: it says nothing of the topic.
_MOST: Final = 6
_REACH: Final = 3
_FADES: Final = 0.5  # From each exchange to the one before it.
_OF_AN_ANSWER: Final = 0.6
_OF_A_NAME: Final = 1.5
# Words that begin with a capital but begin no sentence, and what has a digit, an underscore, a
# slash or a capital inside.
_NAME = regex.compile(
    r"(?<=[\p{L}\p{N},;:]\s)\p{Lu}[\p{L}\p{M}\p{N}'’-]+"
    r"|\b[\w./-]*(?:\p{Ll}\p{Lu}|\p{L}\d|\d\p{L}|_|\w/\w|\w\.\w)[\w./-]*"
)


def derive_query(
    messages: Sequence[Message],
    *,
    terms_of: TermsOf,
    rarity: Rarity,
    enough: float = ENOUGH,
    most: int = _MOST,
    reach: int = _REACH,
) -> DerivedQuery:
    """The terms of the latest prompt and, where they say less than `enough`, those of what it goes on about.

    Carried are at most `most` terms from up to `reach` exchanges before it, back to the first whose prompt
    stood on its own: rare ones rather than common, names above all, near ones rather than far, what the
    user said rather than the answer. What came from memory is never carried.
    """
    groups = groups_of(messages)
    prompt = prompt_of(groups[-1]) if groups else ""
    own = tuple(terms_of(prompt))
    if sum(rarity(own)) >= enough:
        return DerivedQuery(prompt=prompt, own=own)
    weights: dict[str, float] = {}
    fade = 1.0
    for group in reversed(groups[:-1][-reach:]):
        asked = prompt_of(group)
        answered = "\n".join(each.own_text for each in group if each.role is Role.ASSISTANT)
        for text, share in ((asked, fade), (answered, fade * _OF_AN_ANSWER)):
            for term, weight in _weighed(text, terms_of, rarity).items():
                weights[term] = max(weights.get(term, 0.0), weight * share)
        if sum(rarity(tuple(terms_of(asked)))) >= enough:
            break
        fade *= _FADES
    for term in own:
        weights.pop(term, None)
    carried = sorted(weights, key=lambda term: (-weights[term], term))[:most]
    return DerivedQuery(prompt=prompt, own=own, carried=tuple(carried))


def prompt_of(group: Group | Iterable[Message]) -> str:
    """What the user said in an exchange, in words of its own."""
    return "\n".join(
        each.own_text for each in group if each.role is Role.USER and (opens_group(each) or each.own_text)
    )


def _weighed(text: str, terms_of: TermsOf, rarity: Rarity) -> Mapping[str, float]:
    """The rare terms of a text, each with how much it says."""
    terms = tuple(terms_of(text))
    named = {term for name in _NAME.findall(text) for term in terms_of(name)}
    return {
        term: rare * (_OF_A_NAME if term in named else 1.0)
        for term, rare in zip(terms, rarity(terms), strict=True)
        if rare >= _RARE or term in named
    }
