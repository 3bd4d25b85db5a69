"""assemble, explain, refresh and frames: contexts for a query, and the account of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import germane
from germane import Filter, InvalidInput
from germane.cli import options
from germane.cli.options import Call, arg, command, fields_of, id_of, opt, recorded, text_of
from germane.cli.output import print_text, warn, warn_of_context, why_empty
from germane.model.text import table

if TYPE_CHECKING:
    from germane import Context, Engine, RefreshResult
    from germane.ledger import Assembly

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
    warn_of_context(context, *why_empty(context.trace.empty_reason, call.agent))


def _show_account(call: Call, context: Context) -> None:
    """Each candidate is accounted for: its level, its tokens and the parts of its score, or the reason
    it was left out and by how many tokens it missed.
    """
    call.answer({"tokens": context.tokens, "trace": context.trace}, context.explain)


_assembling("assemble", _show_text)
_assembling("explain", _show_account)


# refresh: the context for what is said now, if the one before no longer serves.
#
# The context before is made again from the ledger, where each new one is recorded.

_SAYS = {
    "first": "There was no context yet.",
    "filter": "The context before was made by another filter.",
    "frame": "Something else is being done now.",
    "decision_point": "A decision is about to be acted on.",
    "topic": "What is said has little to do with the context before.",
    "pressure": "The context before was larger than its room.",
}
_ASSEMBLED = frozenset({"assemble", "cut"})
_LOOKED_AT = 100

_Text = Annotated[str, arg("[TEXT]", "What is said now.")]
_Before = Annotated[
    str | None,
    opt(
        "--context ID",
        "The recorded context to hold it against, by its id or the beginning or end of it; the latest"
        " if not said.",
    ),
]
_FreeTokens = Annotated[
    int | None, opt("--free-tokens TOKENS", "The tokens that are left for a context: more is cut.")
]
_Acting = Annotated[bool, opt("--acting", "The agent is about to act on a decision.")]
_Always = Annotated[bool, opt("--always", "Print the context too where it still serves.")]
_PlanName = Annotated[str | None, opt("--plan PLAN", "That of the context before, or layered, if not said.")]


@command("refresh")
def _refresh(
    call: Call,
    said: _Text = "",
    *,
    context: _Before = None,
    free_tokens: _FreeTokens = None,
    acting: _Acting = False,
    always: _Always = False,
    budget: options.Budget = None,
    plan: _PlanName = None,
    frame: options.FrameName = "auto",
    frames: options.FramesFile = None,
    scope: options.Scopes = None,
    now: options.Now = None,
) -> None:
    """Call it at each turn, with what was said: the first call makes a context, and each later one says
    whether that still serves. A new one goes to the standard output, ready to be piped, and into the ledger,
    where the next call finds it, and so does one that is only cut to its --free-tokens; why there is one, or
    why not, goes to the error stream.
    """
    with call.open(writes=True, now=now, frames=frames, record=True) as engine:
        known = _known(engine, context)
        before = None if known is None else _again(engine, known)
        refreshed = engine.refresh(
            before,
            said,
            free_tokens=free_tokens,
            acting=acting,
            budget=budget,
            plan=plan or ("layered" if known is None else known.plan),
            frame=frame,
            counter=None if known is None else known.counter,
            scopes=scope or (),
        )
    _print(call, refreshed, always=always)


def _known(engine: Engine, named: str | None) -> Assembly | None:
    """The recorded context that is named, or the latest; None where there is none. Raises InvalidInput."""
    if named is None:
        latest = engine.ledger().list(limit=_LOOKED_AT)
        return next((one for one in latest if one.made_for in _ASSEMBLED), None)
    found = recorded(engine, named)
    if found.made_for not in _ASSEMBLED:
        raise InvalidInput(
            f"Assembly {found.id} was made for a {found.made_for.replace('_', ' ')}, which refresh can't "
            "hold anything against. Name one that `germane assemble --record` or `germane refresh` made."
        )
    return found


def _again(engine: Engine, known: Assembly) -> Context | None:
    replayed = engine.ledger().replay(known.id)
    if not replayed.same:
        why = replayed.why[0] if replayed.why else "Nobody knows why."
        what = "can't be made again" if replayed.context is None else "is made again with other bytes"
        warn(f"Note: The context before, {known.id}, {what}. {why}")
    return replayed.context


def _print(call: Call, refreshed: RefreshResult, *, always: bool) -> None:
    if call.prints(refreshed):
        return
    made = refreshed.context
    if (refreshed.needed or always) and made.text:
        print_text(made.text.removesuffix("\n"))
    shared = "" if refreshed.similarity is None else f" Likeness {refreshed.similarity:.2f}."
    if refreshed.reason is None:
        warn(f"The context before still serves.{shared}")
        return
    warn_of_context(made, f"{_SAYS[refreshed.reason.value]}{shared}")


# frames: what an agent can be doing, and what each frame gives to which section.


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
