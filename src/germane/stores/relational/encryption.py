"""Encryption of what a store holds: values are encrypted before the database gets them, and decrypted after.

The store's key, which the caller has, encrypts one data key for each agent, space or user; a data key
encrypts values. A value is bound to its table, column and row, so that none can stand in the place of
another. The database gets no plain text, not even in memory.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache, cached_property
from hashlib import blake2b
from operator import itemgetter
from typing import Any, Final, NamedTuple

from germane.errors import MissingExtra, StoreUnavailable
from germane.stores.relational.checksums import ENCRYPTION, REPAIR, Ciphertext
from germane.stores.relational.tables import (
    AGENT_SHIFT,
    Connection,
    Connections,
    Dialect,
    Rows,
    SharedConnections,
    Why,
    damaged,
)
from germane.stores.sql import queries

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV
except ModuleNotFoundError as missing:
    raise MissingExtra(feature="An encrypted store", extra="crypto") from missing

# What is encrypted, and in which form.


class Form(NamedTuple):
    """How the values of a column are encrypted.

    `seal` and `open` are methods of `DataKey`. Where a value can't be decrypted, `otherwise` is read in its
    place, which the reader or the checksum of the row refuses; with None StoreUnavailable is raised. An empty
    value stays as it is where `empty` says so.
    """

    seal: str
    open: str
    otherwise: str | bytes | None = None
    empty: bool = False


_TEXT: Final = Form("seal_text", "open_text", "", empty=True)
_TEXT_ALONE: Final = Form("seal_text", "open_text")
_BYTES: Final = Form("seal", "open", b"", empty=True)
_BYTES_ALONE: Final = Form("seal", "open")
_EQUAL: Final = Form("seal_equal", "open_equal", "", empty=True)
_BLOCK: Final = Form("seal_block", "open_block")
_NUMBER: Final = Form("seal_number", "open_number")
_DIGEST: Final = Form("mask", "mask")
_NAME: Final = Form("hashed", "hashed")

_SEALED: Final[Mapping[str, Mapping[str, Form]]] = {
    "memories": {"content_hash": _EQUAL},
    "texts": {**dict.fromkeys(("content", "micro", "summary", "full_text"), _TEXT), "checksum": _NUMBER},
    "lex": {"hashes": _BYTES_ALONE, "frequencies": _BYTES_ALONE},
    "vectors": {"vector": _BYTES, "checksum": _NUMBER},
    "memory_blocks": dict.fromkeys(("entries", "words", "vectors"), _BYTES),
    "messages": {**dict.fromkeys(("form", "parts", "extra"), _TEXT), "checksum": _NUMBER},
    "message_lex": {
        **dict.fromkeys(("hashes", "frequencies"), _BYTES_ALONE),
        **dict.fromkeys(("vector", "packed"), _BYTES),
        "checksum": _NUMBER,
    },
    "anchors": {"text": _TEXT_ALONE},
    "assemblies": {"asked": _TEXT_ALONE, "sha256": _DIGEST, "context": _BLOCK},
    "shown": {"context": _BLOCK},
    "outcomes": {"context": _BLOCK},
    "learning_runs": {"run": _TEXT_ALONE},
    "replies": {"mark": _BYTES_ALONE, "answer": _BYTES_ALONE, "name": _NAME},
}
"""The encrypted columns of each table. What stays readable is listed in docs/how-to/encrypt.md."""

_IDENTITY: Final[Mapping[str, tuple[str, ...]]] = {
    "anchors": ("conversation", "name"),
    "assemblies": ("number",),
    "learning_runs": ("number",),
    "replies": ("name",),
}
"""What a row of a table is known by within its agent, where that isn't its num."""

_OF_MEMORIES: Final = frozenset({"memories", "texts", "lex", "vectors", "memory_blocks"})
"""The tables whose nums begin with the agent's number."""

_ALSO: Final[Mapping[str, str]] = {"assembled": "shown"}
"""Queries that reach an encrypted table by a function of the database."""

_LENIENT: Final[Mapping[str, bytes]] = {
    **dict.fromkeys(("forwards_of", "message_records", "message_lex", "message_lex_of_agent"), b"\0")
}
"""What these queries have for index records that can't be decrypted: of a length that none has."""

_BY_HASHES: Final = frozenset({"nums_by_head", "nums_by_past"})
"""Queries by a JSON list of content hashes."""

_WORD: Final = re.compile(r"\w+")
_INSERT: Final = re.compile(r"INSERT INTO \w+ \(([\w\s,]+)\)")


class _Column(NamedTuple):
    """An encrypted column: its form, and its name with that of its table, to which values are bound."""

    form: Form
    place: bytes


class _Plan(NamedTuple):
    """The encrypted columns that a query reads or writes, by name.

    `identity` names what its rows are known by, and `inserted` the columns of rows that it stores.
    """

    columns: Mapping[str, _Column]
    identity: tuple[str, ...]
    inserted: tuple[str, ...]
    of_memories: bool
    reads: bool


@cache
def _plan(dialect: Dialect, name: str) -> _Plan | None:
    """What of a query is encrypted; None for nothing."""
    text = queries(dialect)[name]
    words = dict.fromkeys([*_WORD.findall(text), *([_ALSO[name]] if name in _ALSO else [])])
    tables = [each for each in words if each in _SEALED]
    columns: dict[str, _Column] = {}
    for table in tables:
        for column, form in _SEALED[table].items():
            if column in words or "SELECT *" in text:
                columns.setdefault(column, _Column(form, f"{table}.{column} ".encode()))
    if not columns:
        return None
    identity = next((_IDENTITY[each] for each in tables if each in _IDENTITY), ("num",))
    inserted = _INSERT.match(text)
    return _Plan(
        columns,
        identity,
        tuple(_WORD.findall(inserted[1])) if inserted else (),
        not _OF_MEMORIES.isdisjoint(tables),
        text.startswith(("SELECT", "WITH")),
    )


# Keys.

_KEY_BYTES: Final = 32
_NONCE: Final = 12
_FORM: Final = b"\x01"
"""The first byte of what is encrypted; a later form gets another one."""

_START: Final = len(_FORM) + _NONCE
_WIDTH: Final = 4
_BITS: Final = 8 * _WIDTH
_MOST: Final = (1 << _BITS) - 1
_CHECK: Final = b"germane store"


class DataKey:
    """The key of what is stored of one agent. Values are bound to a `place`: table, column and row."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._gcm = AESGCM(self._derived(b"values"))

    def seal(self, value: bytes, place: bytes) -> bytes:
        """Bytes encrypted by AES-256-GCM, with a random nonce."""
        nonce = os.urandom(_NONCE)
        return Ciphertext(_FORM + nonce + self._gcm.encrypt(nonce, value, place))

    def open(self, value: bytes, place: bytes) -> bytes:
        """What `seal` encrypted. Raises ValueError or InvalidTag for anything else."""
        if value[:1] != _FORM:
            raise ValueError("it isn't encrypted, or in a form of a later version")
        return self._gcm.decrypt(value[1:_START], value[_START:], place)

    def seal_text(self, value: str, place: bytes) -> str:
        """The same of a text, in base64."""
        return b64encode(self.seal(value.encode(), place)).decode("ascii")

    def open_text(self, value: str, place: bytes) -> str:
        """What `seal_text` encrypted."""
        return self.open(b64decode(value, validate=True), place).decode()

    def seal_equal(self, value: str, place: bytes) -> str:
        """A text encrypted by AES-256-SIV: equal texts of one column stay equal, so that they are found."""
        return b64encode(self._siv.encrypt(value.encode(), [place.partition(b" ")[0]])).decode("ascii")

    def open_equal(self, value: str, place: bytes) -> str:
        """What `seal_equal` encrypted."""
        return self._siv.decrypt(b64decode(value, validate=True), [place.partition(b" ")[0]]).decode()

    def seal_block(self, value: bytes, _: bytes) -> bytes:
        """One block of AES: a hash of 16 bytes, of which equal ones stay equal."""
        return self._block.encryptor().update(value)

    def open_block(self, value: bytes, _: bytes) -> bytes:
        """What `seal_block` encrypted."""
        return self._block.decryptor().update(value)

    def seal_number(self, value: int, place: bytes) -> int:
        """A checksum of 32 bits, with a random number of 31 bits before it."""
        salt = int.from_bytes(os.urandom(_WIDTH), "big") >> 1
        return (salt << _BITS) | (value ^ self._pad_of(salt, place))

    def open_number(self, value: int, place: bytes) -> int:
        """What `seal_number` encrypted."""
        return (value & _MOST) ^ self._pad_of(value >> _BITS, place)

    def mask(self, value: bytes, place: bytes) -> bytes:
        """A hash of 32 bytes, XOR bytes that only the key gives; applied twice it gives the hash again."""
        pad = blake2b(place, key=self._pads, digest_size=len(value)).digest()
        return bytes(a ^ b for a, b in zip(value, pad, strict=True))

    def hashed(self, value: bytes, _: bytes) -> bytes:
        """A name that is only compared, as a hash that nobody can make without the key."""
        return blake2b(value, key=self._pads, digest_size=_KEY_BYTES).digest()

    def _pad_of(self, salt: int, place: bytes) -> int:
        # What is stored may be damaged, and its salt have more bytes.
        salted = salt.to_bytes(2 * _WIDTH, "big", signed=True) + place
        return int.from_bytes(blake2b(salted, key=self._pads, digest_size=_WIDTH).digest(), "big")

    @cached_property
    def _siv(self) -> AESSIV:
        return AESSIV(self._derived(b"equal") + self._derived(b"equal, mac"))

    @cached_property
    def _block(self) -> Cipher[modes.ECB]:
        return Cipher(algorithms.AES(self._derived(b"blocks")), modes.ECB())  # noqa: S305 - One block of a hash each.

    @cached_property
    def _pads(self) -> bytes:
        return self._derived(b"pads")

    def _derived(self, use: bytes) -> bytes:
        return blake2b(use, key=self._key, digest_size=_KEY_BYTES).digest()


class MasterKey:
    """The key of a store, and the data keys that were decrypted by it. Threads may share it."""

    def __init__(self, key: bytes, location: str) -> None:
        self._gcm = AESGCM(key)
        self._location = location
        self._known: dict[int, DataKey] = {}
        self._setting = ""

    def begin(self, connection: Connection) -> None:
        """Let a new store be encrypted by this key, in the transaction that makes it."""
        connection.run("add_setting", {"name": ENCRYPTION, "value": self._mark()})

    def unlock(self, settings: Mapping[str, str]) -> None:
        """Check that this is the key of a store with these settings. Raises StoreUnavailable."""
        if ENCRYPTION not in settings:
            raise StoreUnavailable(
                f"The store {self._location} isn't encrypted, and a key was given. Open it without a key, or "
                "copy it into a new store with one: `germane db copy --encrypt`."
            )
        try:
            mark = b64decode(settings[ENCRYPTION], validate=True)
            self._gcm.decrypt(mark[:_NONCE], mark[_NONCE:], _CHECK)
        except (InvalidTag, ValueError) as error:
            raise StoreUnavailable(
                f"The store {self._location} is encrypted by another key than the one given. Give the key "
                "that it was made with, or that `germane db rekey` gave it last."
            ) from error
        self._setting = settings[ENCRYPTION]

    def data_key(self, connection: Connection, agent: int, made: dict[int, DataKey] | None) -> DataKey | None:
        """The data key of an agent.

        In a write transaction one that isn't there is made, and added to `made` until the commit; in a read
        transaction, with None, there is none.
        """
        found = self._known.get(agent) or (made or {}).get(agent)
        if found is not None:
            return found
        row = connection.run("data_key", {"agent": agent}).fetchone()
        if row is not None:
            found = self._known[agent] = DataKey(self._unwrapped(agent, row[0]))
        elif made is not None:
            # Another process may have given the store another key since.
            if dict(connection.run("settings").fetchall()).get(ENCRYPTION) != self._setting:
                raise StoreUnavailable(
                    f"The store {self._location} has another key by now, so nothing was stored. Open it "
                    "again with that."
                )
            raw = os.urandom(_KEY_BYTES)
            connection.run("add_data_key", {"agent": agent, "wrapped": self._wrapped(agent, raw)})
            found = made[agent] = DataKey(raw)
        return found

    def keep(self, made: Mapping[int, DataKey]) -> None:
        """Use data keys from now on that a committed transaction has made."""
        self._known.update(made)

    def replace(self, connection: Connection, new: bytes) -> int:
        """Encrypt all data keys by another key of the store; returns how many there are."""
        other = MasterKey(new, self._location)
        rows = connection.run("data_keys").fetchall()
        for agent, wrapped in rows:
            values = {"agent": agent, "wrapped": other._wrapped(agent, self._unwrapped(agent, wrapped))}
            connection.run("change_data_key", values)
        connection.run("change_setting", {"name": ENCRYPTION, "value": other._mark()})
        return len(rows)

    def _mark(self) -> str:
        nonce = os.urandom(_NONCE)
        return b64encode(nonce + self._gcm.encrypt(nonce, b"", _CHECK)).decode("ascii")

    def _wrapped(self, agent: int, key: bytes) -> bytes:
        nonce = os.urandom(_NONCE)
        return nonce + self._gcm.encrypt(nonce, key, b"data key %d" % agent)

    def _unwrapped(self, agent: int, wrapped: bytes) -> bytes:
        try:
            return self._gcm.decrypt(wrapped[:_NONCE], wrapped[_NONCE:], b"data key %d" % agent)
        except (InvalidTag, ValueError) as error:
            what = f"The data key of agent number {agent} in {self._location}"
            raise damaged(what, error, "restore a backup") from error


# Connections that encrypt and decrypt.


class SealedConnections(SharedConnections):
    """The connections of an encrypted store: what goes through them is plain on this side alone."""

    def __init__(self, shared: Connections, key: MasterKey) -> None:
        super().__init__(shared)
        self._shared, self.key = shared, key

    @contextmanager
    def reading(self, agent: str | None = None, *, acting: str | None = None) -> Iterator[Connection]:
        """A read transaction, as the connections begin it."""
        with self._shared.reading(agent, acting=acting) as connection:
            yield SealedConnection(connection, self.key, None)

    @contextmanager
    def writing(self, agent: str | None = None, *, acting: str | None = None) -> Iterator[Connection]:
        """A write transaction, as the connections begin it."""
        made: dict[int, DataKey] = {}
        with self._shared.writing(agent, acting=acting) as connection:
            yield SealedConnection(connection, self.key, made)
        self.key.keep(made)

    def close(self) -> None:
        """Close every connection."""
        self._shared.close()


class SealedConnection:
    """A `Connection` that encrypts what it stores and decrypts what it reads."""

    def __init__(self, bare: Connection, key: MasterKey, made: dict[int, DataKey] | None) -> None:
        self.bare = bare
        self.dialect, self.refusal, self.expect = bare.dialect, bare.refusal, bare.expect
        self._key, self._made = key, made

    def __getattr__(self, name: str) -> Any:
        """What only one database's connections have."""
        return getattr(self.bare, name)

    def run(self, name: str, values: Mapping[str, Any] | Sequence[Any] = (), /) -> Rows:
        """What the query of this name finds or does."""
        plan = _plan(self.dialect, name)
        if plan is None:
            return self.bare.run(name, values)
        if not isinstance(values, Mapping):
            return self.bare.run(name, self._sealed_row(plan, values))
        rows = self.bare.run(name, self._sealed(plan, name, values))
        return _OpenedRows(rows, plan, name, values, self.data_key) if plan.reads else rows

    def run_text(self, text: str, values: Mapping[str, Any], /) -> Rows:
        """The same for a text with the conditions of a filter: they are on columns that aren't encrypted."""
        return self.bare.run_text(text, values)

    def many(self, name: str, rows: Sequence[tuple[Any, ...]], /) -> None:
        """Do what the query of this name does with each of the rows, in order."""
        plan = _plan(self.dialect, name)
        self.bare.many(name, rows if plan is None else [self._sealed_row(plan, row) for row in rows])

    def attempt(self, why: Why, /) -> AbstractContextManager[None]:
        """A block whose refusal by a constraint `why` may explain."""
        return self.bare.attempt(why)

    def data_key(self, agent: int) -> DataKey | None:
        """The data key of an agent."""
        return self._key.data_key(self.bare, agent, self._made)

    def _key_to_seal(self, agent: int) -> DataKey:
        # What nobody has written can't be found: any key will do to look for it.
        return self.data_key(agent) or DataKey(os.urandom(_KEY_BYTES))

    def _sealed_row(self, plan: _Plan, row: Sequence[Any]) -> tuple[Any, ...]:
        given = dict(zip(plan.inserted, row, strict=True))
        return tuple(self._sealed(plan, "", given).values())

    def _sealed(self, plan: _Plan, name: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
        given = [each for each in plan.columns if values.get(each) is not None]
        if not given and name not in _BY_HASHES:
            return values
        key = self._key_to_seal(values["agent"])
        if name in _BY_HASHES:
            column = plan.columns["content_hash"]
            hashes = [each and key.seal_equal(each, column.place) for each in json.loads(values["hashes"])]
            return {**values, "hashes": json.dumps(hashes)}
        # A block of messages stands beside the last of them.
        row = values if plan.identity[0] in values else {"num": values.get("above", 0) + 1}
        identity = _identity([row.get(each) for each in plan.identity])
        sealed = dict(values)
        for each in given:
            form, place = plan.columns[each]
            if not form.empty or sealed[each]:
                sealed[each] = getattr(key, form.seal)(sealed[each], place + identity)
        return sealed


def _identity(names: Sequence[Any]) -> bytes:
    return b"%d" % names[0] if type(names[0]) is int and len(names) == 1 else repr(tuple(names)).encode()


class _OpenedRows:
    """The rows of a query, decrypted as they are read."""

    def __init__(
        self,
        rows: Rows,
        plan: _Plan,
        name: str,
        values: Mapping[str, Any],
        data_key: Callable[[int], DataKey | None],
    ) -> None:
        self._rows, self._plan, self._name, self._values, self._data_key = rows, plan, name, values, data_key

    @property
    def rowcount(self) -> int:
        return self._rows.rowcount

    @property
    def description(self) -> Any:
        return self._rows.description

    def fetchone(self) -> Any:
        row = self._rows.fetchone()
        return None if row is None else self._opened(row)

    def fetchall(self) -> list[Any]:
        return list(map(self._opened, self._rows.fetchall()))

    def fetchmany(self, size: int = 1, /) -> list[Any]:
        return list(map(self._opened, self._rows.fetchmany(size)))

    def __iter__(self) -> Iterator[Any]:
        return map(self._opened, self._rows)

    @cached_property
    def _names(self) -> list[str]:
        return [each[0] for each in self._rows.description]

    @cached_property
    def _encrypted(self) -> list[tuple[int, _Column]]:
        columns = self._plan.columns
        return [(at, columns[each]) for at, each in enumerate(self._names) if each in columns]

    @cached_property
    def _owner_of(self) -> Callable[[Sequence[Any]], int]:
        """The number of the agent whose a row is."""
        agent = self._values.get("agent")
        if type(agent) is int:
            return lambda _: agent
        if "agent" in self._names:
            return itemgetter(self._names.index("agent"))
        num = self._names.index("num")
        return lambda row: int(row[num]) >> AGENT_SHIFT

    @cached_property
    def _identity_of(self) -> Callable[[Sequence[Any]], bytes]:
        """What the values of a row are bound to besides their columns."""
        given = self._plan.identity
        places = [self._names.index(each) if each in self._names else -1 for each in given]
        if len(given) == 1 and places[0] >= 0:
            place = places[0]
            return lambda row: _identity((row[place],))
        return lambda row: _identity(
            [self._values.get(name) if at < 0 else row[at] for name, at in zip(given, places, strict=True)]
        )

    def _opened(self, row: Sequence[Any]) -> tuple[Any, ...]:
        if not self._encrypted:
            return tuple(row)
        key, identity, opened = self._data_key(self._owner_of(row)), self._identity_of(row), list(row)
        for at, (form, place) in self._encrypted:
            value = opened[at]
            if value is not None and (value or not form.empty):
                try:
                    if key is None:
                        raise ValueError("the key of its agent is gone")  # noqa: TRY301 - As any other failure.
                    opened[at] = getattr(key, form.open)(value, place + identity)
                except (InvalidTag, ValueError) as error:
                    opened[at] = self._instead(form, place, error)
        return tuple(opened)

    def _instead(self, form: Form, place: bytes, error: Exception) -> str | bytes:
        otherwise = _LENIENT.get(self._name) if form is _BYTES_ALONE else form.otherwise
        if otherwise is None:
            why = error if str(error) else ValueError("it was changed, or stands in another row's place")
            raise damaged(f"A value of {place.decode().strip()}", why, REPAIR) from error
        return otherwise
