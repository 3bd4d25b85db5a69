"""Requests beside what others make of the same conversations: python bench/request.py [--speed].

300 random conversations (English, CJK, code, JSON tool results, long messages, mixed; parallel calls) are
fitted to windows of 1,000 and 4,000 tokens. Figures of the results: the share over the budget in OpenAI's
chat format (contents, names and arguments, 4 for each message and 3), the share with a call split from
its result, the share without the last question, how much of the budget is used where more was on offer,
how many use less than 90 % of it, and how many were refused by an error. Beside germane take part, where
they are installed: langchain-core's `trim_messages` with an exact counter and the settings of its
documentation, and LlamaIndex's buffer.

With --speed: a request of a conversation of 10,000 messages, warm, turn after turn.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from conversation import transcript

import germane
from germane import RequestTooLarge
from germane.tokens import get_counter

Talk: TypeAlias = list[dict[str, Any]]
Fit: TypeAlias = Callable[[Talk, int], Talk | None]

COUNTER = get_counter("o200k")
CONVERSATIONS = 300
_FULL = 0.9
SYSTEM = "You are a helpful assistant of a warehouse. Answer briefly, and use the tools for facts."
TEXTS = {
    "english": "the worker reads the invoice and sends the order to the warehouse before the release ",
    "cjk": "倉庫の作業員は請求書を読んで注文を送ります。今天下雨，明天不下雨。",
    "code": "def parse(path: str) -> dict[str, int]:\n    return {line: len(line) for line in open(path)}\n",
    "json": '{"id": 4711, "state": "shipped", "lines": [{"sku": "A-1", "qty": 3}]}, ',
}


def main() -> None:
    if "--speed" in sys.argv:
        speed()
        return
    talks = [conversation(random.Random(seed)) for seed in range(CONVERSATIONS)]
    fits: dict[str, Fit] = {"germane request": ours, "germane, turn by turn": turn_by_turn}
    if importlib.util.find_spec("langchain_core"):
        fits["langchain trim_messages"] = langchain()
    if importlib.util.find_spec("llama_index"):
        fits["LlamaIndex buffer"] = llama_index()
    for budget in (1000, 4000):
        longer = [talk for talk in talks if chat_tokens(talk) > budget]
        print(f"{len(longer)} conversations of more than {budget:,} tokens")
        columns = (
            ("over", 7),
            ("worst", 8),
            ("split", 8),
            ("no question", 13),
            ("used", 7),
            ("under 90 %", 12),
        )
        titles = "".join(f"{title:>{width}}" for title, width in (*columns, ("refused", 9)))
        print(f"  {'':<26}{titles}")
        for name, fit in fits.items():
            print(f"  {name:<26}" + measured(longer, budget, fit))


@dataclass
class _Found:
    over: int = 0
    worst: float = 0.0
    split: int = 0
    without: int = 0
    refused: int = 0


def measured(talks: Sequence[Talk], budget: int, fit: Fit) -> str:
    """One row: what became of the conversations."""
    found, used = _Found(), []
    for talk in talks:
        made = fit(talk, budget)
        if made is None:
            found.refused += 1
            continue
        tokens = chat_tokens(made)
        found.over += tokens > budget
        found.worst = max(found.worst, tokens / budget)
        found.split += is_split(made)
        question = next(each["content"] for each in reversed(talk) if each["role"] == "user")
        found.without += not any(each.get("content") == question for each in made)
        used.append(min(tokens / budget, 1.0))
    of = max(1, len(talks) - found.refused)
    return (
        f"{found.over / of:>7.1%}{found.worst:>7.2f}x{found.split / of:>8.1%}{found.without / of:>13.1%}"
        f"{statistics.mean(used or [0]):>7.0%}{sum(each < _FULL for each in used):>12}{found.refused:>9}"
    )


def ours(talk: Talk, budget: int) -> Talk | None:
    """A request; None where it is refused."""
    with germane.open(":memory:", embedder=None) as engine:
        try:
            return engine.request(talk, window=budget, reserve=0).messages
        except RequestTooLarge:
            return None


def turn_by_turn(talk: Talk, budget: int) -> Talk | None:
    """The last of the requests that were made for each question, with the prefix that they share."""
    previous: germane.Request | None = None
    with germane.open(":memory:", embedder=None) as engine:
        log = engine.conversation("chat")
        for message in talk:
            log.append(message)
            if message["role"] == "user":
                try:
                    previous = engine.request(log, window=budget, reserve=0, previous=previous)
                except RequestTooLarge:
                    previous = None
    return None if previous is None else previous.messages


def langchain() -> Fit:
    """`trim_messages` as its documentation has it, by an exact count of the chat format."""
    messages = importlib.import_module("langchain_core.messages")
    to, back = messages.convert_to_messages, messages.convert_to_openai_messages

    def fit(talk: Talk, budget: int) -> Talk:
        trimmed = messages.trim_messages(
            to(talk),
            strategy="last",
            token_counter=lambda given: chat_tokens(back(given)),
            max_tokens=budget,
            start_on="human",
            end_on=("human", "tool"),
            include_system=True,
        )
        made: Talk = back(trimmed)
        return made

    return fit


def llama_index() -> Fit:
    """`ChatMemoryBuffer` with the same vocabulary."""
    memory = importlib.import_module("llama_index.core.memory")
    types = importlib.import_module("llama_index.core.llms")

    def fit(talk: Talk, budget: int) -> Talk:
        buffer = memory.ChatMemoryBuffer.from_defaults(
            token_limit=budget, tokenizer_fn=lambda text: [0] * COUNTER.count(text)
        )
        for each in talk:
            rest = {key: value for key, value in each.items() if key not in ("role", "content")}
            buffer.put(
                types.ChatMessage(role=each["role"], content=each["content"] or "", additional_kwargs=rest)
            )
        return [
            {"role": each.role.value, "content": each.content, **each.additional_kwargs}
            for each in buffer.get()
        ]

    return fit


def conversation(chance: random.Random) -> Talk:
    """A conversation of 10 to 60 messages in one kind of text, or in all."""
    kind = chance.choice([*TEXTS, "long", "mixed"])

    def text(most: int) -> str:
        name = kind if kind in TEXTS else chance.choice(list(TEXTS))
        times = chance.randint(1, most * (6 if kind == "long" else 1))
        return TEXTS[name] * times + f"({chance.random():.6f})"

    talk: Talk = [{"role": "system", "content": SYSTEM}]
    for turn in range(chance.randint(4, 16)):
        talk.append({"role": "user", "content": text(3)})
        if chance.random() < 0.5:
            ids = [f"call_{turn}_{number}" for number in range(chance.randint(1, 3))]
            called = [
                {"id": each, "type": "function", "function": {"name": "look", "arguments": '{"id": 4711}'}}
                for each in ids
            ]
            talk.append({"role": "assistant", "content": "", "tool_calls": called})
            talk += [{"role": "tool", "tool_call_id": each, "content": text(8)} for each in ids]
        talk.append({"role": "assistant", "content": text(3)})
    talk.append({"role": "user", "content": text(2)})
    return talk


def chat_tokens(talk: Sequence[dict[str, Any]]) -> int:
    """What a conversation costs in OpenAI's chat format."""
    total = 3
    for message in talk:
        content = message.get("content") or ""
        total += 4 + COUNTER.count(content if isinstance(content, str) else json.dumps(content))
        for call in message.get("tool_calls") or ():
            total += sum(COUNTER.count(str(value)) for value in call["function"].values())
    return total


def is_split(talk: Talk) -> bool:
    """Whether a call stands without its result, or the reverse."""
    waiting: set[str] = set()
    for message in talk:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return True
            waiting.discard(message["tool_call_id"])
        elif waiting:
            return True
        waiting |= {call["id"] for call in message.get("tool_calls") or ()}
    return bool(waiting)


def speed() -> None:
    """Milliseconds of a request turn after turn, of a conversation that is long already."""
    with germane.open(":memory:", embedder=None) as engine:
        talk = engine.conversation("chat")
        talk.extend(transcript(10_000))
        print("10,000 messages, ms: median / 95th percentile, warm")
        for window in (8_000, 32_000, 200_000):
            previous: germane.Request | None = None
            took = []
            for turn in range(40):
                talk.append("user", f"What did we say about the refund {turn} of the warehouse queue?")
                begun = time.perf_counter()
                previous = engine.request(talk, system=SYSTEM, window=window, previous=previous, reserve=1000)
                took.append((time.perf_counter() - begun) * 1000)
                talk.append("assistant", "We said that it waits for the invoice.")
            took = sorted(took[1:])
            middle, high = statistics.median(took), took[int(0.95 * len(took))]
            print(f"  window {window:>7,}  {middle:>7.2f} / {high:>7.2f}")


if __name__ == "__main__":
    main()
