"""What a session was about: a title, topics, the first and last message, and questions without an answer.

Pure, but for the summarizer where one is given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import regex

from germane.conversation.compaction import SENTENCES, spoken_messages
from germane.conversation.formats.parts import spoken_lines
from germane.conversation.groups import groups_of
from germane.conversation.views import tiered
from germane.model.conversation import Group, Message, MessageRole, SessionSummary
from germane.model.text import cut, line_of
from germane.protocols import Summarizer

_TOPICS = 8
_TITLE = 80
_QUOTED = 200
_MOST_OPEN = 5
_TOKENS = 200
"""About how long a summarizer's text may be."""
_WORD = regex.compile(r"[\p{L}][\p{L}\p{M}\p{N}'’_-]*")
_ASKS = regex.compile(r"[?？؟]\W*$")


def summary_of(
    session: str,
    messages: Sequence[Message],
    *,
    topics: Callable[[Counter[str]], Sequence[str]],
    summarizer: Summarizer | None = None,
) -> SessionSummary:
    """The summary of the visible messages of a session, which has at least one with text.

    `topics` orders words by how much they say, from how often each occurs. A summarizer's text is the
    `summary`; if it fails or answers nothing, the other fields are put together, as without one.
    """
    groups = groups_of(messages)
    spoken = [(message.role, message.own_text.strip()) for message in spoken_messages(groups)]
    first, last = spoken[0], spoken[-1]
    words = Counter(word for _, text in spoken for word in _WORD.findall(text))
    prompt = next((text for role, text in spoken if role is MessageRole.USER), first[1])
    found = SessionSummary(
        session=session,
        title=cut(line_of(next(_sentences(prompt), prompt)), _TITLE),
        topics=tuple(topics(words))[:_TOPICS],
        first=cut(line_of(first[1]), _QUOTED),
        last=cut(line_of(last[1]), _QUOTED),
        open_questions=tuple(_open_questions(groups))[-_MOST_OPEN:],
        messages=sum(len(group.messages) for group in groups),
        first_at=next((each.created_at for each in messages if each.created_at), None),
        last_at=next((each.created_at for each in reversed(messages) if each.created_at), None),
    )
    text = "" if summarizer is None else _summarized(summarizer, groups)
    return found.evolve(summary=text or _put_together(found), by="summarizer" if text else "words")


def _summarized(summarizer: Summarizer, groups: Sequence[Group]) -> str:
    lines = (line for group in groups for line in spoken_lines(tiered(group.messages, active=None)))
    text = "\n".join(f"{role}: {words}" for role, words in lines)
    try:
        return summarizer.summarize(text, _TOKENS).strip()
    except Exception:  # noqa: BLE001 - Whatever a summarizer raises, the session has a summary of its words.
        return ""


def _put_together(found: SessionSummary) -> str:
    lines = [found.title]
    if found.topics:
        lines.append(f"Topics: {', '.join(found.topics)}.")
    if found.last != found.first:
        lines.append(f"Last: {found.last}")
    lines += [f"Open question: {question}" for question in found.open_questions]
    return "\n".join(lines)


def _open_questions(groups: Sequence[Group]) -> Iterator[str]:
    """The user's questions in groups without a reply, and the assistant's that end the session."""
    for group in groups:
        spoken = list(spoken_messages([group]))
        if all(message.role is MessageRole.USER for message in spoken):
            yield from (each for message in spoken for each in _questions(message.own_text))
        elif group is groups[-1] and spoken[-1].role is MessageRole.ASSISTANT:
            yield from _questions(spoken[-1].own_text)


def _questions(text: str) -> Iterator[str]:
    return (cut(line_of(each), _QUOTED) for each in _sentences(text) if _ASKS.search(each))


def _sentences(text: str) -> Iterator[str]:
    return (each.strip() for each in SENTENCES.split(text) if each and each.strip())
