"""An embedder behind an HTTP endpoint that speaks OpenAI's embeddings protocol.

Level: embedders. `httpx` is imported when the first text is embedded. The key appears in no
error and no repr.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from germane.embedders.returned import as_vectors
from germane.errors import EmbeddingFailed, InvalidInput, MissingExtra
from germane.forking import renewed

if TYPE_CHECKING:
    import httpx

__all__ = ["HttpEmbedder"]

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
            return None, trouble, _asked_wait(response.headers.get("retry-after", ""))
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


def _asked_wait(header: str) -> float:
    """The seconds of a Retry-After header; 0 for a date or nonsense, which leave the wait to us."""
    return min(float(header), _LONGEST_WAIT) if header.strip().isdecimal() else 0.0
