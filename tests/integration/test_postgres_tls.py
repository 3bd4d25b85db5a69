"""An encrypted connection to the server, requested in the address: used everywhere, or refused clearly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

import germane
from germane import StoreUnavailable
from germane.stores import PostgresStore, store_status
from germane.working_sets import WorkingSetEvent
from support.postgres_server import Server, database_of
from support.tls import Encrypted, certificates, no_certificates

pytestmark = pytest.mark.skipif(bool(no_certificates()), reason=no_certificates() or "They can.")

_PATIENCE = 20

Address = Callable[..., str]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    return certificates(tmp_path_factory.mktemp("tls"), "localhost")


@pytest.fixture(scope="module")
def way(postgres_server: Server, made: tuple[Path, Path, Path]) -> Iterator[Encrypted]:
    _, certificate, key = made
    with closing(Encrypted(postgres_server.folder, certificate, key)) as opened:
        yield opened


def _refused(url: str) -> str:
    with pytest.raises(StoreUnavailable) as raised:
        PostgresStore(url, timeout=5)
    return str(raised.value)


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
def test_all_that_a_store_does_goes_the_encrypted_way(
    way: Encrypted, made: tuple[Path, Path, Path], postgres_store: str, mode: str
) -> None:
    url = way.url(database_of(postgres_store), sslmode=mode, sslrootcert=str(made[0]))
    heard, encrypted = Event(), way.encrypted

    def hear(_: WorkingSetEvent) -> None:
        heard.set()

    with germane.open(url, agent="ada") as engine, germane.open(url, agent="ada") as other:
        with engine.working_set().follow(hear):
            other.working_set().add(other.remember("Tea is green"))
            assert heard.wait(_PATIENCE)
        assert [each.content for each in engine.recall("tea")] == ["Tea is green"]
    assert store_status(url).memories == 1
    assert (way.encrypted > encrypted, way.plain) == (True, 0)


def test_who_asks_for_it_gets_no_other(way: Encrypted, postgres_store: str) -> None:
    before = way.encrypted
    PostgresStore(way.url(database_of(postgres_store), sslmode="require")).close()
    assert way.encrypted > before


def test_a_server_that_nobody_vouches_for_is_refused(
    way: Encrypted, postgres_store: str, tmp_path: Path
) -> None:
    stranger, *_ = certificates(tmp_path, "localhost")
    message = _refused(way.url(database_of(postgres_store), sslmode="verify-full", sslrootcert=str(stranger)))
    assert "certificate verify failed" in message
    assert "Correct sslmode and sslrootcert" in message


def test_a_certificate_of_another_name_is_refused(
    way: Encrypted, made: tuple[Path, Path, Path], postgres_store: str
) -> None:
    how = {"sslmode": "verify-full", "sslrootcert": str(made[0])}
    message = _refused(way.url(database_of(postgres_store), host="127.0.0.1", **how))
    assert "does not match host name" in message
    assert "Correct sslmode and sslrootcert" in message


def test_a_missing_root_certificate_is_named(way: Encrypted, postgres_store: str, tmp_path: Path) -> None:
    missing = str(tmp_path / "root.crt")
    message = _refused(way.url(database_of(postgres_store), sslmode="verify-full", sslrootcert=missing))
    assert missing in message
    assert "Correct sslmode and sslrootcert" in message


def test_a_server_without_it_is_refused_where_it_is_requested(
    postgres_server: Server, postgres_store: str
) -> None:
    with closing(Encrypted(postgres_server.folder)) as plain:
        message = _refused(plain.url(database_of(postgres_store), sslmode="require"))
        assert "isn't encrypted" in message
        with closing(PostgresStore(plain.url(database_of(postgres_store)))) as store:
            assert store.stats("ada").memories == 0
