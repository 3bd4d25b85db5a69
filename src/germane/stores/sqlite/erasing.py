"""After a purge: leaves nothing in a file or its log of what is gone, now or when that can be done.

Level: stores (imports errors only).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from germane.errors import StoreBusy, StoreError
from germane.stores.relational.connection import Connection, Purged
from germane.stores.relational.settings import set_setting
from germane.stores.sqlite.connections import Connections

__all__ = ["OWED", "ErasingConnections", "finish_erasure", "settle_log"]

OWED: Final = "owes_erasure"
"""The setting of a file that has to be rewritten."""


class ErasingConnections(Connections):
    """Connections to a file in which nothing is left of what was purged."""

    def note_purge(
        self,
        connection: Connection,
        what: Purged = "memories",  # noqa: ARG002 - A file is rewritten whole.
    ) -> None:
        """Note that the file has to be rewritten, so that whoever opens it next can do it."""
        set_setting(connection, OWED, "1")

    def erase(self) -> None:
        """Leave nothing in the file or its log of what was purged; the store remembers until it is done.

        Raises StoreBusy or StoreUnavailable where that can't be done now.
        """
        try:
            self.rewrite()
            done = self.truncate_log(timeout=self.timeout)
        except StoreError as error:
            raise type(error)(
                "The purge is done, but copies of its text may be left in unused parts of the file "
                f"{self.location}, for it couldn't be rewritten: {error} "
                "Call checkpoint(), or open the store again, to finish."
            ) from error
        if not done:
            raise StoreBusy(
                "The purge is done, but its text is still in the write-ahead log of "
                f"{self.location}: a reader has held on to it for "
                f"{self.timeout:g} s. Close the reader, then call checkpoint() or open the "
                "store again to finish."
            )
        with self.writing() as connection:
            connection.run("remove_setting", {"name": OWED})


def finish_erasure(connections: ErasingConnections) -> None:
    """Do what a purge had to leave undone, if that can be done now."""
    if connections.read_only:
        return
    if _owes(connections):
        # The purge has told its caller; whoever opens the store later can't act on it.
        with suppress(StoreBusy):
            connections.erase()


def settle_log(connections: ErasingConnections) -> None:
    """Move the log into the file, and finish what a purge had to leave undone.

    Raises StoreBusy while a reader holds on to the log.
    """
    if _owes(connections):
        connections.erase()
    elif not connections.truncate_log(timeout=connections.timeout):
        raise StoreBusy(
            f"A reader has held on to the log of {connections.location} for "
            f"{connections.timeout:g} s. Close the reader, and call checkpoint again."
        )


def _owes(connections: Connections) -> bool:
    with connections.reading() as connection:
        return OWED in dict(connection.run("settings").fetchall())
