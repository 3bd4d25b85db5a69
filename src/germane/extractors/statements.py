"""The sentences in which a user states something: without code, quotations, fiction and what was taken back.

Pure. The patterns are data; see `english.toml`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import regex

from germane.extractors.answers import last_question
from germane.extractors.clauses import EARLIER, LATER
from germane.model.conversation import Message, MessageRole
from germane.model.extraction import Quote

_CODE_BLOCK = regex.compile(r"```.*?(?:```|\Z)", regex.DOTALL)
_CODE = regex.compile(rf"{_CODE_BLOCK.pattern}|`(?P<inline>[^`\n]*)`", regex.DOTALL)
_PASTED = regex.compile(r"(?m)^[^\S\n]*(?:>|\||#{1,6} |[-+]{3}|\d+:\d+:\d+|(?:From|Subject|To|Cc): ).*$")
_QUOTED = regex.compile(
    r"(?<![\w.,!?])[\"“](?=[^\s\"“”])(?=[^\"“”]*\b(?:I|my|we|our)\b|[^\"“”\s]+(?:\s+[^\"“”\s]+){3})[^\"“”]*[\"”]"
    r"|(?<!\w)'(?=[^'\n]*\bI\b)[^'\n]*'(?!\w)"
)
"""Quotations of four words or more, or of the first person; a shorter one is a title or a term."""
_NAMED_LINE = regex.compile(
    r"(?m)^(?:[\[(<]?\d{1,2}:\d\d(?::\d\d)?(?: ?[ap]m)?[\])>]?,? (?:- )?)?"
    r"(?:\p{Lu}[\p{L}\p{M}]+:|[\[<][\w .'-]{1,30}[\]>]:?) .*$"
)
"""A line of a chat that was pasted, where there are at least two."""
_ENDS = regex.compile(
    r"(?<![\d\s]\s?[ap]\.m\.)(?<!\b(?:e\.g|i\.e|Dr|Mr|Mrs|Ms|Prof|St|vs|etc|approx)\.)"
    r"(?<=[.!?…]['\"”’)\]]*)\s+|\n+"
)
_QUESTION = regex.compile(
    r"(?:,| -|–|—|\.\.\.|…) *(?:(?:so|and|but) )?"
    r"(?!\p{L}+(?:n['’]t)? (?:I|you|he|she|it|we|they)\?)"
    r"(?:(?:ok|okay|yeah|please|right|remember|you know)|(?:so|and|but|that['’]s)\b[^,]*|"
    r"(?:does|do|did|is|are|can|could|should|would|will|what|how|which|where|when|who|any)"
    r"\b[^,]*)\?+$",
    regex.IGNORECASE,
)
"""The question at the end of a sentence that states something before it."""
_PRONOUN = regex.compile(
    r"^(?P<before>(?:(?:and|but|so|also|yes|no|oh|ok|btw|well|good|right|haha|lol|now)[,.!]? )*"
    r"(?:(?:(?:We|I|You|The|It|Yes|No)\b|(?-i:\p{Ll}))(?:(?!\b(?:he|she|they|my|our|his|her|their)\b)"
    r"(?-i:[^,.;!?\p{Lu}]|\bI\b))*, (?:and |but |so )?)?)"
    r"(?P<from>(?:from|since|as of|starting) (?:(?!(?:he|she|they|my|our|his|her)\b)[\p{L}\d]+ ){1,3})?"
    r"(?:(?P<is>(?:s?he)['’]s)|(?P<who>s?he)|(?P<whose>his|her))(?= )",
    regex.IGNORECASE,
)
_HAS_DONE = regex.compile(
    r" (?:just |recently |now )?(?:got|been|had|moved|started|joined|left|quit|changed|switched|become|gone|"
    r"sold|bought)\b"
)
"""What follows "she's" where that is "she has"."""
_FEMALE = regex.compile(
    r"\b(?:wife|girlfriend|sister|mother|mom|mum|daughter|grandm\w+|gran|aunt|niece|mare)\b"
)
_MALE = regex.compile(
    r"\b(?:husband|boyfriend|brother|father|dad|son|grandfather|grandpa|grandad|uncle|nephew)\b"
)
_LONGEST: Final = 400
"""Characters of a sentence; what is longer is material rather than a statement."""
_CUT: Final = "\ufffc"
"""Stands in a sentence for the code or the quotation that was taken out of it."""
_BRACKETED = regex.compile(r"(?<=\w) \([^()]{1,40}\)(?= \w)")
_REMARK = regex.compile(
    r",? (?:but )?(?:if|in case) (?:you|that|it|this|possible|needed|anyone|anybody|I['’]m honest|I may)\b"
    r"[^,;]*$",
    regex.IGNORECASE,
)
_MODAL = regex.compile(
    r"\b(?:would|could|should|might|may|will|can|wish|\w+['’](?:d|ll)|won['’]t|wouldn['’]t)\b",
    regex.IGNORECASE,
)
_CASUAL: Final = {
    "im": "I'm", "ive": "I've", "i": "I", "dont": "don't", "doesnt": "doesn't", "didnt": "didn't",
    "cant": "can't", "wont": "won't", "isnt": "isn't", "arent": "aren't", "wasnt": "wasn't",
    "havent": "haven't", "hasnt": "hasn't", "couldnt": "couldn't", "hes": "he's", "shes": "she's",
    "theyre": "they're", "thats": "that's", "youre": "you're", "whats": "what's",
}  # fmt: skip
_ADDRESSED = regex.compile(
    r"^(?:dude|bro|mate|man|yo|guys?)[,!]? (?=\p{L})|,? (?:dude|bro|mate|man|tbh|ngl|smh)(?=[.!]*$)",
    regex.IGNORECASE,
)
_ELIDED = regex.compile(
    r"^(?P<before>(?:(?:and|but|so|also|no|nah|nope|yes|yeah|oh|ok|btw|well|actually|sorry|just)[,.!]? )*)"
    r"(?:(?P<verb>switched|swapped|moved|changed|upgraded|downgraded|transferred|migrated|relocated|quit|stopped|"
    r"gave up|sold|ditched|dropped|replaced)"
    r"(?= (?!the (?:line|file|code|variable|function|word|title|text)\b)\p{L})"
    r"|(?P<verb>driving|living|working|using|studying|playing|taking|drinking|eating|wearing|renting|teaching|"
    r"staying|riding|training|learning|running|going)(?= [^.!?]*\b(?:now|these days|nowadays|since|instead|"
    r"at the moment|currently)\b))",
    regex.IGNORECASE,
)
"""Begins a sentence that leaves out "I"."""
_CASUAL_WORD = regex.compile(
    rf"(?<![\w.'’/-])(?:{'|'.join(_CASUAL)})(?![\w/-]|\.\w|['’](?!(?:m|ve|d|ll)\b))", regex.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePatterns:
    """What takes a message back, whom a pronoun can stand for, and what says nothing new; None for nothing.

    A message with `retracts` takes back what the message before it states. `people` matches the mention of a
    person or an animal, and `comment` what the end of a sentence says of its beginning: "I moved to Rome - it
    was so exciting".
    """

    retracts: regex.Pattern[str] | None = None
    people: regex.Pattern[str] | None = None
    comment: regex.Pattern[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A sentence of a message: as it stands there, and with a name or a relative in place of "she" or "his".

    `quotes` are the mention of whom the pronoun stands for, if any, and the sentence. `before` is the
    assistant's message just before this one, and `question` the last question in it, for the first sentence
    of a message. `person` is who was mentioned last. `earlier` and `later` are the user's messages around it.
    """

    text: str
    resolved: str
    message: Message
    quotes: tuple[Quote, ...]
    question: Quote | None = None
    before: Message | None = None
    person: str = ""
    earlier: tuple[str, ...] = ()
    later: tuple[str, ...] = ()


def statements(messages: Sequence[Message], patterns: MessagePatterns) -> tuple[Statement, ...]:
    """The sentences of the user's messages that may state something, in their order."""
    found: list[Statement] = []
    spoken = [each.own_text for each in messages if each.role is MessageRole.USER]
    place = -1
    person: tuple[str, Quote] | None = None
    question: Quote | None = None
    before: Message | None = None
    for message in messages:
        if message.role is not MessageRole.USER:
            before = message if message.role is MessageRole.ASSISTANT else None
            question = None if before is None else _question(before)
            continue
        place += 1
        latest = message.id or str(message.seq)
        earlier, later = around(spoken, place)
        for sentence in sentences(spoken[place]):
            quote = Quote(message=latest, text=sentence)
            written = asserted(spelled_out(sentence))
            if patterns.comment is not None:
                written = patterns.comment.sub("", written)
            resolved = _resolved(written, person)
            quotes = (quote,) if resolved == written or person is None else (person[1], quote)
            found.append(
                Statement(
                    text=sentence,
                    resolved=resolved,
                    message=message,
                    quotes=quotes,
                    question=question,
                    before=before,
                    person="" if person is None else person[0],
                    earlier=earlier,
                    later=later,
                )
            )
            question = None
            mentioned = None if patterns.people is None else patterns.people.search(written)
            if mentioned is not None:
                person = mentioned[0], Quote(message=latest, text=mentioned[0])
        question = before = None
    return tuple(found)


def around(spoken: Sequence[str], place: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The messages before and after one that are looked at; `spoken` are all of the user's."""
    return tuple(spoken[max(0, place - EARLIER) : place]), tuple(spoken[place + 1 : place + 1 + LATER])


def is_taken_back(later: Sequence[str], patterns: MessagePatterns) -> bool:
    """Whether the first of the messages after one takes it back: "sorry, forget that"."""
    return bool(later) and patterns.retracts is not None and patterns.retracts.search(later[0]) is not None


def shown_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Where a message only shows something: blocks of code, quotations, and pasted lines."""
    patterns = (_CODE_BLOCK, _QUOTED, _PASTED)
    found = [each.span() for pattern in patterns for each in pattern.finditer(text)]
    lines = [each.span() for each in _NAMED_LINE.finditer(text)]
    return (*found, *(lines if len(lines) > 1 else ()))


def spelled_out(text: str) -> str:
    """A text with what people leave out in chats, and without whom they address: "im 17 bro" as "I'm 17"."""
    plain = _CASUAL_WORD.sub(_as_written, _ADDRESSED.sub("", text))
    return _ELIDED.sub(_with_speaker, plain)


def _with_speaker(match: regex.Match[str]) -> str:
    verb = match["verb"]
    speaker = "I'm" if verb.endswith("ing") else "I"
    return f"{match['before']}{speaker} {verb[:1].lower()}{verb[1:]}"


def asserted(text: str) -> str:
    """What a sentence states, without remarks in brackets and conditions of the remark itself.

    "It's size 41 if that helps" states the size; "I'd come if that helps" states nothing.
    """
    plain = _BRACKETED.sub("", text)
    return plain if _MODAL.search(plain) else _REMARK.sub("", plain)


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text, as they stand in it, without code, quotations, tables and pasted lines."""
    if len(_NAMED_LINE.findall(text)) > 1:
        text = _NAMED_LINE.sub("\n", text)
    text = _CODE.sub(_without_code, text)
    text = _PASTED.sub("\n", _QUOTED.sub(_cut, text))
    for each in _ENDS.split(text):
        sentence = without_question(_until_cut(each).strip())
        if sentence and len(sentence) <= _LONGEST:
            yield sentence


def without_question(sentence: str) -> str:
    """The statement before a question in the same sentence: "I'm 40, does that matter?" as "I'm 40"."""
    return _QUESTION.sub("", sentence) if sentence.endswith("?") else sentence


def _question(message: Message) -> Quote | None:
    text = last_question(message.own_text)
    return Quote(message=message.id or str(message.seq), text=text) if text else None


def _without_code(match: regex.Match[str]) -> str:
    """Inline code of one word is a term of its sentence."""
    inline = match["inline"]
    return match[0] if inline and not regex.search(r"\s", inline) else _cut(match)


def _cut(match: regex.Match[str]) -> str:
    """What stands for a part that is left out: a mark inside of a sentence, else its end."""
    before = match.string[max(0, match.start() - _LONGEST) : match.start()].rstrip(" ")[-1:]
    return _CUT if before == "," or before.isalpha() or before.isdecimal() else "\n"


def _until_cut(sentence: str) -> str:
    """The clauses of a sentence before the one that misses a part."""
    if _CUT not in sentence:
        return sentence
    before = sentence.partition(_CUT)[0]
    return before[: 1 + max(map(before.rfind, ",;–—"))]


def _as_written(match: regex.Match[str]) -> str:
    written = _CASUAL[match[0].casefold()]
    return written if written.startswith("I") or match[0].islower() else written.capitalize()


def _resolved(sentence: str, person: tuple[str, Quote] | None) -> str:
    match = _PRONOUN.match(sentence)
    if match is None or person is None:
        return sentence
    name, rest = person[0], sentence[match.end() :]
    spoken = regex.split(r"['’ ]", match[0].casefold().removesuffix("'s").removesuffix("’s"))[-1]
    if (_FEMALE if spoken in ("he", "his") else _MALE).search(name):
        return sentence
    if match["is"]:
        has = _HAS_DONE.match(rest)
        name += " has" if has else " is"
    elif match["whose"]:
        name += "'" if name.endswith("s") else "'s"
    # "From Monday she's at home" as "my wife is at home from Monday".
    starts = match["from"] and f" {match['from'].strip()}"
    return f"{match['before']}{name}{rest.rstrip(' .!') if starts else rest}{starts or ''}"


# Statements of the first person, in the third.

_IRREGULAR: Final = {"have": "has", "do": "does", "am": "is", "go": "goes", "are": "are", "wanna": "wants to"}
_IRREGULAR_LATER: Final = {"am": "are", "was": "were", "wanna": "want to"}
_UNCHANGED = regex.compile(
    r"^(?:was|were|had|did|also|just|too|already|always|never|only|really|can|could|will|would|should|shall|must|may|might|is|has|does|gotta|gonna|cannot|cant|wont|didnt|isnt|wasnt|couldnt|wouldnt|even|"
    r"(?!need$|feed$|bleed$|speed$)\w+ed|went|got|made|took|bought|met|saw|ate|came|left|began|ran|wrote|built|broke|chose|drove|flew|gave|"
    r"grew|knew|lost|paid|read|sang|sold|sent|slept|spoke|spent|taught|thought|told|understood|won|wore|found|"
    r"felt|fell|forgot|kept|heard|held|quit|set|put|cut|swam|hurt|became|brought|caught|learnt|led|said|stood|"
    r"and|or|tore|threw|rode|hid|sat|stuck|swore|woke|drank|dreamt|fed|fought|hung|hit|let|lent|shot|shut|sank|stole|split)$",
    regex.IGNORECASE,
)
_ADVERBS: Final = (
    r"(?:(?:just|recently|finally|actually|really|also|currently|still|now|already|absolutely|always|usually|"
    r"never|only|often|sometimes|both|no longer|even|once|since|ever|"
    r"(?!(?:rely|apply|supply|reply|fly|comply|imply|bully|ally)\b)\w+ly) )*"
)
_FIRST_PERSON = regex.compile(
    r"\bI(?P<short>['’](?:m|ve got|ve|ll|d))(?!\w)"
    r"|\bI (?P<adverbs>" + _ADVERBS + r")(?P<deny>don['’]?t|do not|haven['’]?t)(?!\w)"
    r"|\bI (?P<adverbs>" + _ADVERBS + r")(?P<verb>[\w'’-]+)"
    r"|\b(?P<mine>[Mm]y|mine|myself|me|I)\b"
)
_PAIR: Final = regex.compile(r"(?:[Mm]y \p{L}+|[Oo]ur \p{L}+)?(?:(?:^| )\p{Lu}[\p{L}'’-]+)* and ")
"""Begins a statement of several people: "Ada and I live here"."""
_SHORT: Final = {
    "m": ("is", "are"),
    "ve got": ("has", "have"),
    "ve": ("has", "have"),
    "ll": ("will",) * 2,
    "d": ("would",) * 2,
}
_DENIED: Final = {"don": ("doesn't", "don't"), "do ": ("doesn't", "don't"), "hav": ("hasn't", "haven't")}
_LATER: Final = {"my": "their", "mine": "theirs", "myself": "themselves", "me": "them", "i": "they"}


_WITHOUT_SUBJECT: Final = regex.compile(
    r"(?:Lives|Works|Is|Has|Was|Does|Can|Cannot|Owns|Drives|Rides|Drinks|Eats|Takes|Plays|Speaks|Studies|"
    r"Teaches|Uses|Wears|Pays|Goes|Gets|Banks|Runs|Reads|Writes|Keeps|Wants|Needs|Enjoys|Likes|Loves|Hates|"
    r"Prefers|Trains|Sleeps|Smokes|Commutes|Cycles|Walks|Volunteers|Rents|Plans|Avoids|Suffers|Attends|Manages|"
    r"Leads|Reports|Mains|Moved|Learns|Grows|Sings|Swims|Weighs|Collects|Dislikes|Shops|Sells)(?:n['’]t)? "
    r"(?!is\b|are\b)"
)
"""Begins a memory that leaves out whom it is about: "Lives in Oslo"."""


def with_subject(text: str) -> str:
    """A memory with the user as its subject where it has none: "Lives in Oslo", "The user lives in Oslo"."""
    return f"The user {text[:1].lower()}{text[1:]}" if _WITHOUT_SUBJECT.match(text) else text


def third_person(text: str, subject: str = "The user") -> str:
    """A statement of the first person in the third: "I'm allergic to nuts" as "The user is allergic to nuts".

    The subject is named at its first mention, and later mentions are "they", "them" and "their".
    """
    inner = "the user" if subject == "The user" else subject
    named = inner in text

    def replaced(match: regex.Match[str]) -> str:
        nonlocal named
        later, named = named, True
        who = "they" if later else inner
        later = later or _PAIR.fullmatch(text[: match.start()]) is not None
        if match["short"]:
            return f"{who} {_SHORT[match['short'][1:]][later]}"
        if match["deny"]:
            return f"{who} {match['adverbs']}{_DENIED[match['deny'][:3]][later]}"
        if match["verb"]:
            verb = match["verb"]
            return f"{who} {match['adverbs']}{_IRREGULAR_LATER.get(verb, verb) if later else _third(verb)}"
        word = match["mine"].casefold()
        if later:
            return _LATER[word]
        if word in ("my", "mine"):
            return f"{inner}'" if inner.endswith("s") else f"{inner}'s"
        return "themselves" if word == "myself" else inner

    return _FIRST_PERSON.sub(replaced, text)


def _third(verb: str) -> str:
    low = verb.casefold()
    if not low.isalpha():
        return verb
    if low in _IRREGULAR:
        return _IRREGULAR[low]
    if _UNCHANGED.match(low):
        return verb
    if low.endswith(("s", "sh", "ch", "x", "z", "o")):
        return f"{verb}es"
    if low.endswith("y") and low[-2:-1] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}s"
