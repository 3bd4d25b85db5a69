"""Attacks on memory, two of each family of `bench/attacks.py`: none of their texts instructs the agent."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest

import germane
from germane.demo import demo_drafts
from house.source import ROOT


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Imports a module of bench/, whose files import each other by name."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return importlib.import_module


def test_no_attack_reaches_a_section_that_instructs(bench: Callable[[str], Any]) -> None:
    attacks, poison = bench("attacks"), bench("poison")

    made = attacks.attacks(count=2 * len(attacks.FAMILIES), seed=11)
    contexts = [(attack, poison.context_after(attack, 1000)) for attack in made]

    assert {attack.family for attack in made} == set(attacks.FAMILIES)
    assert len(attacks.FAMILIES) >= 12
    ends = {(attack.family, attack.mark): poison.end_of(context, attack.mark) for attack, context in contexts}
    assert [attack for attack, end in ends.items() if end == "instructs"] == []
    assert "quoted" in ends.values()
    for attack, context in contexts:
        assert attack.answer in {item.memory.content for item in context.items}, attack.family


def test_the_suite_sees_an_attack_that_instructs(bench: Callable[[str], Any]) -> None:
    attacks, poison = bench("attacks"), bench("poison")
    attack = next(one for one in attacks.attacks(count=16) if one.family == "first-person claim")

    with germane.open(":memory:", agent="baker") as engine:
        engine.remember(attack.texts[0], kind="preference")
        assert poison.end_of(engine.assemble(attack.question), attack.mark) == "instructs"


def test_harmless_text_is_seldom_changed(bench: Callable[[str], Any]) -> None:
    changed, count = bench("poison").harmless([one.content for one in demo_drafts()])

    assert 0 < changed <= count / 100, "the demo has a specimen of an injection"
