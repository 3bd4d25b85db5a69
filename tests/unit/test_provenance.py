"""Where a memory comes from: its whole derivation, and the removal of all that comes from one source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from inline_snapshot import snapshot

import germane
from germane import Engine, InvalidInput, NotFound
from germane.errors import PurgeNotConfirmed
from germane.importers import import_source
from germane.testing.fakes import START, FixedClock, seeded_ids

WIKI = "https://wiki.example/limits"


@pytest.fixture
def engine() -> Iterator[Engine]:
    with germane.open(":memory:", clock=FixedClock(START), ids=seeded_ids(), record=True) as opened:
        yield opened


def talk(engine: Engine) -> None:
    chat = engine.conversation("monday")
    chat.append({"role": "user", "content": "I live in Lisbon and my sister is Anna."})
    engine.learn_from(chat)


def test_a_derivation_names_sources_of_sources_messages_and_runs(engine: Engine) -> None:
    talk(engine)
    home = next(each for each in engine.memories() if "Lisbon" in each.content)
    limit = engine.remember(
        "Uploads are limited to 40 MB.", kind="fact", source=f"{WIKI}#api", trust="external"
    )
    advice = engine.remember("Split uploads.", metadata={"_derived_from": [limit.id]})
    plan = engine.remember("Split uploads in Lisbon.", metadata={"_derived_from": [advice.id, home.id]})

    derivation = engine.trace_back(plan.id)

    assert [each.memory.id for each in derivation.steps] == [plan.id, advice.id, home.id, limit.id]
    assert derivation.steps[0].sources == (advice.id, home.id)
    (quote,) = derivation.steps[2].quotes
    assert (quote.role, quote.session, quote.text) == (
        "user",
        "monday",
        "I live in Lisbon and my sister is Anna.",
    )
    assert derivation.steps[2].runs[0].run == engine.learning_runs()[0].id
    assert derivation.steps[3].versions[0].trust == "external"
    assert str(derivation) == snapshot("""\
c8a70639  note: Split uploads in Lisbon.
  version 1: external, 5 January 2026
  67a9c378  note: Split uploads.
    version 1: external, 5 January 2026
    82e2e662  fact: Uploads are limited to 40 MB.
      version 1: external, https://wiki.example/limits#api, 5 January 2026
  6baa9455  fact: The user lives in Lisbon.
    version 1: owner, conversation:monday#019b8d7d-f1c0-7000-98a7-dbefd82c07cd, 5 January 2026, session monday
    learned by rules on 5 January 2026 (new), run c2094cac
    quotes user on 5 January 2026 in monday: I live in Lisbon and my sister is Anna.\
""")


def test_a_source_that_was_purged_is_named_as_gone(engine: Engine) -> None:
    limit = engine.remember("Uploads are limited to 40 MB.")
    advice = engine.remember("Split uploads.", metadata={"_derived_from": {limit.id: 1}})
    engine.purge(limit.id, confirm=True)

    derivation = engine.trace_back(advice.id[-8:])

    assert derivation.gone == (limit.id,)
    assert "(no longer stored)" in str(derivation)
    with pytest.raises(NotFound):
        engine.trace_back(limit.id)


def test_memories_that_name_each_other_end(engine: Engine) -> None:
    one = engine.remember("One.")
    other = engine.remember("Two.", metadata={"_derived_from": [one.id]})
    engine.revise(one.id, metadata={"_derived_from": [other.id]})
    assert len(engine.trace_back(one.id).steps) == 2
    assert "(see above)" in str(engine.trace_back(one.id))


def test_a_revoked_session_takes_its_conversation_summary_and_facts_along(engine: Engine) -> None:
    talk(engine)
    engine.conversation("monday").summary()
    other = engine.remember("Porto is a city.", kind="fact")
    context = engine.assemble("Where does the user live?")

    made = engine.revoke("monday", confirm=True)

    assert (made.messages, len(made.memories), made.contexts) == (1, 3, (context.ref,))
    assert [each.id for each in engine.memories()] == [other.id]
    assert engine.sessions() == ()
    assert engine.learning_runs() == ()


def test_what_a_source_replaced_stands_again(engine: Engine) -> None:
    ours = engine.remember("We use Postgres.", kind="decision", trust="owner")
    draft = {"content": "We use a spreadsheet.", "kind": "decision", "source": WIKI, "trust": "external"}
    engine.supersede(ours.id, draft)

    assert engine.revoke(WIKI, confirm=True).restored == (ours.id,)

    (left,) = engine.memories()
    assert (left.id, left.version, left.content, left.trust) == (ours.id, 1, "We use Postgres.", "owner")
    assert "spreadsheet" not in engine.assemble("What do we use?").text


def test_an_imported_file_is_revoked_by_its_name_or_its_project(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "one.md").write_text("# One\n\nThe lantern is red.\n", encoding="utf-8")
    (folder / "two.md").write_text("# Two\n\nThe harbour is deep.\n", encoding="utf-8")
    import_source(engine, str(folder))
    imported = engine.trace_back(engine.recall("lantern")[0].id).steps[0].imported
    assert imported is not None
    assert imported.file.endswith("one.md")

    engine.revoke(imported.file, confirm=True)

    assert [each.content for each in engine.memories() if "lantern" in each.content] == []
    assert "harbour" in engine.assemble("harbour").text
    engine.revoke(imported.project, confirm=True)
    assert engine.memories() == ()


def test_a_revocation_is_confirmed_and_names_something(engine: Engine) -> None:
    engine.remember("A fact.", source=WIKI)
    with pytest.raises(PurgeNotConfirmed):
        engine.revoke(WIKI)
    with pytest.raises(InvalidInput):
        engine.revoke(" ", confirm=True)
    for other in ("https://wiki.example/limit", "https://other.example", "limits"):
        with pytest.raises(NotFound):
            engine.revoke(other, confirm=True)
    assert engine.count() == 1


def test_an_explanation_says_where_memories_come_from(engine: Engine) -> None:
    engine.remember("Uploads are limited to 40 MB.", source=WIKI, trust="external")
    engine.remember("Uploads are slow.")
    context = engine.assemble("uploads")
    assert "external, https://wiki.example/limits, 5 January 2026" in context.explain()
    assert {each.trust for each in context.trace.included} == {"agent", "external"}
