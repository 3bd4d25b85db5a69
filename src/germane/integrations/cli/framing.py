"""frames: what an agent can be doing, and what each frame gives to which section.

Level: integrations.
"""

from __future__ import annotations

import germane
from germane.integrations.cli import options
from germane.integrations.cli.command import Call, command
from germane.integrations.cli.output import print_text
from germane.model.columns import table


@command("frames")
def _frames(call: Call, *, frames: options.FramesFile = None) -> None:
    with germane.open(":memory:", agent=call.agent, embedder=None, frames=frames or ()) as engine:
        known = engine.frames()
    if call.prints(known):
        return
    head = ("FRAME", "total", "decisions", "facts", "procedures", "episodes", "what for")
    rows: list[tuple[str, ...]] = [head]
    for frame in known:
        shares = dict(frame.shares)
        given = [f"{shares.get(name, 0):,}" for name in rows[0][2:6]]
        rows.append((frame.name, f"{frame.budget:,}", *given, frame.description))
    print_text("\n".join(table(rows, right=(1, 2, 3, 4, 5))))
