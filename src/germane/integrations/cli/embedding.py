"""embed and reembed: vectors for the memories that wait for one, and those of another model for all.

Level: integrations.
"""

from __future__ import annotations

from typing import Annotated

import germane
from germane import InvalidInput
from germane.integrations.cli.command import Call, command
from germane.integrations.cli.opening import check_is_there, embedder_named
from germane.integrations.cli.options import any_agent, opt

_Limit = Annotated[int | None, opt("--limit COUNT", "At most so many memories, newest first.", min=1)]
_Embedder = Annotated[
    str,
    opt(
        "--embedder NAME",
        "Which model: static, which comes with germane, or onnx (pip install 'germane[onnx]').",
    ),
]
_Again = Annotated[bool, opt("--again", "Drop the vectors of this same model too.")]
_ANY_AGENT = any_agent("one store has vectors of one model, so every agent's are replaced.")
_Yes = Annotated[bool, opt("--yes", "Do it: the vectors of the model before are lost.")]


@command("embed")
def _embed(call: Call, embedder: _Embedder = "static", limit: _Limit = None) -> None:
    with (
        call.open(writes=True, embedder=embedder_named(embedder)) as engine,
        call.progress("memories") as tell,
    ):
        count = engine.embed_pending(limit=limit, progress=tell)
        left = engine.stats().pending
    call.answer({"embedded": count, "pending": left}, f"Embedded {count:,} memories; {left:,} wait.")


@command("reembed", agent=_ANY_AGENT)
@command("db reembed", agent=_ANY_AGENT)
def _reembed(call: Call, *, embedder: _Embedder = "static", again: _Again = False, yes: _Yes = False) -> None:
    """If it is interrupted, the same command goes on where it was."""
    check_is_there(call.database)
    model = embedder_named(embedder)
    if not yes:
        raise InvalidInput(
            f"This removes the vectors that another model made in {call.location}, those of every "
            f"agent, and makes new ones with {model.name!r}. Say --yes if that is what you want."
        )
    with call.progress("memories") as tell:
        count = germane.reembed(call.database, embedder=model, again=again, progress=tell)
    call.answer({"embedded": count, "model": model.name}, f"Embedded {count:,} memories with {model.name}.")
