"""assemble and explain: the context for a query, and the account of it.

Level: integrations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from germane import Filter
from germane.integrations.cli import options
from germane.integrations.cli.command import Call, command
from germane.integrations.cli.opening import fields_of, id_of, text_of
from germane.integrations.cli.options import arg
from germane.integrations.cli.output import print_text, warn_of_context, why_empty

if TYPE_CHECKING:
    from germane import Context

_Query = Annotated[str, arg("[QUERY]", "What it is about; without one the newest come first.")]


def _assembling(name: str, show: Callable[[Call, Context], None]) -> None:
    """Make a command that assembles with every option there is, and shows what it does of the context."""

    @command(name)
    def act(
        call: Call,
        query: _Query = "",
        *,
        budget: options.Budget = None,
        plan: options.PlanName = "layered",
        frame: options.NamedFrame = None,
        guidance: options.Guidance = None,
        gate: options.Gate = None,
        dates: options.Dates = True,
        sources: options.Sources = True,
        ids: options.Ids = False,
        frames: options.FramesFile = None,
        talk: options.TalkFile = None,
        counter: options.Counter = "o200k",
        pin: options.Pins = None,
        kind: options.KindFilter = None,
        tag: options.TagFilter = None,
        scope: options.Scopes = None,
        source: options.SourceFilter = None,
        meta: options.MetaFilter = None,
        with_space: options.WithSpaces = None,
        since: options.Since = None,
        until: options.Until = None,
        min_importance: options.MinImportance = None,
        record: options.Record = False,
        now: options.Now = None,
    ) -> None:
        said = None if talk is None else text_of(talk)
        with call.open(writes=record, now=now, frames=frames) as engine:
            context = engine.assemble(
                query,
                budget=budget,
                plan=plan,
                frame=frame,
                counter=counter,
                guidance=guidance,
                gate=gate,
                dates=dates,
                sources=sources,
                ids=ids,
                kinds=kind or (),
                tags=tag or (),
                scopes=scope or (),
                spaces=with_space or (),
                pins=[id_of(engine, each) for each in pin or ()],
                where=Filter(source=source, metadata=fields_of(meta or ())),
                since=since,
                until=until,
                min_importance=min_importance,
                conversation=said,
                record=record,
            )
        show(call, context)

    act.__doc__ = show.__doc__


def _show_text(call: Call, context: Context) -> None:
    """The text alone goes to the standard output, ready to be piped. What is worth knowing about it
    goes to the error stream; `germane explain` says all of it.
    """
    if call.prints(context):
        return
    if context.text:
        print_text(context.text.removesuffix("\n"))
    warn_of_context(context, *why_empty(context.trace.emptiness, call.agent))


def _show_account(call: Call, context: Context) -> None:
    """Each candidate is accounted for: its level, its tokens and the parts of its score, or the reason
    it was left out and by how many tokens it missed.
    """
    call.answer({"tokens": context.tokens, "trace": context.trace}, context.explain)


_assembling("assemble", _show_text)
_assembling("explain", _show_account)
