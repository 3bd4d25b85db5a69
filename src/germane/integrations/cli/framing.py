"""frames: what an agent can be doing, and what each frame gives to which section.

Level: integrations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import germane
from germane.integrations.cli import options
from germane.integrations.cli.opening import DEFAULT_AGENT, DEFAULT_DATABASE
from germane.integrations.cli.output import print_json, print_text
from germane.integrations.shapes import frame_shape
from germane.model.columns import table

__all__ = ["COMMANDS"]


def _frames(
    *,
    frames: options.FramesFile = None,
    database: options.Database = DEFAULT_DATABASE,  # noqa: ARG001 - Every command takes it; frames are in no file.
    agent: options.Agent = DEFAULT_AGENT,
    as_json: options.Json = False,
) -> None:
    """The frames that there are: what each is for, its total and its shares."""
    with germane.open(":memory:", agent=agent, embedder=None, frames=frames or ()) as engine:
        known = engine.frames()
    if as_json:
        print_json([frame_shape(frame) for frame in known])
        return
    head = ("FRAME", "total", "decisions", "facts", "procedures", "episodes", "what for")
    rows: list[tuple[str, ...]] = [head]
    for frame in known:
        shares = dict(frame.shares)
        given = [f"{shares.get(name, 0):,}" for name in rows[0][2:6]]
        rows.append((frame.name, f"{frame.budget:,}", *given, frame.description))
    print_text("\n".join(table(rows, right=(1, 2, 3, 4, 5))))


COMMANDS: dict[str, Callable[..., Any]] = {"frames": _frames}
"""The commands of this file by name."""
