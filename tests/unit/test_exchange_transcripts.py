"""Transcripts of every layout as drafts, one per turn."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from germane import Draft
from germane.errors import UnreadableSource
from germane.importers import Layout, layout_of, read_transcript
from support.recalled import recalled

OPENAI: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "name": "ann", "content": [{"type": "text", "text": "Weather in Paris?"}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "weather", "arguments": '{"city": "Paris"}'},
            },
            {"id": "call_2", "type": "function", "function": {"name": "now", "arguments": "{}"}},
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "21 degrees"},
    {"role": "assistant", "content": ""},
    {"role": "assistant", "content": "It is 21 degrees."},
    {
        "role": "user",
        "content": [{"type": "text", "text": "And here?"}, {"type": "image_url", "image_url": {"url": "x"}}],
    },
]
ANTHROPIC: dict[str, Any] = {
    "model": "some-model",
    "system": [{"type": "text", "text": "Be brief."}],
    "messages": [
        {"role": "user", "content": "Read a.txt"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "never said"},
                {"type": "text", "text": "Reading."},
                {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a.txt"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "is_error": True,
                    "content": [{"type": "text", "text": "no such file"}],
                }
            ],
        },
    ],
}


def drafts_of(path: Path, text: str | object) -> list[Draft]:
    path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    return list(read_transcript(path))


def test_openai_messages(tmp_path: Path) -> None:
    drafts = drafts_of(tmp_path / "chat.json", OPENAI)
    assert [d.content for d in drafts] == [
        "system: Be brief.",
        "ann: Weather in Paris?",
        'assistant: [called weather] {"city": "Paris"}\n[called now]',
        "tool: [weather returned] 21 degrees",
        "assistant: It is 21 degrees.",
        "user: And here?\n[image]",
    ]
    assert drafts[1] == Draft(
        content="ann: Weather in Paris?",
        kind="episode",
        tags=("turn",),
        scope="session:chat",
        trust="external",
        source=f"{tmp_path.name}/chat.json#1",
        metadata={"session": "chat", "index": 1, "speaker": "ann", "role": "user"},
    )
    assert [d.metadata["index"] for d in drafts] == [0, 1, 2, 3, 5, 6]


def test_every_layout_of_the_same_messages_gives_the_same_drafts(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    plain = drafts_of(path, OPENAI)
    assert drafts_of(path, {"messages": OPENAI, "temperature": 0}) == plain
    assert drafts_of(path, "\n".join(json.dumps(message) for message in OPENAI)) == plain


def test_anthropic_messages(tmp_path: Path) -> None:
    drafts = drafts_of(tmp_path / "chat.json", ANTHROPIC)
    assert [d.content for d in drafts] == [
        "system: Be brief.",
        "user: Read a.txt",
        'assistant: Reading.\n[called read] {"path": "a.txt"}',
        "tool: [read failed] no such file",
    ]


def test_what_came_from_memory_is_not_learned_again(tmp_path: Path) -> None:
    shown = recalled("The cache is Redis.")
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": f"{shown}\nIs it fast?"},
        {"role": "user", "content": [{"type": "text", "text": shown}, {"type": "text", "text": "Yes?"}]},
        {"role": "user", "content": shown},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": shown}]},
    ]
    drafts = drafts_of(tmp_path / "chat.json", messages)
    assert [d.content for d in drafts] == ["user: Is it fast?", "user: Yes?", "tool: [tool returned]"]
    text = "user: Is it\n" + recalled("user: old\nassistant: older") + "\nfast?\nassistant: Yes.\n"
    assert [d.content for d in drafts_of(tmp_path / "chat.txt", text)] == [
        "user: Is it\n\nfast?",
        "assistant: Yes.",
    ]


def test_a_conversation_per_line_is_a_session_each(tmp_path: Path) -> None:
    lines = [{"messages": [{"role": "user", "content": text}]} for text in ("One?", "Two?")]
    drafts = drafts_of(tmp_path / "tune.jsonl", "\n".join(map(json.dumps, lines)) + "\n")
    assert [(d.scope, d.source) for d in drafts] == [
        ("session:tune/1", f"{tmp_path.name}/tune.jsonl#1#0"),
        ("session:tune/2", f"{tmp_path.name}/tune.jsonl#2#0"),
    ]
    path = tmp_path / "tune.json"
    assert [(d.scope, d.content) for d in drafts_of(path, lines)] == [(d.scope, d.content) for d in drafts]
    assert layout_of(str(path)) is Layout.TRANSCRIPT


@pytest.mark.parametrize(
    "stamp", ["2024-05-01T10:00:00Z", "2024-05-01 12:00:00+02:00", 1714557600, 1714557600000.0]
)
def test_a_message_with_a_time_is_remembered_at_that_time(tmp_path: Path, stamp: object) -> None:
    (draft,) = drafts_of(tmp_path / "c.json", [{"role": "user", "content": "Hi", "timestamp": stamp}])
    assert draft.created_at == datetime(2024, 5, 1, 10, tzinfo=UTC)
    assert draft.content == "user: Hi"


def test_lines_with_roles(tmp_path: Path) -> None:
    text = """user: How do I start it?

And stop it?
Assistant: Like this:

```
user: not a turn
```
Note: stop it with Ctrl-C.
Ann: is no role here.
**User:** Thanks
"""
    drafts = drafts_of(tmp_path / "chat.txt", text)
    assert [d.content for d in drafts] == [
        "user: How do I start it?\n\nAnd stop it?",
        text.partition("**")[0].partition("?\n")[2].partition("?\n")[2].strip(),
        "User: Thanks",
    ]
    assert [d.metadata["role"] for d in drafts] == ["user", "assistant", "user"]


def test_lines_with_names(tmp_path: Path) -> None:
    text = (
        "\ufeffAnn Lee: Hello\r\n  Bo: quoted by Ann\r\n"
        "José: Salut\r\nhttps://example.org: see\r\nHint: call\r\n"
    )
    drafts = drafts_of(tmp_path / "chat", text)
    assert [d.content for d in drafts] == [
        "Ann Lee: Hello\n  Bo: quoted by Ann",
        "José: Salut\nhttps://example.org: see\nHint: call",
    ]
    assert "role" not in drafts[0].metadata


def test_lines_with_stamps(tmp_path: Path) -> None:
    text = (
        "[2024-05-01 10:00] Ann: Morning\nBo: is quoted\n"
        "2024-05-01T12:30:00+02:00 Bo: Noon\n[2024-02-31 10:00] Cy: Never\n"
    )
    drafts = drafts_of(tmp_path / "chat.log", text)
    assert [(d.content, d.created_at) for d in drafts] == [
        ("Ann: Morning\nBo: is quoted", datetime(2024, 5, 1, 10, tzinfo=UTC)),
        ("Bo: Noon", datetime(2024, 5, 1, 10, 30, tzinfo=UTC)),
        ("Cy: Never", None),
    ]


def test_a_longer_transcript_keeps_the_sources_of_its_old_turns(tmp_path: Path) -> None:
    before = drafts_of(tmp_path / "chat.txt", "user: a\nassistant: b\n")
    after = drafts_of(tmp_path / "chat.txt", "user: a\nassistant: b\nuser: c\n")
    assert after[:2] == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Just prose.\nuser: hi", "line 1: a list of messages"),
        ("\n\nNote: only a label", "line 3: a list of messages"),
        (
            '[{"role": "user", "content": "a"}, {"role": "user", "content": 5}]',
            "in message 2, 'content' must be",
        ),
        ('[{"role": "user", "content": "a"}, 7]', "in message 2, an object with a 'role'"),
        ('[{"role": "user", "content": [{"text": "a"}]}]', "in message 1, each part of a content"),
        ('[{"role": "user", "content": "a", "timestamp": "noon"}]', "'timestamp' must be a date or time"),
        ('[{"role": "user", "content": "a", "timestamp": 1e300}]', "'timestamp' must be seconds since 1970"),
        ('[{"role": "user", ', "it is no JSON"),
        ('{"role": "user", "content": "a"}\n{"role": "user"\n', "line 2: it is no JSON"),
        ('{"role": "user", "content": "a"}\n{"other": 1}\n', "line 2: a list of messages"),
        ('{"name": "package"}', "a list of messages"),
        ("[1, 2]", "a list of messages"),
    ],
)
def test_what_is_no_transcript_says_where_and_why(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UnreadableSource) as caught:
        drafts_of(tmp_path / "chat.json", text)
    assert message in str(caught.value)
    assert str(tmp_path / "chat.json") in str(caught.value)
