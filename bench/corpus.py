"""An agent's memories, made up from a seed: every kind, with the lengths and repetitions of real ones.

What matters for timing is true to life: few words are frequent and many rare, identifiers
and paths stand among them, most memories are a sentence or two and some run over many lines, and a
few of them (who the agent is, what it must not do) are always shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from germane import Draft

__all__ = ["NOW", "drafts", "questions"]

NOW = datetime(2026, 6, 30, 12, 0, tzinfo=UTC)
"""The time of the questions; the memories were made in the two years before."""

_DAYS = 730


def _words(text: str) -> Sequence[str]:
    return text.split()


_PEOPLE = _words(
    "Ada Boris Chen Dalia Emeka Farah Goran Hana Ivo Jun Kavya Lena Mateo Nadia Oskar Priya Quentin Rosa "
    "Sven Tomasz Uma Viktor Wanjiru Xenia Yusuf Zoe"
)
_PARTS = _words(
    "billing search login export import session invoice webhook scheduler cache queue upload download "
    "report dashboard onboarding notification payment refund ledger catalog inventory shipping pricing "
    "audit consent profile avatar thumbnail transcript summary embedding ranking gateway proxy worker "
    "migration backup restore archive telemetry alerting rollout feature experiment translation currency "
    "tax coupon subscription trial password passkey token permission role tenant workspace comment thread "
    "mention calendar reminder attachment preview editor parser tokenizer index shard replica snapshot "
    "checkpoint stream batch pipeline crawler feed"
)
_NOUNS = _words(
    "service endpoint job table column client adapter module screen form handler controller policy test "
    "suite config limit timeout retry error log metric trace span query plan lock transaction connection "
    "pool buffer header payload schema version branch release flag contract budget deadline estimate "
    "meeting customer vendor"
)
_TOOLS = _words(
    "PostgreSQL Redis SQLite Kafka RabbitMQ Elasticsearch nginx Terraform Ansible Kubernetes Docker "
    "Grafana Prometheus Sentry Stripe Twilio FastAPI Django React Svelte TypeScript Rust Python pytest "
    "mypy ruff uv Celery Airflow dbt DuckDB Parquet gRPC GraphQL OAuth SAML S3 CloudFront Playwright Vite "
    "Webpack"
)
_VERBS = _words(
    "add remove rename split merge cache retry validate encrypt compress paginate batch deduplicate "
    "throttle index migrate refactor document test deploy roll-back monitor schedule cancel archive "
    "restore verify measure replace upgrade pin isolate parse normalise translate render stream reject"
)
_REASONS = (
    "the old way lost writes under load",
    "two customers reported wrong totals",
    "the p95 rose above 400 ms after the release",
    "the licence changed and legal asked us to leave",
    "nobody on the team knows how the script works",
    "it halves the cost of storage",
    "the auditors need a record of every change",
    "a cold start took eleven seconds",
    "the vendor announced the end of support",
    "it keeps the tests independent of the network",
)
_MOODS = ("quickly", "after a long debate", "without a ticket", "as planned", "over the weekend", "in pairs")
_OUTCOMES = ("success", "partial", "pending", "failure", "abandoned", None)
_ALWAYS: tuple[tuple[str, str, dict[str, str]], ...] = (
    (
        "identity",
        "I am the engineering assistant of a team of nine who run an online shop for furniture.",
        {},
    ),
    ("identity", "I answer in short sentences, name my sources, and say so when I don't know.", {}),
    ("identity", "I may read everything and change nothing without a person's approval.", {}),
    ("focus", "Bring the checkout's error rate below 0.1 % before the summer sale starts.", {}),
    ("focus", "Prepare the move from the monthly to the weekly release.", {}),
    ("calibration", "My estimates of effort were 40 % too low in the last quarter.", {}),
    ("constraint", "Never run a migration on production without a tested backup.", {"action": "block"}),
    ("constraint", "Never print a customer's address or card number.", {"action": "absolute"}),
    ("constraint", "Don't propose a rewrite of the billing service again this year.", {"action": "warn"}),
    (
        "constraint",
        "Don't merge on a Friday after three o'clock.",
        {"action": "warn", "reason": "nobody is on call"},
    ),
)
_SHARES = {
    "episode": 30,
    "fact": 24,
    "note": 15,
    "changelog": 9,
    "decision": 9,
    "procedure": 4,
    "module": 3,
    "dependency": 2,
    "pattern": 2,
    "adr": 1,
    "iplan": 1,
}


def drafts(count: int, *, seed: int = 7) -> Iterator[Draft]:
    """`count` memories; the first ones of a larger corpus are those of a smaller one."""
    writer = _Writer(Random(seed))
    for number in range(count):
        if number < len(_ALWAYS):
            kind, content, metadata = _ALWAYS[number]
            yield Draft(content=content, kind=kind, metadata=metadata, importance=8, created_at=NOW)
        else:
            yield writer.draft(number)


def questions(count: int, *, seed: int = 11) -> Sequence[str]:
    """Questions about such memories, from two content words to a sentence with many, some naming a time."""
    words = _Writer(Random(seed))
    return [words.question() for _ in range(count)]


@dataclass
class _Writer:
    random: Random

    def draft(self, number: int) -> Draft:
        kind = self.random.choices(list(_SHARES), list(_SHARES.values()))[0]
        content, metadata = self._content(kind, number)
        return Draft(
            content=content,
            kind=kind,
            subject=self._topic() if self.random.random() < 0.4 else None,
            tags=tuple({f"part:{self._part()}", f"team:{self._often(_PEOPLE).lower()}"})
            if self.random.random() < 0.6
            else (),
            scope=f"path:src/{self._part()}" if self.random.random() < 0.2 else "global",
            importance=round(self.random.uniform(0, 10), 1),
            confidence=round(self.random.uniform(0.4, 1), 2),
            outcome=self.random.choice(_OUTCOMES) if kind in ("decision", "iplan") else None,
            source=f"bench/{number}",
            created_at=NOW - timedelta(minutes=self.random.randrange(_DAYS * 24 * 60)),
            metadata=metadata,
        )

    def question(self) -> str:
        shapes = (
            "What did we decide about {topic}?",
            "Why does {identifier} fail when we {verb} the {topic}?",
            "Should we use {tool} for the {topic}, or keep {tool2}?",
            "{topic}",
            "Who knows how to {verb} the {part} {noun}, and what did {person} say about {tool}?",
            "How do I {verb} {path} without breaking the {topic} that {person} changed?",
            "What happened with {topic} last month?",
            "Which {noun} did {person} {verb} in March 2026?",
        )
        return self._filled(self.random.choice(shapes))

    def _content(self, kind: str, number: int) -> tuple[str, dict[str, Any]]:
        if kind == "procedure":
            steps = [self._filled("{verb} the {part} {noun}") for _ in range(self.random.randint(3, 9))]
            return self._filled("To {verb} the {topic} {number}:"), {"steps": steps, "name": self._topic()}
        if kind == "adr":
            parts = [
                f"# {number}. {self._filled('{verb} the {topic} with {tool}')}",
                f"## Context\n{self._sentences(2, 6)}",
                f"## Decision\n{self._sentences(1, 4)}",
                f"## Consequences\n{self._sentences(1, 5)}",
            ]
            return "\n\n".join(parts), {"status": self.random.choice(("accepted", "proposed", "superseded"))}
        if kind == "decision":
            return (
                self._filled("Chose {tool} over {tool2} for the {topic} in release {number}."),
                {"reasons": [self._often(_REASONS)], "result": self._sentences(1, 1)},
            )
        if kind == "changelog":
            return self._filled("{verb} `{identifier}` in {path} (#{number}): {reason}"), {}
        if kind == "module":
            return self._filled("{path} holds `{identifier}`, which the {topic} calls. ") + self._sentences(
                1, 3
            ), {}
        # A few memories are long, as pasted logs and notes of meetings are.
        most = 30 if self.random.random() < 0.02 else 4
        return self._sentences(1, most), {}

    def _sentences(self, least: int, most: int) -> str:
        shapes = (
            "{person} said that the {topic} has to {verb} every {noun} because {reason}.",
            "The {topic} runs on {tool} and takes {number} ms at the median.",
            "{person} and {person2} paired on {path} {mood}.",
            "We {verb} the {part} {noun} {mood}; {reason}.",
            "`{identifier}` raises an error when the {noun} holds more than {number} rows.",
            "Ask {person} before touching {path}.",
            "The {noun} of the {topic} is {number}, up from {number2} in the spring.",
            "{tool} {number} needs a {noun} for the {part}, and {tool2} does not.",
            "Nobody likes the {topic}, but {reason}.",
        )
        chosen = (self.random.choice(shapes) for _ in range(self.random.randint(least, most)))
        return " ".join(self._filled(shape) for shape in chosen)

    def _filled(self, shape: str) -> str:
        return shape.format_map(_Words(self))

    def _often(self, words: Sequence[str]) -> str:
        """A word of a list, the first ones far more often than the last."""
        return words[int(len(words) * self.random.random() ** 2)]

    def _part(self) -> str:
        return self._often(_PARTS)

    def _topic(self) -> str:
        return f"{self._part()} {self._often(_NOUNS)}"

    def word(self, slot: str) -> str:
        """What fills a slot of a sentence."""
        slot = slot.rstrip("2")
        if slot == "number":
            return str(self.random.randint(2, 9999))
        if slot == "topic":
            return self._topic()
        if slot == "path":
            return f"src/{self._part()}/{self._often(_NOUNS)}_{self._part()}.py"
        if slot == "identifier":
            return f"{self._often(_VERBS).replace('-', '_')}_{self._part()}_{self._often(_NOUNS)}"
        lists = {
            "person": _PEOPLE,
            "part": _PARTS,
            "noun": _NOUNS,
            "tool": _TOOLS,
            "verb": _VERBS,
            "reason": _REASONS,
            "mood": _MOODS,
        }
        return self._often(lists[slot])


class _Words(dict[str, str]):
    def __init__(self, writer: _Writer) -> None:
        super().__init__()
        self._writer = writer

    def __missing__(self, slot: str) -> str:
        return self._writer.word(slot)
