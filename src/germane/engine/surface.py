"""What every part of the engine's surface stands on: one agent's session.

Level: engine (imports verbs and everything above them).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from germane.protocols import TokenCounter
from germane.verbs.checks import checking_verbs
from germane.verbs.embedding import Embedding
from germane.verbs.session import Session

if TYPE_CHECKING:
    from germane.verbs.working_set import WorkingSet

__all__ = ["Surface"]


class Surface:
    """Holds what the verbs work on. Each part of the surface adds the verbs of one concern to it.

    Every public method of a part checks its arguments before it runs (see `germane.verbs.checks`).
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        checking_verbs(cls)

    def __init__(self, session: Session, *, embed_in_background: bool = False) -> None:
        self._session = session
        self._embedding = Embedding(session, in_background=embed_in_background)
        self._assembles_first = True
        # Kept by name, for what each of them remembers between two questions.
        self._working_sets: dict[str, WorkingSet] = {}

    @property
    def agent(self) -> str:
        """Whose memory this is."""
        return self._session.agent

    @property
    def counter(self) -> TokenCounter:
        """The counter that judges budgets unless a call names another."""
        return self._session.counter
