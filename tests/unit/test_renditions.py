"""Renditions: worded by the kind, cut at sentence and word ends, never inside one."""

from __future__ import annotations

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

import germane
from germane import InvalidInput, Kind, UnknownKind
from germane.kinds import BUILT_IN, TemplatePart
from germane.renditions import MICRO_SENTENCE_TOKENS, SUMMARY_TOKENS, render_title, renditions_of, shorten
from germane.testing.fakes import FirstSentenceSummarizer, WordCounter
from germane.tokens import get_counter

O200K = get_counter("o200k")
LONG = (
    "We moved the queue to Postgres. It removed a service and its on-call page. "
    "The only cost was a nightly vacuum that we had to schedule by hand. " * 8
)


def test_a_short_fact_is_the_same_at_every_level() -> None:
    made = renditions_of(BUILT_IN.require("fact"), {"content": "Tim prefers Celsius."}, O200K)
    assert made.micro == made.summary == made.full
    assert (made.full.text, made.full.tokens, made.counter) == ("Tim prefers Celsius.", 4, "o200k")


@pytest.mark.parametrize(
    ("subject", "content", "shown"),
    [
        ("Redis", "took 40 ms per call", "Redis: took 40 ms per call"),
        ("Redis", "redis took 40 ms", "redis took 40 ms"),
        ("Tim Doe", "Tim prefers Celsius", "Tim prefers Celsius"),
        ("deployments", "Nobody deploys on a Friday", "Nobody deploys on a Friday"),
        ("UserCache", "user_cache.py holds 40 entries", "user_cache.py holds 40 entries"),
        ("Redis cache", "The cache took 40 ms", "Redis cache: The cache took 40 ms"),
        ("日本", "東京が首都です", "日本: 東京が首都です"),
        ("x" * 60, "took 40 ms", "took 40 ms"),
    ],
)
@pytest.mark.parametrize("kind", ["fact", "preference"])
def test_a_fact_names_its_subject_at_every_level(kind: str, subject: str, content: str, shown: str) -> None:
    made = renditions_of(BUILT_IN.require(kind), {"content": content, "subject": subject}, O200K)
    assert (made.micro.text, made.summary.text, made.full.text) == (shown, shown, shown)
    long = renditions_of(
        BUILT_IN.require(kind), {"content": f"It is slow. {LONG}", "subject": "Redis"}, O200K
    )
    assert {one.text[:18] for one in (long.micro, long.summary, long.full)} == {"Redis: It is slow."}


def test_a_decision_says_how_it_turned_out_and_why() -> None:
    fields = {
        "content": "Chose Postgres over a separate vector database",
        "outcome": "success",
        "confidence": 0.85,
        "reasons": ["one backup", "one connection pool"],
        "result": "search got faster",
    }
    made = renditions_of(BUILT_IN.require("decision"), fields, O200K)
    assert made.micro.text == "Chose Postgres over a separate vector database [success, 0.85 confidence]"
    assert made.summary.text == (
        "Chose Postgres over a separate vector database [success, 0.85 confidence]"
        " — one backup; one connection pool → search got faster"
    )


@pytest.mark.parametrize(
    ("action", "label"),
    [
        ("absolute", "Never"),
        ("block", "Never"),
        ("ask", "Ask first"),
        ("confirm", "Ask first"),
        ("warn", "Careful"),
        (None, "Careful"),
    ],
)
def test_a_constraint_says_what_is_forbidden_and_why(action: str | None, label: str) -> None:
    fields = {"content": "Pushing to main", "reason": "reviews catch mistakes", "action": action}
    made = renditions_of(BUILT_IN.require("constraint"), fields, O200K)
    assert made.micro.text == made.summary.text == f"**{label}:** Pushing to main — reviews catch mistakes"


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("Never deploy on a Friday.", "**Never** deploy on a Friday."),
        ("Don't push to main", "**Don't** push to main"),
        ("Do not push, ever", "**Do not** push, ever"),
        ("**Never:** push", "**Never:** push"),
        ("Ask first: pushing", "**Ask first:** pushing"),
        ("Neverending loops", "**Never:** Neverending loops"),
    ],
)
def test_a_constraint_that_begins_with_a_label_gets_no_other(content: str, shown: str) -> None:
    made = renditions_of(BUILT_IN.require("constraint"), {"content": content, "action": "block"}, O200K)
    assert made.full.text == shown


def test_a_constraint_in_full_has_its_condition_and_its_reason() -> None:
    content = f"Deleting data of customers, unless its owner has agreed in writing. {LONG}"
    made = renditions_of(
        BUILT_IN.require("constraint"), {"content": content, "action": "block", "reason": LONG}, O200K
    )
    assert made.full.text == f"**Never:** {content.strip()} — {LONG.strip()}"
    assert made.summary.text.startswith("**Never:** Deleting data of customers, unless its owner has agreed")


def test_what_has_to_be_shortened_keeps_its_fixed_pieces() -> None:
    fields = {"content": LONG, "outcome": "failure", "confidence": 0.4}
    made = renditions_of(BUILT_IN.require("decision"), fields, O200K)
    assert made.micro.text.endswith("[failure, 0.40 confidence]")
    assert made.micro.tokens <= MICRO_SENTENCE_TOKENS
    assert made.summary.tokens <= SUMMARY_TOKENS
    assert "[failure, 0.40 confidence]" in made.summary.text


def test_a_decision_record_is_summarised_by_its_decision() -> None:
    content = (
        "# Use one database\n\n## Context\n\n"
        + LONG
        + "\n\n## Decision\n\nKeep Postgres.\n\n## Consequences\n\nFewer."
    )
    made = renditions_of(BUILT_IN.require("adr"), {"content": content, "status": "accepted"}, O200K)
    assert made.micro.text == "Use one database [accepted]: Keep Postgres."
    assert made.summary.text == (
        "Use one database [accepted]: Keep Postgres. — We moved the queue to Postgres. → Fewer."
    )
    assert made.full.text == content


@pytest.mark.parametrize("kind", [kind.name for kind in BUILT_IN])
def test_a_heading_of_a_decision_may_have_nothing_below_it(kind: str) -> None:
    for content in ("## Decision\n# #", "## Decision\n### Chosen\nRedis.", "Decision:\n\n", "# Decision"):
        with germane.open(":memory:", embedder=None) as engine:
            memory = engine.remember(content, kind=kind)
            assert memory.renditions.full.text


@pytest.mark.parametrize("kind", [kind.name for kind in BUILT_IN])
@pytest.mark.parametrize("content", ["===", "...", "*", "```", "![]()", "<b>", "# #"])
def test_what_is_no_prose_is_shown_at_every_level_too(kind: str, content: str) -> None:
    made = renditions_of(BUILT_IN.require(kind), {"content": content}, O200K)
    assert made.micro.text
    assert made.summary.text


def test_a_procedure_lists_its_steps() -> None:
    fields = {"content": "How to deploy", "name": "Deploy", "steps": ["branch", "review", "merge"]}
    made = renditions_of(BUILT_IN.require("procedure"), fields, O200K)
    assert made.summary.text == "How to deploy\nbranch\nreview\nmerge"
    assert made.micro.text == "How to deploy (branch; review; merge)"
    assert render_title(BUILT_IN.require("procedure"), fields, "x") == "Deploy"


def test_a_kind_of_ones_own_takes_a_line() -> None:
    ticket = Kind(name="ticket", section="facts", micro=(TemplatePart("{key}: "), TemplatePart("{content}")))
    made = renditions_of(ticket, {"content": "Login is slow", "key": "NW-7"}, O200K)
    assert made.micro.text == "NW-7: Login is slow"
    assert BUILT_IN.with_kinds([ticket]).in_section("facts")[-1] == "ticket"


def test_unknown_and_badly_named_kinds_are_refused() -> None:
    with pytest.raises(UnknownKind, match=r"'ticket'.*Known kinds: .*fact"):
        BUILT_IN.require("ticket")
    with pytest.raises(InvalidInput, match="letters, digits"):
        Kind(name="no spaces")


def test_a_summarizer_is_asked_for_long_texts_only_and_kept_to_length() -> None:
    plain = renditions_of(BUILT_IN.require("note"), {"content": LONG}, O200K)
    summed = renditions_of(BUILT_IN.require("note"), {"content": LONG}, O200K, FirstSentenceSummarizer())
    assert summed.summary.text == "We moved the queue to Postgres."
    assert plain.summary.text != summed.summary.text

    class Talkative:
        def summarize(self, text: str, tokens: int) -> str:  # noqa: ARG002 - The door hands both in.
            return text * 3

    made = renditions_of(BUILT_IN.require("note"), {"content": LONG}, O200K, Talkative())
    assert made.summary.tokens <= SUMMARY_TOKENS


def test_a_sentence_is_kept_whole_and_a_word_is_too() -> None:
    words = WordCounter()
    assert shorten("One two. Three four five.", 3, words) == "One two. …"
    assert shorten("One two three four.", 2, words) == "One two…"
    assert shorten("今日は晴れです。明日は雨でしょう。", 9, O200K) == "今日は晴れです。 …"
    assert shorten("anything", 0, words) == ""


def test_one_endless_word_is_told_by_its_length() -> None:
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


@example("\n0", "constraint")
@given(st.text(min_size=1, max_size=2000), st.sampled_from([kind.name for kind in BUILT_IN]))
def test_levels_keep_their_bounds_whatever_the_text(text: str, kind: str) -> None:
    made = renditions_of(
        BUILT_IN.require(kind), {"content": text, "subject": "s", "outcome": "success"}, O200K
    )
    assert made.micro.tokens <= MICRO_SENTENCE_TOKENS
    assert made.summary.tokens <= SUMMARY_TOKENS
    for rendition in (made.micro, made.summary, made.full):
        assert O200K.count(rendition.text) == rendition.tokens
    assert "\n" not in made.micro.text


@given(
    st.text()
    | st.text(st.characters(max_codepoint=127))
    | st.text(st.sampled_from("ab \t\n\x0b\x1c\x1f\xa0"))
)
def test_a_title_is_on_one_line(text: str) -> None:
    shown = render_title(Kind(name="ticket"), {}, text)
    assert shown == regex.sub(r"\s+", " ", text).strip()


def test_a_percent_sign_in_a_template_is_shown_as_it_is() -> None:
    kind = Kind(name="ticket", full=(TemplatePart("100 %s done: {content} %% {share}%"),))
    made = renditions_of(kind, {"content": "all %d", "share": 7}, O200K)
    assert made.full.text == "100 %s done: all %d %% 7%"


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
