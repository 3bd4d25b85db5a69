"""Weights fitted from use: what a user goes by moves up, slowly, and nothing moves without evidence."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import pytest

from germane import InvalidInput
from germane.ranking import Example, Weights
from germane.ranking.learning import LEAST_WEIGHT, MOST_WEIGHT, fit_weights, learned_note, signals_of

SIGNALS = ("lexical", "semantic", "session", "window")
EQUAL = Weights(values={}, contexts=0, examples=0)


def examples(
    contexts: int, uses: Callable[[Mapping[str, float], random.Random], float], *, seed: int = 1
) -> list[Example]:
    """What a user used who takes the two best of twelve by his own measure."""
    chance = random.Random(seed)  # noqa: S311 - A simulated user keeps no secret.
    made = []
    for number in range(contexts):
        shown = [{name: chance.random() for name in SIGNALS} for _ in range(12)]
        best = sorted(range(12), key=lambda one: uses(shown[one], chance), reverse=True)[:2]
        made += [
            Example(context=f"{number:032x}", memory_id=f"{one:036}", used=one in best, parts=parts)
            for one, parts in enumerate(shown)
        ]
    return made


def by_window(parts: Mapping[str, float], chance: random.Random) -> float:
    return parts["window"] + 0.2 * chance.random()


def at_random(_: Mapping[str, float], chance: random.Random) -> float:
    return chance.random()


def by_the_sum(parts: Mapping[str, float], chance: random.Random) -> float:
    return sum(parts.values()) + 0.2 * chance.random()


def test_the_signal_that_a_user_goes_by_counts_more_and_the_others_less() -> None:
    weights = fit_weights(examples(100, by_window))

    assert weights.values["window"] > 1.5
    assert all(weights.values[name] < 0.95 for name in SIGNALS if name != "window")
    assert (weights.contexts, weights.examples) == (100, 1200)


def test_more_contexts_move_weights_further() -> None:
    moved = [fit_weights(examples(count, by_window)).values["window"] for count in (1, 10, 50, 300)]

    assert moved == sorted(moved)
    assert moved[0] < 1.1


@pytest.mark.parametrize("uses", [at_random, by_the_sum])
@pytest.mark.parametrize("count", [5, 50, 400])
def test_without_anything_to_learn_weights_stay_about_equal(
    uses: Callable[[Mapping[str, float], random.Random], float], count: int
) -> None:
    weights = fit_weights(examples(count, uses))

    assert all(0.75 < weight < 1.25 for weight in weights.values.values())


def test_a_stronger_prior_moves_less_and_none_is_refused() -> None:
    given = examples(30, by_window)

    strong, weak = (fit_weights(given, prior_strength=prior).values["window"] for prior in (500.0, 5.0))

    assert 1.0 < strong < weak
    with pytest.raises(InvalidInput, match="prior_strength=0"):
        fit_weights(given, prior_strength=0)


def test_no_examples_and_no_choice_leave_nothing_learned() -> None:
    shown = {"lexical": 0.5}
    all_used = [Example(context="a" * 32, memory_id=one, used=True, parts=shown) for one in "xy"]
    none_used = [Example(context="b" * 32, memory_id=one, used=False, parts=shown) for one in "xy"]

    assert fit_weights([]) == EQUAL
    assert fit_weights(all_used + none_used) == EQUAL


def test_a_signal_that_never_differs_keeps_its_weight() -> None:
    given = [
        Example(
            context=one.context,
            memory_id=one.memory_id,
            used=one.used,
            parts={"lexical": one.parts["lexical"], "semantic": one.parts["window"], "when": 0.5},
        )
        for one in examples(100, by_window)
    ]

    weights = fit_weights(given).values

    assert weights["semantic"] > 1.2
    assert weights["lexical"] < 0.8
    assert "when" not in weights


def test_weights_keep_within_their_bounds_however_clear_the_use() -> None:
    given = [
        Example(context=f"{number:032x}", memory_id=one, used=one == "x", parts={"lexical": a, "window": b})
        for number in range(3000)
        for one, a, b in (("x", 0.0, 1.0), ("y", 1.0, 0.0))
    ]

    weights = fit_weights(given, prior_strength=1e-6).values

    assert weights["lexical"] == LEAST_WEIGHT
    assert 1.9 < weights["window"] <= MOST_WEIGHT


def test_only_parts_that_can_be_weighed_are_learned_from() -> None:
    assert signals_of({"lexical": 0.5, "when": 0.25, "order": 0.1}) == {"lexical": 0.5, "when": 0.25}
    assert signals_of({"recency": 1.0}) == signals_of({"scorer": 3.0}) == {}


def test_the_note_names_weights_and_where_they_come_from() -> None:
    note = learned_note(Weights(values={"window": 1.25, "lexical": 0.75}, contexts=1, examples=4))

    assert note.code == "learned"
    assert note.text == (
        "The parts of each score are weighed by what was used before: lexical 0.75, window 1.25 "
        "(from 4 memories in 1 context)."
    )
