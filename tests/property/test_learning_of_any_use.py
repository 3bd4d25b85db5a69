"""Whatever was used: weights keep within their bounds, and the order of the examples says nothing."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from germane.ranking import Example
from germane.ranking.learning import LEAST_WEIGHT, MOST_WEIGHT, WEIGHABLE, fit_weights
from support.examples import examples

parts = st.dictionaries(
    st.sampled_from(sorted(WEIGHABLE)), st.floats(-2.0, 2.0, allow_nan=False, width=32), max_size=4
)
example = st.builds(
    Example,
    context=st.sampled_from(["a" * 32, "b" * 32, "c" * 32, "d" * 32]),
    memory_id=st.text("0123456789", min_size=1, max_size=2),
    used=st.booleans(),
    parts=parts,
)
use = st.lists(example, max_size=30)
prior = st.sampled_from([0.01, 1.0, 50.0, 1e6])


@given(use, prior)
@settings(max_examples=examples(150))
def test_weights_keep_within_their_bounds(given_use: list[Example], prior_strength: float) -> None:
    weights = fit_weights(given_use, prior_strength=prior_strength)

    assert all(LEAST_WEIGHT <= weight <= MOST_WEIGHT for weight in weights.values.values())
    assert weights.examples <= len(given_use)
    assert bool(weights.values) <= bool(weights.contexts)


@given(use, st.randoms(use_true_random=False))
@settings(max_examples=examples(150))
def test_the_order_of_the_examples_says_nothing(given_use: list[Example], chance: random.Random) -> None:
    shuffled = list(given_use)
    chance.shuffle(shuffled)

    assert fit_weights(shuffled) == fit_weights(given_use)


@given(use)
def test_what_speaks_alike_for_every_part_keeps_them_equal(given_use: list[Example]) -> None:
    alike = [
        Example(
            context=one.context,
            memory_id=one.memory_id,
            used=one.used,
            parts=dict.fromkeys(("lexical", "semantic"), sum(one.parts.values())),
        )
        for one in given_use
    ]

    assert set(fit_weights(alike).values.values()) <= {1.0}
