"""A chat agent that remembers: three sessions on three days, and what it learned between them.

After each session the facts in it are learned, each with the message that it comes from. A later session
starts with an empty log and shows the model what is known. `python examples/chat_agent.py --model NAME`
chats with a real model.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from model import Model, model_or

import germane
from germane.testing.fakes import FixedClock

SYSTEM = "You are a friendly assistant for cooking. Be brief."
SESSIONS = {
    "monday": ["My name is Ada, and I'm allergic to peanuts.", "I live in Lisbon."],
    "tuesday": ["What should I leave out of a curry?", "I moved to Porto."],
    "friday": ["In which city do I live?"],
}


def main() -> None:
    model = model_or(script)
    clock = FixedClock(datetime(2026, 3, 2, 9, 0, tzinfo=UTC), step=timedelta(seconds=1))
    with germane.open(":memory:", agent="cook", clock=clock) as engine:
        for session, texts in SESSIONS.items():
            log = engine.conversation(session)
            for text in texts:
                print(f"{session} > {text}\n{session} < {turn(engine, log, text, model)}")
            run = engine.learn_from(log)
            for decision in run.decisions:
                print(f"  learned ({decision.outcome}): {decision.proposal.content}")
            clock.advance(timedelta(days=1))
        was, now = engine.history(engine.recall("Where does the user live?")[0].id)
        print(f"Then: {was.content} Now: {now.content}")


def turn(engine: germane.Engine, log: germane.Conversation, text: str, model: Model) -> str:
    """One turn: the log, what is known and the question, in one request that fits."""
    log.append("user", text)
    request = engine.request(log, system=SYSTEM, memory="layered", window=2000, reserve=300)
    answer = model(request)
    log.append(answer, provider="openai")
    return str(answer["content"])


def script(shown: str, last: str) -> str:
    """Answers from what the request shows, and from nothing else."""
    if "curry" in last:
        return "Peanuts: you are allergic to them." if "allergic to peanuts" in shown else "Nothing."
    if "city" in last:
        return "In Porto." if "Porto" in shown and "Lisbon" not in shown else "I don't know."
    return "Noted."


if __name__ == "__main__":
    main()
