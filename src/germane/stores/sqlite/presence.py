"""Whether the file that is open is still the one at its path. What is written to another is lost.

Level: stores (imports errors only).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, TypeAlias

from germane.errors import StoreUnavailable

__all__ = ["Presence"]

_Inode: TypeAlias = tuple[int, int]

# Windows doesn't let a file be deleted, renamed or replaced while SQLite has it open, and looking there
# would open the file each time.
_CAN_GO: Final = os.name != "nt"


class Presence:
    """Which file stood at a path when it was opened, and which log beside it.

    A system lets go of an open file's name and keeps its bytes until it is closed, so that SQLite would
    go on without noticing. Links are followed, as SQLite follows them: one that leads elsewhere since
    is another file. A file that was overwritten in its place is the same, and isn't told apart.
    """

    def __init__(self, location: str) -> None:
        self._location = location
        self._log = f"{location}-wal"
        self._file_was: _Inode | None = None
        self._log_was: _Inode | None = None

    def opened(self) -> None:
        """Note which file was opened. Raises StoreUnavailable if it isn't the one that was opened first."""
        if not _CAN_GO:
            return
        if self._file_was is None:
            self._file_was = self._now(self._location)
        self.check()

    def forget_log(self) -> None:
        """Forget the log, whose connection is no longer used; the next one may have another."""
        self._log_was = None

    def check(self) -> None:
        """Raise StoreUnavailable if the path names no file any more, or another one."""
        if self._file_was is not None and self._now(self._location) != self._file_was:
            raise StoreUnavailable(
                f"Another file stands at {self._location} since this store was opened, so nothing more is "
                "read from the old one or stored in it. Close the store and open it again to use the new "
                "one, or put the old one back."
            )

    def check_to_write(self) -> None:
        """As `check`, and of the log as well, for within a write transaction.

        SQLite makes the log at the first of them, and keeps it while any connection is open.
        """
        self.check()
        if self._log_was is None:
            if _CAN_GO and Path(self._log).exists():
                self._log_was = self._now(self._log)
        elif self._now(self._log) != self._log_was:
            raise StoreUnavailable(
                f"Another log stands at {self._log} since this store was opened, so nothing more is stored: "
                "nobody else would see it. Close the store and open it again; what was stored last may be "
                "missing, for it stood in the log that was there."
            )

    def _now(self, path: str) -> _Inode:
        try:
            found = os.stat(path)  # noqa: PTH116 - A Path for each transaction would cost more than the question.
        except (FileNotFoundError, NotADirectoryError):
            raise self._gone(path) from None
        except OSError as error:
            raise StoreUnavailable(
                f"Whether {path} is still there can't be seen ({error.strerror or error}), so nothing more "
                "is stored in it. Let this process look into its folder, then try again."
            ) from error
        return found.st_dev, found.st_ino

    def _gone(self, path: str) -> StoreUnavailable:
        if path == self._location:
            return StoreUnavailable(
                f"The file {path} was deleted, or it or its folder was moved, since this store was opened, "
                "so nothing more is read from it or stored in it. Put it back there; or close the store and "
                "open it again, which makes a new file, or open it where it is now."
            )
        return StoreUnavailable(
            f"The log {path} was deleted since this store was opened, so nothing more is stored: nobody else "
            "would see it. Put it back; or close the store and open it again; what was stored last may be "
            "missing, for it stood in that log."
        )
