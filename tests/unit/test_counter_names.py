"""Counters by name and by model, and budgets by their margins."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import germane
from germane.errors import InvalidInput
from germane.protocols import TokenCounter
from germane.testing.fakes import WordCounter
from germane.tokens import COUNTERS, get_counter, register_counter, tokenizer_counter
from support.judges import EXACT_MODULE


@pytest.mark.parametrize("name", COUNTERS)
def test_every_named_counter_is_a_counter_and_counts_nothing_as_nothing(name: str) -> None:
    counter = get_counter(name)
    assert isinstance(counter, TokenCounter)
    assert counter.count("") == 0
    assert counter.count("Chose Postgres over ChromaDB.") > 0
    assert counter.margin >= 0
    assert get_counter(name) is counter


@pytest.mark.parametrize(
    ("model", "counter"),
    [
        ("gpt-5", "o200k"),
        ("gpt-5.5-mini", "o200k"),
        ("openai/gpt-4o-mini", "o200k"),
        ("gpt-4.1", "o200k"),
        ("o3-mini", "o200k"),
        ("o1", "o200k"),
        ("o200k_base", "o200k"),
        ("ft:gpt-4o:acme::x1", "o200k"),
        ("GPT-4-turbo", "cl100k"),
        ("gpt-3.5-turbo-0125", "cl100k"),
        ("text-embedding-3-small", "cl100k"),
        ("cl100k_base", "cl100k"),
        ("claude-sonnet-5", "claude-4.8"),
        ("claude-opus-4-8", "claude-4.8"),
        ("claude-opus-4.7", "claude-4.8"),
        ("claude-opus-latest", "claude-4.8"),
        ("claude-sonnet-4-20250514", "claude-4"),
        ("claude-3-5-sonnet-20241022", "claude-4"),
        ("anthropic/claude-opus-4.5", "claude-4"),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-4"),
    ],
)
def test_a_model_finds_its_counter(model: str, counter: str) -> None:
    assert get_counter(model) is get_counter(counter)


@pytest.mark.parametrize(
    "name", ["", "o2000k", "o200", "llama-3", "claude-2.1", "claude-instant", "gpt-2", "o"]
)
def test_an_unknown_name_is_refused_naming_the_known_ones(name: str) -> None:
    with pytest.raises(InvalidInput, match="Known counters: o200k, cl100k, claude, ") as refused:
        get_counter(name)
    assert repr(name) in str(refused.value)


def test_what_is_no_counter_is_refused() -> None:
    with pytest.raises(InvalidInput, match="needs name, margin and count"):
        get_counter(3)  # type: ignore[arg-type]  # what a caller without a type checker may pass


def test_a_counter_given_is_returned() -> None:
    counter = WordCounter()
    assert get_counter(counter) is counter


def test_a_counter_can_be_registered_and_replaced() -> None:
    register_counter("test-words", WordCounter)
    assert get_counter("test-words").count("one two three") == 3
    register_counter("test-words", lambda: WordCounter(margin=0.5))
    assert get_counter("test-words").margin == 0.5


@pytest.mark.parametrize("name", ["", " ", "o200k", "claude-4-estimate"])
def test_germanes_own_names_cant_be_taken(name: str) -> None:
    with pytest.raises(InvalidInput, match="Choose another name"):
        register_counter(name, WordCounter)


def test_a_claude_counter_says_how_it_counts() -> None:
    assert get_counter("claude").name == get_counter("claude-4.8").name
    assert get_counter("claude-4.8-estimate").name == "claude-4.8-estimate"
    assert get_counter("claude-4").name in {"claude-4", "claude-4-estimate"}


@pytest.mark.parametrize(
    ("budget", "margin", "left"),
    [
        (0, 0.0, 0),
        (8000, 0.0, 8000),
        (110, 0.1, 100),
        (109, 0.1, 99),
        (121, 0.21, 100),
        (1, 0.01, 0),
        (3, 2.0, 1),
    ],
)
def test_a_budget_keeps_the_margin(budget: int, margin: float, left: int) -> None:
    with germane.open(":memory:", embedder=None, counter=WordCounter(margin=margin)) as engine:
        working = engine.working_set(max_tokens=20_000)
        for words in (left + 1, left or 1):
            working.clear()
            working.add(engine.remember("word " * words))
            shown = working.assemble(budget=budget)
            assert shown.tokens == (words if words <= left else 0)


@pytest.mark.parametrize("margin", [-0.1, float("nan"), float("inf")])
def test_a_margin_that_is_no_fraction_is_refused(margin: float) -> None:
    with (
        germane.open(":memory:", embedder=None, counter=WordCounter(margin=margin)) as engine,
        pytest.raises(InvalidInput, match="states a margin"),
    ):
        engine.assemble("words", budget=100)


def test_a_negative_budget_is_refused() -> None:
    with germane.open(":memory:", embedder=None) as engine, pytest.raises(InvalidInput, match="-1"):
        engine.assemble("words", budget=-1)


def test_a_tokenizer_file_counts_like_the_model_that_it_comes_with(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary = {"?": 0, "a": 1, "b": 2, "ab": 3}
    model = tokenizers.models.BPE(vocab=vocabulary, merges=[("a", "b")], unk_token="?")  # noqa: S106 - No password.
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=9)
    path = str(tmp_path / "tokenizer.json")
    tokenizer.save(path)

    counter = tokenizer_counter(path)
    assert counter is get_counter(path)
    assert (counter.name, counter.margin) == (path, 0.0)
    assert [counter.count(text) for text in ("", "ab", "abab", "aab" * 100, "b\ud800a")] == [0, 1, 2, 200, 3]
    with germane.open(":memory:", embedder=None, counter=path) as engine:
        engine.remember("abab")
        context = engine.assemble("abab", budget=60, plan="relevance")
    assert context.trace.counter == path
    assert context.tokens == counter.count(context.text)


@pytest.mark.parametrize("text", [None, "", "{}", '{"model": 1}'])
def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path, text: str | None) -> None:
    pytest.importorskip("tokenizers")
    path = tmp_path / "tokenizer.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InvalidInput, match=r"is no tokenizer\.json that can be read"):
        tokenizer_counter(path)
    with pytest.raises(InvalidInput, match="Unknown token counter"):
        get_counter(str(path))


def test_without_the_package_a_tokenizer_file_names_the_extra() -> None:
    program = (
        "import sys; sys.modules['tokenizers'] = None; from germane import MissingExtra\n"
        "from germane.tokens import tokenizer_counter\n"
        "try: tokenizer_counter('tokenizer.json')\n"
        "except MissingExtra as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert "germane[tokenizers]" in done.stdout


def test_a_vocabulary_is_loaded_at_the_first_count_only() -> None:
    program = (
        "import sys; from germane.tokens import get_counter; counter = get_counter('o200k'); "
        f"assert {EXACT_MODULE!r} not in sys.modules; assert counter.count('hello world') == 2; "
        f"assert {EXACT_MODULE!r} in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
