# ruff: noqa: E501 - what is printed stands on one line.
"""What `germane space` prints, to programs and to people; the reference describes each of its fields."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from commandline import fields, printed, run

ADA = ("--agent", "ada")
BEN = ("--agent", "ben")


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "agent.db"
    assert run("space", "create", "team", *ADA, db=path).code == 0
    return path


def text_of(*arguments: str, db: Path) -> str:
    ran = run(*arguments, db=db)
    assert (ran.code, ran.err) == (0, "")
    text = re.sub(r"20\d\d-\d\d-\d\d \d\d:\d\d(?::\d\d)?", "<time>", ran.out)
    return re.sub(r"\b[0-9a-f]{8}\b", "<id>", text)


def test_create_join_and_list(db: Path) -> None:
    value = printed("space", "join", "team", *BEN, "--role", "passive", db=db)

    assert list(value) == fields("`germane space create`")
    assert list(value["space"]) == fields("Space")
    assert list(value["space"]["members"][0]) == fields("Member")
    assert value == snapshot(
        {
            "space": {
                "name": "team",
                "created_at": "<moment>",
                "admits": "write",
                "members": [
                    {
                        "agent": "ada",
                        "rights": "write",
                        "role": "active",
                        "joined_at": "<moment>",
                        "order": 1,
                    },
                    {
                        "agent": "ben",
                        "rights": "write",
                        "role": "passive",
                        "joined_at": "<moment>",
                        "order": 2,
                    },
                ],
            }
        }
    )
    assert printed("space", "members", "team", *ADA, db=db) == value
    assert printed("space", "list", *BEN, db=db) == {"spaces": [value["space"]]}


def test_memories_of_a_space(db: Path) -> None:
    remembered = printed("remember", "It rains.", "--space", "team", *ADA, "--tag", "weather", db=db)
    assert list(remembered) == fields("`germane remember`")
    assert (remembered["created"], remembered["memory"]["agent"]) == (True, "space:team")
    run("remember", "Ada has an umbrella.", *ADA, db=db)
    own = run("recall", "umbrella", *ADA, "--json", db=db).json()["results"][0]["memory"]
    shared = printed("space", "share", "team", own["id"][-8:], *ADA, db=db)
    assert list(shared) == fields("`germane space share`")
    run("space", "join", "team", *BEN, db=db)
    found = run("recall", "umbrella", "--space", "team", *BEN, "--json", db=db).json()
    assert list(found) == fields("`germane recall`")
    (result,) = found["results"]
    assert result["memory"]["content"] == "Ada has an umbrella."
    assert result["memory"]["id"] != own["id"]
    forgotten = printed("memory", "forget", result["memory"]["id"][:12], "--space", "team", *BEN, db=db)
    assert forgotten["memory"]["status"] == "forgotten"
    restored = printed("memory", "restore", result["memory"]["id"], "--space", "team", *ADA, db=db)
    assert restored["memory"]["status"] == "active"


def test_events(db: Path) -> None:
    run("space", "join", "team", *BEN, db=db)
    run("remember", "It rains.", "--space", "team", *BEN, db=db)
    value = printed("space", "events", "team", *ADA, "--after", "1", db=db)

    assert list(value) == fields("`germane space events`")
    assert list(value["events"][0]) == fields("Space event")
    assert value == snapshot(
        {
            "events": [
                {
                    "number": 2,
                    "what": "join",
                    "by": "ben",
                    "memory_id": None,
                    "former_id": None,
                    "agent": "ben",
                    "working_set": None,
                    "at": "<moment>",
                },
                {
                    "number": 3,
                    "what": "remember",
                    "by": "ben",
                    "memory_id": "<id 1>",
                    "former_id": None,
                    "agent": None,
                    "working_set": None,
                    "at": None,
                },
            ]
        }
    )
    assert printed("space", "events", "team", *ADA, "--limit", "1", db=db)["events"][0]["what"] == "create"


def test_disband(db: Path) -> None:
    assert printed("space", "disband", "team", *ADA, "--yes", db=db) == snapshot({"disbanded": "team"})
    assert fields("`germane space disband`") == ["disbanded"]
    assert run("space", "list", *ADA, db=db).err == "Agent 'ada' is in no space.\n"


def test_what_people_read(db: Path) -> None:
    assert text_of("space", "join", "team", "--member", "ben", "--role", "passive", *ADA, db=db) == snapshot("""\
member  rights  role     joined
ada     write   active   <time>
ben     write   passive  <time>
""")
    assert text_of("remember", "It rains.", "--space", "team", *ADA, db=db) == snapshot(
        "Remembered: <id>  note  It rains.\n"
    )
    assert text_of("space", "fail-over", "team", "ada", *BEN, db=db) == snapshot("""\
member  rights  role     joined
ben     write   active   <time>
ada     write   passive  <time>
""")
    assert text_of("space", "demote", "team", *BEN, db=db) == snapshot("""\
member  rights  role     joined
ben     write   passive  <time>
ada     write   active   <time>
""")
    assert text_of("space", "promote", "team", "ben", *ADA, db=db) == snapshot("""\
member  rights  role    joined
ben     write   active  <time>
ada     write   active  <time>
""")


def test_what_people_read_of_a_space(db: Path) -> None:
    run("space", "join", "team", *BEN, db=db)
    run("remember", "It rains.", "--space", "team", *ADA, db=db)
    assert text_of("space", "leave", "team", *ADA, db=db) == snapshot("""\
member  rights  role    joined
ben     write   active  <time>
""")
    assert text_of("space", "list", *BEN, db=db) == snapshot("""\
space  rights  role    members
team   write   active        1
""")
    assert text_of("space", "events", "team", *BEN, db=db) == snapshot("""\
number  what      by   of        at
     1  create    ada  ada       <time>
     2  join      ben  ben       <time>
     3  remember  ada  <id>
     4  leave     ada  ada       <time>
""")
    assert text_of("space", "disband", "team", *BEN, "--yes", db=db) == snapshot(
        "Disbanded team; every memory in it is gone.\n"
    )


def test_what_is_not_allowed_is_one_line_and_one_object(db: Path) -> None:
    ran = run("remember", "It rains.", "--space", "team", *BEN, db=db)
    assert (ran.code, ran.out, ran.err) == (
        2,
        "",
        snapshot(
            "germane: Agent 'ben' wants to write in space 'team', but is no member of it. It joins by engine.space(name).join(), or is let in by a member.\n"
        ),
    )
    ran = run("space", "leave", "team", *ADA, "--json", db=db)
    assert ran.code == 2
    assert json.loads(ran.out) == snapshot(
        {
            "error": {
                "type": "LastActive",
                "message": "Agent 'ada' can't leave: it is the last active member of space 'team' that may write, and no passive one can take over. Let another one join with rights='write' first, or disband the space.",
                "space": "team",
                "agent": "ada",
            }
        }
    )
    assert run("space", "create", "team", *BEN, db=db).err == snapshot(
        "germane: The name 'team' is taken by a space that is there already. Join it: engine.space('team').join() (`germane space join team`), or choose another name.\n"
    )
    assert run("space", "members", "nowhere", *ADA, db=db).err == snapshot(
        "germane: There is no space 'nowhere' in this store. Create it: engine.space('nowhere', create=True) (`germane space create nowhere`).\n"
    )
    assert run("space", "disband", "team", *ADA, db=db).err == snapshot(
        "germane: Disbanding space 'team' purges every memory in it and can't be undone. Pass confirm=True (--yes on the command line), or leave the space.\n"
    )
