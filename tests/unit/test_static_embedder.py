"""The bundled embedder: what the package carries, and that it means something."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from importlib.resources import files

import numpy as np
import pytest

import germane
from germane.embedders import StaticEmbedder
from germane.embedders.static import PackedVectors
from germane.protocols import Embedder

DATA = files("germane.embedders").joinpath("data")
CHECKSUMS = {
    "static-2.bin": "6654da7c15f5e2135530cf736c104d6a53f0f2510d8a692ccc1d734d32e4cda5",
    "bert-uncased.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
MOST_BYTES = 5_500_000


@pytest.mark.parametrize("name", CHECKSUMS)
def test_the_package_carries_what_was_measured(name: str) -> None:
    assert sha256(DATA.joinpath(name).read_bytes()).hexdigest() == CHECKSUMS[name]


def test_the_data_stay_small() -> None:
    assert sum(len(each.read_bytes()) for each in DATA.iterdir()) <= MOST_BYTES


def test_the_file_says_what_its_vectors_are() -> None:
    packed = PackedVectors.from_bytes(DATA.joinpath("static-2.bin").read_bytes())
    embedder = StaticEmbedder()
    assert isinstance(embedder, Embedder)
    assert (packed.name, packed.dimension) == (embedder.name, embedder.dimension)
    assert packed.least_cosine == embedder.least_cosine
    assert packed.recipe == "distil-2"
    assert len(packed.words) == len(set(packed.words)) == len(packed.scales) == len(packed.numbers)


@pytest.mark.parametrize(
    ("question", "near", "far"),
    [
        ("Which pet does he have?", "Tom adopted a puppy.", "The invoice is due on Friday."),
        ("How do users log in?", "Authentication uses OAuth tokens.", "The garden needs rain."),
        ("Is she ill?", "Anna caught the flu.", "The train leaves at noon."),
    ],
)
def test_what_means_the_same_is_nearer(question: str, near: str, far: str) -> None:
    asked, one, other = StaticEmbedder().embed([question, near, far])
    assert asked @ one > asked @ other + 0.1


@pytest.mark.parametrize("text", ["", "   ", "\x00", "猫が好きです", "🙂"])
def test_a_text_without_a_known_piece_points_nowhere(text: str) -> None:
    assert not StaticEmbedder().embed([text]).any()


def test_no_texts_make_no_rows() -> None:
    assert StaticEmbedder().embed([]).shape == (0, 256)


def test_texts_fill_several_groups_and_keep_their_order() -> None:
    texts = [f"the answer number {number} of many " * 60 for number in range(100)]
    texts[7] = ""
    together = StaticEmbedder().embed(texts)
    assert not together[7].any()
    assert all(
        StaticEmbedder().embed([texts[place]]).tobytes() == together[place].tobytes() for place in (0, 7, 99)
    )


def test_only_the_beginning_of_a_very_long_text_counts() -> None:
    beginning = "word " * 512
    one, other = StaticEmbedder().embed([beginning, beginning + "something else entirely " * 1000])
    assert one.tobytes() == other.tobytes()


def test_threads_share_one_embedder() -> None:
    embedder = StaticEmbedder()
    texts = [f"thread {number} embeds unaffable things of kind {number % 7}" for number in range(200)]
    alone = [embedder.embed([text]).tobytes() for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda text: embedder.embed([text]).tobytes(), texts)) == alone


def test_another_process_gets_the_same_numbers() -> None:
    script = (
        "import sys; from germane.embedders.static import StaticEmbedder\n"
        "sys.stdout.buffer.write(StaticEmbedder().embed(['Same text, same numbers.', 'café 42']).tobytes())"
    )
    there = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True).stdout
    assert np.array_equal(
        np.frombuffer(there, dtype=np.float32).reshape(2, -1),
        StaticEmbedder().embed(["Same text, same numbers.", "café 42"]),
    )


def test_a_memory_is_found_by_its_meaning() -> None:
    with germane.open(":memory:", embedder=StaticEmbedder()) as engine:
        engine.remember_many(
            ["Tom adopted a golden retriever.", "Rent is due on the first.", "Tea is at five."]
        )
        found = engine.recall("Does anybody own a dog?", limit=1)
    assert [each.memory.content for each in found] == ["Tom adopted a golden retriever."]
