"""How much of a prompt stays from turn to turn, and what it knows: python bench/prefix.py FILE [WINDOW ...].

Each conversation of a FILE in LoCoMo's layout is laid into a log: what the first speaker says is the
user's, what the second says the answer. Then 50 of its questions follow, each a turn
of its own, with its answer. Prints the share of the prompts' tokens at the beginning of the
prompt before, and how much of the questions' evidence stands in the prompts: for `anchored`, which is what
`request` sends, and for `ranked`, the best groups in the order of the dialogue, with holes between them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import germane
from germane import Engine
from germane.conversation.compaction import as_json, message_tokens
from germane.evaluation.result import mean
from germane.importers.locomo import ADVERSARIAL, LocomoConversation, LocomoQuestion, read_locomo
from germane.model.conversation import Provider
from germane.tokens import get_counter

TURNS = 50
WINDOWS = (4000, 8000)
SYSTEM = "You remember what the two friends told each other, and answer in a sentence."
_COUNTER = get_counter("o200k")


@dataclass(frozen=True)
class Turn:
    """One prompt: how many tokens it has and how many stay, and the share of the evidence in it."""

    tokens: int
    reused: int
    recall: float


class Prompts:
    """Prompts one after another, each compared with the one before."""

    def __init__(self) -> None:
        self._before: list[str] = []

    def turn(self, messages: Sequence[dict[str, Any]], evidence: Sequence[str]) -> Turn:
        texts = [as_json(message) for message in messages]
        costs = [message_tokens(message, Provider.OPENAI, _COUNTER) for message in messages]
        same = next(
            (
                place
                for place, (one, other) in enumerate(zip(texts, self._before, strict=False))
                if one != other
            ),
            min(len(texts), len(self._before)),
        )
        self._before = texts
        content = "\n".join(str(message.get("content")) for message in messages)
        # A block of recalled text indents the further lines of a message.
        plain = " ".join(content.split())
        found = [" ".join(text.split()) in plain for text in evidence]
        return Turn(tokens=sum(costs), reused=sum(costs[:same]), recall=mean([float(one) for one in found]))


def anchored(window: int) -> Callable[[Engine], list[dict[str, Any]]]:
    """What `request` sends, each going on from the one before."""
    before: list[germane.Request] = []

    def prompt(engine: Engine) -> list[dict[str, Any]]:
        made = engine.request(
            engine.conversation("friends"),
            system=SYSTEM,
            window=window,
            reserve=0,
            previous=before[-1] if before else None,
        )
        before[:] = [made]
        return made.messages

    return prompt


def ranked(window: int) -> Callable[[Engine], list[dict[str, Any]]]:
    """The best groups for the latest prompt, within the same tokens."""

    def prompt(engine: Engine) -> list[dict[str, Any]]:
        talk = engine.conversation("friends")
        found = talk.ranked(0, budget=window - 30)
        system = {"role": "system", "content": SYSTEM}
        return [system, *talk.payload("openai", found.messages).messages]

    return prompt


def turns_of(
    conversation: LocomoConversation,
    questions: Sequence[LocomoQuestion],
    prompt: Callable[[Engine], list[dict[str, Any]]],
) -> list[Turn]:
    """The prompts of all questions about one conversation."""
    texts = {turn.dia_id: turn.text for turn in conversation.turns}
    prompts = Prompts()
    found = []
    with germane.open(":memory:", embedder=None) as engine:
        talk = engine.conversation("friends")
        talk.extend(
            {
                "role": "user" if turn.speaker == conversation.turns[0].speaker else "assistant",
                "content": f"{turn.speaker}: {turn.text}",
            }
            for turn in conversation.turns
        )
        for question in questions:
            talk.append("user", question.question)
            found.append(prompts.turn(prompt(engine), [texts[name] for name in question.evidence]))
            talk.append("assistant", str(question.answer))
    return found


def main() -> None:
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    conversations = read_locomo(Path(sys.argv[1]))
    windows = [int(size) for size in sys.argv[2:]] or list(WINDOWS)
    print(f"{len(conversations)} conversations, {TURNS} turns each; tokens reused, evidence recalled")
    for window in windows:
        for name, make in (("anchored", anchored), ("ranked", ranked)):
            turns: list[Turn] = []
            for conversation in conversations:
                questions = [q for q in conversation.questions if q.category != ADVERSARIAL and q.evidence]
                # Spread over the whole, since questions stand in the order of their kinds.
                step = max(1, len(questions) // TURNS)
                turns += turns_of(conversation, questions[::step][:TURNS], make(window))
            reused = sum(turn.reused for turn in turns) / sum(turn.tokens for turn in turns)
            recall = mean([turn.recall for turn in turns])
            filled = mean([turn.tokens / window for turn in turns])
            print(f"  {window:>7,}  {name:<9} reused {reused:6.1%}  recall {recall:6.1%}  full {filled:6.1%}")


if __name__ == "__main__":
    main()
