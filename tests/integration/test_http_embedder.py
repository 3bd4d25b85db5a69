"""The HTTP embedder and the HTTP reranker against a real server on this machine."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import germane
from germane.embedders import HttpEmbedder, HttpReranker
from germane.errors import EmbeddingFailed, InvalidInput, MissingExtra, RerankingFailed
from germane.protocols import Embedder, Reranker
from germane.testing.fakes import HashEmbedder

KEY = "sk-secret-4711"
Request = dict[str, object]
Answer = tuple[int, dict[str, str], bytes]
Behaviour = Callable[[int, Request], Answer]


class Seen:
    """The requests that the server got: bodies and headers."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.bodies: list[Request] = []
        self.authorizations: list[str | None] = []
        self.paths: list[str] = []


@contextmanager
def serving(behaviour: Behaviour) -> Iterator[Seen]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            seen.bodies.append(body)
            seen.authorizations.append(self.headers.get("authorization"))
            seen.paths.append(self.path)
            status, headers, content = behaviour(len(seen.bodies), body)
            if status == 0:
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that is overridden.
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        seen = Seen(f"http://127.0.0.1:{server.server_port}/v1")
        try:
            yield seen
        finally:
            server.shutdown()
            thread.join()


def embedding(_: int, body: Request) -> Answer:
    texts = body["input"]
    assert isinstance(texts, list)
    rows = HashEmbedder(8).embed(texts).tolist()
    # The rows come last first: the index says which text is meant.
    data = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(rows)][::-1]
    return 200, {"content-type": "application/json"}, json.dumps({"data": data}).encode()


def first_failing(times: int, status: int, **headers: str) -> Behaviour:
    def behave(call: int, body: Request) -> Answer:
        failing = {name.replace("_", "-"): value for name, value in headers.items()}
        return (status, failing, b"try later") if call <= times else embedding(call, body)

    return behave


def always(status: int, content: bytes) -> Behaviour:
    return lambda _call, _body: (status, {}, content)


@contextmanager
def embedder_of(seen: Seen, **options: object) -> Iterator[tuple[HttpEmbedder, list[float]]]:
    waits: list[float] = []
    arguments = {"model": "small", "dimension": 8, "key": KEY, "sleep": waits.append, **options}
    with HttpEmbedder(seen.url, **arguments) as embedder:  # type: ignore[arg-type]  # options differ by test
        yield embedder, waits


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def test_texts_are_embedded_in_batches_in_order() -> None:
    texts = [f"text number {number}" for number in range(7)]
    with serving(embedding) as seen, embedder_of(seen, batch=3) as (embedder, waits):
        vectors = embedder.embed(texts)
        assert isinstance(embedder, Embedder)
    np.testing.assert_array_equal(vectors, HashEmbedder(8).embed(texts))
    assert vectors.dtype == np.float32
    assert [body["input"] for body in seen.bodies] == [texts[:3], texts[3:6], texts[6:]]
    assert {str(body["model"]) for body in seen.bodies} == {"small"}
    assert set(seen.authorizations) == {f"Bearer {KEY}"}
    assert set(seen.paths) == {"/v1/embeddings"}
    assert waits == []


def test_no_text_asks_nothing() -> None:
    with serving(embedding) as seen, embedder_of(seen) as (embedder, _):
        assert embedder.embed([]).shape == (0, 8)
    assert seen.bodies == []


def test_without_a_key_no_authorization_is_sent_and_shortening_is_requested() -> None:
    with serving(embedding) as seen, embedder_of(seen, key=None, shorten=True) as (embedder, _):
        embedder.embed(["a"])
    assert seen.authorizations == [None]
    assert seen.bodies[0]["dimensions"] == 8


def test_long_texts_make_smaller_batches_and_odd_texts_are_sent_as_servers_take_them() -> None:
    texts = ["x" * 150_000, "y" * 150_000, "", "half \ud800"]
    with serving(embedding) as seen, embedder_of(seen) as (embedder, _):
        assert embedder.embed(texts).shape == (4, 8)
    assert [body["input"] for body in seen.bodies] == [texts[:1], [texts[1], " ", "half ?"]]


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_passing_failure_is_tried_again(status: int) -> None:
    with serving(first_failing(2, status)) as seen, embedder_of(seen) as (embedder, waits):
        assert embedder.embed(["a"]).shape == (1, 8)
    assert waits == [0.5, 1.0]


@pytest.mark.parametrize(
    ("seconds", "waited"), [("7", 7.0), ("900", 30.0), ("0", 0.5), ("Wed, 21 Oct 2025 07:28:00 GMT", 0.5)]
)
def test_the_wait_that_the_server_requests_is_respected(seconds: str, waited: float) -> None:
    with serving(first_failing(1, 429, retry_after=seconds)) as seen, embedder_of(seen) as (embedder, waits):
        embedder.embed(["a"])
    assert waits == [waited]


def test_a_closed_connection_is_tried_again() -> None:
    with serving(first_failing(1, 0)) as seen, embedder_of(seen) as (embedder, waits):
        assert embedder.embed(["a"]).shape == (1, 8)
    assert waits == [0.5]


def test_retries_are_bounded() -> None:
    refused = pytest.raises(EmbeddingFailed, match=r"failed after 3 tries: status 503 .*overloaded")
    with (
        serving(always(503, b"overloaded")) as seen,
        embedder_of(seen, retries=2) as (embedder, waits),
        refused,
    ):
        embedder.embed(["a"])
    assert len(seen.bodies) == 3
    assert waits == [0.5, 1.0]


@pytest.mark.parametrize("status", [301, 400, 401, 404, 422])
def test_a_lasting_failure_is_not_tried_again(status: int) -> None:
    with (
        serving(always(status, b"no such model")) as seen,
        embedder_of(seen) as (embedder, _),
        pytest.raises(EmbeddingFailed, match=f"failed: status {status} .*no such model"),
    ):
        embedder.embed(["a"])
    assert len(seen.bodies) == 1


def test_the_key_is_never_shown() -> None:
    echo = f'{{"error": "Incorrect API key: {KEY}"}}'.encode()
    with serving(always(401, echo)) as seen, embedder_of(seen) as (embedder, _):
        assert KEY not in repr(embedder)
        with pytest.raises(EmbeddingFailed, match=r"Incorrect API key: \*\*\*") as failed:
            embedder.embed(["a"])
    assert KEY not in str(failed.value)
    assert failed.value.__cause__ is None


def test_an_address_is_shown_without_its_secrets() -> None:
    secret = HttpEmbedder("https://user:pass@host.example/v1?token=abc", model="m", dimension=2)
    assert repr(secret) == "HttpEmbedder('https://host.example/v1/embeddings', model='m', dimension=2)"


def test_nobody_listening_is_named_after_the_retries() -> None:
    with serving(embedding) as seen:
        pass
    with (
        embedder_of(seen, retries=1, timeout=5.0) as (embedder, waits),
        pytest.raises(EmbeddingFailed, match=r"'small' at http://127.0.0.1:\d+/v1/embeddings failed after 2"),
    ):
        embedder.embed(["a"])
    assert waits == [0.5]


def test_a_silent_server_times_out() -> None:
    release = threading.Event()

    def silent(_call: int, _body: Request) -> Answer:
        release.wait(10)
        return 0, {}, b""

    with serving(silent) as seen, embedder_of(seen, retries=0, timeout=0.1) as (embedder, _):
        try:
            with pytest.raises(EmbeddingFailed, match="ReadTimeout"):
                embedder.embed(["a"])
        finally:
            release.set()


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"<html>hello</html>", "something else than one embedding for each of 2 texts: <html>"),
        (b"{}", "something else"),
        (b"[]", "something else"),
        (b'{"data": null}', "something else"),
        (b'{"data": [{"index": 0, "embedding": [1, 2]}]}', "something else"),
        (b'{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}', "something else"),
        (b'{"data": [{"embedding": [1, 2]}, {"embedding": [3, 4]}]}', "vectors of 2 numbers"),
        (b'{"data": [{"embedding": [1, NaN]}, {"embedding": [3, 4]}]}', "vectors of 2 numbers"),
        (b'{"data": [{"embedding": "AAAA"}, {"embedding": "AAAA"}]}', "where numbers are needed"),
    ],
)
def test_what_is_no_embedding_is_refused(content: bytes, what: str) -> None:
    with (
        serving(always(200, content)) as seen,
        embedder_of(seen) as (embedder, _),
        pytest.raises(EmbeddingFailed, match=what),
    ):
        embedder.embed(["a", "b"])


def test_not_a_number_is_refused() -> None:
    content = json.dumps({"data": [{"index": 0, "embedding": [float("nan")] * 8}]}).encode()
    with (
        serving(always(200, content)) as seen,
        embedder_of(seen) as (embedder, _),
        pytest.raises(EmbeddingFailed, match="NaN"),
    ):
        embedder.embed(["a"])


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "ftp://host/v1", "http://", "http://a b/v1", "http://host:99999"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="is no address"):
        HttpEmbedder(url, model="m", dimension=2)


@pytest.mark.parametrize("key", ["", "with space", "line\nend", "schlüssel"])
def test_a_key_that_no_header_can_carry_is_refused_unseen(key: str) -> None:
    with pytest.raises(InvalidInput, match="The key is empty or holds characters") as refused:
        HttpEmbedder("http://host/v1", model="m", dimension=2, key=key)
    assert not key or key not in str(refused.value)


@pytest.mark.parametrize(
    "options", [{"dimension": 0}, {"retries": -1}, {"batch": 0}, {"timeout": 0}, {"model": " "}]
)
def test_an_impossible_option_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        HttpEmbedder("http://host/v1", **{"model": "m", "dimension": 2, **options})  # type: ignore[arg-type]  # on purpose


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtra, match=r"germane\[http\]"):
        HttpEmbedder("http://127.0.0.1:9/v1", model="m", dimension=2).embed(["a"])


def test_a_closed_embedder_opens_again() -> None:
    with serving(embedding) as seen, embedder_of(seen) as (embedder, _):
        embedder.embed(["a"])
        embedder.close()
        embedder.close()
        assert embedder.embed(["b"]).shape == (1, 8)


def test_a_query_in_the_address_is_sent_along() -> None:
    with serving(embedding) as seen:
        seen.url += "/embeddings/?api-version=1"
        with embedder_of(seen) as (embedder, _):
            embedder.embed(["a"])
    assert seen.paths == ["/v1/embeddings?api-version=1"]


# The reranker.


def by_length(_: int, body: Request) -> Answer:
    documents = body["documents"]
    assert isinstance(documents, list)
    results = [{"index": place, "relevance_score": len(text) / 100} for place, text in enumerate(documents)]
    results.sort(key=lambda one: -one["relevance_score"])
    return 200, {"content-type": "application/json"}, json.dumps({"results": results}).encode()


def test_documents_are_scored_in_their_order() -> None:
    with serving(by_length) as server, HttpReranker(server.url, model="r-1", key=KEY) as reranker:
        assert isinstance(reranker, Reranker)
        assert (reranker.name, reranker.timeout) == ("r-1", 2.0)
        assert reranker.score("which?", ["four", "", "fifteen letters"]) == [0.04, 0.01, 0.15]
        assert reranker.score("which?", []) == []
    assert server.paths == ["/v1/rerank"]
    assert server.authorizations == [f"Bearer {KEY}"]
    assert server.bodies == [
        {"model": "r-1", "query": "which?", "documents": ["four", " ", "fifteen letters"], "top_n": 3}
    ]
    assert KEY not in repr(reranker)


@pytest.mark.parametrize(
    "content",
    [
        b"no JSON",
        b"[]",
        b'{"results": [{"index": 0, "relevance_score": 0.5}]}',
        b'{"results": [{"index": 0, "relevance_score": 0.5}, {"index": 2, "relevance_score": 0.5}]}',
        b'{"results": [{"index": 0, "relevance_score": 0.5}, {"index": 1, "relevance_score": "high"}]}',
        b'{"results": [{"index": [], "relevance_score": 0.5}]}',
    ],
)
def test_what_is_no_score_per_document_is_refused(content: bytes) -> None:
    with (
        serving(always(200, content)) as server,
        HttpReranker(server.url, model="r-1") as reranker,
        pytest.raises(RerankingFailed, match=r"Reranker 'r-1' at .*/v1/rerank answered with something else"),
    ):
        reranker.score("which?", ["one", "two"])


def test_a_reranker_tries_again_only_where_it_is_allowed_to() -> None:
    def first_busy(call: int, body: Request) -> Answer:
        return (503, {}, b"try later") if call == 1 else by_length(call, body)

    waits: list[float] = []
    with (
        serving(first_busy) as server,
        HttpReranker(server.url, model="r-1") as once,
        pytest.raises(RerankingFailed, match="status 503"),
    ):
        once.score("which?", ["one"])
    with (
        serving(first_busy) as server,
        HttpReranker(server.url, model="r-1", retries=1, sleep=waits.append) as patient,
    ):
        assert patient.score("which?", ["one"]) == [0.03]
    assert waits == [0.5]


def test_a_server_that_is_down_leaves_the_order_as_it_was() -> None:
    texts = ["The cache is Redis.", "The cache is emptied every night at three."]

    def recalled(reranker: HttpReranker | None) -> germane.RecallResult:
        with germane.open(":memory:", embedder=None, reranker=reranker) as engine:
            engine.remember_many(texts)
            return engine.recall("cache")

    with serving(by_length) as server, HttpReranker(server.url, model="r-1", key=KEY) as reranker:
        assert [one.content for one in recalled(reranker)] == texts[::-1]
        server_url = server.url
    with HttpReranker(server_url, model="r-1", key=KEY) as reranker:
        found = recalled(reranker)
    assert [one.content for one in found] == [one.content for one in recalled(None)]
    (note,) = found.notes
    assert note.code == "reranking_failed"
    assert "'r-1'" in note.text
    assert KEY not in note.text


def test_a_reranker_needs_an_address_and_a_name() -> None:
    with pytest.raises(InvalidInput, match="is no address of a model"):
        HttpReranker("localhost", model="r-1")
    with pytest.raises(InvalidInput, match="name is empty"):
        HttpReranker("http://localhost/v1", model=" ")
    with pytest.raises(InvalidInput, match="timeout is 0"):
        HttpReranker("http://localhost/v1", model="r-1", timeout=0)


def test_a_reranker_without_httpx_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtra, match=r"Reranking over HTTP.*germane\[http\]"):
        HttpReranker("http://localhost:1/v1", model="r-1").score("which?", ["one"])
