"""Importing a store of LangGraph that is in PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

import germane
from germane.errors import UnreadableSource
from germane.importers import Layout, import_source, layout_of

# As langgraph-checkpoint-postgres 3.2.0 makes the table.
TABLE = """
CREATE TABLE store (
    prefix text NOT NULL,
    key text NOT NULL,
    value jsonb NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT CURRENT_TIMESTAMP,
    expires_at TIMESTAMP WITH TIME ZONE,
    ttl_minutes INT,
    PRIMARY KEY (prefix, key)
);
CREATE TABLE store_vectors (prefix text, key text, field_name text, embedding text);
INSERT INTO store (prefix, key, value, created_at) VALUES
    ('users.ann', 'food', '{"text": "Ann is allergic to nuts."}', '2026-03-01T09:30:00Z'),
    ('users.ann', 'drink', '{"text": "Ann prefers tea."}', '2026-03-01T09:31:00Z');
INSERT INTO store_vectors VALUES ('users.ann', 'food', 'text', '[0.1]');
"""


def test_the_items_of_an_address_are_imported_once(postgres_database: str, tmp_path: Path) -> None:
    with psycopg.connect(postgres_database) as connection:
        connection.execute(TABLE)
    assert layout_of(postgres_database) is Layout.LANGGRAPH
    with germane.open(tmp_path / "a.db", embedder=None) as engine:
        report = import_source(engine, postgres_database)
        assert (report.created, report.skipped) == (2, ())
        assert [each.reason for each in report.passed_over] == [
            "not taken over: vectors, which germane makes anew (1)"
        ]
        food = engine.get(key='["users", "ann", "food"]')
        assert (food.content, food.created_at.hour) == ("Ann is allergic to nuts.", 9)
        assert import_source(engine, postgres_database).known == 2


def test_an_address_without_such_a_table_is_refused(postgres_database: str, tmp_path: Path) -> None:
    with (
        germane.open(tmp_path / "a.db", embedder=None) as engine,
        pytest.raises(UnreadableSource, match="must be that of a LangGraph store"),
    ):
        import_source(engine, postgres_database)
