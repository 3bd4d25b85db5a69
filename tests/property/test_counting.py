"""What holds for every counter and every text that Python can hold."""

from __future__ import annotations

import json
import random
import subprocess
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from germane.tokens import COUNTERS, get_counter
from support.examples import examples
from support.judges import tiktoken_of

# Hypothesis leaves lone surrogates out of its texts; a `str` can hold them all the same.
ANY_TEXT = st.one_of(
    st.text(max_size=200),
    st.text(alphabet=st.characters(exclude_categories=()), max_size=60),
    st.text(
        alphabet=" \t\r\n'’sStTlLvVrReE019/.,;<|>_-ABcdéßж中かな한ี́😀👍🏽\u200d\x00\x7f\x85\u2028\ufeff",
        max_size=80,
    ),
    st.sampled_from(
        ["<|endoftext|>", "a<|endofprompt|>b", "<|im_start|>user", "\ud83d\ude00", "\udfff\ud800"]
    ),
)
# Counted with rs-bpe 0.1.0, an independent implementation: tiktoken takes minutes for such "words".
LONG_TEXTS = {
    "one letter": ("a" * 1_000_000, 125_000),
    "one line": (("the quick brown fox " * 50_001)[:1_000_000], 200_001),
    "spaces": (" " * 1_000_000, 7_813),
    "line ends": ("\n" * 1_000_000, 62_500),
    "one mark": ("=" * 1_000_000, 15_625),
    "digits": ("7" * 1_000_000, 333_334),
    "pictures": ("😀" * 250_000, 250_000),
}


@pytest.mark.parametrize("name", [*COUNTERS, "claude-4.8-estimate", "claude-4-estimate"])
@given(text=ANY_TEXT)
@settings(max_examples=examples(60))
def test_a_count_is_never_negative_and_always_the_same(name: str, text: str) -> None:
    counter = get_counter(name)
    tokens = counter.count(text)
    assert tokens >= 0
    assert counter.count(text) == tokens


@pytest.mark.parametrize("name", ["o200k", "cl100k"])
@given(text=ANY_TEXT)
@settings(max_examples=examples(400))
@example("\x1c\x1d \u3000\u200b")
@example("ǅſ'ſ 'LL'Ve")
def test_an_exact_counter_agrees_with_tiktoken(name: str, text: str) -> None:
    assert get_counter(name).count(text) == len(tiktoken_of(name).encode_ordinary(text))


@pytest.mark.parametrize("name", ["o200k", "cl100k"])
def test_the_package_for_other_versions_of_python_counts_the_same(name: str) -> None:
    pytest.importorskip("splintr")
    chance = random.Random(name)  # noqa: S311 - Repeatable texts, nothing to guess.
    texts = [_random_text(chance) for _ in range(2000)]
    long = list(LONG_TEXTS.values()) if name == "o200k" else []
    program = (
        "import json, sys; sys.modules['rs_bpe'] = None; from germane.tokens import get_counter; "
        f"counts = map(get_counter({name!r}).count, json.load(sys.stdin)); print(json.dumps([*counts])); "
        "assert 'splintr' in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps([*texts, *(text for text, _ in long)]),
        capture_output=True,
        text=True,
        check=True,
    )
    judge = tiktoken_of(name)
    expected = [len(judge.encode_ordinary(text)) for text in texts]
    assert json.loads(done.stdout) == expected + [tokens for _, tokens in long]


@pytest.mark.parametrize(("text", "tokens"), LONG_TEXTS.values(), ids=LONG_TEXTS)
def test_a_long_text_is_counted_exactly(text: str, tokens: int) -> None:
    assert get_counter("o200k").count(text) == tokens


def _random_text(chance: random.Random) -> str:
    """Up to 200 characters of one script or of several, with unpaired surrogates among them."""
    ranges = ((0x20, 0x7E), (0, 0x2FF), (0x3041, 0x9FFF), (0xD700, 0xE000), (0x1F300, 0x1FAFF), (0, 0x10FFFF))
    chosen = chance.choices(ranges, k=chance.randint(1, 3))
    return "".join(chr(chance.randint(*chance.choice(chosen))) for _ in range(chance.randint(0, 200)))
