"""Token counters by name, and the spendable part of a budget for an inexact counter.

| name                | counts                                             | margin |
|---------------------|----------------------------------------------------|--------|
| `o200k`, `cl100k`   | exactly as OpenAI's tokenizers                     | 0      |
| `claude-4.8`        | Claude 4.7 and later, Sonnet 5                     | see below |
| `claude-4`          | Claude 3 to 4.6                                    | see below |
| `claude`            | the current one of them: `claude-4.8`              |        |
| `estimate`          | an estimate of `o200k` without a vocabulary        | measured |
| `bytes_div_4_floor` | InDusk's unit: UTF-8 bytes // 4                    | 0, a unit of its own |

`claude…` counts with `ctok` if it is installed (`germane[claude]`, Python 3.12 or later), otherwise by an
upper estimate whose name ends in `-estimate`, so that stored counts name their counter.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import os
import re
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from threading import Lock

from germane.errors import InvalidInput, MissingExtra
from germane.forks import renewed
from germane.protocols import TokenCounter
from germane.tokens.counters import (
    BytesDiv4Floor,
    EstimateCounter,
    ExactCounter,
    TokenizerFileCounter,
    text_features,
    weighed,
)

__all__ = ["COUNTERS", "get_counter", "register_counter", "tokenizer_counter"]

COUNTERS = ("o200k", "cl100k", "claude", "claude-4.8", "claude-4", "estimate", "bytes_div_4_floor")
"""The names of the built-in counters; `register_counter` adds others."""

_CURRENT_CLAUDE = "claude-4.8"
_CACHED_TEXTS = 1 << 16
_LONGEST_CACHED = 1 << 20
_DIGEST = 16


def get_counter(name: str | TokenCounter) -> TokenCounter:
    """The counter with that name or for that model; a given counter is returned unchanged.

    Model names can have a provider as prefix (`gpt-5`, `openai/gpt-4o-mini`, `claude-sonnet-5`,
    `anthropic/claude-opus-4.5`). The same name gives the same instance, so a vocabulary is loaded once per
    process, at its first count. Raises InvalidInput for an unknown name, with the known names.
    """
    if not isinstance(name, str):
        if isinstance(name, TokenCounter):
            return name
        raise InvalidInput(
            f"{name!r} is no token counter: it needs name, margin and count(text). "
            f"Give such an object, or one of these names: {', '.join(_known())}."
        )
    known = name if name in _FACTORIES else _counter_for_model(name)
    if known is None:
        raise InvalidInput(
            f"Unknown token counter or model {name!r}. Known counters: {', '.join(_known())}. "
            f"Add your own with germane.tokens.register_counter({name!r}, factory)."
        )
    with _LOCK:
        if known not in _INSTANCES:
            _INSTANCES[known] = _FACTORIES[known]()
        return _INSTANCES[known]


def register_counter(name: str, factory: Callable[[], TokenCounter]) -> None:
    """Make `get_counter(name)` return the result of `factory()`, which is called at the first use.

    Registering a name again replaces its counter. Raises InvalidInput for an empty name, and for the name of
    a built-in counter, since stored counts have these names.
    """
    if not name.strip() or name in _BUILT_IN:
        raise InvalidInput(
            f"A counter can't be registered as {name!r}: the name is empty or germane's own "
            f"({', '.join(_BUILT_IN)}). Choose another name."
        )
    with _LOCK:
        _FACTORIES[name] = factory
        _INSTANCES.pop(name, None)


def tokenizer_counter(path: str | os.PathLike[str]) -> TokenCounter:
    """The exact counter of a `tokenizer.json`, as Llama, Mistral, Qwen, Gemma and other open models have.

    Its name is the path, by which `get_counter` finds it from then on. Tokens that frame a text aren't
    counted. Needs `germane[tokenizers]`. Raises MissingExtra, and InvalidInput for a file that can't be read.
    """
    counter = TokenizerFileCounter(os.fspath(path))
    register_counter(counter.name, lambda: counter)
    return counter


def spendable(budget: int, counter: TokenCounter) -> int:
    """The largest count by `counter` whose true count can't exceed `budget` tokens.

    floor(budget / (1 + margin)), computed without rounding errors; the whole budget for an exact counter.
    Raises InvalidInput for a negative budget, and for a negative or non-finite margin.
    """
    if budget < 0:
        raise InvalidInput(f"A budget of {budget} tokens is negative. Give 0 or more.")
    margin = float(counter.margin)
    if not math.isfinite(margin) or margin < 0:
        raise InvalidInput(
            f"Counter {counter.name!r} states a margin of {margin}. A margin is a fraction of 0 or more."
        )
    if not margin:
        return budget
    from fractions import Fraction  # noqa: PLC0415 - Exact counters need none.

    return math.floor(budget / (1 + Fraction(str(margin))))


def uncached(counter: TokenCounter) -> TokenCounter:
    """The counter without its cache, for texts that are counted once."""
    return counter.inside if isinstance(counter, CachedCounter) else counter


class CachedCounter:
    """Caches the counts of recent texts: same name, margin and counts as the counter inside.

    It caches at most `size` counts, and none of texts with more than `longest` characters, which are rarely
    counted twice. The key of a text is its digest, which takes about 200 bytes for any length, so purged
    texts don't stay in memory. Threads can share an instance.
    """

    def __init__(
        self, counter: TokenCounter, *, size: int = _CACHED_TEXTS, longest: int = _LONGEST_CACHED
    ) -> None:
        if size < 1:
            raise InvalidInput(f"A cache of {size} texts holds nothing. Give a size of 1 or more.")
        self.inside = counter
        """The counter that counts uncached texts."""
        self.name, self.margin = counter.name, counter.margin
        self._size = size
        self._longest = longest
        self._counts: OrderedDict[bytes, int] = OrderedDict()
        self._lock = renewed(Lock())

    def count(self, text: str) -> int:
        if len(text) > self._longest:
            return self.inside.count(text)
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).digest()
        with self._lock:
            known = self._counts.get(key)
            if known is not None:
                self._counts.move_to_end(key)
                return known
        # Counted outside the lock: two threads may count the same text, but none waits.
        tokens = self.inside.count(text)
        with self._lock:
            self._counts[key] = tokens
            if len(self._counts) > self._size:
                self._counts.popitem(last=False)
        return tokens

    def __len__(self) -> int:
        return len(self._counts)

    def __repr__(self) -> str:
        return f"CachedCounter({self.inside!r}, size={self._size}, longest={self._longest})"


def _known() -> tuple[str, ...]:
    return (*COUNTERS, *(name for name in _FACTORIES if name not in _BUILT_IN))


_FACTORIES: dict[str, Callable[[], TokenCounter]] = {
    "o200k": lambda: ExactCounter("o200k", vocabulary="o200k_base"),
    "cl100k": lambda: ExactCounter("cl100k", vocabulary="cl100k_base"),
    "claude": lambda: claude_counter(_CURRENT_CLAUDE),
    "claude-4.8": lambda: claude_counter("claude-4.8"),
    "claude-4": lambda: claude_counter("claude-4"),
    "claude-4.8-estimate": lambda: claude_estimate("claude-4.8"),
    "claude-4-estimate": lambda: claude_estimate("claude-4"),
    "estimate": EstimateCounter,
    "bytes_div_4_floor": BytesDiv4Floor,
}
_BUILT_IN = tuple(_FACTORIES)
_INSTANCES: dict[str, TokenCounter] = {}
_LOCK = renewed(Lock())

# The first matching prefix decides, so longer prefixes come first.
_OPENAI_MODELS = (
    ("gpt-4o", "o200k"),
    ("gpt-4.1", "o200k"),
    ("gpt-4.5", "o200k"),
    ("gpt-4", "cl100k"),
    ("gpt-3.5", "cl100k"),
    ("gpt-35", "cl100k"),
    ("gpt-5", "o200k"),
    ("gpt-oss", "o200k"),
    ("chatgpt-4o", "o200k"),
    ("text-embedding-", "cl100k"),
    ("o200k_", "o200k"),
    ("cl100k_", "cl100k"),
)
_REASONING_MODEL = re.compile(r"o[1-9]\d?(?![\w.])")
_CLAUDE_VERSION = re.compile(r"(?<![\dv])(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
_CLAUDE_OLDEST = (3, 0)
_CLAUDE_CURRENT_SINCE = (4, 7)


def _counter_for_model(model: str) -> str | None:
    bare = model.strip().lower().removeprefix("ft:").rpartition("/")[2].rpartition("anthropic.")[2]
    if bare.startswith("claude-"):
        return _claude_for_model(bare.removeprefix("claude-"))
    if _REASONING_MODEL.match(bare):
        return "o200k"
    return next((counter for prefix, counter in _OPENAI_MODELS if bare.startswith(prefix)), None)


def _claude_for_model(rest: str) -> str | None:
    found = _CLAUDE_VERSION.search(rest)
    if found is None:
        # A name without a version ("claude-sonnet-latest") means the current model of its line.
        return _CURRENT_CLAUDE if "instant" not in rest else None
    version = (int(found[1]), int(found[2] or 0))
    if version < _CLAUDE_OLDEST:
        return None
    return _CURRENT_CLAUDE if version >= _CLAUDE_CURRENT_SINCE else "claude-4"


# Counts for Claude: by `ctok` if it is installed, otherwise by an upper estimate.
#
# `ctok` reconstructs offline the counts of Anthropic's service for two vocabularies; it needs Python 3.12 or
# later. The upper estimate is a weighted sum of the exact `o200k` count and features of the text, with
# weights that `tools/fit_estimate.py` fits against `ctok`.


def claude_counter(family: str) -> TokenCounter:
    """The counter of the family: `CtokCounter` if `ctok` is installed, otherwise `ClaudeEstimate`."""
    return claude_estimate(family) if importlib.util.find_spec("ctok") is None else CtokCounter(family)


def claude_estimate(family: str) -> ClaudeEstimate:
    """The upper estimate of the family, even if `ctok` is installed."""
    return ClaudeEstimate(family)


class CtokCounter:
    """Counts of `ctok` without the tokens that frame a message.

    Its authors measured no undercount in 2.3 million texts. Since it is a reconstruction, the margin is 1 %.
    """

    margin = 0.01

    def __init__(self, family: str) -> None:
        self.name = family
        self._version, self._frame = _CTOK_VERSIONS[family]

    def count(self, text: str) -> int:
        if not text:
            return 0
        try:
            # Loading its vocabulary takes some 150 ms, so it waits for the first text.
            ctok = importlib.import_module("ctok")
        except ImportError as missing:
            raise MissingExtra(feature=f"Counting {self.name} with ctok", extra="claude") from missing
        tokens: int = ctok.token_count(text, self._version) - self._frame
        return max(0, tokens)

    def __repr__(self) -> str:
        return f"CtokCounter({self.name!r})"


class ClaudeEstimate:
    """An upper estimate of Claude's tokens: the exact `o200k` count, times a factor by kind of character.

    One factor for all wouldn't do: against `ctok`, English prose costs 1.2 (claude-4) and 1.6 times
    (claude-4.8) its o200k count, Russian 1.4 and 1.5, Kannada 3.7. Each class of character has its
    own, in the proportion that it has of the text, and a cost for each character, since Claude
    spells out some scripts that o200k knows well; words and numbers add theirs. The estimate comes
    to 1.1 times the true count over all texts outside the fit, 1.3 times in code and Markdown;
    `margin` is its largest undercount on them: prose in 100 languages, code, tables, random characters.
    """

    def __init__(self, family: str) -> None:
        self.name = f"{family}-estimate"
        self.margin, self._weights = _FITTED[family]
        self._o200k = ExactCounter("o200k", vocabulary="o200k_base")

    def count(self, text: str) -> int:
        if not text:
            return 0
        shapes, classes = text_features(text)
        each = self._o200k.count(text) / len(text)
        return weighed((*shapes, *(each * members for members in classes), *classes), self._weights)

    def __repr__(self) -> str:
        return f"ClaudeEstimate({self.name.removesuffix('-estimate')!r})"


# The version that ctok knows the family by, and how many tokens it adds for the frame of one message.
_CTOK_VERSIONS = {"claude-4": ("3.0", 7), "claude-4.8": ("4.8", 6)}

# Per family: the margin, then a weight for each of SHAPES, a factor upon the o200k count for each of
# CLASSES, and a cost of each character of each of CLASSES, in their order.
_FITTED: dict[str, tuple[float, tuple[float, ...]]] = {
    "claude-4": (0.23, (
        2.148, 0, 0, 0.085, 0.355, 0, 0.206, 0, 0.916, 0.225, 0, 0.128, 0.442, 0.075, 1.013,
        0.875, 1.1, 0.096, 0.885, 0.265, 0, 0, 0.41, 2.414, 2.932, 1.251, 1.015, 0.733,
        0.513, 0.303, 1.512, 1.693, 1.92, 1.044, 0.415, 0.537, 0, 0.647, 0.369, 0.922,
        0.981, 0.725, 0, 0, 0.029, 0.416, 0.125, 0.377, 1.674, 0.157, 0.358, 0.133, 0,
        0.146, 0, 0.385, 0, 0.302, 0, 0.202, 0.079, 1.023, 0.542, 0.49, 0.129, 0.124, 0.116,
        0.423, 1.067, 1.873, 1.987, 0.692, 0.933, 0.516, 0.334, 0.819, 0, 0, 2.857, 1.866,
        2.937, 2.521, 0.318,
    )),
    "claude-4.8": (0.2, (
        2.334, 0, 0, 0, 0.384, 0.391, 0, 0, 0.229, 0, 0, 0, 0, 0, 0.891, 0.97, 0.437, 0.209,
        0.678, 0.333, 0, 0, 0.569, 2.11, 1.284, 1.151, 1.173, 0.311, 0.723, 0, 1.59, 1.803,
        1.989, 0.6, 0.492, 0.79, 0, 0.847, 0.767, 0.862, 0.932, 0.77, 0, 0, 0.021, 0.389, 0,
        0.422, 1.204, 0.26, 1.123, 0.339, 0.671, 0.136, 0, 0.017, 0, 0.665, 0.568, 0.234, 0,
        1.571, 0.446, 0.636, 0.101, 0.047, 0.024, 0.643, 1.014, 1.717, 2.002, 0.589, 0.697,
        0.605, 0.398, 0.722, 0, 0, 2.863, 1.917, 3.241, 2.341, 0.78,
    )),
}  # fmt: skip
