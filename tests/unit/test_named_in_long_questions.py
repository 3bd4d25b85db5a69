"""A memory that a long text names by its identifier comes first, whatever else the text is about."""

from __future__ import annotations

import random
import re

import germane
from germane.demo import load_demo

TICKETS = {f"NWT-{number}": f"NWT-{number}: the label is blue." for number in range(240, 840, 20)}


def test_a_ticket_within_a_pasted_text_is_the_first() -> None:
    chance = random.Random(7)  # noqa: S311 - Not for secrets.
    with germane.open(":memory:", agent="newton") as engine:
        load_demo(engine)
        texts = " ".join(memory.content for memory in engine.memories())
        sentences = re.findall(r"[A-Z][\w ,;]{30,250}[.!?](?=\s)", texts)
        plain = [each for each in sentences if not re.search(r"[\d_]|[a-z][A-Z]", each)]
        engine.remember_many([{"content": text, "kind": "fact"} for text in TICKETS.values()])
        for ticket, text in TICKETS.items():
            pasted = chance.sample(plain, 20)
            for place in (0, 10, 20):
                question = " ".join([*pasted[:place], f"See {ticket}.", *pasted[place:]])
                assert engine.recall(question, limit=1)[0].memory.content == text, (ticket, place)
