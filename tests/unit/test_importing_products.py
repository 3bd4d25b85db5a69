"""Memories of other products: each format, whom the memories belong to, and what isn't taken over."""

from __future__ import annotations

import json
import pickle
import shutil
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import germane
from germane import Engine, Memory
from germane.errors import UnreadableSource
from germane.importers import ImportReport, Layout, export_jsonl, import_source, layout_of, read, write_block

FILES = Path(__file__).parents[1] / "imports"
MARCH = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
ALL = (
    ("mem0/get_all.json", Layout.MEM0),
    ("mem0/qdrant", Layout.MEM0),
    ("mem0/qdrant/collection/mem0/storage.sqlite", Layout.MEM0),
    ("mem0/history.sqlite", Layout.MEM0),
    ("langgraph.sqlite", Layout.LANGGRAPH),
    ("waiter.af", Layout.LETTA),
    ("graphiti.json", Layout.GRAPHITI),
    ("mcp_memory.jsonl", Layout.MCP_MEMORY),
    ("chatgpt", Layout.CHAT_EXPORT),
    ("claude", Layout.CHAT_EXPORT),
    ("chatgpt/conversations.json", Layout.CHAT_EXPORT),
    ("claude/memories.json", Layout.CHAT_EXPORT),
)


@pytest.fixture
def engine() -> Iterator[Engine]:
    with germane.open(":memory:", agent="bea", embedder=None) as opened:
        yield opened


def taken(engine: Engine, name: str) -> ImportReport:
    report = import_source(engine, str(FILES / name))
    assert report.skipped == ()
    assert report.read == report.created
    return report


def left_out(report: ImportReport) -> set[str]:
    return {each.reason.removeprefix("not taken over: ") for each in report.passed_over}


def texts(engine: Engine, user: str | None = None) -> set[str]:
    owner = engine if user is None else engine.for_user(user)
    return {memory.content for memory in owner.memories() if memory.user == user}


def one(engine: Engine, text: str) -> Memory:
    return next(memory for memory in engine.memories() if memory.content.startswith(text))


@pytest.mark.parametrize(("name", "layout"), ALL)
def test_a_product_is_known_by_its_layout_and_a_second_import_adds_nothing(
    engine: Engine, name: str, layout: Layout
) -> None:
    assert layout_of(str(FILES / name)) is layout
    first = taken(engine, name)
    again = import_source(engine, str(FILES / name))
    assert (again.read, again.created, again.revised, again.known) == (first.read, 0, 0, first.read)
    assert (again.skipped, again.gone) == ((), ())


@pytest.mark.parametrize("name", [name for name, _ in ALL])
def test_the_source_stays_as_it_is(engine: Engine, tmp_path: Path, name: str) -> None:
    copied = tmp_path / "copy"
    shutil.copytree(FILES, copied)

    def contents() -> dict[str, bytes]:
        files = sorted(copied.rglob("*"))
        return {str(path): path.read_bytes() for path in files if path.is_file()}

    before = contents()
    import_source(engine, str(copied / name))
    assert contents() == before


def test_mem0_has_users_sessions_and_metadata(engine: Engine) -> None:
    report = taken(engine, "mem0/qdrant")
    assert texts(engine) == {"The office closes at six."}
    assert texts(engine, "ann") == {"Ann prefers tea to coffee.", "Ann is allergic to nuts."}
    assert texts(engine, "ben") == {"Ben travels by train and by boat."}
    tea = one(engine.for_user("ann"), "Ann prefers")
    assert (tea.kind, tea.session, tea.trust, tea.metadata["topic"]) == ("fact", "trip", "external", "drinks")
    results = json.loads((FILES / "mem0/get_all.json").read_text())["results"]
    exported = next(each for each in results if each["memory"] == tea.content)
    assert tea.created_at == datetime.fromisoformat(exported["created_at"])
    assert tea.source == f"mem0:{exported['id']}"
    assert left_out(report) == {"vectors, which germane makes anew (4)"}


def test_an_export_of_mem0_adds_nothing_to_its_files(engine: Engine) -> None:
    taken(engine, "mem0/qdrant")
    report = import_source(engine, str(FILES / "mem0/get_all.json"))
    assert (report.read, report.created, report.known, report.revised) == (3, 0, 3, 0)


def test_the_log_of_mem0_gives_the_latest_texts(engine: Engine) -> None:
    report = taken(engine, "mem0/history.sqlite")
    assert len(texts(engine)) == 4
    assert "Ben travels by train and by boat." in texts(engine)
    assert left_out(report) == {
        "deleted memories (1)",
        "earlier versions of memories (2)",
        "memories' users and metadata: this file lacks them, and the Qdrant folder has them (4)",
    }


def test_a_user_gets_nothing_of_another(engine: Engine) -> None:
    report = import_source(engine.for_user("ann"), str(FILES / "mem0/qdrant"))
    assert report.created == 3
    assert "Ben travels by train and by boat." not in texts(engine, "ann")
    assert texts(engine) == set()
    assert "1 memory of the user 'ben', since this import is for 'ann' alone" in left_out(report)


def test_what_was_edited_there_is_the_next_version_here(engine: Engine, tmp_path: Path) -> None:
    text = (FILES / "mem0/get_all.json").read_text()
    (tmp_path / "before.json").write_text(text)
    (tmp_path / "after.json").write_text(text.replace("Ann prefers tea to coffee.", "Ann prefers water."))
    import_source(engine, str(tmp_path / "before.json"))
    report = import_source(engine, str(tmp_path / "after.json"))
    assert (report.created, report.revised, report.known) == (0, 1, 2)
    ann = engine.for_user("ann")
    versions = ann.history(one(ann, "Ann prefers").id)
    assert {each.content for each in versions} == {"Ann prefers tea to coffee.", "Ann prefers water."}
    assert texts(engine, "ann") == {"Ann is allergic to nuts.", "Ann prefers water."}


def test_what_was_changed_here_stays_so(engine: Engine) -> None:
    taken(engine, "mcp_memory.jsonl")
    engine.revise(one(engine, "Ann: Prefers").id, "Ann: Prefers water")
    engine.forget(one(engine, "Ann: Can't").id)
    report = import_source(engine, str(FILES / "mcp_memory.jsonl"))
    assert (report.created, report.revised, report.known) == (0, 0, 4)
    assert "Ann: Prefers water" in texts(engine)
    assert "Ann: Can't eat nuts" not in texts(engine)


def test_the_store_of_langgraph_shows_the_items_again(engine: Engine) -> None:
    frameworks = pytest.importorskip("germane.frameworks.langgraph", exc_type=germane.errors.MissingExtra)
    report = taken(engine, "langgraph.sqlite")
    store = frameworks.LangGraphStore(engine)
    item = store.get(("users", "ann"), "food")
    assert item.value == {"text": "Ann is allergic to nuts.", "level": 3}
    assert {each.key for each in store.search(("users",), query="nuts")} == {"food", "drink"}
    assert store.get(("app",), "over") is None
    assert left_out(report) == {"memories that have expired (1)"}

    store.put(("users", "ann"), "drink", {"text": "Ann prefers water."})
    again = import_source(engine, str(FILES / "langgraph.sqlite"))
    assert (again.created, again.revised, again.known) == (0, 0, 3)
    assert store.get(("users", "ann"), "drink").value == {"text": "Ann prefers water."}
    assert any("stays as it is" in reason for reason in left_out(again))


def test_the_time_to_live_of_langgraph_stays(engine: Engine) -> None:
    taken(engine, "langgraph.sqlite")
    century = engine.get(key='["app", "renewed"]')
    assert century.expires_at is not None
    assert century.expires_at.year > 2100


def test_an_agent_file_has_blocks_and_messages(engine: Engine) -> None:
    report = taken(engine, "waiter.af")
    assert texts(engine) == {
        "A friendly waiter.",
        "Ann can't eat nuts.",
        "user: I can't eat nuts.",
        "assistant: Nuts, noted.",
    }
    assert one(engine, "A friendly").kind == "identity"
    hello = one(engine, "user: ")
    assert (hello.kind, str(hello.scope), hello.created_at) == (
        "episode",
        "session:waiter",
        MARCH.replace(minute=31),
    )
    assert "system messages (1)" in left_out(report)
    assert "memory blocks without a text (1)" in left_out(report)


def test_the_first_agent_files_are_read_too(engine: Engine, tmp_path: Path) -> None:
    old: dict[str, Any] = {
        "agent_type": "memgpt_agent",
        "name": "waiter",
        "core_memory": [{"label": "human", "value": "Ann can't eat nuts.", "limit": 2000}],
        "messages": [{"role": "user", "text": "Hello", "created_at": "2025-05-01T10:00:00"}],
        "tools": [{"name": "send_message"}],
    }
    (tmp_path / "old.af").write_text(json.dumps(old))
    report = import_source(engine, str(tmp_path / "old.af"))
    assert texts(engine) == {"Ann can't eat nuts.", "user: Hello"}
    assert left_out(report) == {"tools, which aren't memories (1)"}


def test_facts_of_a_graph_are_valid_as_long_as_there(engine: Engine) -> None:
    report = taken(engine, "graphiti.json")
    ann = engine.for_user("ann")
    worked, left = one(ann, "Ann works at Acme."), one(ann, "Ann left Acme.")
    assert (worked.valid_from, worked.valid_until) == (datetime(2024, 1, 1, tzinfo=UTC), MARCH)
    assert (left.valid_from, left.valid_until, left.subject) == (MARCH, None, "Ann")
    assert one(ann, "Ann: I left").kind == "episode"
    assert one(ann, "Ann is an engineer.").tags == ("person",) or one(ann, "Ann is an engineer.").tags == (
        "Person",
    )
    assert left_out(report) == {
        "vectors, which germane makes anew (4)",
        "entities without a summary; facts name them (1)",
    }


def test_observations_and_relations_are_facts(engine: Engine) -> None:
    taken(engine, "mcp_memory.jsonl")
    expected = {"Ann: Can't eat nuts", "Ann: Prefers tea", "Acme is of type company", "Ann works at Acme"}
    assert texts(engine) == expected
    assert one(engine, "Ann: Can't").subject == "Ann"


def test_chatgpt_gives_the_branch_in_sight(engine: Engine) -> None:
    report = taken(engine, "chatgpt")
    session = "session:5f6c2a10-0000-4000-8000-000000000001"
    turns = sorted((m for m in engine.memories() if m.kind == "episode"), key=lambda m: m.metadata["index"])
    assert [turn.content for turn in turns] == [
        "user: Which train goes to Bern?",
        "assistant: [called python] timetable('Bern')",
        "assistant: [python returned] 09:02",
        "assistant: The one at two past nine.",
    ]
    assert {str(turn.scope) for turn in turns} == {session}
    assert (turns[0].created_at, turns[0].metadata["title"]) == (MARCH, "Trains to Bern")
    assert {"Ann is an engineer in Bern.", "Answer briefly."} < texts(engine)
    assert left_out(report) == {
        "messages of other branches: edited questions and regenerated answers (1)",
        "messages that ChatGPT hides: instructions of the system, thoughts, search results (1)",
        "pictures and other files in messages (1)",
        "conversations without a message (1)",
        "file user.json, which has neither conversations nor memories (1)",
    }


def test_claude_gives_conversations_and_memories(engine: Engine) -> None:
    report = taken(engine, "claude")
    assert "The cookbook is written in German." in texts(engine)
    answer = one(engine, "assistant: ")
    assert answer.content.splitlines()[-1] == "Carrot cake."
    assert "[called web_search]" in answer.content
    assert "No nuts." not in answer.content
    attached = one(engine, "eggs")
    assert (attached.kind, attached.subject, str(attached.scope)) == ("note", "list.txt", str(answer.scope))
    assert attached.source == f"claude:{answer.metadata['session']}/message-1/list.txt"
    assert (attached.metadata["attachment"], attached.metadata["title"]) == ("list.txt", "Nut-free cake")
    assert attached.created_at == MARCH
    assert left_out(report) == {
        "attached files without their text (1)",
        "parts of type 'thinking' in messages (1)",
        "file users.json, which has neither conversations nor memories (1)",
    }


def test_a_long_attachment_is_split_and_pasted_text_has_a_name(engine: Engine, tmp_path: Path) -> None:
    guide = "# Guide\n\n" + "".join(f"## Part {n}\n\n{'Stir well. ' * 80}\n\n" for n in range(3))
    files = [
        {"file_name": "guide.md", "extracted_content": guide},
        {"file_name": "", "extracted_content": "Beat the eggs."},
        {"file_name": "empty.pdf", "extracted_content": " "},
    ]
    message = {"sender": "human", "text": "", "content": [], "attachments": files, "created_at": "2026-03-01"}
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([{"uuid": "c", "name": "n", "chat_messages": [message]}]))
    report = import_source(engine, str(path))
    subjects = sorted(str(memory.subject) for memory in engine.memories())
    assert subjects == ["Guide > Part 0", "Guide > Part 1", "Guide > Part 2", "pasted text"]
    assert left_out(report) == {"attached files without their text (1)"}
    assert import_source(engine, str(path)).created == 0


@pytest.mark.parametrize("name", ["chatgpt", "claude"])
def test_an_export_is_read_in_its_zip_file(engine: Engine, tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        for path in (FILES / name).iterdir():
            archive.write(path, path.name)
    created = import_source(engine, str(tmp_path / "export.zip")).created
    assert created == len([*read(str(FILES / name))])
    assert import_source(engine, str(FILES / name)).created == 0


def test_a_context_in_a_file_for_agents_is_not_imported_back(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "AGENTS.md"
    path.write_text("# Rules\n\nUse tabs.\n")
    write_block(path, "- What germane knows.")
    path.write_text(path.read_text() + "\nRun the tests.\n")
    import_source(engine, str(path))
    (stored,) = engine.memories()
    assert "germane" not in stored.content
    assert stored.content.startswith("# Rules\n\nUse tabs.")
    assert stored.content.endswith("Run the tests.")

    only = tmp_path / "own" / "CLAUDE.md"
    only.parent.mkdir()
    write_block(only, "- What germane knows.")
    report = import_source(engine, str(only))
    assert (report.read, report.skipped) == (0, ())


def test_a_secret_is_left_out_and_the_rest_is_stored(engine: Engine, tmp_path: Path) -> None:
    secret = "gh" + "p_" + "aB3dE5gH7j" * 3 + "kL9mN1"
    path = tmp_path / "memory.jsonl"
    entity = {
        "type": "entity",
        "name": "CI",
        "entityType": "service",
        "observations": [secret, "Runs at night"],
    }
    path.write_text(json.dumps(entity))
    report = import_source(engine, str(path))
    assert (report.read, report.created) == (2, 1)
    assert "secret" in report.skipped[0].reason
    assert secret not in str(report)
    assert import_source(engine, str(path), allow_secrets=True).created == 1


@pytest.mark.parametrize(
    ("name", "text", "place", "remedy"),
    [
        ("a.json", '{"results": [\n{"id": "1", "memory": "x"},\n{"id"', "line 3", "is no JSON"),
        ("a.jsonl", '{"type": "entity", "name": "A", "entityType": "t"}', "line 1", "observations"),
        (
            "b.jsonl",
            '{"type": "relation", "from": "A", "to": "B", "relationType": "knows"}\n{"type":',
            "line 2",
            "is no JSON",
        ),
        ("b.json", '[{"id": "1", "memory": "x", "created_at": "soon"}]', "memory 1", "created_at"),
        ("a.af", '{"agents": [{"name": "a", "messages": [{}]}], "blocks": []}', "messages of 'a'", "role"),
        ("g.json", '{"edges": [{"uuid": "1", "fact": "x"}, {"fact": "y"}]}', "edge 2", "'uuid' is missing"),
        (
            "c.json",
            '[{"mapping": {}, "current_node": "x", "id": "1", "title": "T"}]',
            "conversation 1 (T)",
            "'x'",
        ),
        ("d.json", '[{"chat_messages": 3, "uuid": "1"}]', "conversation 1", "must be a list"),
    ],
)
def test_a_damaged_file_is_named_with_its_place(
    engine: Engine, tmp_path: Path, name: str, text: str, place: str, remedy: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(UnreadableSource) as raised:
        import_source(engine, str(path))
    assert str(path) in str(raised.value)
    assert place in str(raised.value)
    assert remedy in str(raised.value)
    assert engine.count() == 0


def test_a_damaged_database_is_named(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    path.write_bytes((FILES / "langgraph.sqlite").read_bytes()[:9000])
    with pytest.raises(UnreadableSource, match=r"store\.sqlite: SQLite can't read it.*restore the file"):
        import_source(engine, str(path))
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE t (a)")
    with pytest.raises(UnreadableSource, match="without tables of mem0 or LangGraph"):
        import_source(engine, str(other))


class Command:
    """Runs a command of the system when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


def test_a_point_that_would_run_code_is_refused(engine: Engine, tmp_path: Path) -> None:
    path, trace = tmp_path / "storage.sqlite", tmp_path / "trace"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE points (id TEXT PRIMARY KEY, point BLOB)")
        connection.execute("INSERT INTO points VALUES ('1', ?)", (pickle.dumps(Command(trace)),))
        connection.commit()
    with pytest.raises(UnreadableSource, match="row 1 of `points` is no point of Qdrant"):
        import_source(engine, str(path))
    assert not trace.exists()


def test_an_interrupted_import_goes_on(engine: Engine) -> None:
    class Stopped(Exception):
        pass

    def stop(_: object) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        import_source(engine, str(FILES / "mcp_memory.jsonl"), batch=2, progress=stop)
    report = import_source(engine, str(FILES / "mcp_memory.jsonl"))
    assert (report.created, report.known) == (2, 2)


def test_a_person_can_vouch_for_what_an_import_brings(tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("# Tea\n\nThe user takes tea without sugar.\n", encoding="utf-8")
    with germane.open(":memory:", agent="bea", embedder=None) as engine:
        import_source(engine, str(FILES / "mem0" / "get_all.json"), trust="agent")
        import_source(engine, str(notes), trust="owner")
        assert [each.trust.value for each in engine.memories() if "without sugar" in each.content] == [
            "owner"
        ]
        theirs = [each for user in ("ann", "ben") for each in engine.for_user(user).memories() if each.user]
        assert {each.trust.value for each in theirs} == {"agent"}
        # The next version of a text that nobody vouches for anew is external.
        notes.write_text("# Tea\n\nThe user takes tea with honey.\n", encoding="utf-8")
        import_source(engine, str(notes))
        assert [each.trust.value for each in engine.memories() if "honey" in each.content] == ["external"]
        with pytest.raises(germane.InvalidInput, match="trust='mine'"):
            import_source(engine, str(notes), trust="mine")
        export = tmp_path / "memories.jsonl"
        with export.open("w", encoding="utf-8") as file:
            export_jsonl(engine.memories(), file)
        with pytest.raises(germane.InvalidInput, match="has the trust of each memory"):
            import_source(engine, str(export), trust="owner")
