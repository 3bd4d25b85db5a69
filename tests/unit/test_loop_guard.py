"""What came from memory is never learned again as new, by whatever verb it comes back."""

from __future__ import annotations

import pytest

import germane
from support.recalled import recalled

RECALLED = recalled("Redis was too slow. It was removed.")


def test_a_recalled_text_is_not_remembered() -> None:
    with germane.open(":memory:", embedder=None) as engine:
        with pytest.raises(germane.InvalidInput, match="came from memory as a whole"):
            engine.remember(f"  {RECALLED}\n")
        assert engine.memories() == ()


def test_of_a_text_with_a_recalled_part_its_own_is_remembered() -> None:
    with germane.open(":memory:", embedder=None) as engine:
        memory = engine.remember(f"So we keep Postgres. {RECALLED}")
        assert memory.content.strip() == "So we keep Postgres."
        revised = engine.revise(memory.id, f"{RECALLED}\nPostgres stays for good.")
        assert revised.content.strip() == "Postgres stays for good."


def test_an_escaped_mark_is_only_text() -> None:
    with germane.open(":memory:", embedder=None) as engine:
        text = r"The fence begins with \<recalled-from-memory> in every layout."
        assert engine.remember(text).content == text


def test_a_mark_in_a_code_span_is_only_mentioned() -> None:
    with germane.open(":memory:", embedder=None) as engine:
        text = (
            "The tag `<recalled-from-memory>` opens it, and `</recalled-from-memory>` closes it. It is ours."
        )
        assert engine.remember(text).content == text
        # Within a fence nothing is a mention.
        memory = engine.remember(f"Ours. {RECALLED[:-1]}`<recalled-from-memory>`{RECALLED[-1:]}")
        assert memory.content.strip() == "Ours."
