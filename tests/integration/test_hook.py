"""`germane hook`: what a host's events get, what is taken in, and that nothing ever stops the host."""

from __future__ import annotations

import json
import os
import re
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import germane
from germane import Engine, InvalidInput
from germane.errors import UnreadableSource
from germane.importers.dialogue import read_conversations
from germane.model.conversation import MessageRole
from germane.model.text import own_text
from germane.servers import HostEvents

BUDGET = 45
GOLDEN = Path(__file__).parent / "hook_events.json"


def clock() -> datetime:
    return datetime(2026, 11, 20, 12, tzinfo=UTC)


def fill(engine: Engine) -> None:
    engine.remember("Never push to main.", kind="constraint", metadata={"action": "block"})
    engine.remember("We use PostgreSQL because two writers blocked each other.", kind="decision")
    engine.remember("Refunds take five days.", kind="fact")
    engine.remember("The office in Osaka is closed on Fridays.", kind="fact")


@pytest.fixture
def engine() -> Iterator[Engine]:
    with germane.open(":memory:", agent="project", clock=clock) as opened:
        fill(opened)
        yield opened


def record(kind: str, content: Any, second: int, **fields: Any) -> str:
    message = {"role": kind, "content": content}
    stamp = f"2026-11-20T10:00:{second:02d}.123Z"
    return json.dumps(
        {"type": kind, "sessionId": "s1", "uuid": f"u{second}", "timestamp": stamp, "message": message}
        | fields
    )


def transcript(path: Path, *more: str) -> Path:
    call = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file": "a.py"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "print(1)"}
    lines = [
        json.dumps({"type": "summary", "summary": "Earlier work", "leafUuid": "u0", "sessionId": "s1"}),
        record("user", "How does the queue retry failed jobs?", 1),
        record("assistant", [{"type": "thinking", "thinking": "hm", "signature": "x"}], 2),
        record("assistant", [{"type": "text", "text": "I look at it."}, call], 3),
        record("user", [result], 4),
        record("user", "A subagent's prompt", 5, isSidechain=True),
        record("assistant", [{"type": "text", "text": "It retries three times."}], 6),
        *more,
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_each_event_gets_what_the_golden_file_has(engine: Engine, tmp_path: Path) -> None:
    events = HostEvents(engine, budget=BUDGET)
    path = str(transcript(tmp_path / "s1.jsonl"))

    for each in json.loads(GOLDEN.read_text(encoding="utf-8")):
        fields = {"session_id": "s1", "transcript_path": path, "cwd": "/project"}
        assert events.answer(json.dumps(fields | each["event"])) == each["answer"], each["event"]


def test_a_prompt_that_the_last_context_serves_gets_nothing(engine: Engine) -> None:
    events = HostEvents(engine, budget=BUDGET)

    def ask(prompt: str) -> str:
        return events.answer({"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": prompt})

    assert "PostgreSQL" in ask("Why do we use PostgreSQL?")
    assert ask("Go ahead.") == ""
    assert "five days" in ask("How long do refunds take?")


def test_another_process_goes_on_from_the_last_context(tmp_path: Path) -> None:
    refs = tmp_path / "refs.json"

    def ask(prompt: str, event: str = "UserPromptSubmit") -> str:
        with germane.open(tmp_path / "m.db", agent="project", clock=clock, record=True) as engine:
            if not engine.count():
                fill(engine)
            events = HostEvents(engine, budget=BUDGET, refs=refs)
            return events.answer({"hook_event_name": event, "session_id": "s1", "prompt": prompt})

    shown = ask("Why do we use PostgreSQL?")
    assert "PostgreSQL" in shown
    assert ask("Why do we use PostgreSQL, again?") == ""
    assert "five days" in ask("How long do refunds take?")
    assert "PostgreSQL" not in refs.read_text(encoding="utf-8")
    ask("", "SessionStart")
    ask("", "PreCompact")
    assert ask("Why do we use PostgreSQL?") == shown


@pytest.mark.parametrize("text", ['{"s1": "01a20e28-f560-7000-8122-7cc2992760f8"}', '{"s1": "01a2', ""])
def test_a_context_that_is_lost_is_made_anew(text: str, tmp_path: Path) -> None:
    refs = tmp_path / "refs.json"
    refs.write_text(text, encoding="utf-8")
    with germane.open(":memory:", agent="project", clock=clock, record=True) as engine:
        fill(engine)
        events = HostEvents(engine, budget=BUDGET, refs=refs)
        prompt = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": "Why PostgreSQL?"}
        assert "PostgreSQL" in events.answer(prompt)


def test_the_refs_of_256_sessions_are_stored_the_latest(tmp_path: Path) -> None:
    refs = tmp_path / "refs.json"
    with germane.open(":memory:", embedder=None, record=True) as engine:
        events = HostEvents(engine, refs=refs)
        for number in [*range(258), 2]:
            start = {"hook_event_name": "SessionStart", "session_id": str(number)}
            events.answer(start)
    names = list(json.loads(refs.read_text(encoding="utf-8")))
    assert names == [*map(str, range(3, 258)), "2"]


def test_a_transcript_is_taken_in_once_and_grows(engine: Engine, tmp_path: Path) -> None:
    events = HostEvents(engine)
    path = transcript(tmp_path / "s1.jsonl")
    stop = {"hook_event_name": "Stop", "session_id": "s1", "transcript_path": str(path)}

    events.answer(stop)
    first = engine.conversation("s1").messages()
    events.answer(stop)
    again = engine.conversation("s1").messages()
    transcript(path, record("user", "Thanks, and the timeout?", 7))
    events.answer(stop)
    grown = engine.conversation("s1").messages()

    assert [each.role for each in first] == ["user", "assistant", "tool", "assistant"]
    assert again == first
    assert grown[: len(first)] == first
    assert [each.text for each in grown[len(first) :]] == ["Thanks, and the timeout?"]


def test_the_end_of_a_session_is_summed_up(engine: Engine, tmp_path: Path) -> None:
    path = transcript(tmp_path / "s1.jsonl")
    event = {"hook_event_name": "SessionEnd", "session_id": "s1", "transcript_path": str(path)}

    HostEvents(engine).answer(event)

    assert engine.get(key="session:s1").kind == "episode"


def test_the_end_of_a_session_is_learned_from_where_that_is_switched_on(
    engine: Engine, tmp_path: Path
) -> None:
    path = transcript(tmp_path / "s1.jsonl", record("user", "I live in Nagoya.", 8))
    event = {"hook_event_name": "SessionEnd", "session_id": "s1", "transcript_path": str(path)}

    HostEvents(engine).answer(event)
    assert engine.learning_runs() == ()
    HostEvents(engine, learns=True).answer(event)

    (run,) = engine.learning_runs()
    assert "The user lives in Nagoya." in [engine.get(each).content for each in run.memories]


def test_what_was_shown_is_never_learned_again(engine: Engine, tmp_path: Path) -> None:
    events = HostEvents(engine)
    shown = events.answer({"hook_event_name": "SessionStart", "session_id": "s1"})
    path = transcript(tmp_path / "s1.jsonl", record("user", f"{shown}\nThe port is 8080.", 8))

    events.answer({"hook_event_name": "Stop", "session_id": "s1", "transcript_path": str(path)})

    last = engine.conversation("s1").messages()[-1]
    assert own_text(shown).strip() == ""
    assert last.own_text.strip() == "The port is 8080."


@settings(max_examples=20, deadline=None)
@given(texts=st.lists(st.text(min_size=200, max_size=4000), max_size=12), budget=st.integers(50, 20_000))
def test_no_answer_has_more_than_10_000_characters(texts: list[str], budget: int) -> None:
    with germane.open(":memory:", embedder=None) as engine:
        for text in texts:
            try:
                engine.remember(f"refund {text}", kind="constraint")
            except InvalidInput:
                continue
        events = HostEvents(engine, budget=budget)
        for event in (
            {"hook_event_name": "SessionStart"},
            {"hook_event_name": "UserPromptSubmit", "prompt": "refund"},
        ):
            assert len(events.answer(event)) <= 10_000


def test_chat_import_reads_the_same_transcript(tmp_path: Path) -> None:
    ((name, messages),) = read_conversations(transcript(tmp_path / "s1.jsonl"))

    assert name == "s1"
    assert [each.role for each in messages] == [
        MessageRole.USER, MessageRole.ASSISTANT, MessageRole.TOOL, MessageRole.ASSISTANT,
    ]  # fmt: skip
    assert all(each.created_at is not None for each in messages)


def test_a_half_written_last_line_is_left_and_a_broken_line_named(tmp_path: Path) -> None:
    path = transcript(tmp_path / "s1.jsonl", '{"type":"user","sessionId":"s1","mess')
    ((_, messages),) = read_conversations(path)
    assert len(messages) == 4

    transcript(path, '{"type":"user","sessionId":"s1","mess', record("user", "later", 9))
    with pytest.raises(UnreadableSource, match="line 8"):
        list(read_conversations(path))


def hook(tmp_path: Path, event: str, *arguments: str) -> tuple[subprocess.CompletedProcess[str], float]:
    """The process, and the processor time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "germane", "hook", "--db", "m.db", "--idle", "5", *arguments],
        cwd=tmp_path,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        input=event,
        capture_output=True,
        text=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="no local sockets on this system")
def test_as_a_process(tmp_path: Path) -> None:
    with germane.open(tmp_path / "m.db") as engine:
        engine.remember("We use PostgreSQL because two writers blocked each other.", kind="decision")
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": "Why PostgreSQL?"}

    first, _ = hook(tmp_path, json.dumps(event), "--deadline", "60")
    second, _ = hook(tmp_path, json.dumps(event), "--deadline", "60")

    assert (first.returncode, second.returncode) == (0, 0)
    assert "PostgreSQL" in first.stdout
    assert first.stdout.endswith("</recalled-from-memory>\n")
    assert second.stdout == ""

    (socket_of_the_process,) = (tmp_path / "germane").glob("*.sock")
    socket_of_the_process.unlink()  # The next event starts another.
    third, _ = hook(tmp_path, json.dumps(event), "--deadline", "60")
    assert (third.returncode, third.stdout) == (0, "")

    broken, _ = hook(tmp_path, "no JSON", "--deadline", "60")
    assert (broken.returncode, broken.stdout, broken.stderr) == (0, "", "")
    assert "The event is no JSON" in (tmp_path / "germane" / "hook.log").read_text(encoding="utf-8")


def test_past_the_deadline_nothing_is_printed(tmp_path: Path) -> None:
    done, _ = hook(tmp_path, "{}", "--deadline", "0.01")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "Timeout" in (tmp_path / "germane" / "hook.log").read_text(encoding="utf-8")


def test_a_wrong_option_ends_well_and_is_in_the_log(tmp_path: Path) -> None:
    done, _ = hook(tmp_path, "{}", "--deadline", "60", "--nonsense")

    assert (done.returncode, done.stdout) == (0, "")
    assert "--nonsense" in (tmp_path / "germane" / "hook.log").read_text(encoding="utf-8")


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="no local sockets on this system")
def test_an_event_loads_nothing_but_the_standard_library(tmp_path: Path) -> None:
    code = "import sys; from germane.cli.hook_client import is_event; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )

    assert {"numpy", "typer", "germane.engine", "germane.model"}.isdisjoint(done.stdout.split())


def test_the_printed_configuration_names_every_event_and_absolute_paths(tmp_path: Path) -> None:
    done, _ = hook(tmp_path, "", "--print-config", "--agent", "project")

    hooks = json.loads(done.stdout)["hooks"]
    assert list(hooks) == ["SessionStart", "UserPromptSubmit", "PreCompact", "Stop", "SessionEnd"]
    assert f"--db {tmp_path / 'm.db'} --agent project" in hooks["Stop"][0]["hooks"][0]["command"]


def test_check_shows_the_start_of_a_session_and_the_errors(tmp_path: Path) -> None:
    with germane.open(tmp_path / "m.db") as engine:
        engine.remember("Never push to main.", kind="constraint", metadata={"action": "block"})
    hook(tmp_path, "{}", "--deadline", "60", "--nonsense")

    done, _ = hook(tmp_path, "", "--check")

    assert done.returncode == 0, done.stderr
    assert "push to main" in done.stdout
    assert "--nonsense" in done.stdout


def test_a_database_that_an_event_made_is_no_error(tmp_path: Path) -> None:
    hook(tmp_path, json.dumps({"hook_event_name": "SessionStart", "session_id": "s"}), "--deadline", "60")

    done, _ = hook(tmp_path, "", "--check")

    (log,) = tmp_path.rglob("hook.log")
    assert re.match(r"\d{4}-\d\d-\d\d [\d:]+ Made the database", log.read_text(encoding="utf-8"))
    assert done.stdout.endswith("hook.log:\nnone\n")
