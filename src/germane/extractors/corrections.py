"""Corrections and changes of what was stated just before: "no, it's Thursday", "they moved it to 9:30".

Pure, and for English.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import regex

from germane.extractors.references import HOUR, TIME, VALUE_TYPES, with_value
from germane.extractors.statements import Statement, sentences
from germane.model.extraction import Proposal, Quote
from germane.retrieval.tokenizer import query_terms

_CORRECTS = regex.compile(
    r"^(?:no|nope|oops|sorry|wait|actually|correction|hang on|ah|oh|hm+|my bad|my mistake|scratch that)\b"
    r"(?:[,.!:–—-]+ ?|\s)(?:(?:no|sorry|wait|actually|I mean|typo|autocorrect|not [^,]+),? )*"
    r"(?:it['’]?s|it is|that['’]?s|that is|I meant|I mean|make (?:it|that)|it should be|should be|it was|"
    r"s?he['’]s|(?:his|her|its|their|the) name(?:['’]s| is))\s+(?:actually |really |now )?(?:called |named )?"
    r"(?P<value>[^.!?;\n]+)"
    r"|^(?:I meant|I mean(?:t to say)?|make (?:it|that)|correction:?)\s+(?P<value>[^.!?;\n]+)"
    r"|^(?:(?:no|sorry|oops|wait),? )*not [^,.!?;\n]+, (?:(?:sorry|but),? )*(?:it['’]s )?"
    r"(?P<value>[^.!?;\n]+)"
    r"|^(?:sorry|oops|wait|correction|no wait|oh no|ah no|no,? sorry|I mean)[,:!]* (?:on |at |in )?"
    r"(?P<value>[^\s.!?;,]+(?: [^\s.!?;,]+){0,2})(?=[.!]*$)",
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
_SINCE = regex.compile(
    r"\b(?:from|as of|starting) [^,.!?;\n]{2,30}?(?=,? (?:it|that)(?:['’]|\b))", regex.IGNORECASE
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
    leaves the earlier proposal, and comes at the end.
    """
    form, value = _new_value(statement)
    for place in range(len(found) - 1, max(-1, len(found) - 1 - _LATEST), -1):
        content = None if form is None else with_value(found[place].content, form, value)
        if content is None and HOUR.fullmatch(value):
            content = with_value(found[place].content, TIME, value)
        if content is not None:
            content = f"{content.rstrip('.')}{_since(statement.text)}."
            changed = found[place].evolve(content=content, quotes=(*found[place].quotes, _quote(statement)))
            return (place if is_correction(statement.text) else len(found)), changed
    return None


def corrected_answer(statement: Statement) -> Proposal | None:
    """What the assistant stated just before, with the value that the statement gives; None without one."""
    form, value = _new_value(statement)
    if form is None or form is VALUE_TYPES[-1]:
        return None
    return next(_of_before(statement, form, value), None)


def _since(text: str) -> str:
    """From when a change of "it" holds, as the end of a sentence; empty if it doesn't say so."""
    match = _SINCE.search(text)
    return "" if match is None else f" {match[0].casefold()[:1]}{match[0][1:]}"


def _quote(statement: Statement) -> Quote:
    return Quote(message=statement.message.id or str(statement.message.seq), text=statement.text)


def _new_value(statement: Statement) -> tuple[regex.Pattern[str] | None, str]:
    """The type and the value that a correction or a change of "it" gives; no type where it gives none."""
    match = _CORRECTS.match(statement.text) or _CHANGES.search(statement.text)
    if match is None or statement.text.endswith("?"):
        return None, ""
    value = f"is {_ENDING.sub('', match['value']).strip()}"
    for form in VALUE_TYPES:
        new = form.search(value)
        if new is not None and _FIRST.fullmatch(value[: new.start()]):
            return form, new[0]
    return None, ""


def gives_value(text: str) -> bool:
    """Whether a text gives a new value of what was stated before it."""
    return is_correction(text) or _CHANGES.search(text) is not None


def is_correction(text: str) -> bool:
    """Whether a sentence corrects a mistake, rather than saying that something has changed since."""
    return _CORRECTS.match(text) is not None


def _of_before(statement: Statement, form: regex.Pattern[str], value: str) -> Iterator[Proposal]:
    if statement.before is None:
        return
    name = statement.before.id or str(statement.before.seq)
    for text in sentences(statement.before.own_text):
        quoted = Quote(message=name, text=text)
        plain = _NOTED.sub("", quoted.text).strip()
        content = (
            None
            if _NO_STATEMENT.search(plain)
            else with_value(f"{plain[:1].upper()}{plain[1:]}", form, value)
        )
        if content is not None and query_terms(form.sub(" ", plain)):
            yield Proposal(content=content, quotes=(quoted, _quote(statement)))
