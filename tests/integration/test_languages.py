"""Memories in many languages are found by their words, and an agent's language is the agent's own."""

from __future__ import annotations

from pathlib import Path

import pytest

import germane
from germane import InvalidInput, Status, StoreUnavailable
from germane.protocols import Query
from germane.stores import SqliteStore

# For each language memories, and questions in other words' forms with the memory that answers them.
SENTENCES: dict[str, tuple[tuple[str, ...], tuple[tuple[str, int], ...]]] = {
    "german": (
        (
            "Die Rechnungen werden jeden Montag an die Kunden verschickt.",
            "Für die Übersetzungen der Häuser-Anzeigen ist Frau Müller zuständig.",
            "Das Straßenfest wurde wegen des Gewitters auf September verschoben.",
            "Unsere Datenbank-Sicherungen liegen verschlüsselt in Zürich.",
        ),
        (
            ("Wann verschicken wir eine Rechnung?", 0),
            ("Wer ist zuständig für eine Übersetzung?", 1),
            ("Was macht Frau Mueller mit dem Haus?", 1),
            ("Warum wurde das Strassenfest verschoben?", 2),
            ("Wo liegt die Sicherung der Datenbank?", 3),
            ("backups in Zurich", 3),
        ),
    ),
    "french": (
        (
            "Les développeurs préfèrent déployer l'application le mardi.",
            "Le café de l'équipe ferme à dix-huit heures.",
            "La cliente a annulé ses réservations d'hôtel.",
        ),
        (
            ("Quand déploie-t-on les applications ?", 0),
            ("À quelle heure ferment les cafés ?", 1),
            ("horaires du cafe", 1),
            ("annuler une réservation", 2),
        ),
    ),
    "russian": (
        ("Счета отправляются клиентам по понедельникам.", "Резервные копии хранятся в Цюрихе."),
        (("Когда отправляем счёт клиенту?", 0), ("Где хранится копия?", 1)),
    ),
    "arabic": (
        ("تُرسل الفواتير إلى العملاء كل يوم اثنين.", "النسخ الاحتياطية محفوظة في زيورخ."),
        (("متى نرسل الفاتورة إلى العملاء؟", 0), ("أين النسخ المحفوظة؟", 1)),
    ),
    "hindi": (
        ("ग्राहकों को बिल हर सोमवार भेजे जाते हैं।", "बैकअप ज्यूरिख में रखे जाते हैं।"),
        (("ग्राहक को बिल कब भेजते हैं?", 0), ("बैकअप कहाँ रखा है?", 1)),
    ),
    # These are written without spaces or with particles at the words: bigrams find them in any language.
    "english": (
        (
            "发票每周一发送给客户。",
            "请求は毎週月曜日に顧客へ送られます。バックアップはチューリッヒにあります。",
            "고객에게는 매주 월요일에 청구서를 보냅니다.",
            "ใบแจ้งหนี้ถูกส่งให้ลูกค้าทุกวันจันทร์",
        ),
        (
            ("什么时候给客户发送发票?", 0),
            ("バックアップはどこですか", 1),
            ("청구서는 언제 보내나요?", 2),
            ("ส่งใบแจ้งหนี้เมื่อไหร่", 3),
        ),
    ),
}


@pytest.mark.parametrize("language", SENTENCES)
def test_sentences_are_found_by_their_words(language: str) -> None:
    sentences, questions = SENTENCES[language]
    with germane.open(":memory:", language=language, embedder=None) as engine:
        stored = engine.remember_many(sentences)
        for question, answer in questions:
            found = engine.recall(question)
            assert found[0].memory.id == stored[answer].memory.id, question
            assert found[0].parts["lexical"] > 0
            assert set(found.question.terms) & set(engine.recall(sentences[answer]).question.terms)


def test_the_language_stays_with_the_agent(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with germane.open(path, agent="de", language="german", embedder=None) as engine:
        memory = engine.remember("Die Rechnungen gehen an alle Kunden.")
        assert engine.stats().language == "german"
    with germane.open(path, agent="en", embedder=None) as english:
        english.remember("The invoices go to all customers.")
        assert english.stats().language == "english"
    with germane.open(path, agent="de", embedder=None) as engine:
        assert engine.recall("Rechnung")[0].id == memory.id
        assert engine.stats().language == "german"
    with germane.open(path, agent="de", read_only=True, embedder=None) as engine:
        assert engine.recall("Kunde")[0].id == memory.id


def test_another_language_indexes_anew(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    texts = ["Die Rechnungen gehen an alle Kunden.", "Die Häuser sind verkauft.", "Alt.", "Geheim."]
    with germane.open(path, embedder=None) as engine:
        bill, _, old, secret = [each.memory for each in engine.remember_many(texts)]
        engine.revise(old.id, "Neu: die Verträge sind unterschrieben.")
        engine.forget(secret.id)
        assert len(engine.recall("Rechnung")) == 0
    with germane.open(path, language="german", embedder=None) as engine:
        assert engine.recall("Rechnung")[0].id == bill.id
        assert engine.recall("Vertrag")[0].content.startswith("Neu")
        assert engine.doctor() == ()
        renewed = [engine.recall(question) for question in ("Rechnung Haus Vertrag", "Kunde")]
        assert engine.restore(secret.id).status is Status.ACTIVE
        assert engine.recall("geheim")[0].id == secret.id
        engine.forget(secret.id)
        fresh = SqliteStore(":memory:")
        fresh.maintenance.language("default", "german")
        with germane.open(fresh) as other:
            other.import_memories(reversed(engine.memories(germane.Filter(statuses=tuple(Status)))))
            again = [other.recall(question) for question in ("Rechnung Haus Vertrag", "Kunde")]
        for one, two in zip(renewed, again, strict=True):
            assert [(each.memory.id, each.parts["lexical"]) for each in one] == [
                (each.memory.id, each.parts["lexical"]) for each in two
            ]


def test_an_open_engine_notices_another_language(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    first = germane.open(path, embedder=None)
    first.remember("Die Rechnungen gehen an alle Kunden.")
    assert len(first.recall("Rechnung")) == 0
    same = germane.open(path, embedder=None)
    second = germane.open(path, language="german", embedder=None)
    with pytest.raises(StoreUnavailable, match=r"reindexed these .* in 'german'; this one asks in 'english'"):
        first.recall("Rechnung")
    # What is written meanwhile is indexed in the language that holds now.
    first.remember("Die Verträge sind unterschrieben.")
    assert [each.memory.content[:12] for each in second.recall("Vertrag")] == ["Die Verträge"]
    for engine in (first, second, same):
        engine.close()
    with germane.open(path, embedder=None) as again:
        assert len(again.recall("Rechnung")) == 1
        assert again.doctor() == ()


def test_reading_only_refuses_another_language(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with germane.open(path, embedder=None) as engine:
        engine.remember("The invoices go to all customers.")
    with pytest.raises(StoreUnavailable, match=r"indexed in 'english'.*read_only=True"):
        germane.open(path, language="german", read_only=True, embedder=None)
    with germane.open(path, agent="nobody", language="german", read_only=True, embedder=None) as engine:
        assert len(engine.recall("Rechnung")) == 0
    with germane.open(path, read_only=True, embedder=None) as engine:
        assert len(engine.recall("invoice")) == 1


@pytest.mark.parametrize("language", ["klingon", "German", "", "../english", "english_stemmer"])
def test_an_unknown_language_names_the_known_ones(tmp_path: Path, language: str) -> None:
    with pytest.raises(InvalidInput, match=r"arabic, armenian.*german.*yiddish"):
        germane.open(tmp_path / "agent.db", language=language, embedder=None)


def test_a_store_without_languages_is_english() -> None:
    class Plain:
        def __init__(self) -> None:
            self._inner = SqliteStore(":memory:")
            for name in ("apply", "get", "find", "search", "stats", "close"):
                setattr(self, name, getattr(self._inner, name))

    store = Plain()
    with germane.open(store, language="english") as engine:  # type: ignore[arg-type]  # Its methods come at run time.
        engine.remember("The invoices go to all customers.")
        assert len(engine.recall("invoice")) == 1
        with pytest.raises(InvalidInput, match="'german' can't be had from Plain"):
            germane.open(store, language="german")  # type: ignore[arg-type]  # As above.


def test_terms_of_another_language_are_refused() -> None:
    store = SqliteStore(":memory:")
    assert store.maintenance.language("tester", None) == "english"
    assert store.maintenance.language("tester", "german") == "german"
    assert store.maintenance.agents() == ("tester",)
    with pytest.raises(StoreUnavailable, match="german"):
        store.search("tester", Query(terms=("x",), language="english"))
    assert store.search("tester", Query(terms=("x",), language="german")).stored == 0
    assert store.search("tester", Query(terms=("x",))).stored == 0
    store.close()
