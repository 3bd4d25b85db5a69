"""Repair of a file: its rows in place, or what can be read of a damaged file, in a new one."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from germane.errors import InvalidInput, SchemaTooNew, StoreBusy, StoreError, StoreUnavailable
from germane.ledger import Damage, Finding, RepairReport
from germane.stores.relational.checksums import ENCRYPTION
from germane.stores.relational.repair import repair
from germane.stores.relational.settings import check_key, encrypting
from germane.stores.relational.tables import AGENT_SHIFT, Connections
from germane.stores.sqlite.connections import translated
from germane.stores.sqlite.store import ErasingConnections, SqliteStore, check_file, check_ours, prepare

_TIMEOUT: Final = 30.0
_INDEX: Final = ("missing from index", "wrong # of entries in index", "non-unique entry in index")
"""What SQLite says of an index that differs from its table, which it can make anew."""

_HALF: Final = "SELECT count(*) FROM memories WHERE num NOT IN (SELECT num FROM texts)"
_DERIVED: Final = frozenset(
    {"lex", "memory_blocks", "message_lex", "migrations", "settings", "sqlite_sequence"}
)
"""Tables that aren't copied: what is in them is made anew, or comes with the new file."""

_REMADE: Final = frozenset({"vectors", "tags", "places", "unembedded"})
"""Tables that are copied, and of which nothing is lost: what is missing is made anew."""

_HEADER: Final = 100
_OLDEST: Final = 13
"""Of an older schema the rows themselves would have to be changed."""

_LAST: Final = (1 << 63) - 1
_ROWS_AT_ONCE: Final = 200
_SHOWN: Final = 200


def repaired(path: str | Path, *, now: datetime, key: bytes | None = None) -> RepairReport:
    """Repair the rows of a file; where SQLite can't read all of it, save what it can in a new file.

    Raises StoreUnavailable for a folder or another program's file, and InvalidInput if the new file's name is
    taken.
    """
    if not Path(path).is_file():
        raise StoreUnavailable(f"There is no file {str(path)!r} to repair. Name the file of a store.")
    found = _damage(path)
    if any(not any(part in each.text for part in _INDEX) for each in found):
        return _salvaged(Path(path), found, now, key)
    with _opened(path) as connections:
        prepare(connections)
        if found:
            with connections.writing() as connection:
                connection.execute("REINDEX")
        made = repair(_with_key(connections, key), now=now)
    return replace(made, found=(*found, *made.found), left=(*_damage(path), *made.left))


def _with_key(connections: Connections, key: bytes | None) -> Connections:
    """The connections with the key of the store. Raises StoreUnavailable for another one."""
    found = encrypting(connections, key)
    with connections.reading() as connection:
        check_key(found, dict(connection.run("settings").fetchall()))
    return found


def _damage(path: str | Path) -> tuple[Finding, ...]:
    """The damage of the file itself. Raises SchemaTooNew, and StoreBusy."""
    try:
        with _opened(path, read_only=True) as connections, connections.reading() as connection:
            check_ours(connection, connections.location)
            found = check_file(connection)
            if found:
                return found
            (half,) = connection.execute(_HALF).fetchone()
    except (SchemaTooNew, StoreBusy):
        raise
    except StoreError as error:
        half, text = 0, str(error)
    else:
        text = f"{half} memories have no texts."
        if not half:
            return ()
    return (Finding(code="damaged-file", text=text, remedy="Repair it with `germane db doctor --repair`."),)


def _opened(path: str | Path, *, read_only: bool = False) -> closing[ErasingConnections]:
    return closing(ErasingConnections(path, durability="full", timeout=_TIMEOUT, read_only=read_only))


def _salvaged(path: Path, found: tuple[Finding, ...], now: datetime, key: bytes | None) -> RepairReport:
    """A new file beside the damaged one, with what can be read of it."""
    target = path.with_name(f"{path.stem}.repaired{path.suffix or '.db'}")
    if target.exists():
        raise InvalidInput(
            f"The file {target} exists already, and a repair overwrites nothing. Move it away."
        )
    with translated(str(path)), tempfile.TemporaryDirectory(dir=path.parent, prefix=".repair-") as folder:
        copy = Path(folder) / "copy.db"
        for end in ("", "-wal"):
            if Path(f"{path}{end}").exists():
                shutil.copyfile(f"{path}{end}", f"{copy}{end}")
        new = Path(folder) / "new.db"
        SqliteStore(new, key=key).close()
        lost = _copied(copy, new, path)
        with _opened(new) as connections:
            made = repair(_with_key(connections, key), now=now)
        SqliteStore(new, key=key).close()
        left = _damage(new)
        new.chmod(0o600)
        new.rename(target)
    return replace(
        made,
        location=str(path),
        found=found,
        lost=(*lost, *made.lost),
        left=(*left, *made.left),
        new_file=str(target),
    )


def _copied(damaged: Path, new: Path, path: Path) -> list[Damage]:
    """Copy the readable rows of a damaged file to a new one; what couldn't be copied."""
    lost: list[Damage] = []
    with closing(_source(damaged, new, path)) as source, closing(sqlite3.connect(new)) as target, target:
        target.execute("PRAGMA foreign_keys = OFF")
        target.execute("BEGIN")
        for table in _tables(target):
            lost += _copy_table(source, target, table)
        lost += _copy_settings(source, target)
        lost += _completed(target)
    return lost


def _source(damaged: Path, new: Path, path: Path) -> sqlite3.Connection:
    """The damaged file, with the header of a new one if its own can't be read. Raises StoreUnavailable."""
    for mends_header in (False, True):
        if mends_header:
            header = bytearray(new.read_bytes()[:_HEADER])
            # Without these SQLite takes the number of pages from the size of the file, and no page as free.
            header[28:32], header[32:40] = bytes(4), bytes(8)
            with damaged.open("r+b") as file:
                file.write(header)
        source = sqlite3.connect(damaged, isolation_level=None)
        source.text_factory = lambda raw: raw.decode("utf-8", "replace")
        if _is_store(source):
            return source
        source.close()
    raise StoreUnavailable(
        f"Nothing of the file {path} can be saved: its list of tables can't be read, or it is another "
        f"program's, or of a schema before {_OLDEST}. Restore it from a backup."
    )


def _is_store(source: sqlite3.Connection) -> bool:
    """Whether the list of tables can be read, and is that of a store of a schema that can be copied."""
    try:
        # With it SQLite also reads a file that is shorter than its header says.
        source.execute("PRAGMA writable_schema = ON")
        (version,) = source.execute("PRAGMA user_version").fetchone()
        return {"memories", "texts"} <= set(_tables(source)) and version >= _OLDEST
    except sqlite3.DatabaseError:
        return False


def _copy_settings(source: sqlite3.Connection, target: sqlite3.Connection) -> Iterator[Damage]:
    """Copy what holds for the whole store, but for the tokenizer, by which the new file is indexed."""
    try:
        rows = source.execute("SELECT name, value FROM settings WHERE name <> 'tokenizer'").fetchall()
        target.executemany("INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)", rows)
        for name, number in source.execute("SELECT name, seq FROM sqlite_sequence").fetchall():
            # A purged conversation's number isn't given again.
            target.execute("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
            target.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (name, number))
    except sqlite3.Error as error:
        yield Damage(what="settings", agent=None, id=None, text=f"The settings can't be read ({error}).")


def _completed(target: sqlite3.Connection) -> Iterator[Damage]:
    """Name what a row lacks that it refers to, remove what is half there, and count anew."""
    for number, name in target.execute(_NAMELESS).fetchall():
        target.execute("INSERT INTO agents (agent, name) VALUES (?, ?)", (number, name))
        yield Damage(what="agents", agent=name, id=None, text=f"An agent's name is lost; it is {name!r} now.")
    target.execute(_UNNAMED_CONVERSATIONS)
    is_encrypted = target.execute("SELECT 1 FROM settings WHERE name = ?", (ENCRYPTION,)).fetchone()
    for num, content in target.execute(_WITHOUT_MEMORY).fetchall():
        rows = target.execute("SELECT name FROM agents WHERE agent = ?", (num >> AGENT_SHIFT,)).fetchone()
        text = (
            "Only its content is left, which is encrypted."
            if is_encrypted
            else f"Only its content can be read: {content}"
        )
        yield Damage(what="memory", agent=rows and rows[0], id=None, text=text)
    removed = 1
    while removed:
        # What is removed may leave others without what they refer to.
        removed = sum(_remove_orphans(target, table) for table in _tables(target))
    for statement in _COUNTED:
        target.execute(statement)


def _remove_orphans(target: sqlite3.Connection, table: str) -> int:
    """Remove the rows of a table that refer to a row that isn't there; how many."""
    keys: dict[int, list[tuple[str, str, str, str]]] = {}
    for number, _, parent, own, its, _, action, _ in target.execute(f"PRAGMA foreign_key_list({table})"):
        keys.setdefault(number, []).append((parent, own, its or own, action))
    count = 0
    for columns in keys.values():
        parent, own, _, action = columns[0]
        same = " AND ".join(f"parent.{its} = {table}.{own}" for _, own, its, _ in columns)
        where = f"{own} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {parent} AS parent WHERE {same})"
        how = f"UPDATE {table} SET {own} = NULL" if action == "SET NULL" else f"DELETE FROM {table}"
        count += target.execute(f"{how} WHERE {where}").rowcount
    return count


_NAMELESS: Final = """
SELECT DISTINCT agent, 'recovered-' || agent FROM (
    SELECT agent FROM memories UNION SELECT agent FROM conversations UNION SELECT agent FROM messages
) WHERE agent NOT IN (SELECT agent FROM agents)
"""
_UNNAMED_CONVERSATIONS: Final = """
INSERT INTO conversations (conversation, agent, session)
SELECT DISTINCT conversation, agent, 'recovered-' || conversation FROM messages
WHERE conversation NOT IN (SELECT conversation FROM conversations)
"""
_WITHOUT_MEMORY: Final = "SELECT num, content FROM texts WHERE num NOT IN (SELECT num FROM memories)"


def _at_least(column: str, table: str, number: str) -> str:
    return (
        f"UPDATE agents SET {column} = max({column}, coalesce("
        f"(SELECT max({number}) FROM {table} WHERE {table}.agent = agents.agent), 0))"
    )


_COUNTED: Final = (
    _at_least("seq", "changes", "seq"),
    _at_least("seq", "memories", f"num & {(1 << AGENT_SHIFT) - 1}"),
    _at_least("judged", "shown", "given"),
    _at_least("moved", "moves", "number"),
    _at_least("attested", "outcomes", "given"),
    _at_least("lived", "life_events", "number"),
    """UPDATE conversations SET said = max(said, coalesce((SELECT max(num & 4294967295) FROM messages
    WHERE messages.conversation = conversations.conversation), 0))""",
    """INSERT OR IGNORE INTO unembedded (num, agent) SELECT num, agent FROM memories
    WHERE num NOT IN (SELECT num FROM vectors)""",
)
"""No number is given twice, and what has no vector waits for one."""


def _tables(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    return [name for (name,) in rows if name not in _DERIVED]


def _copy_table(source: sqlite3.Connection, target: sqlite3.Connection, table: str) -> Iterator[Damage]:
    described = target.execute(f"PRAGMA table_info({table})").fetchall()
    keys = [each[1] for each in sorted(described, key=lambda each: int(each[5])) if each[5]]
    # An older file lacks columns.
    readable = {each[1] for each in source.execute(f"PRAGMA table_info({table})").fetchall()}
    columns = [each[1] for each in described if each[1] in readable]
    if not set(keys) <= set(columns):
        yield Damage(what=table, agent=None, id=None, text=f"The table {table} can't be read.")
        return
    names = ", ".join(columns)
    statement = f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})"
    reader = _Reader(source, f"SELECT {names} FROM {table}", keys, [columns.index(each) for each in keys])
    for row in reader.rows():
        try:
            target.execute(statement, row)
        except sqlite3.Error as error:
            if table in _REMADE:
                continue
            text = f"A row of {table} can't be stored ({error}): {row!r:.{_SHOWN}}"
            yield Damage(what=table, agent=None, id=None, text=text)
    for gap in () if table in _REMADE else reader.gaps:
        yield Damage(what=table, agent=None, id=None, text=f"Rows of {table} can't be read: {gap}.")


class _Reader:
    """Reads the rows of a table by its key around pages that can't be read."""

    def __init__(
        self, source: sqlite3.Connection, select: str, keys: Sequence[str], at: Sequence[int]
    ) -> None:
        self._source, self._select, self._keys, self._at = source, select, keys, at
        self._error: Exception | None = None
        self.gaps: list[str] = []

    def rows(self) -> Iterator[Sequence[Any]]:
        """Every row that can be read, once."""
        last: tuple[Any, ...] | None = None
        skip = 1
        while True:
            skip *= 2
            for row in self._run(last):
                last, skip = self._key(row), 1
                yield row
            if self._error is None:
                return
            # Behind a damaged page a key of one number can be guessed, farther away the longer none is found.
            start = self._behind(last[0] if last else 0, skip) if len(self._at) == 1 else None
            if start is None:
                self.gaps.append(f"those after {last} ({self._error})")
                yield from self._run(last, descending=True)
                return
            if start > (first := last[0] + 1 if last else 0):
                self.gaps.append(f"those from {first} to {start - 1} ({self._error})")
            last = (start - 1,)

    def _run(self, above: tuple[Any, ...] | None, *, descending: bool = False) -> Iterator[Sequence[Any]]:
        """Rows with greater keys in the order of their keys; the error that ends them early is noted."""
        self._error = None
        marks = ", ".join("?" * len(self._keys))
        # From the end everything has to be looked at, since the way to the key is damaged.
        where = f"WHERE ({', '.join(self._keys)}) > ({marks})" if above is not None and not descending else ""
        by = ", ".join(f"{each} DESC" if descending else each for each in self._keys)
        before = None if descending else above
        try:
            rows = self._source.execute(
                f"{self._select} {where} ORDER BY {by}", (above if where else None) or ()
            )
            while row := rows.fetchone():
                key = self._key(row)
                if descending and above is not None and not key > above:
                    return
                # A damaged page can lead back to where the reading was before.
                if before is not None and not (key < before if descending else key > before):
                    raise sqlite3.DatabaseError("the rows aren't in order")
                before = key
                yield row
        except (sqlite3.Error, TypeError) as error:
            self._error = error

    def _behind(self, last: int, step: int) -> int | None:
        """A number after the last one from which rows can be read again; None where there is none."""
        low = last
        while not self._reads(last + step):
            low, step = last + step, step * 2
            if last + step > _LAST:
                return None
        high = last + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._reads(middle) else (middle, high)
        return high

    def _reads(self, start: int) -> bool:
        try:
            (key,) = self._keys
            text = f"{self._select} WHERE {key} >= ? ORDER BY {key} LIMIT 1"
            self._source.execute(text, (start,)).fetchone()
        except sqlite3.Error:
            return False
        return True

    def _key(self, row: Sequence[Any]) -> tuple[Any, ...]:
        return tuple([row[each] for each in self._at])
