"""What an agent has gone through with its memories: what was used, what came of it, and their lives.

Level: model (imports model only). No text of a memory stands in it: ids, hashes, numbers and times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from germane.model.learning import Attested, Example
from germane.model.stage import LifeEvent

__all__ = ["Experience", "Experienced", "version_of"]

Experienced: TypeAlias = Example | Attested | LifeEvent

"""One thing that an agent went through with a memory: it was shown, work turned out, its life went on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience:
    """All of it, each part in the order in which it was told; `learns` says whether learning was on.

    `showings` say which memories contexts showed and whether they were used, `outcomes` how work turned out
    with them, `events` what moved them from stage to stage. What was counted of a memory (`access_count`, its
    standing) is the memory's own, and isn't in here.
    """

    learns: bool = False
    showings: tuple[Example, ...] = ()
    outcomes: tuple[Attested, ...] = ()
    events: tuple[LifeEvent, ...] = ()

    def __len__(self) -> int:
        return len(self.showings) + len(self.outcomes) + len(self.events)

    def __bool__(self) -> bool:
        # Whether an agent learns is something that it has, also before it was told of anything.
        return self.learns or len(self) > 0


def version_of(kept: Experienced) -> str:
    """The name of the version that something speaks of: for an event `id@n`, else what it names itself."""
    return f"{kept.memory_id}@{kept.version}" if isinstance(kept, LifeEvent) else kept.memory_id
