"""The text form of a configuration, and what it sets."""

from __future__ import annotations

from inspect import signature

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane import Engine, InvalidInput
from germane.embedders import embedder_named
from germane.evaluation import Configuration

EMBEDDERS = ("none", "bundled", "static", "minilm", "onnx")

CONFIGURATIONS = st.builds(
    Configuration,
    embedder=st.sampled_from(["default", *EMBEDDERS]),
    plan=st.sampled_from([None, "relevance", "layered"]),
    without=st.lists(st.sampled_from(["window", "speaker", "grouping"]), unique=True).map(tuple),
)


@given(CONFIGURATIONS)
def test_a_configuration_reads_back_from_its_text(configuration: Configuration) -> None:
    assert Configuration.parse(str(configuration)) == configuration


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("default", Configuration()),
        ("germane", Configuration()),
        ("lexical", Configuration(embedder="none")),
        ("embedder=none", Configuration(embedder="none")),
        ("onnx + without=window", Configuration(embedder="onnx", without=("window",))),
        ("without=window+without=window", Configuration(without=("window",))),
        ("germane+plan=layered", Configuration(plan="layered")),
    ],
)
def test_the_words_of_a_configuration(text: str, means: Configuration) -> None:
    assert Configuration.parse(text) == means


@pytest.mark.parametrize("text", ["", "moon", "plan=moon", "embedder=moon", "without=", "static=1"])
def test_what_is_no_configuration_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidInput, match=text.partition("=")[2] or "can't be read"):
        Configuration.parse(text)


def test_the_plan_is_without_what_the_configuration_is_without() -> None:
    plan = Configuration(plan="layered", without=("window", "grouping")).plan_of()
    assert (plan.name, plan.without) == ("layered", ("window",))


def test_a_configuration_without_a_plan_has_the_plan_of_the_default_call() -> None:
    default = signature(Engine.assemble).parameters["plan"].default
    assert Configuration().plan_of() == Configuration(plan=default).plan_of()


def test_an_unknown_embedder_is_refused() -> None:
    assert embedder_named("none") is None
    with pytest.raises(InvalidInput, match=r"moon.*static"):
        embedder_named("moon")
