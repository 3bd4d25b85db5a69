"""Token counters by name, and what a budget leaves to spend by a counter that is not exact.

Level: tokens (may import protocols, model and errors).

| name                | counts                                             | margin |
|---------------------|----------------------------------------------------|--------|
| `o200k`, `cl100k`   | exactly as OpenAI's tokenizers                     | 0      |
| `claude-4.8`        | Claude 4.7 and later, Sonnet 5                     | see below |
| `claude-4`          | Claude 3 to 4.6                                    | see below |
| `claude`            | the current one of these two: `claude-4.8`         |        |
| `estimate`          | an estimate of `o200k` that loads no vocabulary    | measured |
| `bytes_div_4_floor` | InDusk's unit: UTF-8 bytes // 4                    | 0, a unit of its own |

`claude…` counts with `ctok` where it is installed (`germane[claude]`, Python 3.12 or later), else by
an upper estimate whose name ends in `-estimate`, for stored counts must say which of the two made them.
"""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Callable
from fractions import Fraction
from hashlib import blake2b
from threading import Lock

from germane.errors import InvalidInput
from germane.forking import renewed
from germane.protocols import TokenCounter
from germane.tokens_claude import claude_counter, claude_estimate
from germane.tokens_estimate import BytesDiv4Floor, EstimateCounter
from germane.tokens_exact import ExactCounter

__all__ = ["COUNTERS", "CachedCounter", "get_counter", "register_counter", "spendable", "uncached"]

COUNTERS = ("o200k", "cl100k", "claude", "claude-4.8", "claude-4", "estimate", "bytes_div_4_floor")
"""The names of the counters that germane brings; `register_counter` adds others."""

_CURRENT_CLAUDE = "claude-4.8"
_CACHED_TEXTS = 1 << 16
_LONGEST_CACHED = 1 << 20
_DIGEST = 16


def get_counter(name: str | TokenCounter) -> TokenCounter:
    """The counter of that name or for that model; a counter given is returned as it is.

    Model names are understood with or without a provider before them (`gpt-5`,
    `openai/gpt-4o-mini`, `claude-sonnet-5`, `anthropic/claude-opus-4.5`). The same name gives the
    same instance, so a vocabulary is loaded once in a process, at its first count. Raises InvalidInput for an
    unknown name, naming the known ones.
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
            f"Add your own with germane.register_counter({name!r}, factory)."
        )
    with _LOCK:
        if known not in _INSTANCES:
            _INSTANCES[known] = _FACTORIES[known]()
        return _INSTANCES[known]


def register_counter(name: str, factory: Callable[[], TokenCounter]) -> None:
    """Make `get_counter(name)` return what `factory()` makes, at its first use.

    Registering a name again replaces it. The counters that germane brings can't be replaced, since stored
    counts carry their names: InvalidInput.
    """
    if not name.strip() or name in _BUILT_IN:
        raise InvalidInput(
            f"A counter can't be registered as {name!r}: the name is empty or germane's own "
            f"({', '.join(_BUILT_IN)}). Choose another name."
        )
    with _LOCK:
        _FACTORIES[name] = factory
        _INSTANCES.pop(name, None)


def spendable(budget: int, counter: TokenCounter) -> int:
    """The largest count by `counter` whose true count can't exceed `budget` tokens.

    floor(budget / (1 + margin)), computed without rounding error; the whole budget for an exact
    counter. Raises InvalidInput for a negative budget, or a margin that is negative or no number.
    """
    if budget < 0:
        raise InvalidInput(f"A budget of {budget} tokens is negative. Give 0 or more.")
    margin = float(counter.margin)
    if not math.isfinite(margin) or margin < 0:
        raise InvalidInput(
            f"Counter {counter.name!r} states a margin of {margin}. A margin is a fraction of 0 or more."
        )
    return math.floor(budget / (1 + Fraction(str(margin))))


def uncached(counter: TokenCounter) -> TokenCounter:
    """The counter without what it remembers, for texts that nobody will ask it for again."""
    return counter.inside if isinstance(counter, CachedCounter) else counter


class CachedCounter:
    """Remembers the counts of the texts seen last: same name, margin and counts as the counter inside.

    It keeps the counts of at most `size` texts, and of none longer than `longest` characters, which
    are rarely counted twice. A text is known by its digest: that takes about 200 bytes however
    long it is, and keeps no text alive that the store has purged. One instance may serve many threads.
    """

    def __init__(
        self, counter: TokenCounter, *, size: int = _CACHED_TEXTS, longest: int = _LONGEST_CACHED
    ) -> None:
        if size < 1:
            raise InvalidInput(f"A cache of {size} texts holds nothing. Give a size of 1 or more.")
        self._counter = counter
        self._size = size
        self._longest = longest
        self._counts: OrderedDict[bytes, int] = OrderedDict()
        self._lock = renewed(Lock())

    @property
    def inside(self) -> TokenCounter:
        """The counter that counts what isn't remembered."""
        return self._counter

    @property
    def name(self) -> str:
        return self._counter.name

    @property
    def margin(self) -> float:
        return self._counter.margin

    def count(self, text: str) -> int:
        if len(text) > self._longest:
            return self._counter.count(text)
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).digest()
        with self._lock:
            known = self._counts.get(key)
            if known is not None:
                self._counts.move_to_end(key)
                return known
        # Counted outside the lock: two threads may count the same text once each, and none waits.
        tokens = self._counter.count(text)
        with self._lock:
            self._counts[key] = tokens
            if len(self._counts) > self._size:
                self._counts.popitem(last=False)
        return tokens

    def __len__(self) -> int:
        return len(self._counts)

    def __repr__(self) -> str:
        return f"CachedCounter({self._counter!r}, size={self._size}, longest={self._longest})"


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

# The first prefix that fits decides, so the longer stand before the shorter.
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
        # A name without a version ("claude-sonnet-latest") is the current model of its line.
        return _CURRENT_CLAUDE if "instant" not in rest else None
    version = (int(found[1]), int(found[2] or 0))
    if version < _CLAUDE_OLDEST:
        return None
    return _CURRENT_CLAUDE if version >= _CLAUDE_CURRENT_SINCE else "claude-4"
