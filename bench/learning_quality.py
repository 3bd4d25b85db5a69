"""What is learned from conversations, by extractor: right and wrong facts, and what facts add to a context.

    python bench/learning_quality.py [--set dev|test|both] [--author LETTERS] [--extractor NAME]
        [--wrong] [--json]
    python bench/learning_quality.py --contexts FILE... [--budgets 500,1000] [--extractor NAME] [--json]

The first form learns from labelled dialogues: 4,140 of `dev`, 1,168 of `test` (see `dialogues.py`). Rules are
developed on `dev`, and nothing may be fitted to `test`: `--wrong` lists the wrong texts and the missed facts
of `dev` alone. NAME is `rules` (the default), `sentences`, which proposes every sentence of the user's and so
shows what choosing is worth, or a model of the OpenAI-compatible server at `--base-url`.

The second form stores the first conversation of each FILE in LoCoMo's layout, and learns from it. It prints
the share of questions whose answer stands in what `assemble` shows: from facts alone, from messages alone,
and from both. "words" is the share of the answer's pairs of neighbouring content words, since many answers
are long.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from itertools import groupby, product
from pathlib import Path
from typing import Any, Literal

from dialogues import SETS, Dialogue, Learned, Score, dialogues, score, summed
from rich.console import Console
from rich.table import Table

import germane
from germane import Draft, Engine, Memory, Message
from germane.conversation import MessageRole, TextPart
from germane.evaluation.material import all_memories
from germane.evaluation.result import holds_phrase, mean, pairs_in, word_pairs
from germane.extractors import OpenAIExtractor, Proposal, Quote, RuleExtractor
from germane.extractors.statements import sentences
from germane.importers.locomo import ADVERSARIAL, DialogueTurn, LocomoConversation, read_locomo
from germane.model.extraction import LearningRun, ProposalOutcome
from germane.model.memory import Status
from germane.protocols import Extractor
from germane.testing.fakes import FixedClock

BUDGETS = (500, 1000)
WAYS = ("facts", "messages", "both")
_ROLES = {"user": MessageRole.USER, "assistant": MessageRole.ASSISTANT}
_STORED = (ProposalOutcome.NEW, ProposalOutcome.REVISED, ProposalOutcome.CONTRADICTED)
_Embedder = Literal["bundled"] | None


def main() -> None:
    """Print what was asked for, as a table or as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--set", choices=[*SETS, "both"], default="dev")
    parser.add_argument("--author", default=None, help="the letters that ids begin with, or several: ja,jd")
    parser.add_argument("--extractor", default="rules")
    parser.add_argument("--base-url", default=None, help="of an OpenAI-compatible server")
    parser.add_argument(
        "--most", type=int, default=None, help="dialogues of each set, or questions of each file"
    )
    parser.add_argument("--wrong", action="store_true", help="list the wrong and missed ones of dev")
    parser.add_argument("--contexts", nargs="+", type=Path, metavar="FILE", default=())
    parser.add_argument("--budgets", default=",".join(map(str, BUDGETS)))
    parser.add_argument("--lexical", action="store_true", help="without an embedder")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    extractor = extractor_of(given.extractor, given.base_url)
    embedder: _Embedder = None if given.lexical else "bundled"
    if given.contexts:
        budgets = [int(each) for each in given.budgets.split(",")]
        measured = {"budgets": budgets, "embedder": embedder, "most": given.most}
        rows = [
            {"file": file.stem, **row}
            for file in given.contexts
            for row in in_contexts(read_locomo(file)[0], extractor, **measured)
        ]
        _print(json.dumps(rows) if given.json else contexts_table(rows))
        return
    sets = SETS if given.set == "both" else (given.set,)
    scores = {
        name: summed(
            judged(each, extractor, embedder) for each in by_author(name, given.author)[: given.most]
        )
        for name in sets
    }
    if given.json:
        _print(json.dumps({name: as_json(each) for name, each in scores.items()}))
        return
    _print(quality_table(extractor.name, scores))
    if given.wrong and "dev" in scores:
        _print("\n".join(f"wrong   {name} {text}" for name, text in scores["dev"].wrong_texts))
        _print("\n".join(f"missed  {each}" for each in scores["dev"].missed))


def by_author(name: str, author: str | None) -> list[Dialogue]:
    """The dialogues of a set, or of some authors of it."""
    authors = None if author is None else author.split(",")
    return [each for each in dialogues(name) if authors is None or each.id.rstrip("0123456789") in authors]


class SentenceExtractor:
    """Proposes every sentence of the user's as a fact: what an extractor without any judgement does."""

    name = "sentences"

    def extract(self, messages: Sequence[Message], known: Sequence[Memory] = ()) -> Sequence[Proposal]:  # noqa: ARG002 - The protocol has it.
        """One proposal for each sentence."""
        return tuple(
            Proposal(content=each, quotes=(Quote(message=message.id or str(message.seq), text=each),))
            for message in messages
            if message.role is MessageRole.USER
            for each in sentences(message.own_text)
        )


def extractor_of(name: str, base_url: str | None = None) -> Extractor:
    """The extractor of a name: rules, sentences, or a model at an OpenAI-compatible server."""
    if name == "rules":
        return RuleExtractor()
    if name == "sentences":
        return SentenceExtractor()
    return OpenAIExtractor(name, base_url=base_url, key=os.environ.get("OPENAI_API_KEY", "none"))


# Labelled dialogues.


def judged(dialogue: Dialogue, extractor: Extractor, embedder: _Embedder = "bundled") -> Score:
    """Learn from a dialogue in a store that has only what is known before, and compare with the labels."""
    clock = FixedClock(dialogue.at + timedelta(days=1), timedelta(microseconds=1))
    with germane.open(":memory:", embedder=embedder, clock=clock) as engine:
        earlier = dialogue.at - timedelta(days=90)
        engine.remember_many([Draft(content=each, created_at=earlier) for each in dialogue.known])
        run = engine.learn_from(dialogue.messages, extractor=extractor)
        return score(dialogue, learned_of(engine, run))


def learned_of(engine: Engine, run: LearningRun) -> list[Learned]:
    """What a run stored, and what was known before it."""
    now = max(each.created_at for each in all_memories(engine)) if engine.stats().memories else run.at
    current = {
        each.content
        for each in all_memories(engine)
        if each.status is Status.ACTIVE and (each.valid_until is None or each.valid_until > max(now, run.at))
    }
    stored = [each.proposal for each in run.decisions if each.outcome in _STORED]
    against = {
        each.proposal.content for each in run.decisions if each.outcome is ProposalOutcome.CONTRADICTED
    }
    new = {each.content for each in stored}
    return [
        *(
            Learned(
                content=each.content,
                messages=tuple(int(quote.message) for quote in each.quotes),
                kind=each.kind,
                current=each.content in current,
                contradicted=each.content in against,
                days=(_day(each.valid_from), _last_day(each.valid_until)),
            )
            for each in stored
        ),
        *(
            Learned(content=each.content, before=True, current=each.content in current)
            for each in all_memories(engine)
            if each.content not in new
        ),
    ]


def quality_table(name: str, scores: dict[str, Score]) -> Table:
    """The figures of each set as a column."""
    table = Table(title=f"Learned by {name}", title_justify="left", box=None)
    table.add_column("")
    for each in scores:
        table.add_column(each, justify="right")
    for label, figure in _figures().items():
        table.add_row(label, *(figure(each) for each in scores.values()))
    return table


def as_json(total: Score) -> dict[str, Any]:
    """The counts and shares of a score; what is wrong isn't listed."""
    counts = {name: value for name, value in asdict(total).items() if isinstance(value, int)}
    return {**counts, "precision": total.precision, "recall": total.recall, "reasons": dict(total.reasons)}


def _figures() -> dict[str, Any]:
    def share(part: str, whole: str) -> Any:
        def shown(total: Score) -> str:
            some, every = getattr(total, part), getattr(total, whole)
            return f"{some} of {every} ({some / every:.1%})" if every else "none"

        return shown

    return {
        "dialogues": lambda total: str(total.dialogues),
        "precision": lambda total: f"{total.precision:.1%} ({total.right} right, {total.wrong} wrong)",
        "recall": share("found", "facts"),
        "dialogues with a wrong fact": share("dialogues_with_wrong", "dialogues"),
        "things not to learn, learned": share("sprung", "traps"),
        "right facts that cite their message": share("cited", "right"),
        "of a fitting kind": share("fitting", "typed"),
        "first and last days right": share("dated", "dates"),
        "updates: new value learned": share("learned_updates", "updates"),
        "updates: and only it current": share("revised", "updates"),
        "contradictions shown": share("shown", "conflicts"),
        "memories near what is said that stay current": share("current", "stay"),
    }


def _day(moment: datetime | None) -> str:
    return "" if moment is None else moment.date().isoformat()


def _last_day(end: datetime | None) -> str:
    """The last day of what holds until before a moment."""
    return _day(None if end is None else end - timedelta(microseconds=1))


# Contexts from facts, from messages, and from both.


def in_contexts(
    dialogue: LocomoConversation,
    extractor: Extractor,
    *,
    budgets: Sequence[int] = BUDGETS,
    embedder: _Embedder = "bundled",
    most: int | None = None,
) -> Iterator[dict[str, Any]]:
    """The shares of answers shown of each way and budget; questions without an answer are left out."""
    questions = [each for each in dialogue.questions if each.answer and each.category != ADVERSARIAL][:most]
    with _logged(dialogue, embedder) as plain, _logged(dialogue, embedder) as learned:
        runs = [learned.learn_from(session, extractor=extractor) for session in _sessions(dialogue)]
        facts = sum(each.outcome in _STORED for run in runs for each in run.decisions)
        for way, budget in product(WAYS, budgets):
            engine = plain if way == "messages" else learned
            shares = []
            for each in questions:
                context = engine.assemble(each.question, budget=budget, conversations=way != "facts")
                shares.append(_shown(context.text, str(each.answer)))
            yield {
                "questions": len(questions),
                "facts": facts,
                "way": way,
                "budget": budget,
                "answers": mean([answer for answer, _ in shares]),
                "words": mean([words for _, words in shares]),
            }


def _shown(context: str, answer: str) -> tuple[float, float]:
    """Whether a context has an answer word for word, and the share of its pairs of words."""
    whole, wanted = float(holds_phrase(context, answer)), word_pairs(answer)
    return whole, len(wanted & pairs_in(context)) / len(wanted) if wanted else whole


def message(turn: DialogueTurn) -> Message:
    """A turn as a message: by its role, or as a user's with the speaker's name."""
    role = _ROLES.get(turn.speaker.lower())
    return Message(
        role=role or MessageRole.USER,
        parts=(TextPart(text=turn.text),),
        created_at=turn.session_at + timedelta(seconds=turn.index),
        extra="" if role else json.dumps({"name": turn.speaker}),
    )


def contexts_table(rows: Sequence[dict[str, Any]]) -> Table:
    """A row for each file and way, with a pair of columns for each budget."""
    budgets = list(dict.fromkeys(row["budget"] for row in rows))
    table = Table(title="Answers in contexts", title_justify="left", box=None)
    for heading in ("file", "questions", "facts", "from"):
        table.add_column(heading, justify="left" if heading in ("file", "from") else "right")
    for budget in budgets:
        table.add_column(f"{budget:,}: answers", justify="right")
        table.add_column("words", justify="right")
    by_way: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        by_way.setdefault((row["file"], row["way"]), []).append(row)
    for (file, way), some in by_way.items():
        shares = [f"{row[name]:.1%}" for row in some for name in ("answers", "words")]
        table.add_row(file, str(some[0]["questions"]), str(some[0]["facts"]), way, *shares)
    return table


def _logged(dialogue: LocomoConversation, embedder: _Embedder) -> Engine:
    clock = FixedClock(dialogue.turns[-1].session_at + timedelta(days=1), timedelta(microseconds=1))
    engine = germane.open(":memory:", embedder=embedder, clock=clock)
    for session, turns in _sessions(dialogue).items():
        engine.conversation(session).extend([message(turn) for turn in turns])
    return engine


def _sessions(dialogue: LocomoConversation) -> dict[str, list[DialogueTurn]]:
    by_number = groupby(dialogue.turns, key=lambda turn: turn.session)
    return {f"session-{number}": list(turns) for number, turns in by_number}


def _print(shown: object) -> None:
    Console(width=140, highlight=False).print(shown, markup=False, soft_wrap=isinstance(shown, str))


if __name__ == "__main__":
    main()
