"""The whole engine: every verb's turn with one agent's store, counter, kinds and clock. No policy.

Level: engine (imports verbs and everything above them).
"""

from __future__ import annotations

import weakref
from types import TracebackType
from typing import Self

from germane.engine.accounting import Accounting
from germane.engine.ageing import Ageing, LifeStory
from germane.engine.holding import Holding
from germane.engine.reading import Reading
from germane.engine.requesting import Requesting, Shortening
from germane.engine.sharing import SharingSpaces
from germane.engine.talking import Talking
from germane.engine.teaching import Teaching
from germane.engine.writing import Writing
from germane.verbs.session import Session

__all__ = ["Engine"]


class Engine(
    SharingSpaces,
    Holding,
    Talking,
    Shortening,
    Requesting,
    Accounting,
    Teaching,
    Ageing,
    LifeStory,
    Reading,
    Writing,
):
    """One agent's memory. Made by `germane.open`; safe to share between threads; a context manager.

    Every method works on this agent's memories only. Each raises StoreError when the store can't
    do what is asked; what else it raises is named there.
    """

    def __init__(self, session: Session, *, embed_in_background: bool = False) -> None:
        super().__init__(session, embed_in_background=embed_in_background)
        if embed_in_background:
            # The thread must not outlive an engine that nobody closed.
            weakref.finalize(self, self._embedding.stop)

    def close(self) -> None:
        """Release the store. Closing twice is fine.

        What is being embedded just now is waited for, 5 seconds at most; the rest waits in the store.
        """
        self._close_spaces()
        self._embedding.stop()
        self._session.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<germane.Engine agent={self.agent!r} counter={self.counter.name!r}>"
