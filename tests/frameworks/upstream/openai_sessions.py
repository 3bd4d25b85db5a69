"""A pytest plugin for the OpenAI Agents SDK's own tests of its session: germane's takes its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import agents
import agents.memory
import agents.memory.sqlite_session

import germane
from germane.frameworks import OpenAIAgentsSession


class _Session(OpenAIAgentsSession):
    def __init__(self, session_id: str, db_path: str | Path = ":memory:", **options: Any) -> None:
        self.engine = germane.open(db_path, agent="tests")
        super().__init__(session_id, self.engine, session_settings=options.get("session_settings"))

    def close(self) -> None:
        self.engine.close()


for module in (agents, agents.memory, agents.memory.sqlite_session):
    setattr(module, "SQLiteSession", _Session)  # noqa: B010 - A type checker refuses to assign one.
