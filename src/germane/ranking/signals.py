"""Signals of different scales brought onto one: fusion, dialogue, identifiers and history, as columns."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from germane.errors import InvalidInput
from germane.kinds import CHANGELOG, COMMIT
from germane.model.context import Fused
from germane.model.memory import Memory
from germane.model.query import CandidateTable, texts_of

COSINE_FLOOR = 0.4
"""A best cosine below this is no match to speak of, so it doesn't count as 1."""

RRF_K = 60
"""The constant of Cormack, Clarke and Büttcher (SIGIR 2009)."""

_CHANCE = 8.0
"""Nats that words shared by chance reach: one word of two senses, such as one text in 3,000 has."""
_CERTAIN = 12.0
"""Nats that no chance explains: two words of that kind together, or one as rare as a name."""
_MOST = 0.5
"""A memory that shares more than this part of a query has to do with it, however short the query is."""

Key = TypeVar("Key", bound=Hashable)


def floored_semantic(cosine: float, *, top: float) -> float:
    """A cosine from 0 to 1: relative to the best cosine, or to `COSINE_FLOOR` if that is more."""
    return share_of(cosine, max(top, COSINE_FLOOR))


def share_of(value: float, whole: float) -> float:
    """The part of the whole that a value is, from 0 to 1; 0 for a value below 0."""
    # Anything below zero says "unlike", and that is worth as much as having nothing in common.
    return min(value / whole, 1.0) if value > 0 and whole > 0 else 0.0


def column_at(places: Sequence[int], values: ArrayLike, count: int) -> NDArray[np.float64]:
    """A column of `count` numbers with these values at these places; NaN elsewhere."""
    column = np.full(count, np.nan)
    column[places] = values
    return column


def shares(values: NDArray[np.float64], whole: float) -> NDArray[np.float64]:
    """The part of the whole that each value is, from 0 to 1; 0 for a value below 0, NaN for NaN.

    The whole is the best value, or what a good match has if that is more. Min-max scaling would make the
    best of a bad lot a 1; with that floor, 1 means a good match.
    """
    if whole <= 0:
        return np.where(np.isnan(values), np.nan, 0.0)
    # Adding nothing makes a zero below zero one above it.
    return np.clip(values, 0.0, whole) / whole + 0.0


def evidence(coverage: NDArray[np.float64], information: float) -> NDArray[np.float64]:
    """How much it says, from 0 to 1, that a memory has this share of a query of so many nats; NaN for NaN.

    One common word in common says nothing that the meaning doesn't say better: it may stand there in
    another sense. The words count fully where they are too rare for chance, or are the whole query.
    """
    by_rarity = (coverage * information - _CHANCE) / (_CERTAIN - _CHANCE)
    by_share = (coverage - _MOST) / (1.0 - _MOST)
    return np.clip(np.maximum(by_rarity, by_share), 0.0, 1.0) + 0.0


def check_finite(table: CandidateTable) -> None:
    """Raise InvalidInput for a signal that is no finite number."""
    for name, column in table.signals.items():
        for place in np.flatnonzero(np.isinf(column)).tolist():
            candidate = table[place]
            raise InvalidInput(
                f"The {name} signal of memory {candidate.memory.ref!r} is {candidate.signals[name]}, "
                "which can't be ranked. The store that found it has to return finite signals."
            )


def fuse_ranks(
    rankings: Mapping[str, Sequence[Key]], *, k: float = RRF_K, weights: Mapping[str, float] | None = None
) -> dict[Key, Fused]:
    """Fuse named rankings by reciprocal ranks: the sum of weight / (k + rank), best first.

    A ranking lists its keys best first, each once, and ranks count from 1. A key that a ranking doesn't list
    gets nothing from it. Weights are 1 unless given, by the name of the ranking. Ties keep the order in
    which the rankings name the keys. The method is that of Cormack, Clarke and Büttcher, "Reciprocal Rank
    Fusion outperforms Condorcet and individual Rank Learning Methods" (SIGIR 2009), with its k of 60. It
    knows places only, so its scores say nothing of how good a match is. Raises InvalidInput for a key that
    a ranking lists twice, a negative `k`, or a weight that is negative or of no ranking.
    """
    if not 0 <= k < math.inf:
        raise InvalidInput(
            f"k={k} can't fuse rankings. Give a number of 0 or more; the usual one is {RRF_K}."
        )
    weighs = _weights(rankings, weights)
    found: dict[Key, dict[str, float]] = {}
    for name, ranking in rankings.items():
        if len(set(ranking)) < len(ranking):
            raise InvalidInput(f"The ranking {name!r} lists a key twice. List each once, at its best place.")
        for rank, key in enumerate(ranking, start=1):
            found.setdefault(key, {})[name] = weighs[name] / (k + rank)
    return _best_first(found)


def fuse_scores(
    scores: Mapping[str, Mapping[Key, float]],
    *,
    floors: Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None,
) -> dict[Key, Fused]:
    """Fuse named lists of scores by the scores themselves, each list on a scale from 0 to 1, best first.

    Each score is divided by the best of its list, or by that list's floor if that is more. The floor is
    what a good match scores (0.4 for a cosine, say), so that the best of a bad lot isn't a 1. A score of 0
    or less adds nothing, and names no source. Weights are 1 unless given, by the name of the list. Ties
    keep the order in which the lists name the keys. Raises InvalidInput for a score or floor that is no
    finite number, or a weight or floor that is negative or of no list.
    """
    weighs = _weights(scores, weights)
    least = dict.fromkeys(scores, 0.0) | dict(_checked(scores, floors or {}, what="floor"))
    found: dict[Key, dict[str, float]] = {}
    for name, values in scores.items():
        whole = max([least[name], *values.values()])
        for key, value in values.items():
            if not math.isfinite(value):
                raise InvalidInput(
                    f"The score {value} of {key!r} in {name!r} can't be fused: it isn't finite."
                )
            sources = found.setdefault(key, {})
            if value > 0:
                sources[name] = weighs[name] * share_of(value, whole)
    return _best_first(found)


def _weights(lists: Mapping[str, object], weights: Mapping[str, float] | None) -> Mapping[str, float]:
    return dict.fromkeys(lists, 1.0) | dict(_checked(lists, weights or {}, what="weight"))


def _checked(lists: Mapping[str, object], given: Mapping[str, float], *, what: str) -> Mapping[str, float]:
    for name, value in given.items():
        if name not in lists or not 0 <= value < math.inf:
            raise InvalidInput(
                f"The {what} {value} of {name!r} can't be used: each is 0 or more, for one of {list(lists)}."
            )
    return given


def _best_first(found: Mapping[Key, Mapping[str, float]]) -> dict[Key, Fused]:
    fused = {key: Fused(score=math.fsum(each.values()), sources=each) for key, each in found.items()}
    return dict(sorted(fused.items(), key=lambda pair: pair[1].score, reverse=True))


# What makes a turn of dialogue relevant: itself, the turns around it, its session, and its speaker.
#
# Measured on labelled conversations, what surrounds a turn is worth more than any embedder. The
# signals weigh alike: a fit of their weights came out near equal, and equal weights did well on data
# that no choice was made on. A turn's parts are halved, so that a turn of a conversation and a
# memory that stands alone compare on one scale.

SPEAKER = 0.8
"""What a turn of the one person whom the question names gets, beside signals of up to 1."""

SHORT_TURN = 40
"""Tokens up to which a turn needs the turns around it as much as itself; a longer one needs them less."""

INSTRUCTION, PREFERENCE = 0.8, 0.4
"""What a user's turn gets that instructs the assistant for all that follows, and that states a preference."""

_HALF = 0.5
_PAIR = 2
_OF_SEVERAL = 2.0
"""What the words around a turn count where more than two speak, as against a dialogue."""
_WORD = re.compile(r"\w+")
_USER, _ASSISTANT = frozenset({"user", "human"}), frozenset({"assistant", "ai", "model"})
_I = frozenset({"i", "me", "my", "mine", "myself"})
_FROM_ASSISTANT = re.compile(
    r"\b(?:did|have|had) you\b|\byou(?:['’]ve| have| had)? (?:recommended|suggested|advised|proposed|said"
    r"|told|gave|given|mentioned|showed|shown|explained|wrote|written|listed|described|provided)\b",
    re.IGNORECASE,
)

_SPREAD_OUT = re.compile(
    r"\bhow many\b|\b(?:in (?:what|which)|the) (?:order|sequence)\b|\bsummar|\bcomprehensive|\bthroughout\b"
    r"|\bacross\b|\bover (?:the course|time)\b|\b(?:list|all) (?:all|of|the|every)\b"
    r"|\bhow (?:has|have|did)\b.*\b(?:develop|evolv|progress|chang)",
    re.IGNORECASE,
)
_LASTING = ("always", "ever", "from now on", "going forward", "future")
_INSTRUCTS = re.compile(
    r"(?:^|[.!?:\n]\s*)(?:please,?\s+)?(?:always|never|from now on|whenever|every time|going forward"
    r"|in (?:the )?future|do not ever|don['’]t ever)\b"
)
_PREFERS = re.compile(r"\bi(?:['’]d| would)?(?: \w+ly| always| much)? prefer\b|\bmy preference\b")


def are_turns(table: CandidateTable) -> NDArray[np.bool_]:
    """Which candidates are turns of dialogue: those with signals of the turns around them."""
    words, meaning = table.column("window_lexical"), table.column("window_semantic")
    return ~(np.isnan(words) & np.isnan(meaning))


def turn_parts(
    table: CandidateTable,
    alone: Mapping[str, NDArray[np.float64]],
    turns: NDArray[np.bool_],
    *,
    window_bound: float,
    question: str,
) -> dict[str, NDArray[np.float64]]:
    """The parts of each candidate's score; `alone` holds those that each has by itself.

    What is no turn keeps its own parts. For a turn they are: `lexical`; `window`, the words around it;
    `semantic`, half its own and half its window's (the longer the turn, the more its own words and meaning
    count, and the less those around it; where more than two speak, the words around count double, since a
    topic is then spread over the turns of several); `session`, the best turn of its session; `speaker`, when
    the question names one person and that person wrote it; and `instruction`, when a user instructs the
    assistant for all that follows, or states a preference. A question to a chat of a user and an assistant
    that asks for what is spread over its sessions ("how many", "in which order") has no best `session`.
    """
    words, near = table.column("window_lexical"), table.column("window_semantic")
    speakers = [str(one.metadata.get("speaker") or "") for one in table.memories]
    is_chat = not _USER.isdisjoint(each.casefold() for each in set(speakers))
    own = np.nan_to_num(alone["semantic"])
    near = shares(near, float(np.fmax.reduce(near, initial=COSINE_FLOOR)))
    lengths = np.array([one.renditions.full.tokens for one in table.memories], dtype=np.float64)
    around = SHORT_TURN / np.maximum(lengths, SHORT_TURN)
    itself = 1.0 - _HALF * around
    meaning = np.where(np.isnan(near), alone["semantic"], itself * own + _HALF * around * near)
    window = shares(words, float(np.fmax.reduce(words, initial=max(window_bound, 0.0))))
    of_several = np.zeros(len(table), np.bool_) if is_chat else _of_several(table.memories, speakers, turns)
    parts = {
        "lexical": np.where(turns, _HALF * (_HALF + itself) * alone["lexical"], alone["lexical"]),
        "semantic": np.where(turns, _HALF * meaning, alone["semantic"]),
        "window": _HALF * around * window * np.where(of_several, _OF_SEVERAL, 1.0),
        "speaker": _by_named_speaker(speakers, question, turns),
    }
    if is_chat:
        parts["instruction"] = _by_instruction(table.memories, turns)
    if not (is_chat and _SPREAD_OUT.search(question)):
        own_words = np.nan_to_num(alone["lexical"])
        parts["session"] = _best_of_sessions(table.memories, _HALF * (own_words + own), turns)
    return parts


def _of_several(
    memories: Sequence[Memory], speakers: Sequence[str], turns: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Which candidates are turns of a session in which more than two speak, as in a meeting."""
    places: list[int] = np.flatnonzero(turns).tolist()
    of_session: dict[str, set[str]] = {}
    for place in places:
        of_session.setdefault(memories[place].scope.value, set()).add(speakers[place])
    found = np.zeros(len(memories), dtype=np.bool_)
    found[places] = [len(of_session[memories[place].scope.value] - {""}) > _PAIR for place in places]
    return found


def _best_of_sessions(
    memories: Sequence[Memory], values: NDArray[np.float64], turns: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """For each turn half of the greatest value in its session."""
    places: list[int] = np.flatnonzero(turns).tolist()
    best: dict[str, float] = {}
    for place in places:
        session = memories[place].scope.value
        best[session] = max(best.get(session, 0.0), values.item(place))
    halves = [_HALF * best[memories[place].scope.value] for place in places]
    return column_at(places, halves, len(memories))


def _by_named_speaker(
    speakers: Sequence[str], question: str, turns: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """What counts for a turn of the one speaker whom the question names."""
    named = named_speaker(set(speakers), question)
    spoken = np.array([named is not None and each == named for each in speakers], dtype=np.bool_)
    return np.where(turns & spoken, _HALF * SPEAKER, np.nan)


def _by_instruction(memories: Sequence[Memory], turns: NDArray[np.bool_]) -> NDArray[np.float64]:
    """What counts for a user's turn that holds whatever the question is: an instruction or a preference."""
    found = np.full(len(memories), np.nan)
    for place in np.flatnonzero(turns).tolist():
        memory = memories[place]
        if str(memory.metadata.get("speaker")).casefold() not in _USER:
            continue
        # Looking for a word anywhere is many times faster than the expressions, which few turns need.
        plain = memory.content.lower()
        if any(word in plain for word in _LASTING) and _INSTRUCTS.search(plain):
            found[place] = _HALF * INSTRUCTION
        elif "prefer" in plain and _PREFERS.search(plain):
            found[place] = _HALF * PREFERENCE
    return found


def named_speaker(speakers: Collection[str], question: str) -> str | None:
    """The one speaker whom a question names, in full or by the first word; None for several.

    In a log of a user and an assistant, "I" and "my" name the user, and "you recommended" and the like the
    assistant. A question with both ("what did you say about my ...") names neither.
    """
    words = {word.casefold() for word in _WORD.findall(question)}
    named = [each for each in speakers if (first := _WORD.search(each)) and first[0].casefold() in words]
    if not named:
        of_user, of_assistant = not words.isdisjoint(_I), _FROM_ASSISTANT.search(question) is not None
        if of_user is not of_assistant:
            named = [each for each in speakers if each.casefold() in (_USER if of_user else _ASSISTANT)]
    return named[0] if len(named) == 1 else None


# Ranks first what holds an identifier of the question verbatim: a path, a ticket, the name of an error.
#
# The index knows identifiers whole and in parts. A short text that shares the parts may score more than a
# long one with the whole, so that neither words nor meaning tell `adr-015` from `adr-016`.

FEW_HOLDERS = 5
"""An identifier that stands in more memories than this names none of them."""

_IDENTIFIER_MOST, _SHORTEST, _READ = 8, 4, 4_000
_TOKEN = re.compile(r"[^\s\"'`<>()\[\]{},;|]+")
_IDENTIFIER = re.compile(
    r"\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?"  # 10.0.4.17
    r"|(?=.*[^\W\d_])(?:"
    r"[\w.@~+-]*(?:/[\w.@~+-]+)+\.\w+|(?:[\w.@~+-]*/){2,}[\w.@~+-]+"  # A path.
    r"|[\w-]+(?:\.[\w-]+)*(?:_|::|#)[\w.:#-]*\w"  # refund_worker, ERR_4312, Engine::open, api#12
    r"|\w+(?:[.-]\w+)*[.-]\w*\d\w*(?:[.-]\w+)*"  # adr-015, PAY-1042, v2.10.3
    r"|[\w-]+(?:\.[\w-]+)*\.[a-z]{2,5}\d?"  # config.yaml
    r"|[^\W\d_]+\d\w{3,}|[a-z]+(?:[A-Z][a-z0-9]+)+|(?=[0-9a-f]*\d)[0-9a-f]{7,40}"  # ERR4312, loadAll, a hash
    r")"
)


def identifiers_in(question: str) -> tuple[str, ...]:
    """The identifiers that a question names, in the order of the first `_MOST` of them."""
    tokens = (match[0].strip(".:!?*…") for match in _TOKEN.finditer(question[:_READ]))
    found = dict.fromkeys(
        token for token in tokens if len(token) >= _SHORTEST and _IDENTIFIER.fullmatch(token)
    )
    return tuple(found)[:_IDENTIFIER_MOST]


def shares_of_identifiers(
    memories: Sequence[Memory], question: str, *, among: NDArray[np.bool_] | None = None
) -> dict[int, float]:
    """By the place of a memory the share of the question's identifiers that it holds verbatim.

    Only those identifiers count that stand in at most `FEW_HOLDERS` of the memories. `among` says by place
    which memories may hold any, so that no other's text is read; None for all of them.
    """
    named = identifiers_in(question)
    places = range(len(memories)) if among is None else np.flatnonzero(among).tolist()
    texts = texts_of([memories[place] for place in places]) if named else []
    counts: dict[int, int] = {}
    for identifier in named:
        whole = re.compile(rf"(?<![\w/])(?<!\w[.-]){re.escape(identifier)}(?!\w|[/.-]\w)", re.IGNORECASE)
        plain = identifier.lower()  # Looking for it anywhere is many times faster than the expression.
        holders = [
            place
            for place, (content, subject) in zip(places, texts, strict=True)
            if (plain in content.lower() and whole.search(content)) or (subject and whole.search(subject))
        ]
        if len(holders) <= FEW_HOLDERS:
            for place in holders:
                counts[place] = counts.get(place, 0) + 1
    return {place: count / len(named) for place, count in counts.items()}


# Ranks commits and releases by whether a question asks for history.
#
# A repository has thousands of commits, whose short messages share words with any question. They say what was
# changed once, and not what holds. A changelog says what each release changed, in words that a question on
# releases seldom has.

_ORDINARY, _REQUESTED, _BY_AUTHOR, _RELEASED = -0.7, 0.3, 1.0, 1.0
"""What is added to the score of a commit or a release, in parts of it, by what a question asks for."""
_HISTORY_READ = 2_000
"""Characters of a question that are read."""

_CHANGE = (
    r"(?:add|alter|break|broke|broken|chang|commit|delet|drop|edit|fix|introduc|land|merg|mov|remov|renam"
    r"|replac|revert|rewr|rewor|switch|touch|updat|wrote|written|writ)\w*"
)
_HISTORY = re.compile(
    r"\b(?:commits?|committed|git (?:log|blame|history)|history of|(?:change|commit|version) history"
    rf"|since when|when (?:did|was|were|has|have)\b.*\b{_CHANGE}|who\b.*\b{_CHANGE}"
    rf"|what (?:did|has|have) (?:\w+ ){{1,3}}{_CHANGE}"
    r"|what(?:'s| has| have| was| were)?(?: been)? changed|what changes"
    r"|(?:last|latest|recent|recently) chang\w*"
    r"|how (?:did|has|have)\b.*\b(?:change|evolve)\w*)\b",
    re.IGNORECASE | re.DOTALL,
)
_WHICH = (
    r"(?:all|any|current|each|earlier|earliest|every|first|last|latest|most recent|newest|next|old|older"
    r"|oldest|past|previous|recent|this|what|which)"
)
_RELEASES = re.compile(
    rf"\b(?:change ?logs?|release notes?|{_WHICH}(?: \w+)? releases?|releases(?= (?:changed|brought|added))"
    rf"|{_CHANGE}(?: \w+)? (?:by|in|since|with) (?:\w+ )?(?:releases?|versions?)|in releases? \d[\w.]*"
    rf"|{_WHICH}(?: \w+)? versions?(?= .*\b{_CHANGE})|what(?:'s| is| was) new in (?:the )?(?:\w+ )?"
    r"(?:releases?|versions?))\b",
    re.IGNORECASE | re.DOTALL,
)
_TOPICLESS = re.compile(
    rf"\b(?:{_CHANGE}|{_WHICH}|releases?|released|versions?|changelogs?|notes?|new|news|breaking|recently"
    r"|bring|brings|brought|contain\w*|include\w*|give|show|list|summari\w+|tell|please|say|says|said|few"
    r"|one|two|three|four|five)\b",
    re.IGNORECASE,
)
"""What a question on releases may say without naming a topic."""

_HISTORY_NAMES = re.compile(
    r"(?:(?<=\bby )|(?<=\bdid )|(?<=\bfrom )|(?<=\bhas )|(?<=[^.!?] )(?=[^\W\d_a-z]))\w+"
)
"""Words that may be an author's name: those after such words, and capitalised ones inside a sentence."""


def asks_for_history(question: str) -> bool:
    """Whether a question asks when, by whom or how something was changed; English only."""
    return _HISTORY.search(question[:_HISTORY_READ]) is not None


def rest_of_releases(question: str) -> str | None:
    """What a question on releases says beside that; None for any other question. English only."""
    if _RELEASES.search(question[:_HISTORY_READ]) is None:
        return None
    return _TOPICLESS.sub(" ", question)


def history_factors(memories: Iterable[Memory], question: str) -> dict[int, float]:
    """By the place of each commit, what is added to its score for being one, in parts of it.

    It is more for those of an author whom a question on history names. The same for releases where the
    question asks for them.
    """
    weighed = {place: memory for place, memory in enumerate(memories) if memory.kind in (COMMIT, CHANGELOG)}
    if not weighed:
        return {}
    history, released = asks_for_history(question), rest_of_releases(question) is not None
    names = (
        {name.casefold() for name in _HISTORY_NAMES.findall(question[:_HISTORY_READ])}
        if history
        else frozenset[str]()
    )
    factors: dict[int, float] = {}
    for place, memory in weighed.items():
        if memory.kind == COMMIT:
            by = names and not names.isdisjoint(str(memory.metadata.get("author")).casefold().split())
            factors[place] = _BY_AUTHOR if by else _REQUESTED if history else _ORDINARY
        elif released:
            factors[place] = _RELEASED
    return factors
