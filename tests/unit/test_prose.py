"""The words and sentences that renditions are made of, and where a text may be cut."""

from __future__ import annotations

import regex
from hypothesis import given
from hypothesis import strategies as st

from germane import Kind
from germane.kinds import BUILT_IN
from germane.renditions import render_title, renditions_of, shorten
from germane.renditions.prose import as_text, passages_of, sentences_of
from germane.testing.fakes import WordCounter
from germane.tokens import get_counter

O200K = get_counter("o200k")
LONG = (
    "We moved the queue to Postgres. It removed a service and its on-call page. "
    "The only cost was a nightly vacuum that we had to schedule by hand. " * 8
)


def test_sentences_end_where_they_end() -> None:
    assert sentences_of("Ask J. Doe, e.g. by mail. It is 40. Really?! 3.14 is pi.") == [
        "Ask J. Doe, e.g. by mail.",
        "It is 40.",
        "Really?!",
        "3.14 is pi.",
    ]
    wrapped = "This line is long enough that it was wrapped where it ended, and its\nSecond half."
    assert sentences_of(f"{wrapped} You need:\n- a\n- b") == [wrapped, "You need:\n- a", "- b"]


@given(st.text(st.sampled_from("ab .\n#-*`>|[]()!<\\:=1"), max_size=200))
def test_any_text_has_passages(text: str) -> None:
    passages = list(passages_of(text))
    assert all(passage.text.strip() for passage in passages)
    assert "\n" not in as_text([one for one in passages if one.form != "code"], one_line=True)


def test_a_sentence_is_left_whole_and_a_word_is_too() -> None:
    words = WordCounter()
    assert shorten("One two. Three four five.", 3, words) == "One two. …"
    assert shorten("One two three four.", 2, words) == "One two…"
    assert shorten("今日は晴れです。明日は雨でしょう。", 9, O200K) == "今日は晴れです。 …"
    assert shorten("anything", 0, words) == ""


def test_one_endless_word_is_reported_by_its_length() -> None:
    assert shorten("x" * 1_000_000, 20, O200K) == "[1,000,000 characters]"


@given(st.text(min_size=1, max_size=400), st.integers(1, 40))
def test_a_shortened_text_fits_and_is_the_start_of_the_text(text: str, limit: int) -> None:
    short = shorten(text, limit, O200K)
    assert O200K.count(short) <= limit
    if short and not regex.fullmatch(r"\[[\d,]+ characters\]", short):
        start = short.removesuffix("…").rstrip() if not text.startswith(short) else short
        assert text.startswith(start)
        edges = {match.start() for match in regex.finditer(r"(?w)\b", text)} | {
            0,
            len(text),
            len(text.rstrip()),
        }
        rest = text[len(start) :]
        assert (
            len(start) in edges
            or rest[:1].isspace()
            or start[-1:] in ".!?…。！？\"'”’)]」』）\n"
            or not rest.strip()
        )


@given(
    st.text()
    | st.text(st.characters(max_codepoint=127))
    | st.text(st.sampled_from("ab \t\n\x0b\x1c\x1f\xa0"))
)
def test_a_title_is_on_one_line(text: str) -> None:
    shown = render_title(Kind(name="ticket"), {}, text)
    assert shown == regex.sub(r"\s+", " ", text).strip()


def test_each_text_is_counted_once_for_the_renditions_of_a_memory() -> None:
    counted: list[str] = []

    class Listening(WordCounter):
        def count(self, text: str) -> int:
            counted.append(text)
            return super().count(text)

    for content in ("A few words.", LONG):
        counted.clear()
        renditions_of(BUILT_IN.require("fact"), {"content": content}, Listening())
        assert content.strip() in counted
        assert len(counted) == len(set(counted))
