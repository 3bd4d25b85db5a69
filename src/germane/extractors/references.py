"""Changes of a known memory that a statement doesn't repeat: "it's at 9:45 now", "we sold it last month".

Pure, and for English. A statement changes a memory only if exactly one of those that the dialogue is about
fits; otherwise it stands for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Final

import regex

from germane.extractors.statements import Statement, third_person, with_subject
from germane.model.conversation import Message, MessageRole
from germane.model.extraction import Proposal, Quote
from germane.model.memory import Memory
from germane.model.text import text_cache
from germane.retrieval.dates import MONTH
from germane.retrieval.tokenizer import query_terms

_REST: Final = r"[\p{L}\p{M}\p{N}'’-]"
VALUE_TYPES: Final = tuple(
    regex.compile(text, regex.IGNORECASE)
    for text in (
        r"(?:\bevery (?:second |other )?)?\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b",
        rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)?(?: of)? )?{MONTH}(?: \d{{1,2}}(?:st|nd|rd|th)?)?(?:,? \d{{4}})?",
        r"\b\d{1,2}(?::\d\d)? ?(?:am|pm|a\.m\.|p\.m\.)|\b\d{1,2}:\d\d\b|\bnoon\b|\bmidnight\b",
        r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
        r"\+?\b\d{2,5}(?:[ -]\d{2,5})+\b",
        r"\b(?:19|20)\d\d\b",
        r"(?<![\w-])\p{L}+-(?:\p{L}+-)*\d(?:[\w.]*\w)?",
        r"[$€£]?(?<![\w-])\d[\d.,]*\d[km]?\b|[$€£]?(?<![\w-])\d[km]?\b",
        r"(?:\b(?:once|twice|\p{L}+ times) (?:an?|per|each|every) \p{L}+)",
        rf"(?<=[\w,] )(?:(?:Dr|Mr|Mrs|Ms|Prof)\. )?(?-i:\p{{Lu}}{_REST}+)(?: (?-i:\p{{Lu}}{_REST}+))*",
    )
)
"""The types of values, the more specific first; the last one are names."""
TIME: Final = VALUE_TYPES[2]
HOUR: Final = regex.compile(r"1?\d")
"""A figure that may be an hour, where a time is expected: "we moved it to 8"."""
_OPENING: Final = r"^(?:(?:no|wait|oh|well|yes|yeah|hm+|sorry|actually|btw|so|and|but|also|oops)[,.!]* )*"
_LEAD: Final = rf"{_OPENING}(?:(?P<clause>[^.!?;\n]*?), (?:and |but |so )?)??"
_LAST: Final = rf"{_OPENING}(?P<clause>[^.!?;\n]*), (?:and |but |so )?"
"""Begins a sentence whose last clause counts, where `_LEAD` prefers the first one."""
_NOW: Final = (
    r" (?:now|instead|from now on|these days)"
    r"(?=[,.!]| *$| (?:that|because|since|by the way|btw|actually|too|so)"
    r"\b)| (?:since|as of) "
)
_WENT: Final = r"(?:went|goes|has gone|rose|fell|dropped|is now)"
_WHAT: Final = rf"the (?P<what>\p{{L}}+(?: (?!{_WENT}\b)\p{{L}}+)?)"
_NOUN: Final = r"(?:(?:my|our|the) )?(?P<what>(?!(?:I|we|he|she|you|this|who|what|one|\w+ing)\b)\p{L}+)"
_OF_IT: Final = tuple(
    regex.compile(
        rf"{lead}(?:(?:it|that|they|there|{_WHAT}|{_NOUN}(?= {_WENT} ))"
        r"(?:['’]s| is| are| was| has been| have been| got| went| goes| moved| changed| slipped| rose| fell|"
        r" dropped| \p{L}+(?= (?:on|at|in|to|from) ))"
        r"|(?P<own>I|we)(?:(?:['’]m|['’]re| am| are)(?= (?:now |down |up |back )*(?:on|at|to) )"
        r"|(?:['’]ve got| have)(?= \d)))"
        r"(?: (?:now|been|actually|moved|pushed|changed|postponed|extended|raised|lowered|cut|renamed|up|"
        r"down|back|forward))*(?: (?:to|until|for|at|on|in|an?|the|called|with))* (?P<value>[^!?;\n]+?)"
        rf"(?={_NOW}|, (?:my|because|since|so|they|he|she|the)\b|[,.!]* *$)",
        regex.IGNORECASE,
    )
    for lead in (_LEAD, _LAST)
)
"""A new value of "it", or of what one noun names."""
_MOVED: Final = regex.compile(
    rf"{_LEAD}(?:(?P<own>I|we|they)(?:['’]ve| have)? )?"
    r"(?:migrated|moved|switched|changed|pushed|raised|lowered|put)"
    rf"(?: (?:it|that|{_WHAT}))?(?: (?:over|back|up|down))?(?: from [^.!?;\n]+?)? to (?:the |an? )?"
    r"(?P<value>[^!?;\n]+?)(?= (?:in|since|last|this|because|after|so) |, |[.!]* *$)",
    regex.IGNORECASE,
)
_GONE: Final = regex.compile(
    r"\b(?:I|we)(?:['’]ve| have)? (?:just |finally |recently )?"
    r"(?P<verb>sold|gave away|got rid of|traded in|cancelled|canceled|returned|scrapped|closed|"
    r"stopped taking|stopped using|quit|gave up|moved out of) "
    r"(?:(?P<several>them)|it|her|him|that(?: one)?|the old one)\b(?P<rest>[^.!?;\n]*)",
    regex.IGNORECASE,
)
_REFERS: Final = regex.compile(
    r"\b(?:it|her|him|them|that|one|they|migrated|moved|switched|changed|pushed|raised|lowered|put|any ?more|"
    r"no longer|now|these days|instead|since|as of|rose|fell|dropped|went|broke up|split|gave up|closed|left|"
    r"quit|stopped|gone|there (?:are|is))\b|\bthe \p{L}+(?: \p{L}+)? (?:is|was|has|got|"
    r"went|goes|rose|fell|dropped)\b|\b(?:I|we)(?:['’]m|['’]re| am| are) (?:now|down|up|back|on|at)\b",
    regex.IGNORECASE,
)
_PASSING: Final = regex.compile(
    r"\b(?:today|tonight|tomorrow|this (?:time|week|once)|next week|already|"
    r"for (?:an?|the) (?:day|night|week))\b",
    regex.IGNORECASE,
)
_SINCE: Final = regex.compile(
    r"\b(?:now|instead|these days|since|as of|from|any ?more|until)\b", regex.IGNORECASE
)
_OVER: Final = (
    r"(?:\b(?:not|no longer|left|quit|gave up|stopped|closed|cancelled|canceled|dropped|ditched|leaving|from|"
    r"instead of)|n['’]t) (?:(?:at|with|in|on|the|my|our) )*{old}\b|\b{old}(?:['’]s| has| have| is)? "
    r"(?:closed|shut|(?:went|gone|left)(?! (?:to|for)\b)|stopped|retired|quit|any ?more|no longer)\b"
)
"""What ends something, in its place `{old}`."""
_STATE: Final = regex.compile(
    r"(?:The user(?:['’]s [\p{L} ]+?)?|(?:The|Our|My) [\p{L}'’ ]+?|We|\p{Lu}\p{L}+(?:['’]s [\p{L} ]+?)?) "
    r"(?:is|are|has|have|use|can|cannot|(?:do|can)n['’]t|\p{L}+s)(?!\p{L})"
)
"""Begins a memory of what is so, rather than of what happened once."""
_TRIED: Final = regex.compile(
    r"(?:The user|We) (?:is|are) (?:currently |now |also )?"
    r"(?:trying|having|getting|looking|struggling|working on)\b"
)
_TIMED: Final = 3
"""The first types of values, which also tell the time: "it's Monday"."""
_CORRECTED: Final = regex.compile(
    r"^(?:no|wait|actually|sorry|oops)\b|\b(?:not|\p{L}+n['’]t|moved|pushed|changed|postponed|slipped|shifted|"
    r"instead|any ?(?:more|longer)|it['’]?s (?:at|on)|(?:to|until|on|at|from) (?:the )?[\p{L}\d:]+)\b",
    regex.IGNORECASE,
)
_NOUNS: Final = regex.compile(
    r"\b(?:my|our|the|his|her|their) (?P<noun>\p{L}+)|\b(?P<noun>(?-i:\p{Lu})\p{L}+)", regex.IGNORECASE
)
_HOME: Final = regex.compile(r"\b(?:lives?|home|based|resides?)\b", regex.IGNORECASE)
_AT: Final = regex.compile(r"\b(?:in|at|on|near) (?:the )?$")
_MOVED_TO: Final = regex.compile(r"\b(?:I|we|\p{L}+) (?:have |has )?moved to (?:the )?$", regex.IGNORECASE)
_IT_MOVED: Final = regex.compile(
    r"\b(?:moved|switched|changed|pushed|put) (?:it|that|the)\b", regex.IGNORECASE
)
_OWNED: Final = regex.compile(r"The user['’]s (?P<what>\p{L}+)")
_WHO: Final = regex.compile(r"(?:['’]s name)? is (?:called |named )?\p{Lu}")
_OF_USER: Final = regex.compile(r"\b(?:I|we)\b")
_BEFORE_NAME: Final = regex.compile(
    r"\b(?:is|at|in|with|for|by|to|on|an?|the|called|from) $", regex.IGNORECASE
)
_BEFORE_VALUE: Final = regex.compile(
    r"(?:^|[:,]|(?:\b(?:is|are|am|was|be|at|in|with|for|by|to|on|an?|the|called|named|from|of|than|uses?|takes?|"
    r"drives?|have|has|got)|['’]s)) $|^$",
    regex.IGNORECASE,
)
_CHANGED: Final = regex.compile(
    r"\b(?:any ?more|no longer|now|these days|nowadays|since|as of|from now on|used to|switched|changed|"
    r"moved|migrated|transferred|renamed|replaced)\b",
    regex.IGNORECASE,
)
_DOES: Final = regex.compile(
    r"\b(?:plays?|drinks?|eats?|takes?|uses?|studies|learns?|grows?|teaches) (?:the |an? )?"
    r"(?P<what>(?-i:\p{Ll})[\p{L}-]+)\.?$",
    regex.IGNORECASE,
)
_IS_NOW: Final = regex.compile(
    r"\bit(?:['’]s| is) (?P<what>(?-i:\p{Ll})[\p{L}-]+) (?:now|instead|these days)\b", regex.IGNORECASE
)
_NO_NAME: Final = regex.compile(rf"I['’]|{MONTH}$|\p{{L}}+days?$", regex.IGNORECASE)
_OBJECT: Final = regex.compile(
    r"\b(?:owns?|has|have|drives?|rides?|rents?|uses?|takes?|plays?|keeps?|"
    r"(?:car|bike|phone|boat|laptop) is(?= an? | (?-i:\p{Lu}))) "
    r"(?:an? |the |two |three )?(?P<what>[^.;,]+?)(?= called (?P<name>[^.;,]+)|[.;,]|$)",
    regex.IGNORECASE,
)
_SEVERAL: Final = regex.compile(r"\p{L}+ (?:(?:two|three|four|some|several|\d+)\b|\p{L}+s$)")
_MORE: Final = 2
"""Words after a value that may still belong to it: "55 of us"."""
_FREE: Final = frozenset(query_terms("user we our us team at on in now new the live lives is has have"))


def of_known(
    statement: Statement,
    known: Sequence[Memory],
    topic: frozenset[str],
    people: regex.Pattern[str] | None = None,
) -> Proposal | None:
    """What a statement changes of the one known memory that it must mean; None where that isn't clear.

    `topic` are the terms of the latest messages, in which a pronoun's noun stands, and `people` matches the
    mention of a person.
    """
    if statement.text.endswith("?"):
        return None
    known = [each for each in known if each.valid_until is None and is_state(each.content)]
    about = [memory for memory in known if _telling(memory.content) & topic]
    ways = (
        _replaced(statement, about, people),
        _renewed(statement, known, people),
        _recalled(statement, about, people),
        _ended(statement, about),
    )
    for changes in ways:
        found = list({memory.id: (memory, text) for memory, text in changes}.values())
        if len(found) == 1:
            memory, content = found[0]
            content = f"{content.rstrip('.')}."
            quote = Quote(message=statement.message.id or str(statement.message.seq), text=statement.text)
            return Proposal(
                content=content,
                kind=memory.kind,
                subject=memory.subject,
                replaces=memory.id,
                quotes=(quote,),
            )
    return None


def is_state(content: str) -> bool:
    """Whether a memory is of what is so, rather than of what happened once or is being tried."""
    whole = with_subject(content)
    return _STATE.match(whole) is not None and _TRIED.match(whole) is None


def refers_back(message: Message) -> bool:
    """Whether a message may change what is known without repeating it."""
    return message.role is MessageRole.USER and _REFERS.search(message.own_text) is not None


def _replaced(
    statement: Statement, known: Sequence[Memory], people: regex.Pattern[str] | None
) -> Iterator[tuple[Memory, str]]:
    """The memories with another value of what a statement gives one of, with the new one in its place."""
    text = statement.text
    match, form, value = _given(text)
    if match is None or form is None:
        return
    is_place = match.re is _MOVED and _IT_MOVED.search(text) is None
    what = frozenset(query_terms(match["what"] or ""))
    for memory in known:
        content = with_value(memory.content, form, value) if _is_meant(memory, match, people) else None
        if content is None or (is_place and not _fits_place(memory.content, form)):
            continue
        if what <= _telling(memory.content):
            yield memory, content


def _given(text: str) -> tuple[regex.Match[str] | None, regex.Pattern[str] | None, str]:
    """How a sentence gives a new value, its type and its words; no type where it gives none."""
    match = None
    for pattern in (*_OF_IT, _MOVED):
        match = pattern.match(text)
        if match is not None:
            form, value = _value_of(text, match["value"].strip(), of_it=pattern is not _MOVED)
            if form is not None:
                return match, form, value
    return match, None, ""


def _value_of(text: str, value: str, *, of_it: bool) -> tuple[regex.Pattern[str] | None, str]:
    """The type of a new value and its words; no type where it is a part of something else, or passing."""
    names = VALUE_TYPES[-1]
    for form in VALUE_TYPES:
        new = form.match(f"is {value}", 3)
        if new is None:
            continue
        rest = value[len(new[0]) :]
        # "3 Orchard Rise" isn't 3, "Ada, Grace and Alan" isn't Ada, and "it's Monday" tells the time.
        is_part = regex.match(r"['’]|[ -](?:\p{Lu}|\d)", rest) or (form is names and rest.strip())
        tells_time = form in VALUE_TYPES[:_TIMED] and not _CORRECTED.search(text)
        is_passing = _PASSING.search(text) or (of_it and form is names)
        if is_part or len(rest.split()) > _MORE or tells_time or (is_passing and not _SINCE.search(text)):
            return None, ""
        return form, new[0]
    return None, ""


def _is_meant(memory: Memory, match: regex.Match[str], people: regex.Pattern[str] | None) -> bool:
    """Whether nothing in the statement speaks for another noun than that of the memory.

    What the user does isn't what a relative does, and the clause before "it" may name what "it" is.
    """
    if match["own"] and _is_of_relative(memory, people):
        return False
    nouns = {noun for each in _NOUNS.finditer(match["clause"] or "") for noun in query_terms(each["noun"])}
    return nouns <= frozenset(query_terms(memory.content)) | _FREE


def _is_of_relative(memory: Memory, people: regex.Pattern[str] | None) -> bool:
    """Whether a memory is about somebody of the user's, such as a sister: "I left Acme" says nothing of her.

    Who the user's dentist is, is the user's affair.
    """
    owner = _OWNED.match(memory.content)
    if owner is None or people is None or _WHO.match(memory.content, owner.end()):
        return False
    return people.fullmatch(f"my {owner['what']}") is not None


def _fits_place(content: str, form: regex.Pattern[str]) -> bool:
    """Whether "we moved to VALUE" can change a memory: one of where something is, but for the home."""
    if form is not VALUE_TYPES[-1]:
        return True
    (old,) = values_in(content, form)
    return _AT.search(content[: old.start()]) is not None and not _HOME.search(content)


def _renewed(
    statement: Statement, known: Sequence[Memory], people: regex.Pattern[str] | None
) -> Iterator[tuple[Memory, str]]:
    """The memories whose value a statement says has ended, where it names one other value of that type."""
    text = statement.text
    for memory in known:
        done, now = _DOES.search(memory.content), _IS_NOW.search(text)
        if done and now and _is_over(done["what"], text) and now["what"] not in done["what"]:
            yield memory, f"{memory.content[: done.start('what')]}{now['what']}."
    for memory, form in product(known, VALUE_TYPES):
        old = values_in(memory.content, form)
        if len(old) != 1 or not _is_over(old[0][0], text):
            continue
        owner = _OWNED.match(memory.content)
        names_owner = owner and set(query_terms(owner["what"])) & set(query_terms(text))
        if not names_owner and _is_of_relative(memory, people) and _OF_USER.search(text):
            continue
        if form is VALUE_TYPES[-1] and not _BEFORE_NAME.search(memory.content[: old[0].start()]):
            continue  # "A diesel Golf": the words before a name may not fit another one.
        others = (each[0] for each in values_in(text, form))
        new = [each for each in others if each.casefold() != old[0][0].casefold()]
        content = with_value(memory.content, form, new[0]) if len(new) == 1 else None
        if content is not None:
            yield memory, content


def _is_over(old: str, text: str) -> bool:
    return regex.search(_OVER.replace("{old}", regex.escape(old)), text, regex.IGNORECASE) is not None


def _recalled(
    statement: Statement, known: Sequence[Memory], people: regex.Pattern[str] | None
) -> Iterator[tuple[Memory, str]]:
    """The memories whose value the assistant has just named, where the user gives another one now."""
    text, before = statement.text, statement.before
    if before is None or not _CHANGED.search(statement.message.own_text) or _PASSING.search(text):
        return
    named = before.own_text.casefold()
    for memory, form in product(known, VALUE_TYPES):
        old = [
            each
            for each in values_in(memory.content, form)
            if each[0].casefold().rstrip("s") in named
            and _BEFORE_VALUE.search(memory.content[: each.start()])
        ]
        new = [each for each in values_in(text, form) if _BEFORE_VALUE.search(text[: each.start()])]
        if len(old) != 1 or len(new) != 1 or new[0][0].casefold() == old[0][0].casefold():
            continue
        start, end = old[0].span()
        if _MOVED_TO.search(text[: new[0].start()]) and not _AT.search(memory.content[:start]):
            continue  # "I moved to Kiel" gives no other boss.
        rest = f"{text[:1].lower()}{text[1 : new[0].start()]} {text[new[0].end() :]}"
        nouns = {noun for each in _NOUNS.finditer(rest) for noun in query_terms(each["noun"])}
        is_own = _OF_USER.search(text) is not None
        if nouns <= _telling(memory.content) | _FREE and not (is_own and _is_of_relative(memory, people)):
            yield memory, f"{memory.content[:start]}{new[0][0]}{memory.content[end:]}"


def _ended(statement: Statement, known: Sequence[Memory]) -> Iterator[tuple[Memory, str]]:
    """The memories of a possession that a statement says is gone, with its name in place of the pronoun."""
    match = _GONE.search(statement.text)
    if match is None:
        return
    for memory in known:
        thing = _OBJECT.search(memory.content)
        if thing is not None and bool(match["several"]) == bool(_SEVERAL.match(thing[0])):
            what = thing["name"] or f"the {thing['what']}"
            text = f"I {match['verb']} {what}{match['rest']}"
            content = third_person(text).rstrip(" ,")
            yield memory, f"{content[:1].upper()}{content[1:]}."


def with_value(content: str, form: regex.Pattern[str], value: str) -> str | None:
    """A text with another value in place of the only one of that type; None where it has none or several."""
    old = values_in(content, form)
    if len(old) != 1 or old[0][0].casefold() == value.casefold():
        return None
    start, end = old[0].span()
    return f"{content[:start]}{value}{content[end:]}"


def with_value_of(content: str, answer: str) -> str | None:
    """A text with the value of a short answer in place of its own of that type: "Thursday, new teacher".

    None where either has no value of the type, or several.
    """
    for form in VALUE_TYPES:
        new = values_in(f": {answer}", form)
        replaced = with_value(content, form, new[0][0]) if len(new) == 1 else None
        if replaced is not None:
            return replaced
    return None


def values_in(text: str, form: regex.Pattern[str]) -> list[regex.Match[str]]:
    """The values of a type in a text; a weekday or a month is no name."""
    found = (each for each in form.finditer(text) if each[0] not in ("The", "User"))
    return [each for each in found if form is not VALUE_TYPES[-1] or not _NO_NAME.match(each[0])]


def topic_of(texts: Iterable[str]) -> frozenset[str]:
    """The terms of some texts that tell what they are about."""
    return _telling(" ".join(texts))


@text_cache(1000)
def _telling(text: str) -> frozenset[str]:
    return frozenset(term for term in query_terms(text) if not term.isdigit()) - _FREE
