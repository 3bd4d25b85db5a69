"""A support bot for many users: one store, an engine for each, and a user who asks to be forgotten.

What the bot knows is everybody's, what a user says is that user's alone. `python examples/support_bot.py
--model NAME` answers with a real model.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from model import Model, model_or

import germane

SYSTEM = "You are the support of a shop for lamps. Be brief."
RULES = (
    "Refunds are possible within 30 days of the purchase.",
    "Never promise a date of delivery.",
)


def main() -> None:
    model = model_or(script)
    with TemporaryDirectory() as folder, germane.connect(Path(folder) / "support.db") as store:
        bot = store.agent("support")
        for rule in RULES:
            bot.remember(rule, kind="rule", trust="owner")
        alice, bob = bot.for_user("alice"), bot.for_user("bob")
        say(alice, "monday", "I bought the lamp Aurora on 2 March.", model)
        say(bob, "monday", "My order 4711 has not arrived.", model)
        say(alice, "tuesday", "Which lamp did I buy?", model)
        say(bob, "tuesday", "Which lamp did I buy?", model)
        print({user: list(agents) for user, agents in store.users().items()})
        removal = store.purge_user("alice", confirm=True)
        print(f"alice is removed from {', '.join(removal.agents)}; left: {list(store.users())}")
        say(alice, "friday", "Which lamp did I buy?", model)
        store.purge_user("alice", confirm=True)
        left = b"".join(path.read_bytes() for path in Path(folder).iterdir())
        print(f"Aurora is in a file of the store: {b'Aurora' in left}")


def say(engine: germane.Engine, session: str, text: str, model: Model) -> None:
    """One message of a user, answered from the rules and from what this user said before."""
    log = engine.conversation(session)
    log.append("user", text)
    request = engine.request(log, system=SYSTEM, memory="layered", window=2000, reserve=300)
    answer = model(request)
    log.append(answer, provider="openai")
    print(f"{engine.user} > {text}\n{engine.user} < {answer['content']}")


def script(shown: str, last: str) -> str:
    """Answers from what the request shows, and from nothing else."""
    if "Which lamp" in last:
        return "The Aurora. Refunds are possible within 30 days." if "Aurora" in shown else "I don't know."
    return "Thanks, I have noted it."


if __name__ == "__main__":
    main()
