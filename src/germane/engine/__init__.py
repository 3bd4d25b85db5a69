"""The engine: one agent's store, counter, kinds and clock, and each verb's turn with them. No policy.

Level: engine (imports verbs and everything above them). `surface` holds the session; `writing`, `reading`,
`teaching`, `holding`, `talking` and `sharing` add verbs to it, a concern each; `whole` is all of them
together, and `opening` makes one.

A process pays for the verbs that it calls and not for those that it could. To add one: write its file in
`germane.verbs` and name the file there (see there); add the method to the part of its concern, calling
`verbs.<file>.<function>(self._session, ...)`; and import what the method only names in annotations under
TYPE_CHECKING. A default is a plain value, or a name from `germane.model.names`. What every call needs
(memories, filters, scopes) is imported as anywhere.
"""

from __future__ import annotations

from germane.engine.opening import DEFAULT_COUNTER, open_engine
from germane.engine.reading import DEFAULT_BUDGET
from germane.engine.whole import Engine

__all__ = ["DEFAULT_BUDGET", "DEFAULT_COUNTER", "Engine", "open_engine"]
