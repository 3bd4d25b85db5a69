"""What the relevance gate drops of the answers and lets through of the rest, in stores of all sizes.

    python bench/gate.py [--half open|held|both] [--sizes 5,20,300,10000] [--budgets 300,2000] [--plan NAME]
        [--documents FILE ...]

A store of the probes (`data/probes.jsonl`) holds one answer, the texts that are nearest to it in
topic, then other probes' texts, then memories made up from a seed. "dropped" counts answers that
the gate left out, "passed" the share of everything else, "empty" stores that
hold an answer and gave nothing, and "silent" stores without the answer that gave nothing (their
near-topic texts stay). By words alone these probes can't be found at all; what the gate does there
is measured on the demo's memory and its questions. The questions marked `held` are for a last look.

The second table is of contexts: `engine.assemble(question, budget=n)` as a user calls it, or with --plan.
"dropped" counts answers that stand in none at any length, "cut" those that are shortened; "noise" is the
tokens of everything but the answer, as a share of the budget and of the text.

The third asks what the memory has to answer though the question doesn't mention it (`data/unsaid.jsonl`: an
allergy, when somebody asks what to cook), stored under the kind that the file names and once more as a
fact. "found" counts these memories in the context at any length, "whole" at full length.

With --documents it prints only what recall loses to the gate in long texts: all conversations of a FILE in
LoCoMo's layout are stored together, cut into memories of about 200 words, and each question asks for those
that hold its evidence.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any, TypeAlias

from corpus import NOW, drafts

import germane
from germane import Engine
from germane.demo import DEMO_NOW, demo_questions, load_demo
from germane.embedders.static import StaticEmbedder
from germane.importers.locomo import ADVERSARIAL, LocomoConversation, read_locomo
from germane.model.memory import Level
from germane.packing.render import fence
from germane.protocols import Embedder

_Probe: TypeAlias = Mapping[str, Any]
_PROBES = Path(__file__).parent / "data" / "probes.jsonl"
_EVERY = 100_000
_DOCUMENT = 200
_REPEATED_BELOW = 300
_UNSAID = Path(__file__).parent / "data" / "unsaid.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """What one question came to: shares, all from 0 to 1."""

    dropped: float
    passed: float
    empty: float
    silent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """What one context came to: whether it dropped or cut the answer, and tokens."""

    name: str
    dropped: float
    cut: float
    noise: int
    tokens: int


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=["open", "held", "both"], default="open")
    parser.add_argument("--sizes", default="5,20,300,10000")
    parser.add_argument("--budgets", default="300,2000")
    parser.add_argument("--plan", help="the plan of the contexts; that of the default call unless given")
    parser.add_argument("--documents", nargs="+", type=Path, metavar="FILE")
    given = parser.parse_args()
    if given.documents:
        print_documents(given.documents)
        return
    sizes = [int(each) for each in given.sizes.split(",")]
    budgets = [int(each) for each in given.budgets.split(",")]
    every = _read(_PROBES)
    probes = [probe for probe in every if given.half in ("both", probe["half"])]
    print(f"{len(probes)} probes\n{'':36}{'dropped':>9}{'passed':>9}{'empty':>9}{'silent':>9}")
    for size in sizes:
        _print(f"bundled embedder, {size:,} memories", _probed(probes, every, size))
    for name, embedder in (("bundled embedder", StaticEmbedder()), ("words alone", None)):
        _print(f"{name}, demo memory", _demonstrated(embedder))
    print_contexts(probes, every, sizes, budgets, given.plan)
    print_unsaid(_read(_UNSAID), every, sizes, budgets, given.plan)


def print_documents(files: Sequence[Path]) -> None:
    """Recall at 20 and at 100, and how many are found, with the gate and without."""
    print(f"{'':36}{'@20':>14}{'@100':>14}{'found':>14}    with the gate / without")
    for file in files:
        texts, questions = _documents(read_locomo(file))
        for name, embedder in (("bundled embedder", StaticEmbedder()), ("words alone", None)):
            with germane.open(":memory:", embedder=embedder) as engine:
                made = [engine.remember(text).id for text in texts]
                wanted = [{made[place] for place in places} for _, places in questions]
                columns: list[str] = []
                counts: list[float] = []
                for limit in (20, 100):
                    shares = []
                    for gate in (True, False):
                        found = [
                            {one.id for one in engine.recall(question, limit=limit, gate=gate)}
                            for question, _ in questions
                        ]
                        shares.append(mean(len(a & b) / len(b) for a, b in zip(found, wanted, strict=True)))
                        counts.append(mean(map(len, found)))
                    columns.append(" / ".join(f"{share:.1%}" for share in shares))
                columns.append(" / ".join(f"{count:.0f}" for count in counts[-2:]))
            print(f"{f'{file.stem}, {name}':<36}" + "".join(f"{each:>14}" for each in columns), flush=True)


def _documents(
    conversations: Sequence[LocomoConversation],
) -> tuple[list[str], list[tuple[str, set[int]]]]:
    """Texts of about `_DOCUMENT` words, and the questions with the places of the texts that answer them."""
    texts: list[list[str]] = []
    samples = []
    for conversation in conversations:
        places: dict[str, int] = {}
        texts.append([])
        for turn in conversation.turns:
            if len(" ".join([*texts[-1], turn.text]).split()) > _DOCUMENT and texts[-1]:
                texts.append([])
            texts[-1].append(turn.text)
            places[turn.dia_id] = len(texts) - 1
        samples += [
            (question.question, {places[name] for name in question.evidence})
            for question in conversation.questions
            if question.evidence and question.category != ADVERSARIAL
        ]
    return ["\n".join(each) for each in texts], samples


def print_contexts(
    sought: Sequence[_Probe],
    every: Sequence[_Probe],
    sizes: Sequence[int],
    budgets: Sequence[int],
    plan: str | None,
) -> None:
    """What contexts hold of the answers and of the rest, by size of store and budget."""
    print(
        f"\n{'contexts':22}{'budget':>8}{'dropped':>9}{'cut':>9}{'noise/budget':>14}{'noise/text':>12}{'tokens':>9}"
    )
    for size in sizes:
        shown: dict[int, list[_Shown]] = {budget: [] for budget in budgets}
        for texts, probes in _stores(sought, every, size):
            with _opened([{"content": text, "kind": "fact"} for text in texts]) as engine:
                for probe in probes:
                    for budget in budgets:
                        shown[budget].append(_shown(engine, probe, budget, plan))
        for budget, several in shown.items():
            dropped, cut = (mean(getattr(one, field) for one in several) for field in ("dropped", "cut"))
            noise = mean(one.noise / budget for one in several)
            of_text = mean(one.noise / max(one.tokens, 1) for one in several)
            print(
                f"{f'{size:,} memories':22}{budget:8}{dropped:9.1%}{cut:9.1%}{noise:14.1%}{of_text:12.1%}"
                f"{mean(one.tokens for one in several):9.0f}"
            )


def print_unsaid(
    unsaid: Sequence[_Probe],
    every: Sequence[_Probe],
    sizes: Sequence[int],
    budgets: Sequence[int],
    plan: str | None,
) -> None:
    """How many memories stand in the context of a question that doesn't mention them."""
    print(f"\n{'unsaid':22}{'stored as':>11}{'budget':>8}{'found':>7}{'whole':>7}{'tokens':>8}  missing")
    kinds = {probe["memory"]: probe["kind"] for probe in unsaid}
    for size in sizes:
        for stored_as in ("its kind", "fact"):
            shown: dict[int, list[_Shown]] = {budget: [] for budget in budgets}
            for texts, probes in _stores(unsaid, [*unsaid, *every], size):
                own = kinds if stored_as == "its kind" else {}
                with _opened([{"content": text, "kind": own.get(text, "fact")} for text in texts]) as engine:
                    for probe in probes:
                        for budget in budgets:
                            shown[budget].append(_shown(engine, probe, budget, plan))
            for budget, several in shown.items():
                found = 1 - mean(one.dropped for one in several)
                whole = found - mean(one.cut for one in several)
                missing = sorted({one.name for one in several if one.dropped})
                print(
                    f"{f'{size:,} memories':22}{stored_as:>11}{budget:8}{found:7.0%}{whole:7.0%}"
                    f"{mean(one.tokens for one in several):8.0f}  {' '.join(missing)}"
                )


def _print(name: str, outcomes: Sequence[_Outcome]) -> None:
    shares = [
        mean(getattr(outcome, field) for outcome in outcomes)
        for field in ("dropped", "passed", "empty", "silent")
    ]
    print(f"{name:36}" + "".join(f"{share:9.1%}" for share in shares))


def _read(path: Path) -> list[_Probe]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _probed(sought: Sequence[_Probe], every: Sequence[_Probe], size: int) -> list[_Outcome]:
    outcomes = []
    for texts, probes in _stores(sought, every, size):
        with _opened([{"content": text, "kind": "fact"} for text in texts]) as engine:
            outcomes += [_outcome(engine, probe) for probe in probes]
    return outcomes


def _stores(
    sought: Sequence[_Probe], every: Sequence[_Probe], size: int
) -> Iterator[tuple[list[str], Sequence[_Probe]]]:
    """The texts of each store of a size, with its probes."""
    texts = list(dict.fromkeys(text for probe in every for text in (probe["memory"], *probe["near"])))
    if size >= len(texts):
        # All probes fit, so one store serves every question.
        yield [*texts, *(draft.content for draft in drafts(size - len(texts)))], sought
        return
    random = Random(7)
    for probe in sought:
        near = [*probe["near"]]
        others = [text for text in texts if text not in near and text != probe["memory"]]
        for _ in range(1 if size >= _REPEATED_BELOW else 5):
            yield [probe["memory"], *[*near, *random.sample(others, len(others))][: size - 1]], [probe]


def _opened(stored: Sequence[Mapping[str, Any]]) -> Engine:
    engine = germane.open(":memory:", agent="gate", embedder=StaticEmbedder(), clock=lambda: NOW)
    engine.remember_many(stored)
    return engine


def _shown(engine: Engine, probe: _Probe, budget: int, plan: str | None) -> _Shown:
    if plan is None:
        context = engine.assemble(probe["question"], budget=budget)
    else:
        context = engine.assemble(probe["question"], budget=budget, plan=plan)
    levels = [item.level for item in context.items if item.memory.content == probe["memory"]]
    return _Shown(
        name=probe["id"],
        dropped=float(not levels),
        cut=float(bool(levels) and levels[0] is not Level.FULL and not _whole(context.text, probe["memory"])),
        noise=sum(item.tokens for item in context.items if item.memory.content != probe["memory"]),
        tokens=context.tokens,
    )


def _whole(text: str, content: str) -> bool:
    return all(line in text for line in fence(content))


def _outcome(engine: Engine, probe: _Probe) -> _Outcome:
    """The whole answer to one probe, and what is left of it once the memory it asks for is forgotten."""
    stored = engine.stats().memories
    found = engine.recall(probe["question"], limit=_EVERY)
    passed = {one.memory.content: one.memory.id for one in found}
    answered = probe["memory"] in passed
    answer = next(memory.id for memory in engine.memories() if memory.content == probe["memory"])
    engine.forget(answer)
    silent = not engine.recall(probe["question"], limit=_EVERY)
    engine.restore(answer)
    return _Outcome(
        dropped=float(not answered),
        passed=(len(passed) - answered) / (stored - 1),
        empty=float(not passed),
        silent=float(silent),
    )


def _demonstrated(embedder: Embedder | None) -> list[_Outcome]:
    """The demo's questions, which have several answers each; "silent" says nothing here."""
    outcomes = []
    with germane.open(":memory:", agent="newton", embedder=embedder, clock=lambda: DEMO_NOW) as engine:
        load_demo(engine)
        if engine.stats().pending:
            engine.embed_pending()
        stored = engine.memories(order=germane.Order.OLDEST)
        for question in demo_questions():
            answers = {stored[line - 1].id for line in question.expect}
            passed = {one.id for one in engine.recall(question.question, limit=_EVERY)}
            outcomes.append(
                _Outcome(
                    dropped=len(answers - passed) / len(answers),
                    passed=len(passed - answers) / (len(stored) - len(answers)),
                    empty=float(not passed),
                    silent=0.0,
                )
            )
    return outcomes


if __name__ == "__main__":
    main()
