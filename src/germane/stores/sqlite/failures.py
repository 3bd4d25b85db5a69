"""What the driver raises, said in germane's words; every other module lets it pass through here.

Level: stores (imports errors only).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from germane.errors import GermaneError, InvalidInput, StoreBusy, StoreError, StoreUnavailable, shown
from germane.stores.storable import storable

__all__ = ["is_busy", "translated"]

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})

_UNAVAILABLE = {
    sqlite3.SQLITE_FULL: "The disk or the quota is full, so nothing was stored. Make room and try again.",
    sqlite3.SQLITE_READONLY: "It can't be written: the file or its folder is read-only. "
    "Change the permissions, or open it with read_only=True.",
    sqlite3.SQLITE_CANTOPEN: "It can't be opened. Check that the folder exists, that the path is a file, "
    "and that both may be read and written.",
    sqlite3.SQLITE_PERM: "Its permissions forbid this. Change them, or choose another path.",
    sqlite3.SQLITE_AUTH: "Its permissions forbid this. Change them, or choose another path.",
    sqlite3.SQLITE_NOTADB: "The file is no SQLite database. Choose another path, or move that file away.",
    sqlite3.SQLITE_CORRUPT: "The file is damaged. Restore it from a backup; where it can still be opened, "
    "`germane doctor` says what is damaged.",
    sqlite3.SQLITE_IOERR: "Reading or writing it failed. Check the disk, then run `germane doctor`.",
}


def is_busy(error: sqlite3.Error) -> bool:
    """Whether the driver only says that somebody else holds the file just now."""
    return _primary_code(error) in _BUSY


@contextmanager
def translated(location: str) -> Iterator[None]:
    """Raise what the driver raises inside as an error of germane's, chained to it."""
    try:
        with storable():
            yield
    except GermaneError:
        raise
    except sqlite3.Error as error:
        raise _translation(error, location) from error
    except OSError as error:
        raise StoreUnavailable(
            f"The store {shown(location)} can't be reached: {error.strerror or error}. Check the path."
        ) from error


def _translation(error: sqlite3.Error, location: str) -> GermaneError:
    code = _primary_code(error)
    if code in _BUSY:
        return StoreBusy(f"The store {location} is held by another process. Try again later.")
    if code in _UNAVAILABLE:
        return StoreUnavailable(f"The store {location}: {_UNAVAILABLE[code]} (SQLite: {error})")
    if isinstance(error, sqlite3.IntegrityError):
        return InvalidInput(f"The store {location} refuses a value: {error}. Nothing was stored.")
    if isinstance(error, sqlite3.DataError) or code == sqlite3.SQLITE_TOOBIG:
        return InvalidInput(
            f"A text is too large for the store {location} ({error}); SQLite's limit is 1 GB. Divide it."
        )
    return StoreError(f"The store {location} failed: {error}. Nothing was half written.")


def _primary_code(error: sqlite3.Error) -> int:
    # The low byte of an extended code is the primary one.
    return getattr(error, "sqlite_errorcode", -1) & 0xFF
