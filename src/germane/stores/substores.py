"""What a store may offer besides the six methods of `Store`: sub-stores, each an attribute of the store.

`docs/how-to/write-a-store.md` lists the methods of each. A store leaves out the attributes that it doesn't
offer, or sets them to None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from germane.errors import InvalidInput

if TYPE_CHECKING:
    from germane.stores.postgres.servers import Notifications
    from germane.stores.relational.conversations import ConversationTables
    from germane.stores.relational.ledger import LedgerTables
    from germane.stores.relational.lifecycle import FeedbackTables, LifecycleTables
    from germane.stores.relational.settings import MaintenanceTables
    from germane.stores.relational.spaces import SpaceTables
    from germane.stores.relational.working_sets import WorkingSetTables

__all__ = [
    "CONVERSATIONS",
    "FEEDBACK",
    "LEDGER",
    "LIFECYCLE",
    "MAINTENANCE",
    "NOTIFICATIONS",
    "SPACES",
    "WORKING_SETS",
    "SubStore",
]

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class SubStore(Generic[Part]):
    """The attribute of a store that has the sub-store, and what a store without it does not do."""

    attribute: str
    without: str

    def of(self, store: object) -> Part | None:
        """The sub-store of a store; None where the store doesn't offer it."""
        part: Part | None = getattr(store, self.attribute, None)
        return part

    def required(self, store: object) -> Part:
        """The sub-store of a store. Raises InvalidInput where the store doesn't offer it."""
        part = self.of(store)
        if part is None:
            raise InvalidInput(
                f"The store {type(store).__name__} {self.without}: it has no sub-store "
                f"`{self.attribute}`. Open a file or a PostgreSQL database, or give the store an attribute "
                f"`{self.attribute}` as docs/how-to/write-a-store.md describes."
            )
        return part


CONVERSATIONS: Final[SubStore[ConversationTables]] = SubStore("conversations", "keeps no conversations")
FEEDBACK: Final[SubStore[FeedbackTables]] = SubStore("feedback", "keeps no feedback")
LEDGER: Final[SubStore[LedgerTables]] = SubStore("ledger", "keeps no ledger of assemblies")
LIFECYCLE: Final[SubStore[LifecycleTables]] = SubStore("lifecycle", "keeps no lifecycles of memories")
MAINTENANCE: Final[SubStore[MaintenanceTables]] = SubStore("maintenance", "offers no maintenance")
NOTIFICATIONS: Final[SubStore[Notifications]] = SubStore("notifications", "sends no notifications")
SPACES: Final[SubStore[SpaceTables]] = SubStore("spaces", "keeps no spaces")
WORKING_SETS: Final[SubStore[WorkingSetTables]] = SubStore("working_sets", "keeps no working sets")
