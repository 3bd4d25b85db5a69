"""Corrections and changes of what was stated just before: "no, it's Thursday", "they moved it to 9:30".

Pure, and for English.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import regex

from germane.extractors.statements import Statement, sentences
from germane.model.extraction import Proposal, Quote
from germane.retrieval.dates import MONTH
from germane.retrieval.tokenizer import query_terms

_CORRECTS = regex.compile(
    r"^(?:no|nope|oops|sorry|wait|actually|correction|hang on|ah|oh|hm+|my bad|my mistake|scratch that)\b"
    r"(?:[,.!:–—-]+ ?|\s)(?:(?:no|sorry|wait|actually|I mean|not [^,]+),? )*"
    r"(?:it['’]?s|it is|that['’]?s|that is|I meant|I mean|make (?:it|that)|it should be|should be|it was|"
    r"s?he['’]s)\s+(?:actually |really |now )?(?:called |named )?(?P<value>[^.!?;\n]+)"
    r"|^(?:I meant|I mean(?:t to say)?|make (?:it|that)|correction:?)\s+(?P<value>[^.!?;\n]+)",
    regex.IGNORECASE,
)
_CHANGES = regex.compile(
    r"\b(?:moved|pushed|changed|switched|postponed|put|brought|rescheduled|bumped|raised|lowered|extended) "
    r"(?:it|that)(?: back| forward| up| down)?(?: from [^.!?;\n]+?)? (?:to|until|for) (?P<value>[^.!?;\n]+)"
    r"|\b(?:it|that)(?:['’]s| is| was|['’]s been| has been)(?: been)? (?:moved|pushed|changed|postponed|"
    r"rescheduled|brought forward|extended|raised)(?: back)? (?:to|until) (?P<value>[^.!?;\n]+)"
    r"|\b(?:since|from|as of|starting) [^.!?;\n]{2,30}?,? (?:it|that)(?:['’]s|['’]ll be| is| will be) "
    r"(?P<value>[^.!?;\n]+)"
    r"|\bit(?:['’]s|['’]ll be| is| will be) (?P<value>[^.!?;\n]+?)"
    r"(?= now\b| instead\b| from now on\b| since\b| these days\b| as of\b| starting\b| actually\b)",
    regex.IGNORECASE,
)
_TYPES: Final = tuple(
    regex.compile(text, regex.IGNORECASE)
    for text in (
        r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b",
        rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)?(?: of)? )?{MONTH}(?: \d{{1,2}}(?:st|nd|rd|th)?)?(?:,? \d{{4}})?",
        r"\b\d{1,2}(?::\d\d)? ?(?:am|pm|a\.m\.|p\.m\.)|\b\d{1,2}:\d\d\b|\bnoon\b|\bmidnight\b",
        r"\b(?:19|20)\d\d\b",
        r"[$€£]?\b\d[\d.,]*\d\b|[$€£]?\b\d+\b",
        r"(?<=[\w,] )(?-i:\p{Lu}[\p{L}\p{M}'’-]+)(?: (?-i:\p{Lu}[\p{L}\p{M}'’-]+))*",
    )
)
_FIRST = regex.compile(r"is (?:(?:on|at|in|to|by|the|about|around|only) )*", regex.IGNORECASE)
"""What may stand before the new value."""
_ENDING = regex.compile(r",? (?:not|instead of|rather than) [^,]+$|,? (?:sorry|actually|instead|though)\W*$")
_NOTED = regex.compile(
    r"^(?:(?:ok|okay|done|noted|got it|sure|great|booked|updated|changed|added|set|saved|perfect|all right|"
    r"alright|thanks|understood|good|fine|right|so)[,.:!–—-]* )+",
    regex.IGNORECASE,
)
_NO_STATEMENT = regex.compile(
    r"\?$|\b(?:I['’]ll|I will|I['’]ve|I can|you|your|shall|then|know|think)\b", regex.IGNORECASE
)
_LATEST: Final = 3
"""Proposals that a correction may concern."""


def corrected_by(statement: Statement, found: Sequence[Proposal]) -> tuple[int, Proposal] | None:
    """The place of the proposal that a statement corrects and the corrected one; None if it corrects nothing.

    The new value has to be of the same type as one in the latest proposals: a weekday for a weekday. A change
    leaves the earlier proposal, and so does the correction of what no proposal has: both come at the end.
    """
    if statement.text.endswith("?"):
        return None
    mistake = _CORRECTS.match(statement.text)
    match = mistake or _CHANGES.search(statement.text)
    if match is None:
        return None
    value = _ENDING.sub("", match["value"]).strip()
    quote = Quote(message=statement.message.id or str(statement.message.seq), text=statement.text)
    for form in _TYPES:
        new = form.search(f"is {value}")
        if new is None or not _FIRST.fullmatch(f"is {value}"[: new.start()]):
            continue
        for place in range(len(found) - 1, max(-1, len(found) - 1 - _LATEST), -1):
            content = _with_value(found[place].content, form, new[0])
            if content is not None:
                quotes = (*found[place].quotes, quote)
                changed = found[place].evolve(content=content, quotes=quotes)
                return (place if mistake else len(found)), changed
        named = form is _TYPES[-1]
        return None if named else next(_of_before(statement, form, new[0], quote, len(found)), None)
    return None


def is_correction(text: str) -> bool:
    """Whether a sentence corrects a mistake, rather than saying that something has changed since."""
    return _CORRECTS.match(text) is not None


def _of_before(
    statement: Statement, form: regex.Pattern[str], value: str, quote: Quote, place: int
) -> Iterator[tuple[int, Proposal]]:
    """What the assistant stated just before, with the value that corrects it."""
    if statement.before is None:
        return
    name = statement.before.id or str(statement.before.seq)
    for text in sentences(statement.before.own_text):
        quoted = Quote(message=name, text=text)
        plain = _NOTED.sub("", quoted.text).strip()
        content = (
            None
            if _NO_STATEMENT.search(plain)
            else _with_value(f"{plain[:1].upper()}{plain[1:]}", form, value)
        )
        if content is not None and query_terms(form.sub(" ", plain)):
            yield place, Proposal(content=content, quotes=(quoted, quote))


def _with_value(content: str, form: regex.Pattern[str], value: str) -> str | None:
    """A text with another value in place of the only one of that type; None where it has none or several."""
    old = [each for each in form.finditer(content) if each[0] not in ("The", "User")]
    if len(old) != 1 or old[0][0].casefold() == value.casefold():
        return None
    start, end = old[0].span()
    return f"{content[:start]}{value}{content[end:]}"
