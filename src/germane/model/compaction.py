"""A conversation made shorter: what stands for its beginning, and what to remember of it before it goes.

Level: model (imports errors only).
"""

from __future__ import annotations

from dataclasses import dataclass

from germane.model.draft import Draft

__all__ = ["Compaction"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """What a compaction would do; nothing is done until it is applied, and then it can be undone.

    The groups named `hides` leave every view but stay in the log; `summary` stands for them, as the anchor
    `anchor`, in place of `replaces`. `before` and `after` are the conversation's tokens. `drafts` are what
    the user and the assistant said in these groups that sounds worth keeping: proposals, to be remembered
    before they go. `cut` results were shortened first; where that is enough nothing is hidden.
    """

    hides: tuple[str, ...] = ()
    summary: str = ""
    anchor: str = "summary"
    replaces: str = ""
    before: int = 0
    after: int = 0
    cut: int = 0
    drafts: tuple[Draft, ...] = ()
    by: str = "extractive"
