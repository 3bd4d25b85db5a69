"""Checks of arguments and of what models return: what can't be accepted is refused before anything is stored.

Each error names the value, the limit and the remedy. `checking` holds the arguments of a public method
against its own annotations; the functions named `checked_…` know the limits of single values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import update_wrapper
from threading import Thread
from types import FunctionType, MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, TypeAlias, TypeVar, get_args

import numpy as np
import regex
from numpy.typing import NDArray

from germane.errors import EmbeddingFailed, InvalidInput, RerankingFailed, shown
from germane.model.context import Ranked, TraceNote
from germane.model.memory import NOWHERE, Memory, Vector
from germane.model.query import LEAST_COSINE, Filter, TimeRange
from germane.model.text import (
    DEFAULT_RANKER,
    check_free_name,
    is_tenant,
    own_text,
    user_and_agent,
    user_tenant,
)
from germane.model.validation import (
    as_utc,
    check_nested,
    checked_moment,
    checked_number,
    checked_text,
    checked_value,
    forms_of,
)
from germane.protocols import Clock, Embedder, Reranker, Scorer, TokenCounter
from germane.renditions.passages import LONG_TOKENS, PassageScores, best_passages
from germane.retrieval.vectors import as_vectors, unit_rows

if TYPE_CHECKING:
    from concurrent.futures import Future

# The categories of `regex`, which knows more scripts than an older Python does.
_VISIBLE: Final = regex.compile(r"[\p{L}\p{M}\p{N}\p{P}\p{S}]")

MAX_CONTENT = 10_000_000
"""Characters in one memory; more than that is a file, to be imported in parts."""

# Made once: `json.dumps` makes one for each call that doesn't want ASCII.
_in_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
P = ParamSpec("P")
R = TypeVar("R")
Owner = TypeVar("Owner", bound=type)

_OWN_ERRORS: Final = frozenset({"confirm", "ids", "kinds", "summarizer"})
"""Parameters whose verb has an error of its own for whatever isn't right."""


def checking(verb: Callable[P, R]) -> Callable[P, R]:
    """The verb, which refuses arguments that its annotations don't allow: InvalidInput names the argument.

    `germane.model.validation.checked_value` says what is checked. A missing or unknown argument stays a
    TypeError.
    """
    code: Any = getattr(verb, "__code__")  # noqa: B009 - A callable of any kind has no such attribute.
    names = code.co_varnames[: code.co_argcount]
    annotations = {name: each for name, each in verb.__annotations__.items() if name not in _OWN_ERRORS}

    def one(name: str, value: object) -> object:
        if name not in annotations:
            return value
        return checked_value(value, forms_of(annotations[name], verb.__module__), name)

    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        given: Any = map(one, names, args)
        named: Any = {name: one(name, value) for name, value in kwargs.items()}
        more: Any = args[len(names) :]
        return verb(*given, *more, **named)

    update_wrapper(checked, verb)
    return checked


def checking_verbs(owner: Owner) -> Owner:
    """The class, with each of its public methods as `checking` makes it."""
    for name, verb in tuple(vars(owner).items()):
        if isinstance(verb, FunctionType) and not name.startswith("_"):
            setattr(owner, name, checking(verb))
    return owner


def checked_agent(agent: object) -> str:
    """The name of an agent. Raises InvalidInput for none, a long one, and one that is reserved for spaces."""
    name = checked_text(agent, name="agent")
    if not name.strip():
        raise InvalidInput(f"agent={name!r} is empty: every memory belongs to a named agent.")
    check_free_name(name, "agent")
    if is_tenant(name):
        raise InvalidInput(
            f"agent={name!r} can't be taken: names that begin with 'space:' or 'user:' are those of spaces "
            "and users. Open the agent itself, and use engine.space(...) or engine.for_user(...)."
        )
    return name


def checked_member(agent: object) -> str:
    """The name of a member of a space: an agent's, or `user:NAME:AGENT`, one user's. Raises InvalidInput."""
    user, name = user_and_agent(checked_text(agent, name="agent"))
    return checked_agent(name) if user is None else user_tenant(user, checked_agent(name))


def checked_content(content: object) -> str:
    """A text with something in it, storable in UTF-8, of at most MAX_CONTENT characters.

    What stands in the fence of recalled text is left out, so that no memory is learned again as new.
    """
    given = checked_text(content, name="content")
    text = own_text(given)
    if text != given and not text.strip():
        raise InvalidInput(
            f"content={shown(given)} came from memory as a whole, as its fence says, and isn't learned "
            "again. Remember what was concluded from it, or take the fence away."
        )
    if not _VISIBLE.search(text):
        raise InvalidInput(f"content={shown(text)} is empty: a memory needs at least one visible character.")
    if len(text) > MAX_CONTENT:
        raise InvalidInput(
            f"content has {len(text):,} characters; at most {MAX_CONTENT:,} make one memory. "
            "Split it, or let `germane import` split the file by its headings."
        )
    return text


def checked_time(value: object, *, name: str, clock: Clock) -> datetime:
    """A time in UTC: an aware one, or the beginning of what a text names, as "last week", by the clock."""
    if not isinstance(value, str):
        return checked_moment(value, name=name)
    from germane.retrieval.dates import parse_moment  # noqa: PLC0415 - Seldom is a time given in words.

    moment = parse_moment(checked_text(value, name=name), now=as_utc(clock(), name="clock"))
    if moment is None:
        raise InvalidInput(
            f"{name}={shown(value)} names no time. Write one such as 2026-11-20, 2026-11-20T12:00Z, "
            "'last week', '3 days ago' or 'May 2023'."
        )
    return moment


def settled(where: Filter, clock: Clock) -> Filter:
    """The filter with the moments that texts in its times name. Raises InvalidInput."""
    when, valid_at = where.when, where.valid_at
    if when is not None and when.in_words:
        where = replace(where, when=_settled(when, clock))
    if isinstance(valid_at, str):
        where = replace(where, valid_at=checked_time(valid_at, name="valid_at", clock=clock))
    if isinstance(valid_at, TimeRange) and valid_at.in_words:
        where = replace(where, valid_at=_settled(valid_at, clock))
    return where


def _settled(when: TimeRange, clock: Clock) -> TimeRange:
    ends = {
        name: None if end is None else checked_time(end, name=name, clock=clock)
        for name, end in (("since", when.since), ("until", when.until))
    }
    return TimeRange(**ends)


def checked_count(value: object, *, name: str, least: int = 0) -> int:
    """A whole number that is at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidInput(f"{name}={shown(value)} can't be used: take a whole number of {least} or more.")
    return value


def checked_json(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Metadata that JSON can hold, as JSON will give it back, and that nobody can change."""
    try:
        given = dict(metadata)
        if not given:
            return MappingProxyType(given)
        check_nested(given, "metadata")
        text = _in_json(given)
        decoded = json.loads(text)
        if not text.isascii():
            checked_text(_in_json(decoded), name="metadata")
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"metadata={shown(metadata)} can't be stored: {error}. Use texts, numbers, booleans, None, "
            "lists and mappings of them."
        ) from error
    if not all(isinstance(key, str) for key in metadata):
        raise InvalidInput(f"metadata={shown(metadata)} has a key that is no text: JSON would change it.")
    return MappingProxyType(decoded)


# Embedding for operations: whatever the embedder does wrong becomes one clear error.


def is_eager(embedder: Embedder) -> bool:
    """Whether a write waits for the embedder: unless its attribute `eager` says no.

    The vectors of one that isn't eager follow later, so that no write waits for a network or a model.
    """
    return bool(getattr(embedder, "eager", True))


def least_cosine_of(embedder: Embedder | None) -> float:
    """The cosine below which the embedder tells no likeness from chance: its attribute, or the usual 0.18.

    Raises InvalidInput for one that is no cosine of 0 or more.
    """
    least = getattr(embedder, "least_cosine", None)
    if embedder is None or least is None:
        return LEAST_COSINE
    return checked_number(least, 0, 1, name=f"least_cosine of the embedder {embedder.name!r}")


def vectors_to_store(embedder: Embedder | None, texts: Sequence[str]) -> list[Vector | None]:
    """What a write stores beside each text: its vector, or None where it shall wait for one.

    Raises EmbeddingFailed.
    """
    if embedder is None or not is_eager(embedder):
        return [None] * len(texts)
    try:
        return [NOWHERE if vector is None else vector for vector in embed_texts(embedder, texts)]
    except EmbeddingFailed as error:
        raise EmbeddingFailed(
            f"{error} Nothing was stored; try again, or open the store without an embedder."
        ) from error


def embed_texts(embedder: Embedder | None, texts: Sequence[str]) -> list[Vector | None]:
    """A unit vector for each text, or None for each where there is no embedder.

    A text without any meaning to the embedder (a zero vector) gets None: it is found by its words.
    Raises EmbeddingFailed when the embedder raises, or returns what is no embedding.
    """
    if embedder is None or not texts:
        return [None] * len(texts)
    try:
        vectors = embedder.embed(texts)
    except EmbeddingFailed:
        raise
    except Exception as error:
        several = "a text" if len(texts) == 1 else f"{len(texts)} texts"
        reason = str(error).rstrip(".")
        raise EmbeddingFailed(f"The embedder {embedder.name!r} failed on {several}: {reason}.") from error
    checked = as_vectors(vectors, name=embedder.name, texts=len(texts), dimension=embedder.dimension)
    # A row of zeros points nowhere.
    counts: NDArray[np.intp] = np.count_nonzero(checked, axis=1)
    unit = iter(unit_rows(checked[counts > 0]))
    return [next(unit) if count else None for count in counts.tolist()]


# Reranking for operations: whatever the reranker does wrong costs its part of the scores, and a note says so.

_PATIENCE: Final = 2.0
_EXCERPT: Final = 100
"""Tokens of a long memory that a reranker reads: one of its passages or two."""


class Reranking:
    """The reranker of an engine, for which a query waits no longer than its `timeout`. Threads may share it.

    While a call goes on for which nobody waits any more, no other is made, so that threads don't pile up.
    """

    def __init__(self, reranker: Reranker) -> None:
        """Raises InvalidInput for a name that is no text, or a timeout that is no number above 0."""
        self.name = checked_text(reranker.name, name="name of the reranker")
        self._score = reranker.score
        timeout = getattr(reranker, "timeout", _PATIENCE)
        self._timeout = checked_number(timeout, 0.001, 3600, name=f"timeout of the reranker {self.name!r}")
        self._late: Thread | None = None

    def of(
        self,
        question: str,
        ranked: Sequence[Ranked],
        *,
        passages: PassageScores | None,
        counter: TokenCounter,
    ) -> tuple[Mapping[str, float], tuple[TraceNote, ...]]:
        """The part `reranker` of each score by memory `ref`; none, and a note of the reason, where it fails.

        It reads the passages of a long memory that answer best.
        """
        from germane.ranking.relevance import reranked_parts  # noqa: PLC0415 - Most engines have no reranker.

        if not question.strip() or len(ranked) < 2:  # noqa: PLR2004 - One alone has its place.
            return {}, ()
        try:
            scores = self._scores(question, [_read(one.memory, passages, counter) for one in ranked])
        except RerankingFailed as error:
            text = f"Ranked without the reranker {self.name!r}: {error}"
            return {}, (TraceNote(code="reranking_failed", text=text),)
        return reranked_parts(ranked, scores), ()

    def _scores(self, question: str, texts: list[str]) -> list[float]:
        if self._late is not None and self._late.is_alive():
            raise RerankingFailed(f"It still works on an earlier question after {self._timeout:g} s.")
        from concurrent.futures import Future  # noqa: PLC0415 - Most engines have no reranker.

        done: Future[object] = Future()
        thread = Thread(
            target=self._call, args=(done, question, texts), name="germane-reranking", daemon=True
        )
        thread.start()
        try:
            error = done.exception(self._timeout)
        except TimeoutError:
            self._late = thread
            raise RerankingFailed(
                f"It took longer than {self._timeout:g} s for {len(texts)} texts. Raise its timeout if "
                "queries may wait longer."
            ) from None
        if error is not None:
            raise RerankingFailed(f"{type(error).__name__}: {error}") from error
        return _finite_scores(done.result(), len(texts))

    def _call(self, done: Future[object], question: str, texts: list[str]) -> None:
        try:
            done.set_result(self._score(question, texts))
        except BaseException as error:  # noqa: BLE001 - A thread can't raise; who waits for it does.
            done.set_exception(error)


def _read(memory: Memory, passages: PassageScores | None, counter: TokenCounter) -> str:
    full = memory.renditions.full
    if passages is None or full.tokens <= LONG_TOKENS:
        return full.text
    return best_passages(full.text, _EXCERPT, counter, passages) or full.text


def _finite_scores(returned: object, count: int) -> list[float]:
    try:
        scores = [float(each) for each in returned]  # type: ignore[attr-defined] # What isn't iterable is refused.
    except (TypeError, ValueError) as error:
        raise RerankingFailed(f"It returned no sequence of numbers: {shown(returned)}.") from error
    if len(scores) != count:
        raise RerankingFailed(
            f"It returned {len(scores)} scores for {count} texts; it has to be one for each."
        )
    for place, score in enumerate(scores):
        if not math.isfinite(score):
            raise RerankingFailed(
                f"It gave text {place + 1} of {count} the score {score}, which has no rank."
            )
    return scores


# The rankers that a recall can name.

Ranker: TypeAlias = Literal["relevance", "hybrid"]

RANKERS: tuple[str, ...] = get_args(Ranker)
"""The rankers by name."""


def check_ranker(ranker: str, scorer: Scorer | None, reranking: Reranking | None = None) -> None:
    """Raise InvalidInput for an unknown ranker, and for two of a ranker, a scorer and a reranker."""
    if ranker not in RANKERS:
        raise InvalidInput(f"Unknown ranker {ranker!r}. Known rankers: {', '.join(RANKERS)}.")
    if scorer is not None and ranker != DEFAULT_RANKER:
        raise InvalidInput(f"ranker={ranker!r} and a scorer can't both rank. Give one of them.")
    if reranking is not None and (scorer is not None or ranker != DEFAULT_RANKER):
        given = "A scorer" if scorer is not None else f"ranker={ranker!r}"
        raise InvalidInput(
            f"{given} and the engine's reranker {reranking.name!r} can't both rank. Leave it out, or open "
            "the engine without reranker=..."
        )
