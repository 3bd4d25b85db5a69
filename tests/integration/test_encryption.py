"""An encrypted store gives the answers of a plain one, and shows nobody without its key what it holds."""

from __future__ import annotations

import base64
import contextlib
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import MappingProxyType

import keyring
import psycopg
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked

import germane
from germane import InvalidInput, StoreUnavailable
from germane.stores import (
    copy_store,
    migrate_store,
    reindex_store,
    rekey_store,
    remove_agent,
    repair_store,
    store_agents,
    store_status,
    vacuum_store,
)
from germane.testing.fakes import seeded_ids
from support.databases import ENCRYPTION_KEY, running
from support.everything import ACTS, WORDS, Person, TickingClock
from support.postgres_server import contents as contents_of
from support.postgres_server import database_of

MARKERS = (
    *(" wrote about ", "standup is at", "water the plants", "An answer to", "### STATE", *WORDS),
    *("Zanzibar", "violoncello", "marzipan"),
)
"""Words of the texts that are stored: contents, questions, messages, answers and anchors."""


_BY_CHANCE = 4
"""So few bytes may stand anywhere in what is encrypted."""


def forms_of(marker: str) -> Iterator[bytes]:
    """A marker as it may stand somewhere: in three encodings, in hexadecimal digits, and within base64."""
    for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
        raw = marker.encode(encoding)
        yield from (raw, raw.hex().encode())
        for shift in range(3):
            # What stands before a text moves its digits; those at the ends depend on what is beside it.
            yield base64.b64encode(bytes(shift) + raw)[4:-4]


FORMS = tuple(form for marker in MARKERS for form in forms_of(marker) if len(form) > _BY_CHANCE)


def learned(engine: germane.Engine) -> list[object]:
    """What a conversation, a learning run with its undoing, and a state outside the window give."""
    talk = engine.conversation("learning")
    talk.append("user", "I live in Zanzibar and I play the violoncello. My favourite cake is marzipan.")
    talk.state = "The violoncello is in Zanzibar."
    run = engine.learn_from(talk)
    found = [run.decisions, engine.recall("Where do I live?", gate=False), talk.state]
    found += [engine.unlearn(run.id).decisions, engine.learning_runs()]
    return [*found, engine.learn_from(talk, again=True).decisions, engine.memories()]


def file_bytes(path: Path) -> bytes:
    """All bytes of a file and of what stands beside it."""
    return b"".join(each.read_bytes() for each in sorted(path.parent.glob(f"{path.name}*")))


def dumped(address: str) -> bytes:
    """Every row of every table of a database as text; bytes are hexadecimal digits."""
    with psycopg.connect(address) as connection:
        tables = connection.execute(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') "
            "AND relnamespace = current_schema()::regnamespace"
        ).fetchall()
        rows = [
            row
            for (table,) in tables
            for row in connection.execute(f"SELECT t::text FROM {table} t".encode())
        ]
        return "\n".join(text for (text,) in rows).encode()


def records_of(path: Path) -> set[bytes]:
    """Pieces of the index records and vectors of a plain file, long enough to be nowhere by chance."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        values = [
            bytes(value)
            for (value,) in connection.execute(
                "SELECT hashes FROM lex UNION ALL SELECT vector FROM vectors UNION ALL SELECT hashes FROM "
                "message_lex UNION ALL SELECT vector FROM message_lex WHERE vector IS NOT NULL"
            )
        ]
    pieces = {value[start : start + 8] for value in values for start in range(0, len(value) - 7, 8)}
    return {each for each in pieces if len(set(each)) > 4}


def script(seed: int, rounds: int) -> list[tuple[str, int]]:
    """All verbs in a random order, after some memories."""
    chance = Random(seed)  # noqa: S311 - It only varies the order.
    acts = [act for act in ACTS for _ in range(rounds)]
    chance.shuffle(acts)
    return [*(("remember", number) for number in range(6)), *((act, chance.randrange(100)) for act in acts)]


def results(location: str, key: bytes | str, acts: list[tuple[str, int]], look: object = None) -> list[str]:
    """What a script gives in a store; `look` is called after each act."""
    with germane.connect(location, key=key, clock=TickingClock(), ids=seeded_ids(7)) as store:
        engine = store.agent("newton")
        people = [Person(engine, "newton"), Person(engine.for_user("ann"), "ann")]
        for act, number in acts:
            for who in people:
                who.does(act, number)
            if callable(look):
                look()
        return [*people[0].results, *people[1].results, repr(learned(engine))]


@pytest.mark.parametrize("seed", range(2))
def test_every_verb_gives_the_same_and_no_text_is_in_the_file(tmp_path: Path, seed: int) -> None:
    acts = script(seed, 2)
    plain, sealed = tmp_path / "plain.db", tmp_path / "sealed.db"

    def look() -> None:
        raw = file_bytes(sealed)
        assert [form for form in FORMS if form in raw] == []

    found = results(str(sealed), ENCRYPTION_KEY, acts, look)
    look()
    for mine, theirs in zip(found, results(str(plain), "", acts), strict=True):
        assert mine == theirs
    raw, own = file_bytes(sealed), records_of(plain)
    assert len(own) > 100
    assert [each for each in own if each in raw] == []
    # The markers are those of what is stored.
    assert {each for each in MARKERS if each.encode() in file_bytes(plain)} >= {*WORDS, " wrote about "}


def test_every_verb_gives_the_same_and_no_text_is_in_a_table(
    postgres_store: str, postgres_encrypted_store: str
) -> None:
    acts = script(3, 1)
    found = results(postgres_encrypted_store, ENCRYPTION_KEY, acts)
    raw = dumped(postgres_encrypted_store)
    assert [form for form in FORMS if form in raw] == []
    plain = results(postgres_store, "", acts)
    for mine, theirs in zip(found, plain, strict=True):
        assert mine == theirs


@pytest.mark.long
def test_no_text_is_in_a_servers_files_or_its_log() -> None:
    everything = {"log_statement": "all", "log_parameter_max_length": "-1", "log_min_messages": "debug1"}
    for server in running(**everything):
        sealed, plain = server.url(server.fresh()), server.url(server.fresh())
        migrate_store(sealed, key=ENCRYPTION_KEY)
        migrate_store(plain)
        results(sealed, ENCRYPTION_KEY, script(5, 1))
        server.run("ANALYZE", "CHECKPOINT", database=database_of(sealed))
        written = dict(contents_of(server.folder))
        assert [(name, form) for name, data in written.items() for form in FORMS if form in data] == []
        log = server.folder / "log"
        assert b"INSERT INTO memories" in written[log]
        # The same verbs in a plain store leave them in both, so that the search finds what is there.
        results(plain, "", script(5, 1))
        server.run("CHECKPOINT", database=database_of(plain))
        written = dict(contents_of(server.folder))
        assert b"Zanzibar" in written.pop(log)
        assert any(b"Zanzibar" in data for data in written.values())


# Keys.


@pytest.fixture(params=["sqlite", "postgres"])
def sealed(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The place of an encrypted store with two memories and a recorded context."""
    if request.param == "sqlite":
        place = str(tmp_path / "sealed.db")
    else:
        place = str(request.getfixturevalue("postgres_encrypted_store"))
    with germane.open(place, agent="newton", key=ENCRYPTION_KEY, record=True) as engine:
        engine.remember("The violoncello is in Zanzibar.", kind="fact")
        engine.remember("The marzipan is in the cellar.", kind="fact")
        engine.assemble("Where is the marzipan?", budget=500)
    return place


def contents(place: str, key: bytes | str) -> list[str]:
    """What an agent's memories say."""
    with germane.open(place, agent="newton", key=key) as engine:
        return sorted(each.content for each in engine.memories())


BOTH = ["The marzipan is in the cellar.", "The violoncello is in Zanzibar."]


def test_a_store_opens_with_its_key_alone(sealed: str) -> None:
    for opened in (germane.open, germane.connect):
        with pytest.raises(StoreUnavailable, match=r"is encrypted, and no key was given.*GERMANE_KEY"):
            opened(sealed)
        with pytest.raises(StoreUnavailable, match=r"another key than the one given"):
            opened(sealed, key=bytes(32))
    assert contents(sealed, ENCRYPTION_KEY) == BOTH
    assert contents(sealed, ENCRYPTION_KEY.hex()) == BOTH
    assert contents(sealed, base64.b64encode(ENCRYPTION_KEY).decode()) == BOTH
    assert store_status(sealed).encrypted


def test_a_wrong_key_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "sealed.db"
    with germane.open(path, key=ENCRYPTION_KEY) as engine:
        engine.remember("The violoncello is in Zanzibar.")
    before = path.read_bytes()
    for key in ("", bytes(32)):
        for operation in (store_agents, reindex_store, vacuum_store, migrate_store, repair_store):
            with pytest.raises(StoreUnavailable, match="encrypted"):
                operation(path, key=key)
        with pytest.raises(StoreUnavailable, match="encrypted"):
            remove_agent(path, "default", confirm=True, key=key)
    assert path.read_bytes() == before


def test_a_plain_store_takes_no_key(store: str) -> None:
    with germane.open(store) as engine:
        engine.remember("The violoncello is in Zanzibar.")
    with pytest.raises(StoreUnavailable, match="isn't encrypted, and a key was given"):
        germane.open(store, key=ENCRYPTION_KEY)
    with pytest.raises(StoreUnavailable, match="isn't encrypted, so it has no key to change"):
        rekey_store(store, ENCRYPTION_KEY)
    assert not store_status(store).encrypted


@pytest.mark.parametrize("key", [b"short", "short", "00" * 31, "file:/nowhere/key", 3, "é" * 64])
def test_what_is_no_key_is_refused(tmp_path: Path, key: object) -> None:
    with pytest.raises(InvalidInput, match="key"):
        germane.open(tmp_path / "a.db", key=key)  # type: ignore[arg-type]  # What is no key is refused.
    assert list(tmp_path.iterdir()) == []


def test_the_key_comes_from_the_environment_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, file = tmp_path / "sealed.db", tmp_path / "key"
    file.write_text(ENCRYPTION_KEY.hex() + "\n")
    monkeypatch.setenv("GERMANE_KEY", f"file:{file}")
    with germane.open(path) as engine:
        engine.remember("The violoncello is in Zanzibar.")
    with pytest.raises(StoreUnavailable, match="no key was given"):
        germane.open(path, key="")
    monkeypatch.delenv("GERMANE_KEY")
    with germane.open(path, key=ENCRYPTION_KEY) as engine:
        assert engine.count() == 1
    file.write_text("")
    with pytest.raises(InvalidInput, match="is empty"):
        germane.open(path, key=f"file:{file}")


class Keyring(KeyringBackend):
    """The system's keyring, as the library lets others provide it."""

    priority = 1.0
    passwords = MappingProxyType(
        {("a team/germane", "store"): ENCRYPTION_KEY.hex(), ("germane", "short"): "6b6b"}
    )
    locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise KeyringLocked("the collection is locked")
        return self.passwords.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        raise AssertionError(f"a password was stored: {service}, {username}, {password}")


def test_the_key_comes_from_the_systems_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "sealed.db"
    before = keyring.get_keyring()
    keyring.set_keyring(Keyring())  # type: ignore[no-untyped-call]  # The library's own.
    try:
        monkeypatch.setenv("GERMANE_KEY", "keyring:a team/germane/store")
        with germane.open(path) as engine:
            engine.remember("The violoncello is in Zanzibar.")
        monkeypatch.delenv("GERMANE_KEY")
        with germane.open(path, key=ENCRYPTION_KEY) as engine:
            assert engine.count() == 1
        for key, message in (
            ("keyring:germane/other", r"no password of 'other' for 'germane'.*keyring set germane other"),
            ("keyring:germane", "should be keyring:SERVICE/NAME"),
            ("keyring:germane/short", "is no key of an encrypted store"),
        ):
            with pytest.raises(InvalidInput, match=message):
                germane.open(path, key=key)
        monkeypatch.setattr(Keyring, "locked", True)
        with pytest.raises(InvalidInput, match="system's keyring: the collection is locked"):
            germane.open(path, key="keyring:a team/germane/store")
    finally:
        keyring.set_keyring(before)


def test_a_keyring_without_the_library_names_the_extra(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['keyring'] = None\n"
        "import germane\n"
        "try:\n    germane.open(sys.argv[1], key='keyring:germane/store')\n"
        "except germane.MissingExtra as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a.db")], capture_output=True, text=True, check=True
    )
    assert "pip install 'germane[keyring]'" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_another_key_opens_the_store_from_then_on(sealed: str) -> None:
    new = bytes(reversed(ENCRYPTION_KEY))
    with germane.connect(sealed, key=ENCRYPTION_KEY) as before:
        assert before.agent("newton").count() == 2
        assert rekey_store(sealed, new.hex(), key=ENCRYPTION_KEY) == 1
        # A process that has it open reads on, and makes no key that nobody could read.
        assert before.agent("newton").count() == 2
        with pytest.raises(StoreUnavailable, match="has another key by now"):
            before.agent("leibniz").remember("A letter.")
    with pytest.raises(StoreUnavailable, match="another key"):
        germane.open(sealed, key=ENCRYPTION_KEY)
    assert contents(sealed, new) == BOTH
    rekey_store(sealed, ENCRYPTION_KEY, key=new)  # The database is that of other tests, too.
    with pytest.raises(InvalidInput, match="new_key is empty"):
        rekey_store(sealed, "", key=ENCRYPTION_KEY)


def test_a_copy_encrypts_and_decrypts(tmp_path: Path, sealed: str) -> None:
    plain, again = tmp_path / "plain.db", tmp_path / "again.db"
    first = copy_store(sealed, plain, key=ENCRYPTION_KEY, target_key="")
    second = copy_store(plain, again, key="", target_key=bytes(32))
    assert [each.sha256 for each in first.agents] == [each.sha256 for each in second.agents]
    assert contents(str(plain), "") == contents(str(again), bytes(32)) == BOTH
    raw = file_bytes(again)
    assert [form for form in FORMS if form in raw] == []
    assert b"violoncello" in file_bytes(plain)


# Shredding.


def keys_at(place: str) -> list[bytes]:
    """The encrypted data keys of a store."""
    with contextlib.closing(_connected(place)) as connection:
        return [bytes(row[0]) for row in connection.execute("SELECT wrapped FROM data_keys").fetchall()]


def _connected(place: str) -> sqlite3.Connection | psycopg.Connection:
    return psycopg.connect(place) if place.startswith("postgres") else sqlite3.connect(place)


def test_a_removed_agents_key_is_gone(sealed: str) -> None:
    with germane.connect(sealed, key=ENCRYPTION_KEY) as store:
        store.agent("leibniz").remember("A letter from Hannover.")
        store.agent("newton").for_user("ann").remember("Ann plays the violoncello.")
        before = keys_at(sealed)
        assert len(before) == 3
        store.purge_user("ann", confirm=True)
        assert len(keys_at(sealed)) == 2
    remove_agent(sealed, "newton", confirm=True, key=ENCRYPTION_KEY)
    (left,) = keys_at(sealed)
    assert left in before
    with germane.connect(sealed, key=ENCRYPTION_KEY) as store:
        assert [each.content for each in store.agent("leibniz").memories()] == ["A letter from Hannover."]
        # The name begins anew, with another key.
        store.agent("newton").remember("The marzipan is eaten.")
    assert not {*keys_at(sealed)} - {left} & {*before}


def test_rows_without_their_key_are_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "sealed.db"
    with germane.open(path, key=ENCRYPTION_KEY) as engine:
        engine.remember("The violoncello is in Zanzibar.")
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM data_keys")
    with germane.open(path, key=ENCRYPTION_KEY) as engine, pytest.raises(StoreUnavailable):
        engine.memories()


# Damage, and rows in the place of others.


SWAPS = (
    "UPDATE texts SET content = (SELECT content FROM texts AS other WHERE other.num <> texts.num)",
    "UPDATE texts SET micro = content",
    "UPDATE vectors SET vector = (SELECT vector FROM vectors AS other WHERE other.num <> vectors.num)",
    "UPDATE lex SET hashes = (SELECT hashes FROM lex AS other WHERE other.num <> lex.num)",
    "UPDATE texts SET content = 'The violoncello is in Berlin.'",
)


@pytest.mark.parametrize("swap", SWAPS)
def test_a_value_in_the_place_of_another_is_refused(tmp_path: Path, swap: str) -> None:
    path = tmp_path / "sealed.db"
    with germane.open(path, key=ENCRYPTION_KEY) as engine:
        engine.remember("The violoncello is in Zanzibar.")
        engine.remember("The marzipan is in the cellar.")
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(swap)
    with germane.open(path, key=ENCRYPTION_KEY) as engine:
        with pytest.raises(StoreUnavailable):
            engine.recall("Where is the violoncello?")
        assert engine.doctor()


def test_a_question_of_another_agent_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sealed.db"
    with germane.connect(path, key=ENCRYPTION_KEY, record=True) as store:
        for name in ("newton", "leibniz"):
            store.agent(name).remember(f"A note of {name}.")
            store.agent(name).assemble(f"What does {name} note?", budget=500)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE assemblies SET asked = (SELECT asked FROM assemblies WHERE agent = 2)")
    with germane.open(path, agent="newton", key=ENCRYPTION_KEY) as engine, pytest.raises(StoreUnavailable):
        engine.ledger().list()


def test_damage_is_set_aside_and_repaired(tmp_path: Path) -> None:
    path = tmp_path / "sealed.db"
    with germane.open(path, key=ENCRYPTION_KEY) as engine:
        harmed = engine.remember("The violoncello is in Zanzibar.")
        stored = engine.remember("The marzipan is in the cellar.")
        other = engine.remember("The tea is in the garden.")
        talk = engine.conversation("talk")
        talk.append("user", "Where is the violoncello?")
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE texts SET summary = micro WHERE num = (SELECT min(num) FROM texts)")
        connection.execute("UPDATE lex SET hashes = frequencies WHERE num = (SELECT max(num) FROM lex)")
        connection.execute("UPDATE message_lex SET vector = hashes")
    with germane.open(path, key=ENCRYPTION_KEY) as engine:
        assert {"content", "forward-record", "message-record"} <= {each.code for each in engine.doctor()}
    report = repair_store(path, key=ENCRYPTION_KEY)
    assert [each.id for each in report.set_aside] == [harmed.id]
    with germane.open(path, key=ENCRYPTION_KEY) as engine:
        assert engine.doctor() == ()
        assert [each.id for each in engine.memories(order="oldest")] == [stored.id, other.id]
        assert [each.memory.id for each in engine.recall("tea in the garden")][:1] == [other.id]


def test_a_damaged_file_is_saved_with_its_key(tmp_path: Path) -> None:
    path = tmp_path / "sealed.db"
    with germane.open(path, key=ENCRYPTION_KEY) as engine:
        engine.remember_many([f"Note {each} of the violoncello in Zanzibar." for each in range(300)])
    shutil.copy(path, tmp_path / "whole.db")
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 4096] = bytes(4096)
    path.write_bytes(data)
    report = repair_store(path, key=ENCRYPTION_KEY)
    saved = report.new_file or str(path)
    with germane.open(saved, key=ENCRYPTION_KEY) as engine:
        found = engine.memories()
        assert len(found) > 200
        assert all("violoncello" in each.content for each in found)
        assert engine.doctor() == ()
    assert b"violoncello" not in file_bytes(Path(saved))


# Purges, and work that failed.


def test_what_is_purged_leaves_no_row(tmp_path: Path) -> None:
    path = tmp_path / "sealed.db"
    with germane.open(path, key=ENCRYPTION_KEY, record=True) as engine:
        gone = engine.remember("The violoncello is in Zanzibar.")
        engine.assemble("Where is the violoncello?", budget=500)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            rows = connection.execute("SELECT content, hashes FROM texts JOIN lex USING (num)").fetchall()
        ((content, hashes),) = rows
        assert content.encode() in file_bytes(path)
        engine.purge(gone.id, confirm=True)
        raw = file_bytes(path)
        assert content.encode() not in raw
        assert hashes not in raw


def test_a_key_of_a_write_that_failed_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "sealed.db"
    with germane.connect(path, key=ENCRYPTION_KEY) as store:
        with pytest.raises(InvalidInput, match="surrogate"):
            store.agent("newton").conversation("talk").append("user", "half a \ud800 character")
        assert keys_at(str(path)) == []
        store.agent("newton").remember("The violoncello is in Zanzibar.")
    with germane.open(path, agent="newton", key=ENCRYPTION_KEY) as engine:
        assert engine.count() == 1


def test_a_plain_store_imports_no_cryptography(tmp_path: Path) -> None:
    code = (
        "import germane, sys\n"
        f"with germane.open({str(tmp_path / 'a.db')!r}) as engine:\n"
        "    engine.remember('The tea is in the garden.')\n"
        "    engine.assemble('Where is the tea?', budget=500)\n"
        "print(sorted(each for each in sys.modules if 'cryptography' in each or 'encryption' in each))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_messages_and_replies_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "sealed.db"
    with germane.open(path, key=ENCRYPTION_KEY) as engine:
        talk = engine.conversation("talk")
        for number in range(600):
            talk.append("user", f"Question {number} about the violoncello.")
        engine.recall("violoncello", conversations=True)
    with germane.open(path, key=ENCRYPTION_KEY) as engine:
        found = engine.conversation("talk").messages()
        assert found[599].text == "Question 599 about the violoncello."
        assert engine.doctor() == ()
    assert b"violoncello" not in file_bytes(path)
