"""How much evidence a context shows from earlier conversations: python bench/sessions.py FILE.

Each dialogue of a FILE in LoCoMo's layout is stored twice: as memories, as `germane import` stores it, and as
conversations, one for each of its sessions and nothing else. Each question is then put to `engine.assemble`
with budgets of 500, 1,000, 2,000, 4,000 and 8,000 tokens. Printed are the share of the evidence that the
context shows whole, and the median time.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Literal

import germane
from germane import Message
from germane.conversation import MessageRole, TextPart
from germane.evaluation.result import holds_phrase, mean
from germane.importers.locomo import (
    ADVERSARIAL,
    DialogueTurn,
    LocomoConversation,
    conversation_drafts,
    read_locomo,
)

BUDGETS = (500, 1000, 2000, 4000, 8000)
_ROLES = {"user": MessageRole.USER, "assistant": MessageRole.ASSISTANT}


def message(turn: DialogueTurn, first: str) -> Message:
    """A turn as a message: by its role, or with the speaker's name before its text."""
    role = _ROLES.get(turn.speaker.lower())
    text = turn.text if role else f"{turn.speaker}: {turn.text}"
    return Message(
        role=role or (MessageRole.USER if turn.speaker == first else MessageRole.ASSISTANT),
        parts=(TextPart(text=text),),
        created_at=turn.session_at + timedelta(seconds=turn.index),
    )


def measured(
    dialogue: LocomoConversation, budgets: Sequence[int], embedder: Literal["bundled"] | None, stored: str
) -> Iterator[tuple[int, float, float]]:
    """The budget, the share of evidence shown and the seconds of each question."""
    texts = {turn.dia_id: turn.text for turn in dialogue.turns}
    with germane.open(":memory:", embedder=embedder) as engine:
        if stored == "memories":
            engine.remember_many(list(conversation_drafts(dialogue)))
        else:
            for session, turns in groupby(dialogue.turns, key=lambda turn: turn.session):
                first = dialogue.turns[0].speaker
                engine.conversation(f"session-{session}").extend([message(turn, first) for turn in turns])
        engine.assemble("first")
        for question in dialogue.questions:
            if question.category == ADVERSARIAL or not question.evidence:
                continue
            for budget in budgets:
                began = time.perf_counter()
                text = engine.assemble(question.question, budget=budget).text
                seconds = time.perf_counter() - began
                found = [float(holds_phrase(text, texts[name])) for name in question.evidence]
                yield budget, mean(found), seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--lexical", action="store_true", help="without an embedder")
    parser.add_argument("--budgets", default=",".join(map(str, BUDGETS)))
    parser.add_argument("--stored", default="memories,conversations")
    parser.add_argument("--most", type=int, default=None, help="dialogues of each file to measure")
    given = parser.parse_args()
    budgets = [int(size) for size in given.budgets.split(",")]
    embedder: Literal["bundled"] | None = None if given.lexical else "bundled"
    print(f"{'':<16}{'stored as':<16}" + "".join(f"{budget:>8,}" for budget in budgets) + f"{'p50 ms':>9}")
    for file in given.files:
        dialogues = read_locomo(file)[: given.most]
        for stored in given.stored.split(","):
            results = [one for each in dialogues for one in measured(each, budgets, embedder, stored)]
            shares = [mean([share for size, share, _ in results if size == budget]) for budget in budgets]
            middle = 1000 * statistics.median(seconds for *_, seconds in results)
            row = "".join(f"{share:>8.1%}" for share in shares)
            print(f"{file.stem:<16}{stored:<16}{row}{middle:>9.1f}", flush=True)


if __name__ == "__main__":
    main()
