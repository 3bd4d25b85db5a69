"""How much of the evidence for a question a request shows: python bench/recalled.py FILE [...] [--recalled].

Each conversation of a FILE in LoCoMo's layout is laid into a log as `germane chat import` lays it: a user and
an assistant by their roles; of others the first to speak is the user, and each text begins with a name. Each
question is then the query of a request with windows of 500, 1,000, 2,000 and 4,000 tokens. Printed are the
share of the evidence that the request shows whole, also by the number of turns of evidence, and the median
time of a request. With --recalled, the whole window goes to earlier messages that match, as it goes to
memories in `germane eval run`; without, the latest messages have their usual share.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal

import germane
from germane import Message, Share
from germane.conversation import MessageRole, RequestShares, TextPart
from germane.evaluation.result import holds_phrase, mean
from germane.importers.locomo import ADVERSARIAL, DialogueTurn, LocomoConversation, read_locomo

WINDOWS = (500, 1000, 2000, 4000)
_ROLES = {"user": MessageRole.USER, "assistant": MessageRole.ASSISTANT}
_MANY = 3


@dataclass(frozen=True, slots=True)
class Shown:
    """What one request showed of a question's evidence: its share, of so many turns, in so many seconds."""

    window: int
    pieces: int
    share: float
    seconds: float


def logged(turns: Sequence[DialogueTurn]) -> dict[str, Message]:
    """The messages of a conversation by the ids of their turns, in order."""
    first = turns[0].speaker
    made = {}
    for turn in turns:
        role = _ROLES.get(turn.speaker.lower())
        text = turn.text if role else f"{turn.speaker}: {turn.text}"
        made[turn.dia_id] = Message(
            role=role or (MessageRole.USER if turn.speaker == first else MessageRole.ASSISTANT),
            parts=(TextPart(text=text),),
            created_at=turn.session_at + timedelta(seconds=turn.index),
        )
    return made


def shown(
    conversation: LocomoConversation,
    shares: RequestShares | None,
    embedder: Literal["bundled"] | None,
    windows: Sequence[int],
) -> Iterator[Shown]:
    """What requests show for each question about a conversation."""
    messages = logged(conversation.turns)
    with germane.open(":memory:", embedder=embedder) as engine:
        log = engine.conversation("log")
        log.extend(messages.values())
        log.append("user", "Answer the question.")
        for question in conversation.questions:
            if question.category == ADVERSARIAL or not question.evidence:
                continue
            for window in windows:
                began = time.perf_counter()
                made = engine.request(log, query=question.question, window=window, reserve=0, shares=shares)
                took = time.perf_counter() - began
                text = "\n".join(str(message["content"]) for message in made.messages)
                found = [holds_phrase(text, messages[name].text) for name in question.evidence]
                yield Shown(window, len(found), mean([float(one) for one in found]), took)


def report(name: str, results: Sequence[Shown]) -> Iterator[str]:
    """A line for each window."""
    for window in sorted({one.window for one in results}):
        here = [one for one in results if one.window == window]
        by_pieces: dict[int, list[float]] = {1: [], 2: [], _MANY: []}
        for one in here:
            by_pieces[min(one.pieces, _MANY)].append(one.share)
        parts = "".join(f"{mean(shares):>8.1%}" if shares else f"{'':>8}" for shares in by_pieces.values())
        middle = 1000 * statistics.median(one.seconds for one in here)
        yield f"{name:<16}{window:>8,}{mean([one.share for one in here]):>10.1%}{parts}{middle:>9.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--recalled", action="store_true")
    parser.add_argument("--lexical", action="store_true", help="without an embedder")
    parser.add_argument("--windows", default=",".join(map(str, WINDOWS)))
    given = parser.parse_args()
    shares = RequestShares(history=Share(weight=0)) if given.recalled else None
    windows = [int(size) for size in given.windows.split(",")]
    print(f"{'':<16}{'window':>8}{'evidence':>10}{'of 1':>8}{'of 2':>8}{'of 3+':>8}{'p50 ms':>9}")
    for file in given.files:
        embedder: Literal["bundled"] | None = None if given.lexical else "bundled"
        results = [one for each in read_locomo(file) for one in shown(each, shares, embedder, windows)]
        print("\n".join(report(file.stem, results)), flush=True)


if __name__ == "__main__":
    main()
