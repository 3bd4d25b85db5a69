"""What takes much of a context is named by `stats`, by `doctor`, and in the account of a context."""

from __future__ import annotations

import json
from pathlib import Path

import germane
from commandline import run

LONG = " ".join(f"Sentence {number} of a very long note." for number in range(700))


def test_stats_and_doctor_name_the_long_ones_and_say_what_scopes_weigh(tmp_path: Path) -> None:
    db = tmp_path / "a.db"
    with germane.open(db) as engine:
        long = engine.remember(LONG, kind="module", scope="path:src/auth")
        engine.remember("Sign in with tokens.", kind="adr")
        stats = engine.stats()
        (large,) = stats.large
        assert (large.id, large.kind, large.scope) == (long.id, "module", "path:src/auth")
        assert set(stats.tokens_by_scope) == {"global", "path"}
        assert stats.tokens_by_scope["path"] == large.tokens > 4000
        assert [(found.code, long.id in found.text) for found in engine.doctor()] == [("large-memory", True)]
        engine.revise(long.id, content="Said shorter.")
        assert engine.stats().large == ()
        assert engine.stats().tokens_by_scope["path"] < 10


def test_the_commands_print_it(tmp_path: Path) -> None:
    db = tmp_path / "a.db"
    with germane.open(db) as engine:
        long = engine.remember(LONG, kind="module", scope="path:src/auth")
        engine.remember("Sign in with tokens.", kind="adr")
    (shown,) = json.loads(run("db", "stats", "--json", db=db).out)["large"]
    assert (shown["id"], shown["scope"]) == (long.id, "path:src/auth")
    output = run("db", "stats", db=db)
    assert "path" in output.out
    assert long.id[-8:] in output.out + output.err
    checked = run("db", "doctor", db=db)
    assert long.id[-8:] in checked.out + checked.err
    explained = run(
        "context", "project", "--path", "src/auth/a.py", "--budget", "2000", "--no-git", "--explain", db=db
    )
    assert "Longer than the" in explained.out
    assert "section 'path'" in explained.out
