"""`germane chat`: what it prints for people, and the objects of its --json."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from commandline import fields, masked, run

TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Is it raining in Rome?", "created_at": "2020-05-01T10:00:00Z"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Rome"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "dry, 21 degrees"},
    {"role": "assistant", "content": "No, it's dry."},
]


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "germane.db"


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "weather.json"
    path.write_text(json.dumps(TALK), encoding="utf-8")
    return path


def printed(*arguments: str, db: Path) -> Any:
    ran = run(*arguments, "--json", db=db)
    assert ran.code == 0, ran.err
    return masked(ran.json(), db=db)


def test_a_transcript_is_taken_in_once(db: Path, transcript: Path) -> None:
    value = printed("chat", "import", str(transcript), db=db)
    assert list(value) == fields("`germane chat import`")
    assert list(value["conversations"][0]) == fields("Taken in")
    assert value == snapshot({"conversations": [{"session": "weather", "appended": 5, "messages": 5}]})
    again = printed("chat", "import", str(transcript), db=db)
    assert again["conversations"][0]["appended"] == 0
    longer = [*TALK, {"role": "user", "content": "And in Paris?"}]
    transcript.write_text("\n".join(map(json.dumps, longer)), encoding="utf-8")
    assert printed("chat", "import", str(transcript), db=db)["conversations"][0]["appended"] == 1
    transcript.write_text(json.dumps(TALK[1:]), encoding="utf-8")
    refused = run("chat", "import", str(transcript), db=db)
    assert refused.code == 2
    assert "Name another with --session" in refused.err


def test_dialogues_and_files_of_several_conversations(db: Path, tmp_path: Path) -> None:
    dialogue = tmp_path / "friends.txt"
    dialogue.write_text("Ann: Did you see the fox?\nBen: It was red.\nAnn: It was.\n", encoding="utf-8")
    several = tmp_path / "several.json"
    several.write_text(json.dumps([{"messages": TALK}, {"system": "Hi.", "messages": TALK[1:2]}]), "utf-8")
    assert run("chat", "import", str(dialogue), str(several), db=db).out == snapshot("""\
friends: 3 messages added, 3 in all.
several/1: 5 messages added, 5 in all.
several/2: 2 messages added, 2 in all.
""")
    assert run("chat", "show", "friends", db=db).out == snapshot("""\
#  role       message
1  user       Ann: Did you see the fox?
2  assistant  Ben: It was red.
3  user       Ann: It was.
""")
    refused = run("chat", "import", str(several), "--session", "one", db=db)
    assert refused.code == 2
    assert "holds 2 conversations" in refused.err
    unread = run("chat", "import", str(tmp_path / "nobody.json"), db=db)
    assert unread.code == 2


def test_conversations_and_their_messages_are_shown(db: Path, transcript: Path) -> None:
    run("chat", "import", str(transcript), "--session", "rome", db=db)
    listed = printed("chat", "show", db=db)
    assert list(listed["conversations"][0]) == fields("Conversation")
    assert listed == snapshot(
        {
            "conversations": [
                {
                    "session": "rome",
                    "messages": 5,
                    "hidden": 0,
                    "first_at": "2020-05-01T10:00:00+00:00",
                    "last_at": "<moment>",
                    "user": None,
                    "title": None,
                }
            ]
        }
    )
    value = printed("chat", "show", "rome", db=db)
    assert list(value) == fields("`germane chat show`")
    assert all(list(message) == fields("Message") for message in value["messages"])
    assert value["messages"][2] == snapshot(
        {
            "id": "<id 3>",
            "seq": 3,
            "role": "assistant",
            "group": "<id 2>",
            "provider": "openai",
            "created_at": "<moment>",
            "hidden": False,
            "text": "",
            "calls": [{"id": "c1", "name": "weather", "arguments": '{"city":"Rome"}'}],
            "results": [],
        }
    )
    assert run("chat", "show", "rome", db=db).out == snapshot("""\
#  role       message
1  system     Be brief.
2  user       Is it raining in Rome?
3  assistant  [called weather] {"city":"Rome"}
4  tool       [weather returned] dry, 21 degrees
5  assistant  No, it's dry.
""")
    assert run("chat", "show", "paris", db=db).code == 2


def test_a_window_is_shown(db: Path, transcript: Path) -> None:
    run("chat", "import", str(transcript), db=db)
    value = printed("chat", "window", "weather", "--groups", "-1", db=db)
    assert list(value) == fields("`germane chat window`")
    assert [list(one) for one in value["left_out"]] == [fields("Left out")]
    assert [message["role"] for message in value["messages"]] == ["system"]
    assert run("chat", "window", "weather", db=db).err == snapshot("Groups shown: 1, left out: 0.\n")


def test_a_request_is_made(db: Path, transcript: Path, tmp_path: Path) -> None:
    run("chat", "import", str(transcript), db=db)
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps([{"type": "function", "function": {"name": "weather"}}]), encoding="utf-8")
    value = printed(
        "chat", "request", "weather", "--window", "1000", "--reserve", "100", "--tools", str(tools), db=db
    )
    assert list(value) == fields("`germane chat request`")
    assert [list(part) for part in value["parts"]] == [fields("Part")] * len(value["parts"])
    assert value["arguments"]["messages"] == [
        {key: field for key, field in message.items() if key != "created_at"} for message in TALK
    ]
    assert {key: field for key, field in value.items() if key not in ("arguments", "parts")} == snapshot(
        {
            "session": "weather",
            "provider": "openai",
            "counter": "o200k",
            "window": 1000,
            "reserve": 100,
            "limit": 900,
            "tokens": 88,
            "left_out": [],
            "notes": [],
        }
    )
    shown = run("chat", "request", "weather", "--window", "1000", "--reserve", "100", db=db)
    assert shown.out == snapshot("""\
Request  57 of 900 tokens (6%), by o200k
Window   1,000, of which 100 are reserved for the answer
For      openai

PART                  offered  used  in  cut  out
messages of no group        7     7                ████
priming                     3     3                ██
current group              47    47   1            ████████████████████████
""")
    refused = run("chat", "request", "weather", "--window", "30", "--reserve", "1", "--json", db=db)
    assert refused.code == 2
    assert refused.json()["error"]["type"] == "RequestTooLarge"


def marks(value: object) -> int:
    """How many marks for a prompt cache stand in an object, wherever."""
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(map(marks, value.values()))
    return sum(map(marks, value)) if isinstance(value, list) else 0


def test_a_request_is_marked_for_the_cache_where_that_is_requested(db: Path, transcript: Path) -> None:
    run("chat", "import", str(transcript), db=db)
    command = ("chat", "request", "weather", "--system", "Be terse.")
    plain = printed(*command, "--provider", "anthropic", db=db)
    marked = printed(*command, "--provider", "anthropic", "--cache", db=db)
    assert (marks(plain), marks(marked)) == (0, 2)
    assert marked["arguments"]["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    assert {**marked, "arguments": None} == {**plain, "arguments": None}
    assert marks(printed(*command, "--cache", db=db)) == 0


def test_a_request_shows_the_memory_of_a_space(db: Path, tmp_path: Path) -> None:
    asking = tmp_path / "asking.txt"
    asking.write_text("user: When is the demo?\n", encoding="utf-8")
    run("chat", "import", str(asking), db=db)
    run("remember", "The demo was planned for Monday.", "--kind", "fact", db=db)
    run("space", "create", "team", db=db)
    run("remember", "The demo is on Tuesday.", "--space", "team", "--kind", "fact", db=db)
    command = ("chat", "request", "asking", "--memory", "layered")
    own = json.dumps(printed(*command, db=db))
    shared = json.dumps(printed(*command, "--space", "team", "--record", db=db))
    assert ("Monday" in own, "Tuesday" in own) == (True, False)
    assert ("Monday" in shared, "Tuesday" in shared) == (False, True)
    assert printed("ledger", "list", db=db) == []
    nothing = run("chat", "request", "asking", "--space", "team", "--json", db=db)
    assert nothing.code == 2
    assert "memory='layered'" in nothing.json()["error"]["message"]


@pytest.mark.parametrize("name", ["chatgpt", "claude"])
def test_an_export_makes_conversations_and_says_what_it_leaves_out(
    db: Path, tmp_path: Path, name: str
) -> None:
    folder = Path(__file__).parents[1] / "imports" / name
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        for path in folder.iterdir():
            archive.write(path, path.name)
    ran = run("chat", "import", str(tmp_path / "export.zip"), "--json", db=db)
    (taken,) = ran.json()["conversations"]
    assert taken["appended"] == taken["messages"] > 1
    texts = run("chat", "show", taken["session"], db=db).out
    left_out = {line.partition("not taken over: ")[2] for line in ran.err.splitlines()}
    if name == "chatgpt":
        assert "Which train goes to Bern?" in texts
        assert "The one at eight." not in texts
        assert "messages of other branches: edited questions and regenerated answers (1)" in left_out
        assert "file user.json, which has no conversations (1)" in left_out
    else:
        assert "Carrot cake" in texts
        assert "No nuts." not in texts
        assert "[document: list.txt] ``` eggs ```" in texts
        assert texts.index("eggs") < texts.index("A cake without nuts?")
        assert "attached files without their text (1)" in left_out
        assert "file memories.json, which has no conversations (1)" in left_out
    for again in (tmp_path / "export.zip", folder, folder / "conversations.json"):
        (known,) = run("chat", "import", str(again), "--json", db=db).json()["conversations"]
        assert (known["appended"], known["messages"]) == (0, taken["messages"])


def test_nothing_of_an_export_is_stored_if_one_conversation_differs(db: Path, tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"

    def export(*texts: str) -> None:
        message = {"sender": "human", "content": [], "created_at": "2026-03-01T09:30:00Z"}
        path.write_text(
            json.dumps(
                [
                    {"uuid": f"c{number}", "name": "", "chat_messages": [{**message, "text": text}]}
                    for number, text in enumerate(texts)
                ]
            )
        )

    export("Tea?", "Milk?")
    assert run("chat", "import", str(path), db=db).code == 0
    export("Tea?", "No milk?", "Sugar?")
    refused = run("chat", "import", str(path), db=db)
    assert refused.code != 0
    assert "'c1' differs from the transcript from message 1 on" in refused.err
    assert len(printed("chat", "show", db=db)["conversations"]) == 2
