"""The terms of texts and questions, and how much of a question a text covers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from importlib import import_module
from importlib.resources import files
from types import ModuleType
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.retrieval import tokenizer
from germane.retrieval.quality import IdfTable, coverages, english_idf, information, least_share
from germane.retrieval.tokenizer import LONGEST, TOKENIZER, index_terms, query_terms, term_hash


def has(text: str, term: str) -> bool:
    return term_hash(term) in index_terms(text).hashes.tolist()


def finds(question: str, text: str) -> bool:
    """Whether a question shares a term with a text, as a search would see it."""
    return any(has(text, term) for term in query_terms(question))


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("getUserName", {"getusernam", "user", "name"}),
        ("user_name", {"usernam", "user", "name"}),
        ("HTTPServer2", {"httpserver2", "http", "server", "2"}),
        ("src/auth/login.py", {"src/auth/login.py", "src", "auth", "login.py", "login", "py"}),
        (r"C:\repo\main.rs", {"repo", "main.rs", "main"}),
        ("v1.2.3", {"v1.2.3", "1.2.3", "1", "2", "3"}),
        ("well-known", {"wellknown", "well", "known"}),
        ("2023-05-07", {"2023-05-07", "2023", "05", "07"}),
        ("COVID-19", {"covid19", "covid", "19"}),
        ("ann@example.org", {"ann@example.org", "ann", "example.org"}),
        ("O'Brien", {"obrien", "brien"}),
        ("C++ or C#", {"c++", "c#", "c"}),
        ("PDFs", {"pdf"}),
        ("1,000,000", {"1000000"}),
        ("U.S.A.", {"u.s.a", "usa"}),
        ("__init__", {"init"}),
        ("a3f9c2e1d4", {"a3f9c2e1d4"}),
        ("Apple™ ®", {"appl"}),
        ("café", {"café", "cafe"}),
        ("Łódź", {"łódź", "lodz"}),
    ],
)
def test_compounds_are_left_whole_and_split(text: str, terms: set[str]) -> None:
    assert terms <= set(query_terms(text))
    assert all(has(text, term) for term in terms)


def test_a_hash_is_not_torn_apart() -> None:
    assert query_terms("a3f9c2e1d4") == ("a3f9c2e1d4",)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("get_user_name", "calls getUserName() twice"),
        ("the user name", "calls getUserName() twice"),
        ("getUserName", "get-user-name is the command"),
        ("login.py", "fixed in src/auth/login.py today"),
        ("version 1.2.3", "released v1.2.3"),
        ("Johns dog", "John\u2019s dog barked"),
        ("email", "sent an e-mail"),
        ("dont panic", "Don't panic!"),
        ("Zurich", "ein Tag in Zürich"),
        ("1000", "it cost 1,000 euros"),
        ("ﬁle", "a file"),
        ("HELLO WORLD", "hello world"),
        ("running", "he runs"),
    ],
)
def test_a_question_finds_what_it_means(question: str, text: str) -> None:
    assert finds(question, text)


def test_a_possessive_is_no_word() -> None:
    assert query_terms("John's") == query_terms("John\u2019s") == ("john",)
    assert index_terms("John's").length == 1


def test_grouped_digits_and_lists_of_numbers_differ() -> None:
    assert query_terms("1,000") == ("1000",)
    assert not has("in 2023,100 people", "2023100")


def test_stop_words_are_left_out_of_questions_only() -> None:
    text = "What did she say about the cat?"
    assert query_terms(text) == ("say", "cat")
    assert query_terms("When is the provider down?") == ("provid", "down")
    assert has(text, "what")
    assert has(text, "the")


@pytest.mark.parametrize(
    "question", ["", "   ", "?!", "what is it?", "When did they do that", "Don't you?", "I'm", "___", "🙂"]
)
def test_a_question_may_ask_for_nothing(question: str) -> None:
    assert query_terms(question) == ()


def test_terms_come_once_and_in_order() -> None:
    assert query_terms("Redis cache, redis caches, Postgres") == ("redi", "cach", "postgr")


# Sentences in other scripts: what a reader of the language would search for, and would not.
@pytest.mark.parametrize(
    ("text", "questions", "strangers"),
    [
        ("我昨天在北京大学的图书馆学习。", ["图书馆", "北京", "学", "北京大学"], ["上海", "医院"]),
        (
            "昨日、東京タワーへ行って写真を撮りました。",
            ["東京", "タワー", "写真", "東京タワー"],
            ["大阪", "ビール"],
        ),
        ("어제 서울에서 친구를 만나 커피를 마셨어요.", ["서울", "친구", "커피"], ["부산", "버스"]),
        ("ذهبتُ أمسِ إلى المدرسة مع صديقي", ["المدرسة", "ذهبت", "المدرســة"], ["السوق"]),
        ("मैं कल दिल्ली में हिन्दी सीख रहा था।", ["दिल्ली", "हिन्दी"], ["मुंबई"]),
        ("Die Straße nach Zürich war gesperrt.", ["STRASSE", "Zürich", "zurich", "straße"], ["München"]),
        ("เมื่อวานฉันกินข้าวที่กรุงเทพ", ["กรุงเทพ", "ข้าว"], ["หมู"]),
        ("Он ещё живёт в Москве.", ["еще", "живет", "МОСКВЕ"], ["Киев"]),
        ("به خانه می\u200cروم", ["میروم", "خانه"], ["کتاب"]),
    ],
)
def test_other_scripts(text: str, questions: list[str], strangers: list[str]) -> None:
    assert [question for question in questions if not finds(question, text)] == []
    assert [stranger for stranger in strangers if finds(stranger, text)] == []


def test_hindi_words_keep_their_vowel_signs() -> None:
    assert query_terms("हिन्दी किताब") == ("हिन्दी", "किताब")


def test_scripts_without_spaces_become_bigrams() -> None:
    assert query_terms("我喜欢猫") == ("我喜", "喜欢", "欢猫")
    assert query_terms("猫") == ("猫",)
    assert query_terms("2023年5月") == ("2023", "年", "5", "月")
    assert query_terms("iPhoneを買う") == ("iphon", "phone", "を買", "買う")


def test_width_and_composition_do_not_matter() -> None:
    assert query_terms("ＲＥＤＩＳ ｶﾞｽ") == query_terms("redis ガス")
    assert query_terms("cafe\u0301") == query_terms("caf\u00e9")


def test_frequencies_and_length_are_counted_and_capped() -> None:
    forward = index_terms("dog " * 300 + "cat")
    by_hash = dict(zip(forward.hashes.tolist(), forward.frequencies.tolist(), strict=True))
    assert by_hash == {term_hash("dog"): 255, term_hash("cat"): 1}
    assert forward.length == 301
    assert index_terms("dog " * 70_000).length == LONGEST == 65_535


def test_an_empty_text_has_an_empty_record() -> None:
    forward = index_terms("")
    assert forward.length == 0
    assert forward.hashes.dtype == np.uint32
    assert forward.frequencies.dtype == np.uint8
    assert forward.hashes.size == forward.frequencies.size == 0


def test_records_compare_by_value() -> None:
    assert index_terms("one dog") == index_terms("Dogs one")
    assert hash(index_terms("one dog")) == hash(index_terms("Dogs one"))
    assert index_terms("one dog") != index_terms("dog dog")
    assert index_terms("dog") != "dog"


def test_the_hash_is_crc32_of_utf8() -> None:
    assert term_hash("straße") == crc32("straße".encode())
    assert term_hash("\ud800") >= 0


def test_other_languages_have_their_own_stems() -> None:
    assert query_terms("Häuser", language="german") == query_terms("Hauses", language="german")
    assert query_terms("the houses", language="german")[0] == "the"


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'klingon' has no Snowball stemmer"):
        query_terms("nuqneH", language="klingon")
    with pytest.raises(InvalidInput, match="'Englisch'"):
        index_terms("x", language="Englisch")


def test_the_version_names_what_terms_depend_on() -> None:
    assert TOKENIZER.startswith("terms-1/snowball-3/unicode-")


WORDS = """
    running flies generously hopefully relational conditional agreed plastered skies dying news
    proceed organization organisations sensibility yellowing happily youth o'neill x
"""


def stems(monkeypatch: pytest.MonkeyPatch, library: object, language: str = "english") -> list[str]:
    monkeypatch.setitem(sys.modules, "Stemmer", library)
    stem = tokenizer.stemmer.__wrapped__(language)
    return [stem(word) for word in WORDS.split()]


def test_both_stemmers_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = pytest.importorskip("Stemmer")
    for language in ("english", "german", "french", "russian", "dutch_porter"):
        assert stems(monkeypatch, compiled, language) == stems(monkeypatch, None, language)


def test_a_stemmer_of_another_major_version_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    pure = stems(monkeypatch, None)

    class Older(ModuleType):
        @staticmethod
        def version() -> str:
            return "2.2.0"

        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

    assert stems(monkeypatch, Older("Stemmer")) == pure


def test_a_word_too_long_for_any_language_is_its_own_stem() -> None:
    assert tokenizer.stemmer("english")("s" * 1000) == "s" * 1000


def test_threads_get_the_same_terms() -> None:
    module = import_module("germane.retrieval.tokenizer")
    texts = [f"word{n} running{n % 7}s getThing{n} über{n}" for n in range(400)]
    alone = [index_terms(text) for text in texts]
    module._hashes_of_words.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(index_terms, texts)) == alone


def test_what_is_remembered_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("germane.retrieval.tokenizer")
    monkeypatch.setattr(module, "_REMEMBERED_WORDS", 10)
    remembered = module._HashesOfWords("english")
    first = remembered["word1"]
    for number in range(100):
        remembered[f"word{number}"]
    assert len(remembered) <= 10
    assert remembered["word1"] == first
    remembered["x" * 1000]
    assert "x" * 1000 not in remembered


# How much of a question a memory covers, by words that are rare in English at large.

CHECKSUM = "08c3f99559ec5874c64c7237aeeb2e10671e340c32f54022c2ec4f6f4620436e"
SOME = ["redis", "cache", "latency", "house", "dog", "xqzt", "postgres", "decide", "time"]
SOME_WORDS = st.lists(st.sampled_from(SOME), max_size=6)


def coverage(terms: Sequence[str], hashes: NDArray[np.uint32]) -> float:
    return float(coverages(terms, [hashes])[0])


def covered(question: str, memory: str) -> float:
    return coverage(query_terms(question), index_terms(memory).hashes)


def idf(word: str) -> float:
    (found,) = english_idf().of(np.array([term_hash(query_terms(word)[0])], dtype=np.uint32))
    return float(found)


def test_the_package_carries_the_table_that_was_counted() -> None:
    data = files("germane.retrieval").joinpath("data", "idf-1.bin").read_bytes()
    assert sha256(data).hexdigest() == CHECKSUM
    assert len(data) <= 250_000


def test_a_question_says_what_its_distinct_words_say() -> None:
    assert information(query_terms("giraffe horse horses")) == pytest.approx(idf("giraffe") + idf("horse"))
    assert information(()) == 0.0


def test_rare_words_weigh_more() -> None:
    assert idf("person") < idf("horse") < idf("giraffe") < idf("xqztv")


def test_all_some_and_none_of_a_question() -> None:
    assert covered("Where does the giraffe sleep?", "The giraffe sleeps standing.") == pytest.approx(1)
    assert 0.5 < covered("The person with the giraffe?", "A giraffe is tall.") < 1
    assert 0 < covered("The person with the giraffe?", "A person came by.") < 0.5
    assert covered("Where does the giraffe sleep?", "Rent is due.") == 0
    assert covered("what is it?", "What is it?") == 0
    assert covered("giraffe", "") == 0


@given(SOME_WORDS, st.lists(SOME_WORDS, max_size=4))
def test_coverage_is_a_share_that_grows_with_the_memory(words: list[str], memories: list[list[str]]) -> None:
    terms = query_terms(" ".join(words))
    hashes = [index_terms(" ".join(memory)).hashes for memory in memories]
    shares = coverages(terms, hashes)
    assert shares.shape == (len(memories),)
    assert np.all((shares >= 0) & (shares <= 1 + 1e-9))
    for memory, share in zip(memories, shares.tolist(), strict=True):
        longer = index_terms(" ".join([*memory, "giraffe", *words])).hashes
        assert coverage(terms, longer) == pytest.approx(1 if terms else 0)
        assert coverage(terms, longer) >= share - 1e-9
        assert coverage((*terms, *terms), index_terms(" ".join(memory)).hashes) == share


def test_a_table_is_read() -> None:
    hashes = np.array([3, 9], dtype="<u4").tobytes()
    table = IdfTable.from_bytes(b"germane idf 1\n" + bytes([106]) + hashes + bytes([84, 14]))
    words = np.array([3, 9, 4], dtype=np.uint32)
    assert table.of(words) == pytest.approx(np.log([101 / 1.5, 101 / 50.5, 101 / 0.5]), abs=0.026)


@pytest.mark.parametrize(
    "data", [b"", b"germane idf 1\n\x09", b"germane idf 1\n\x09abcdef", b"something else"]
)
def test_anything_else_is_no_table(data: bytes) -> None:
    with pytest.raises(InvalidInput, match="No table"):
        IdfTable.from_bytes(data)


AROUND = (
    *("{}", "see ({}),", "`{}`.", "{}'s state", "x'{}", "it's_a,{}", "C:\\temp\\{}", "me@{}", "{}@host"),
    *("{}:12", "{}™ now", "“{}”", "naïve {} é", "{}; 1,{}", "{}'t", "-{}-"),
)


@pytest.mark.parametrize("language", ["english", "german"])
def test_a_text_with_an_identifier_has_its_least_share_of_the_question(language: str) -> None:
    names = ["src/billing/refund_worker.py", "ERR_412", "adr-015", "PAY-1042", "token_cache_limit", "v2.10.3"]
    names += [
        "config.yaml",
        "loadAll",
        "~/code/of_session/",
        "openPrs",
        "open_PRs",
        "URLs_seen",
        "10.0.4.17:80",
        "café_2.yaml",
        "3f9a2b1c",
        "Engine::open",
    ]
    pruned = 0
    for name in names:
        question = f"Why does {name} fail?"
        terms = query_terms(question, language=language)
        least = least_share([name], terms, language=language)
        pruned += least > 0.2
        for around in AROUND:
            for written in (name, name.upper(), name.lower()):
                text = around.format(*[written] * 2)
                hashes = index_terms(text, language=language).hashes
                assert coverages(terms, [hashes])[0] >= least, text
    assert pruned > len(names) / 2
