"""Fits the weights of germane's estimating counters and prints them with their measured bounds.

Run it where `ctok` installs (Python 3.12 or later), with what the corpus is made of:

    python3.12 -m venv fit && fit/bin/pip install -e . numpy ctok==1.3.0 django faker
    fit/bin/python tools/fit_estimate.py

The corpus is permissive or generated, and none of it is stored: the standard library's source and help
texts (PSF),
Django's translations into some 100 languages (BSD), Faker's sentences in some 25 languages (MIT), Markdown of
installed packages' descriptions, generated JSON, logs, tables, hashes and paths, and random characters.
Each source is cut into chunks of 20 to 1,500 characters; odd chunks are fitted, even ones are the test set.

Weights are non-negative and minimise the squared relative error, in which an undercount weighs
`strictness` times as much as an overcount. For the estimate of o200k a weight belongs to a count;
for Claude each class of character has two weights: a factor upon the exact o200k count, in the
proportion that the class has of the text, and a cost of each character (Claude spells out some scripts that
o200k knows well). Random characters of scripts other than Latin aren't
text: for the estimate they weigh little in the fit (they decide only what no language decides),
and they are left out of its margin and reported apart. The constant is raised by three tokens or half
of one afterwards, so that texts of a few words don't decide the margin of all others. A margin is
the largest undercount on the test chunks, plus two hundredths. For the estimate of o200k the cost of
a blank is at least BLANK, for runs of tabs, and the margin is that of 20,000 more random ASCII texts.
"""

# ruff: noqa: S311 - a script that prints, and draws seeded chunks that guard no secret.

from __future__ import annotations

import base64
import gettext
import importlib.metadata
import json
import math
import random
import sys
import sysconfig
import uuid
from collections.abc import Iterator
from pathlib import Path

import ctok
import django
import faker
import numpy as np

from germane.tokens.counters import CLASSES, SHAPES, ExactCounter, text_features

SEED = 20_250_101
CHUNK_LENGTHS = (20, 60, 120, 250, 400, 800, 1500)
CHUNKS_PER_SOURCE = {"facts": 25, "sentences": 25}
STRICTNESS = {"o200k": 100.0, "claude-4": 400.0, "claude-4.8": 400.0}
RAISED = {"o200k": 3.0, "claude-4": 0.5, "claude-4.8": 0.5}
BLANK = 0.063
CTOK_VERSIONS = {"claude-4": ("3.0", 7), "claude-4.8": ("4.8", 6)}
TEXT_NOISE = ("noise/ascii", "noise/letters", "noise/controls", "noise/all", "noise/pictures")
FAINT = 0.03


def main() -> None:
    chunks = [(source, chunk) for source, text in corpus() for chunk in cut(source, text)]
    sources = np.array([source for source, _ in chunks])
    o200k = ExactCounter("o200k", vocabulary="o200k_base")
    exact = np.array([o200k.count(chunk) for _, chunk in chunks], dtype=float)
    found = [text_features(chunk) for _, chunk in chunks]
    shapes = np.array([shape for shape, _ in found], dtype=float)
    classes = np.array([members for _, members in found], dtype=float)
    lengths = np.array([len(chunk) for _, chunk in chunks], dtype=float)
    fitted = np.arange(len(chunks)) % 2 == 1
    unlike_text = np.array([s.startswith("noise") and not s.startswith(TEXT_NOISE) for s in sources])
    print(f"{len(chunks)} chunks, {int(lengths.sum()):,} characters")
    for target, strictness in STRICTNESS.items():
        if target == "o200k":
            inputs, truth = np.hstack([shapes, classes]), exact
            weighing, apart = np.where(unlike_text, FAINT, 1.0), unlike_text
        else:
            inputs = np.hstack([shapes, classes * (exact / lengths)[:, None], classes])
            truth = np.array([claude_tokens(target, chunk) for _, chunk in chunks], dtype=float)
            weighing, apart = np.ones(len(chunks)), np.zeros(len(chunks), dtype=bool)
        weights = fit(inputs[fitted], truth[fitted], weighing[fitted], strictness)
        weights[0] += RAISED[target]
        if target == "o200k":
            blanks = len(SHAPES) + CLASSES.index("blanks")
            weights[blanks] = max(weights[blanks], BLANK)
        report(
            target,
            np.ceil(weights * 1000) / 1000,
            inputs=inputs,
            truth=truth,
            sources=sources,
            reserved=~fitted,
            apart=apart,
        )


def claude_tokens(family: str, text: str) -> int:
    version, frame = CTOK_VERSIONS[family]
    return max(0, ctok.token_count(text, version) - frame)


def fit(inputs: np.ndarray, truth: np.ndarray, weighing: np.ndarray, strictness: float) -> np.ndarray:
    """Non-negative weights by coordinate descent, reweighted for the side of the error."""
    scale = 1 / np.maximum(truth, 5.0)
    design, goal = inputs * scale[:, None], truth * scale
    weights = np.full(inputs.shape[1], 0.5)
    for _ in range(200):
        emphasis = weighing * np.where(design @ weights < goal, strictness, 1.0)
        gram = design.T @ (design * emphasis[:, None])
        pull = design.T @ (goal * emphasis)
        for _ in range(30):
            for k in range(len(weights)):
                if gram[k, k] > 0:
                    step = (pull[k] - gram[k] @ weights) / gram[k, k]
                    weights[k] = max(0.0, weights[k] + step)
    return weights


def report(
    target: str,
    weights: np.ndarray,
    *,
    inputs: np.ndarray,
    truth: np.ndarray,
    sources: np.ndarray,
    reserved: np.ndarray,
    apart: np.ndarray,
) -> None:
    counted = np.maximum(1, np.ceil(inputs @ weights))
    print(f"\n== {target}\n   ", ", ".join(f"{float(weight):g}" for weight in weights))
    print({name: float(weight) for name, weight in zip((*SHAPES, *CLASSES, *CLASSES), weights, strict=False)})
    print("test set:    chunks, mean |error|, p95 |error|, counted / true, largest undercount, p99.9")
    kinds = np.where(apart, "apart", np.array([source.split("/")[0] for source in sources]))
    for kind in [*sorted(set(kinds)), "all"]:
        chosen = reserved & ((kinds == kind) | ((kind == "all") & ~apart))
        error = (counted - truth)[chosen] / np.maximum(truth[chosen], 1)
        under = (truth / counted)[chosen] - 1
        print(
            f"{kind:12} {chosen.sum():5} {np.abs(error).mean():6.1%} "
            f"{np.quantile(np.abs(error), 0.95):6.1%} {counted[chosen].sum() / truth[chosen].sum():6.2f} "
            f"{under.max():7.1%} {np.quantile(under, 0.999):7.1%}"
        )
    ratio = truth / counted * (reserved & ~apart)
    print("worst:", [(str(sources[i]), int(truth[i]), int(counted[i])) for i in np.argsort(-ratio)[:8]])
    print("margin:", math.ceil(100 * max(0.0, ratio.max() - 1)) / 100 + 0.02)


def cut(source: str, text: str) -> Iterator[str]:
    source_random = random.Random(f"{SEED}{source}")
    most = CHUNKS_PER_SOURCE.get(source.partition("/")[0], 60)
    at, made = 0, 0
    while at < len(text) and made < most:
        length = source_random.choice(CHUNK_LENGTHS)
        chunk = text[at : at + length].strip()
        if chunk:
            yield chunk
            made += 1
        at += length


def corpus() -> Iterator[tuple[str, str]]:
    yield from python_and_its_help()
    yield from translations()
    yield from sentences()
    yield from descriptions()
    yield from generated()
    yield from noise()


def python_and_its_help() -> Iterator[tuple[str, str]]:
    library = Path(sysconfig.get_path("stdlib"))
    for name in (
        "argparse",
        "ast",
        "decimal",
        "html/entities",
        "idlelib/help",
        "json/decoder",
        "socket",
        "this",
    ):
        path = library / f"{name}.py"
        if path.exists():
            yield f"code/{name}", path.read_text(encoding="utf-8")
    for name in ("idlelib/help.html", "pydoc_data/topics.py"):
        yield f"docs/{name}", (library / name).read_text(encoding="utf-8").replace("\\n", "\n")


def translations() -> Iterator[tuple[str, str]]:
    for path in sorted(Path(django.__file__).parent.glob("conf/locale/*/LC_MESSAGES/django.mo")):
        with path.open("rb") as file:
            catalog = gettext.GNUTranslations(file)
        # The class offers no way to list its messages.
        entries = catalog._catalog  # noqa: SLF001 - see the line above.
        messages = [text for key, text in entries.items() if key and isinstance(text, str)]
        random.Random(SEED).shuffle(messages)
        yield f"language/{path.parent.parent.name}", "\n".join(messages)


def sentences() -> Iterator[tuple[str, str]]:
    for locale in sorted(faker.config.AVAILABLE_LOCALES):
        fake = faker.Faker(locale)
        fake.seed_instance(SEED)
        yield (
            f"facts/{locale}",
            " ".join(f"{fake.name()}, {fake.address()}, {fake.date()}." for _ in range(60)),
        )
        if type(fake.factories[0].provider("lorem")).__module__.endswith(("la", "lorem")):
            continue
        yield f"sentences/{locale}", " ".join(fake.paragraph() for _ in range(80))


def descriptions() -> Iterator[tuple[str, str]]:
    for name in ("numpy", "django", "faker", "ctok", "splintr-rs", "regex", "hypothesis"):
        try:
            text = importlib.metadata.metadata(name).get_payload()
        except importlib.metadata.PackageNotFoundError:
            continue
        yield f"markdown/{name}", str(text)


def generated() -> Iterator[tuple[str, str]]:
    dice = random.Random(SEED)
    fake = faker.Faker("en_US")
    fake.seed_instance(SEED)
    records = [
        {"id": dice.randrange(10**6), "name": fake.name(), "score": dice.random(), "tags": fake.words(3)}
        for _ in range(300)
    ]
    yield "structured/json", json.dumps(records)
    yield "structured/json-indented", json.dumps(records, indent=2)
    yield "structured/csv", "\n".join(f"{r['id']},{r['name']},{r['score']:.4f}" for r in records)
    yield "structured/table", "\n".join(f"| {r['id']} | {r['name']} | {r['score']:.2f} |" for r in records)
    yield (
        "structured/log",
        "\n".join(
            f"{fake.iso8601()} {dice.choice(('INFO', 'WARN', 'ERROR'))} {fake.ipv4()} "
            f'"GET {fake.uri_path()}" {dice.randrange(200, 599)}'
            for _ in range(300)
        ),
    )
    yield "structured/uuid", "\n".join(str(uuid.UUID(int=dice.getrandbits(128))) for _ in range(300))
    yield "structured/hex", "\n".join(dice.randbytes(20).hex() for _ in range(300))
    yield "structured/base64", base64.b64encode(dice.randbytes(30_000)).decode()
    yield "structured/numbers", " ".join(str(dice.uniform(-1e6, 1e6)) for _ in range(900))
    yield (
        "structured/paths",
        "\n".join(fake.file_path(depth=4) + f":{dice.randrange(900)}" for _ in range(500)),
    )
    yield "structured/shouting", " ".join(fake.paragraph().upper() for _ in range(150))
    yield "structured/camel", " ".join("".join(w.title() for w in fake.words(3)) for _ in range(900))


def noise() -> Iterator[tuple[str, str]]:
    ranges = {
        "ascii": (0x20, 0x7F), "letters": (0x61, 0x7B), "controls": (0x01, 0x20), "latin": (0xA1, 0x250),
        "cyrillic": (0x400, 0x530), "hebrew-arabic": (0x590, 0x700), "indic": (0x900, 0xE00),
        "south-east": (0xE01, 0x1000), "georgian": (0x10A0, 0x1100), "hangul": (0xAC00, 0xD7A4),
        "kana": (0x3041, 0x3100), "han": (0x4E00, 0xA000), "signs": (0x2000, 0x2C00),
        "pictures": (0x1F300, 0x1FAFF),
        "low": (0x1, 0x3000), "bmp": (0x1, 0xD800), "all": (0x10000, 0x110000),
    }  # fmt: skip
    dice = random.Random(SEED)
    for name, (low, high) in ranges.items():
        yield f"noise/{name}", "".join(chr(dice.randrange(low, high)) for _ in range(20_000))
        yield (
            f"noise/{name}-words",
            " ".join(
                "".join(chr(dice.randrange(low, high)) for _ in range(dice.randrange(1, 9)))
                for _ in range(4_000)
            ),
        )


if __name__ == "__main__":
    sys.exit(main())
