"""The result of a search is cached until the next change, and no longer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import germane
from germane.testing.fakes import FixedClock


def test_the_same_question_is_answered_anew_after_any_change(tmp_path: Path) -> None:
    with germane.open(tmp_path / "a.db") as engine:
        first = engine.remember("Tokens are rotated every hour.", kind="adr", scope="path:src/auth")

        def shown() -> list[str]:
            context = engine.assemble("rotate tokens", plan="scoped", paths=["src/auth/login.py"], budget=500)
            return [item.memory.content for item in context.items]

        assert shown() == shown() == ["Tokens are rotated every hour."]
        second = engine.remember("Keys are rotated each day.", kind="adr", scope="path:src/auth")
        assert set(shown()) == {"Tokens are rotated every hour.", "Keys are rotated each day."}
        engine.revise(first.id, content="Tokens are rotated every minute.")
        assert set(shown()) == {"Tokens are rotated every minute.", "Keys are rotated each day."}
        engine.forget(second.id)
        assert shown() == ["Tokens are rotated every minute."]
        engine.restore(second.id)
        assert len(shown()) == 2
        engine.purge(second.id, confirm=True)
        assert shown() == ["Tokens are rotated every minute."]


def test_what_another_process_writes_is_seen(tmp_path: Path) -> None:
    with germane.open(tmp_path / "a.db") as one, germane.open(tmp_path / "a.db") as other:
        one.remember("The cache lives in Redis.")
        assert len(one.recall("Where does the cache live?")) == 1
        assert len(one.recall("Where does the cache live?")) == 1
        other.remember("The cache of sessions lives in Postgres.")
        assert len(one.recall("Where does the cache live?")) == 2


def test_a_cached_search_moves_no_score_with_the_clock(tmp_path: Path) -> None:
    clock = FixedClock(datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=30))
    with germane.open(tmp_path / "a.db", clock=clock) as engine:
        engine.remember("Tokens are rotated every hour.", kind="adr")
        stale = [
            sum(
                "stale" in entry.parts
                for entry in engine.assemble("rotate tokens", plan="scoped").trace.entries
            )
            for _ in range(12)
        ]
        assert stale[0] == 0
        assert stale[-1] == 1
