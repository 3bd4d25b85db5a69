"""The gate of proposals: what isn't supported by the words that it quotes is refused, with the reason.

Pure. It trusts no extractor: each proposal has to quote messages that it was given, and to say no more than
these quotations do.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Final

import regex

from germane.errors import UnknownKind
from germane.extractors.clauses import dialogue_features, out_of_place
from germane.extractors.rules import USER, message_patterns, refusal_of, same_words
from germane.extractors.statements import around, is_taken_back, shown_spans, spelled_out, without_question
from germane.kinds import Kinds
from germane.lifecycle import least_trust
from germane.model.conversation import Message, MessageRole
from germane.model.extraction import Proposal, Quote
from germane.model.memory import Trust
from germane.model.text import own_text
from germane.ranking.similarity import words_of
from germane.retrieval.quality import quality_flag_of
from germane.retrieval.suspicion import findings_of, secrets_in
from germane.retrieval.tokenizer import query_terms

GROUNDED: Final = 0.6
"""The share of a proposal's telling words that its quotations must have."""
_SURE: Final = 0.48
"""How likely a quotation has to be out of place; a model that read the dialogue judges as well."""
LONGEST: Final = 600
"""Characters of a proposal: a statement, not a document."""
_TRUST: Final = {
    MessageRole.USER: Trust.OWNER,
    MessageRole.ASSISTANT: Trust.AGENT,
    MessageRole.TOOL: Trust.EXTERNAL,
}
_UNTOLD: Final = frozenset(
    {"user", "says", "said", "states", "stated", "mentions", "mentioned", "years", "old", "name", "called"}
)
"""Words that name who states something, and stand in no quotation."""
_NAMELESS: Final = frozenset(
    {"user", "i", "the", "this", "that", "it", "he", "she", "they", "we", "our", "there"}
)
_NEGATION = regex.compile(
    r"\b(?:not?|nope|nah|never|none|nobody|nothing|neither|nor|without|cannot|stop(?:ped|s)?|quit|gave up|"
    r"longer|any ?more|against|(?!can['’]t wait)\w+n['’]t|hates?|dislikes?|avoids?|allergic|intolerant|"
    r"unable)\b",
    regex.IGNORECASE,
)
_NOT = regex.compile(r"not?|nope|nah|never|none|nobody|nothing|neither|nor|without|cannot|\w+n['’]t")
"""The denials that turn any statement round; the other ones are words such as "hates"."""
_NO_MATTER = regex.compile(
    r"^(?:(?:hm+|well|oh|ah|ok|and|but|so)[,.]? )*(?:no|nope|nah)[,.!]? "
    r"(?=(?:wait|sorry|actually|my|our|I|we|it|the)\b)",
    regex.IGNORECASE | regex.MULTILINE,
)
"""Denies the message before, rather than what follows: "no my favourite colour is mustard"."""
_YES = regex.compile(
    r"(?:\w+,? )?(?:yes|yeah|yep|yup|yea|aye|sure|correct|exactly|indeed)\b", regex.IGNORECASE
)
_NO = regex.compile(r"(?:\w+,? )?(?:no|nope|nah|never|none|neither|not)\b", regex.IGNORECASE)
"""The beginning of an answer that affirms or denies."""
_CAPITALISED = regex.compile(
    r"(?<=[\p{L}\p{N},;:'’\"“”)] )\p{Lu}[\p{L}\p{M}\p{N}]*"
    r"|^\p{Lu}[\p{L}\p{M}]+(?=['’]s\b|\s(?:\w+s|\w+ed|had)\b)"
)
_FIGURE = regex.compile(r"\d+(?:[.,:]\d+)*")
_ADDRESSED = regex.compile(r"\byou", regex.IGNORECASE)
_BETWEEN = regex.compile(
    r"[,;:–—]\s+|\s-+\s|\s(?:and|but|so|plus)\s(?=(?:I|we|my|our|he|she|they|it|you)\b)", regex.IGNORECASE
)
"""What stands between two clauses of a sentence."""
_STATES = regex.compile(r"(?:(?:and|but|so|also|plus) )?(?:I|we)\b", regex.IGNORECASE)
_SUPPOSED = regex.compile(
    r"(?:\w+,? )?(?:if|what if|imagine|suppose|supposing|pretend|assuming|let['’]?s (?:say|imagine|pretend)|"
    r"in (?:my|a|the|this) (?:dream|story|novel|book|game|film|movie))\b",
    regex.IGNORECASE,
)
"""Begins a sentence whose later clauses aren't true either."""
_SENTENCES = regex.compile(r"(?<=[.!?…]['\"”’)\]]*)\s+|\n+")


def refusal(
    proposal: Proposal,
    messages: Mapping[str, Message],
    *,
    known: Mapping[str, str] | None = None,
    kinds: Kinds,
    language: str = "english",
) -> str:
    """Why a proposal isn't learned; empty where nothing speaks against it.

    `messages` are those that the extractor was given, by id, and `known` the texts of the memories, by id.
    """
    return next(_reasons(proposal, messages, known or {}, kinds, language), "")


def trust_of(proposal: Proposal, messages: Mapping[str, Message]) -> Trust:
    """Whose word a proposal is: that of the least trusted message that it quotes.

    A question that the user answered counts as the user's word. What an assistant says after it has read
    results of tools may be theirs.
    """
    questions = _questions(proposal, messages)
    quotes = [quote for quote in proposal.quotes if quote not in questions]
    reading = {message.group for message in messages.values() if message.group and message.results}
    return least_trust(_trust_of(quote, messages[quote.message], reading) for quote in quotes)


def _reasons(
    proposal: Proposal,
    messages: Mapping[str, Message],
    known: Mapping[str, str],
    kinds: Kinds,
    language: str,
) -> Iterator[str]:
    yield from _of_fields(proposal, known, kinds)
    yield from _suspicious(proposal, messages)
    if not proposal.quotes:
        yield "It quotes no message."
        return
    unsupported = [reason for quote in proposal.quotes if (reason := _of_quote(quote, messages))]
    if unsupported:
        yield unsupported[0]
        return
    questions = _questions(proposal, messages)
    whole = "\n".join(quote.text for quote in proposal.quotes)
    replaced = known.get(proposal.replaces or "", "")
    grounds = _Grounds(proposal, messages, language, replaced)
    refused, stated = _supports(proposal, messages, questions)
    if any(_is_shown(quote, messages[quote.message]) for quote in proposal.quotes):
        yield "It stands in a quotation, in code, or in pasted lines."
    if refused and any(grounds.missing("\n".join(stated))):
        yield refused[0]
    spoken = {messages[quote.message].role for quote in proposal.quotes}
    if (
        (proposal.subject or USER) == USER
        and spoken == {MessageRole.ASSISTANT}
        and proposal.kind != "decision"
    ):
        yield "The assistant said it of the user, who didn't."
    yield from grounds.missing(whole)
    if questions:
        yield from _unanswered(proposal, questions, language)
    if any(_is_out_of_place(quote, messages) for quote in proposal.quotes):
        yield "It isn't meant as a statement, by the words around it: it may be played, pasted or taken back."


def _suspicious(proposal: Proposal, messages: Mapping[str, Message]) -> Iterator[str]:
    quoted = all(quote.message in messages for quote in proposal.quotes) and bool(proposal.quotes)
    is_external = quoted and trust_of(proposal, messages) is Trust.EXTERNAL
    for rule in findings_of(proposal.content) if is_external else secrets_in(proposal.content):
        yield f"It looks like a secret or an instruction to a model ({rule})."


def _questions(proposal: Proposal, messages: Mapping[str, Message]) -> tuple[Quote, ...]:
    """The quoted questions of somebody else that a quoted message of the user's answers.

    An assistant's question is answered by the next message; two people may write several in a row.
    """
    cited = [messages[quote.message] for quote in proposal.quotes]
    found = []
    for quote in proposal.quotes:
        question = messages[quote.message]
        later = [each for each in messages.values() if each.seq > question.seq]
        if question.role is MessageRole.ASSISTANT:
            later = sorted(later, key=lambda each: each.seq)[:1]
        is_answered = any(
            each.role is MessageRole.USER and each.author != question.author and each in cited
            for each in later
        )
        *_, last = ("", *_sentences(quote, question))
        if is_answered and last.endswith("?"):
            found.append(quote)
    return tuple(found)


def _supports(
    proposal: Proposal, messages: Mapping[str, Message], questions: Collection[Quote]
) -> tuple[list[str], list[str]]:
    """Why clauses of the quotations support nothing, and the clauses that may."""
    refused: list[str] = []
    stated: list[str] = []
    for quote in proposal.quotes:
        if quote in questions or _only_mentions(proposal, quote) or _is_correction(proposal, quote):
            stated.append(quote.text)
            continue
        for clause, sentence in _around(quote, messages[quote.message]):
            reason = refusal_of(clause, sentence, proposal.kind, proposal.content)
            (refused if reason else stated).append(reason or clause)
    return refused, stated


def _unanswered(proposal: Proposal, questions: Collection[Quote], language: str) -> Iterator[str]:
    """What speaks against a proposal as the answer to questions that it quotes."""
    quoted = "\n".join(quote.text for quote in proposal.quotes if quote not in questions)
    is_denial = bool(_denials(proposal.content))
    if _NO.match(quoted) and not is_denial:
        yield "Its quotation denies it."
    elif is_denial and not (_NO.match(quoted) or _NEGATION.search(quoted)):
        yield "It denies what its quotations say."
    elif not _YES.match(quoted) and not _NO.match(quoted):
        terms = set(query_terms(proposal.content, language=language))
        if not terms & set(query_terms(spelled_out(quoted), language=language)):
            yield "It has nothing of the answer that it quotes."


def _of_fields(proposal: Proposal, known: Collection[str], kinds: Kinds) -> Iterator[str]:
    content = proposal.content
    try:
        kinds.require(proposal.kind)
    except UnknownKind:
        yield f"Its kind {proposal.kind!r} is unknown."
    if not content.strip():
        yield "It says nothing."
    elif own_text(content) != content:
        yield "It came from memory."
    elif len(content) > LONGEST:
        yield f"It has {len(content):,} characters; a statement has at most {LONGEST}."
    elif content.rstrip().endswith("?"):
        yield "It is a question."
    elif (doubt := quality_flag_of(content)) is not None:
        yield f"It isn't worth keeping: {doubt.value}."
    if proposal.replaces is not None and proposal.replaces not in known:
        yield f"It replaces {proposal.replaces!r}, which is no known memory."
    start, end = proposal.valid_from, proposal.valid_until
    if start is not None and end is not None and start >= end:
        yield "It ends before it begins."


def _of_quote(quote: Quote, messages: Mapping[str, Message]) -> str:
    """Why a quotation doesn't count; empty where it does."""
    message = messages.get(quote.message)
    if message is None:
        return f"It quotes message {quote.message!r}, which was not among those given."
    if not quote.text.strip():
        return "Its quotation is empty."
    if message.role is MessageRole.SYSTEM:
        return "It quotes the instructions of the system."
    if _stands_in(quote.text, message.own_text) or _stands_in(quote.text, _of_results(message)):
        return ""
    if _stands_in(quote.text, message.text):
        return "It quotes what came from memory."
    return f"Its quotation doesn't stand in message {quote.message!r}."


def _trust_of(quote: Quote, message: Message, reading: Collection[str]) -> Trust:
    if not _stands_in(quote.text, message.own_text):
        return Trust.EXTERNAL
    if message.role is MessageRole.ASSISTANT and message.group in reading:
        return Trust.EXTERNAL
    return _TRUST.get(message.role, Trust.EXTERNAL)


def _of_results(message: Message) -> str:
    return own_text("\n".join(result.text for result in message.results))


def _stands_in(quote: str, text: str) -> bool:
    return _plain(quote) in _plain(text)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _around(quote: Quote, message: Message) -> Iterator[tuple[str, str]]:
    """The clauses of a message that a quotation has a part of, each with its sentence.

    A sentence that supposes something is one clause.
    """
    for sentence in _sentences(quote, message):
        start, end = _place(quote.text, sentence) or (0, len(sentence))
        if _SUPPOSED.match(sentence):
            start, end = 0, len(sentence)
        bounds = [each.span() for each in _BETWEEN.finditer(sentence)]
        first = max((last for _, last in bounds if last <= start), default=0)
        last = min((begin for begin, _ in bounds if begin >= end), default=len(sentence))
        clause = without_question(sentence[first:last].strip())
        # "Can you help, I use Flask?" asks for help, and states the rest.
        yield clause.rstrip("?") if first and _STATES.match(clause) else clause, without_question(sentence)


def _sentences(quote: Quote, message: Message) -> Iterator[str]:
    """The sentences that a quotation stands in, or that stand in it."""
    for text in map(_lines, (message.own_text, _of_results(message))):
        place = _place(quote.text, text)
        if place is None:
            continue
        # Lines are kept apart as sentences are.
        ends = [each.span() for each in _SENTENCES.finditer(text)]
        bounds = pairwise([0, *(each for end in ends for each in end), len(text)])
        for start, end in islice(bounds, 0, None, 2):
            if start < place[1] and place[0] < end and (sentence := _plain(text[start:end])):
                yield sentence
        return


def _lines(text: str) -> str:
    """A text as `_plain` writes it, but with its lines."""
    return "\n".join(map(_plain, text.splitlines()))


def _place(quote: str, lines: str) -> tuple[int, int] | None:
    """Where a quotation stands in a text in lines, whichever of its words end them."""
    found = regex.search(r"\s+".join(map(regex.escape, _plain(quote).split(" "))), lines)
    return None if found is None else found.span()


def _is_out_of_place(quote: Quote, messages: Mapping[str, Message]) -> bool:
    """Whether the words around a quotation of the user's say that it is meant as something else."""
    users = [each for each in messages.values() if each.role is MessageRole.USER]
    spoken = [each.own_text for each in users]
    for place, each in enumerate(users):
        if (each.id or str(each.seq)) == quote.message:
            earlier, later = around(spoken, place)
            words = dialogue_features(_plain(quote.text), _plain(spoken[place]), earlier, later)
            return is_taken_back(later, message_patterns()) or out_of_place(words) >= _SURE
    return False


def _is_shown(quote: Quote, message: Message) -> bool:
    """Whether most of a quotation of the user's stands in what the message only shows."""
    text = _lines(message.own_text)
    place = _place(quote.text, text)
    if message.role is not MessageRole.USER or place is None:
        return False
    shown = {
        position
        for start, end in shown_spans(text)
        for position in range(max(start, place[0]), min(end, place[1]))
    }
    return 2 * len(shown) > place[1] - place[0]


def _is_correction(proposal: Proposal, quote: Quote) -> bool:
    """Whether a quotation is a later one: what it corrects was quoted before it, and looked at."""
    stating = [each for each in proposal.quotes if not _is_mention(each.text)]
    return len(stating) > 1 and quote is proposal.quotes[-1] and not quote.text.endswith("?")


def _is_mention(text: str) -> bool:
    """Whether a text only mentions somebody, such as "my sister", and so states nothing."""
    people = message_patterns().people
    return people is not None and people.fullmatch(text) is not None


def _only_mentions(proposal: Proposal, quote: Quote) -> bool:
    """Whether a quotation only names whom the next one is about."""
    return quote is not proposal.quotes[-1] and _is_mention(quote.text)


@dataclass(frozen=True, slots=True)
class _Grounds:
    """What a proposal is measured by: its quotations, who wrote them, and the memory that it replaces."""

    proposal: Proposal
    messages: Mapping[str, Message]
    language: str
    replaced: str

    def missing(self, quoted: str) -> Iterator[str]:
        """What the proposal says that neither the quoted words nor the memory which it replaces do.

        Of what the memory doesn't say the quotations have to have all: "it's at 10 now" gives a new time
        alone.
        """
        proposal, replaced = self.proposal, self.replaced
        stated = spelled_out(quoted)
        both = f"{stated}\n{replaced}"
        quoted_terms = self._terms(both)
        free = {*self._terms(proposal.subject or ""), *self._terms(" ".join(_UNTOLD))}
        telling = [each for each in query_terms(proposal.content, language=self.language) if each not in free]
        same = [group for group in same_words(self.language) if group & quoted_terms]
        grounded = sum(term in quoted_terms or any(term in group for group in same) for term in telling)
        figures = set(_FIGURE.findall(proposal.content)) - set(_FIGURE.findall(both))
        if figures:
            yield f"Its quotations don't have {', '.join(sorted(figures))}."
        names = [each for each in _CAPITALISED.findall(proposal.content) if not self._is_named(each, both)]
        if names:
            yield f"Its quotations don't name {', '.join(names)}."
        if not telling or grounded < GROUNDED * len(telling):
            yield f"Its quotations have {grounded} of its {len(telling)} telling words."
        new = set(telling) - self._terms(replaced)
        if replaced and not (new and new <= self._terms(stated)):
            yield "Its quotations say nothing that the memory which it replaces doesn't say."
        if _denies(proposal.content, stated):
            yield "It denies what its quotations say."
        stated = _NO_MATTER.sub("", stated)
        if _NEGATION.search(stated) and len(proposal.quotes) == 1 and not _NEGATION.search(proposal.content):
            yield from _denied(proposal, stated, replaced)

    def _terms(self, text: str) -> set[str]:
        return set(query_terms(text, language=self.language))

    def _is_named(self, name: str, quoted: str) -> bool:
        """Whether a name stands in the quoted words, or is of who wrote them or is addressed there."""
        addressed = _ADDRESSED.search(quoted) is not None
        cited = {quote.message for quote in self.proposal.quotes}
        people = {each.author for key, each in self.messages.items() if addressed or key in cited}
        known = " ".join((quoted, self.proposal.subject or "", *people))
        words = {word.removesuffix("'s") for word in words_of(known)} | _NAMELESS
        return set(words_of(name)) <= words or self._terms(name) <= self._terms(quoted)


def _denies(content: str, quoted: str) -> bool:
    """Whether a text has a denial that the quotation lacks: "isn't allergic" of "is allergic" as well."""
    own, theirs = (set(map(str.casefold, _NEGATION.findall(text))) for text in (content, quoted))
    plain = _denials(content)
    if not plain or any(_NOT.fullmatch(word) for word in theirs):
        return bool(own) and not theirs
    return not theirs - own


def _denials(text: str) -> set[str]:
    """The words of a text that turn any statement round, such as "not"."""
    return {word for word in map(str.casefold, _NEGATION.findall(text)) if _NOT.fullmatch(word)}


def _denied(proposal: Proposal, quoted: str, replaced: str) -> Sequence[str]:
    """Whether the part of the quotation that a proposal takes is one that is denied there."""
    wanted = set(words_of(proposal.content)) - set(words_of(replaced))
    clauses = regex.split(r"[,;:–—]| but | and | so | although | though ", quoted)
    best = max(clauses, key=lambda clause: len(wanted & set(words_of(clause))))
    return ("Its quotation denies it.",) if _NEGATION.search(best) else ()
