"""assemble: hand each plan to the verb that gathers for it.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from germane.model.context import Context
from germane.model.plan import Plan
from germane.model.query import Filter
from germane.plans.scoped import Scoped
from germane.protocols import Scorer, TokenCounter
from germane.verbs.assemble import assemble as assemble_by_question
from germane.verbs.scoped import Aim, assemble_scoped, check_unaimed, scoped_named
from germane.verbs.session import Session

__all__ = ["assemble"]


def assemble(
    session: Session,
    query: str,
    *,
    plan: str | Plan | Scoped,
    task: str | None = None,
    paths: Sequence[str] | None = None,
    changed: Mapping[str, datetime] | None = None,
    budget: Any,
    where: Filter,
    counter: TokenCounter,
    pins: Iterable[str] = (),
    scorer: Scorer | None = None,
    spaces: Sequence[Session] = (),
    **framing: Any,
) -> Context:
    """The best context by a plan, within `budget` tokens by `counter`.

    `framing` is what plans take that go by a question; of it a scoped plan has only the `conversation`.
    Raises InvalidInput for a task or paths where the plan doesn't go by them, and what its verb raises.
    """
    aim = Aim(task=task, paths=paths or (), changed=changed or {})
    shared: dict[str, Any] = {"where": where, "pins": pins, "scorer": scorer, "spaces": spaces}
    how = scoped_named(plan)
    if how is not None:
        said = framing.get("conversation")
        return assemble_scoped(
            session, query, how=how, aim=aim, budget=budget, counter=counter, conversation=said, **shared
        )
    check_unaimed(aim, plan)
    assert not isinstance(plan, Scoped)  # noqa: S101 - Such a plan names itself; this tells the checker.
    return assemble_by_question(
        session, query, plan=plan, budget=budget, counter=counter, **shared, **framing
    )
