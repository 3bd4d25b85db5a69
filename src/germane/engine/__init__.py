"""The engine: one agent's store, counter, kinds and clock, and each verb's turn with them. No policy.

Level: engine (imports verbs and everything above them). `surface` holds the session; `writing`,
`reading`, `teaching` and `holding` add verbs to it, a concern each; `whole` is all of them together, and
`opening` makes one.
"""

from __future__ import annotations

from germane.engine.opening import DEFAULT_COUNTER, open_engine
from germane.engine.reading import DEFAULT_BUDGET
from germane.engine.whole import Engine

__all__ = ["DEFAULT_BUDGET", "DEFAULT_COUNTER", "Engine", "open_engine"]
