"""Labelled dialogues, and how well what was learned from one agrees with its labels.

`data/dialogues-dev.jsonl` has 4,140 dialogues and `data/dialogues-test.jsonl` 1,168, all written for this
benchmark. Rules are developed on `dev`; nothing may be fitted to `test`. Once anybody has read what rules get
wrong in `test`, it moves into `dev`, and a new one is written before the rules change. Each line is an
object:

- `messages`: pairs of role and text. The role `recalled` is context from memory inside a user's message.
- `known`: the memories before the dialogue. `at`: its day.
- `facts`: what is worth learning. A learned text states a fact if it has all its `keys`, each a list of
  alternatives that begin a word. `messages` are the numbers of those that support it, from 1; a key may stand
  in the question before it instead. `kinds` are the memory kinds that fit. A fact `replaces` or
  `contradicts` an earlier statement that has those keys.
- `may`: keys of what is true but passing or of little worth. Learning it is neither right nor wrong.
- `never`: keys of what must not be learned, and why.
- `stays`: keys of memories of `known` that a reader could wrongly think replaced.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from germane import Message
from germane.conversation import MessageRole, TextPart
from germane.model.conversation import ToolResult

Keys: TypeAlias = tuple[tuple[str, ...], ...]
"""All of these must stand in a text; of each, one alternative is enough."""

DATA = Path(__file__).parent / "data"
SETS = ("dev", "test")
UNLABELLED = "not stated"
"""The reason why a learned text is wrong that agrees with no label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """A fact that is worth learning; see the module."""

    keys: Keys
    messages: tuple[int, ...]
    kinds: tuple[str, ...] = ()
    replaces: Keys = ()
    contradicts: Keys = ()
    valid_from: str | None = None
    valid_until: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """A labelled dialogue; see the module. `messages` have ids "1", "2", and so on."""

    id: str
    topic: str
    at: datetime
    messages: tuple[Message, ...]
    known: tuple[str, ...] = ()
    facts: tuple[Expected, ...] = ()
    may: tuple[Keys, ...] = ()
    never: tuple[tuple[Keys, str], ...] = ()
    stays: tuple[Keys, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """A text after the run: whether it is current, whether it stands beside a contradiction, and its sources.

    `messages` are the numbers of the cited ones; `days` its first and last day in ISO format, empty where
    open. `before` marks what was known before the dialogue, which wasn't learned.
    """

    content: str
    before: bool = False
    messages: tuple[int, ...] = ()
    kind: str = "fact"
    current: bool = True
    contradicted: bool = False
    days: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The counts of one dialogue, or of many as their sum.

    `right` learned texts state a fact, and `wrong` ones neither a fact nor what may be learned; a text with
    the keys of something that must not be learned is wrong. `cited` right texts cite a message that supports
    them. `found` of the `facts` were learned, `fitting` of the `typed` found ones with a fitting kind, and
    `dated` of the `dates` of found facts were set. `revised` of the `updates` have the new value as the only
    current one; `learned_updates` counts those whose new value was learned. `shown` of the `conflicts` were
    marked as contradictions. Of the memories that have to `stay`, `current` ones still are. `traps` counts
    the things not to learn, `sprung` those learned.
    """

    dialogues: int = 0
    learned: int = 0
    right: int = 0
    wrong: int = 0
    cited: int = 0
    facts: int = 0
    found: int = 0
    typed: int = 0
    fitting: int = 0
    dates: int = 0
    dated: int = 0
    updates: int = 0
    learned_updates: int = 0
    revised: int = 0
    conflicts: int = 0
    shown: int = 0
    stay: int = 0
    current: int = 0
    traps: int = 0
    sprung: int = 0
    dialogues_with_wrong: int = 0
    wrong_texts: tuple[tuple[str, str], ...] = ()
    missed: tuple[str, ...] = ()
    reasons: Mapping[str, int] = field(default_factory=dict)

    @property
    def precision(self) -> float:
        """The share of right texts among right and wrong ones; 1 if there are none."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        """The share of the facts that were learned; 1 if there are none."""
        return self.found / self.facts if self.facts else 1.0


def dialogues(name: str) -> tuple[Dialogue, ...]:
    """The dialogues of a set, "dev" or "test"."""
    lines = (DATA / f"dialogues-{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(dialogue_of(json.loads(line)) for line in lines)


def dialogue_of(fields: Mapping[str, Any]) -> Dialogue:
    """The dialogue of one line."""
    at = datetime.fromisoformat(fields["at"]).replace(hour=9, tzinfo=UTC)
    return Dialogue(
        id=fields["id"],
        topic=fields["topic"],
        at=at,
        messages=tuple(
            message_of(number, role, text, at) for number, (role, text) in enumerate(fields["messages"], 1)
        ),
        known=tuple(fields.get("known", ())),
        facts=tuple(map(_expected, fields.get("facts", ()))),
        may=tuple(map(_keys, fields.get("may", ()))),
        never=tuple((_keys(each["keys"]), each["why"]) for each in fields.get("never", ())),
        stays=tuple(map(_keys, fields.get("stays", ()))),
    )


def message_of(number: int, role: str, text: str, at: datetime) -> Message:
    """A message of a dialogue, a minute after the one before it."""
    parts: tuple[TextPart | ToolResult, ...] = (TextPart(text=text, recalled=role == "recalled"),)
    if role == "tool":
        parts = (ToolResult(call_id=f"call-{number}", content=(TextPart(text=text),)),)
    return Message(
        role=MessageRole.USER if role == "recalled" else MessageRole(role),
        parts=parts,
        id=str(number),
        seq=number,
        created_at=at + timedelta(minutes=number),
    )


def has(text: str, keys: Keys) -> bool:
    """Whether a text has all keys: of each, one alternative at the beginning of a word, in any case."""
    folded = text.casefold()
    return bool(keys) and all(any(_at_word(each).search(folded) for each in one) for one in keys)


def score(dialogue: Dialogue, learned: Sequence[Learned]) -> Score:
    """Compare what was learned from a dialogue with its labels."""
    new = [each for each in learned if not each.before]
    judged = [(each, *judged_text(dialogue, each.content)) for each in new]
    right = [(each, facts) for each, facts, _ in judged if facts]
    wrong = [(why, each.content) for each, _, why in judged if why]
    found = {place: [each for each, facts in right if place in facts] for place in range(len(dialogue.facts))}
    places = [place for place, texts in found.items() if texts]
    typed = [place for place in places if dialogue.facts[place].kinds]
    dates = [(place, side) for place in places for side in (0, 1) if _day(dialogue.facts[place], side)]
    updates = [place for place, fact in enumerate(dialogue.facts) if fact.replaces]
    conflicts = [place for place, fact in enumerate(dialogue.facts) if fact.contradicts]
    return Score(
        dialogues=1,
        learned=len(new),
        right=len(right),
        wrong=len(wrong),
        cited=sum(
            any(set(each.messages) & set(dialogue.facts[place].messages) for place in facts)
            for each, facts in right
        ),
        facts=len(dialogue.facts),
        found=len(places),
        typed=len(typed),
        fitting=sum(
            any(each.kind in dialogue.facts[place].kinds for each in found[place]) for place in typed
        ),
        dates=len(dates),
        dated=sum(
            any(each.days[side] == _day(dialogue.facts[place], side) for each in found[place])
            for place, side in dates
        ),
        updates=len(updates),
        learned_updates=sum(place in places for place in updates),
        revised=sum(_is_revised(dialogue.facts[place], found[place], learned) for place in updates),
        conflicts=len(conflicts),
        shown=sum(any(each.contradicted for each in found[place]) for place in conflicts),
        stay=len(dialogue.stays),
        current=sum(
            any(each.current and has(each.content, keys) for each in learned) for keys in dialogue.stays
        ),
        traps=len(dialogue.never),
        sprung=sum(any(has(each.content, keys) for each in new) for keys, _ in dialogue.never),
        dialogues_with_wrong=int(bool(wrong)),
        wrong_texts=tuple((dialogue.id, f"{why}: {text}") for why, text in wrong),
        missed=tuple(
            f"{dialogue.id} {_words(fact.keys)}"
            for place, fact in enumerate(dialogue.facts)
            if place not in places
        ),
        reasons=Counter(why for why, _ in wrong),
    )


def summed(scores: Iterable[Score]) -> Score:
    """The scores of several dialogues as one."""
    total: dict[str, Any] = {}
    for each in scores:
        for name in Score.__slots__:
            value = getattr(each, name)
            value = Counter(value) if isinstance(value, Mapping) else value
            total[name] = total[name] + value if name in total else value
    return Score(**total)


def judged_text(dialogue: Dialogue, text: str) -> tuple[tuple[int, ...], str]:
    """The places of the facts that a text states, and why it is wrong; neither for what may be learned."""
    trap = next((why for keys, why in dialogue.never if has(text, keys)), "")
    if trap:
        return (), trap
    facts = tuple(place for place, fact in enumerate(dialogue.facts) if has(text, fact.keys))
    earlier = (keys for fact in dialogue.facts for keys in (fact.replaces, fact.contradicts))
    allowed = any(has(text, keys) for keys in (*dialogue.may, *earlier))
    return facts, "" if facts or allowed else UNLABELLED


def _is_revised(fact: Expected, stated: Sequence[Learned], learned: Sequence[Learned]) -> bool:
    """Whether the new value is current, and no current text has the old one without the new one."""
    old = [each for each in learned if has(each.content, fact.replaces) and not has(each.content, fact.keys)]
    return any(each.current for each in stated) and not any(each.current for each in old)


def _day(fact: Expected, side: int) -> str:
    return (fact.valid_from, fact.valid_until)[side] or ""


def _words(keys: Keys) -> str:
    return " & ".join("|".join(each) for each in keys)


@lru_cache(maxsize=10_000)
def _at_word(key: str) -> re.Pattern[str]:
    return re.compile(r"(?<!\w)" + re.escape(key.casefold()))


def _keys(value: Sequence[Sequence[str]]) -> Keys:
    return tuple(tuple(each) for each in value)


def _expected(fields: Mapping[str, Any]) -> Expected:
    return Expected(
        keys=_keys(fields["keys"]),
        messages=tuple(fields["messages"]),
        kinds=tuple(fields.get("kinds", ())),
        replaces=_keys(fields.get("replaces", ())),
        contradicts=_keys(fields.get("contradicts", ())),
        valid_from=fields.get("valid_from"),
        valid_until=fields.get("valid_until"),
    )
