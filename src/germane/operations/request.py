"""request and compact: what to send to a model so that it fits, and a shorter form of a conversation."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from germane.conversation.blocks import with_neighbours
from germane.conversation.compaction import ANCHOR, Compacting, compacted
from germane.conversation.formats import PROVIDERS, anthropic, as_provider, read_messages
from germane.conversation.formats.parts import to_json
from germane.conversation.groups import grouped
from germane.conversation.layout import Arrangement, MemoryBlock, RequestShares, RequestSpec
from germane.conversation.solver import request_of
from germane.conversation.views import Tiers
from germane.errors import InvalidInput, MessageNotFound
from germane.ledger import MADE_FOR
from germane.model.context import Context, TraceNote
from germane.model.conversation import (
    Compaction,
    ConversationChange,
    DerivedQuery,
    Group,
    GroupScores,
    Message,
    Provider,
    Role,
    SetAnchor,
    SetHidden,
    TextPart,
)
from germane.model.memory import Status
from germane.model.plan import Plan
from germane.model.query import Filter
from germane.model.request import Request, TokenCalibration
from germane.model.text import space_of
from germane.operations.assemble import assemble
from germane.operations.context import AgentContext
from germane.operations.conversation import Conversation, conversing, derived, matched
from germane.operations.inputs import checked_count, checked_text, checked_words
from germane.operations.scoped import Recorder
from germane.protocols import TokenCounter
from germane.retrieval.bm25 import UNIT, Postings
from germane.retrieval.tokenizer import index_terms, term_hash
from germane.stores.relational.conversation_cache import indexed_words
from germane.tokens import CachedCounter, get_counter, spendable

__all__ = ["MemorySelection", "Sayable", "TokenSpending", "compact", "compaction", "request", "uncompact"]

Sayable: TypeAlias = Conversation | str | Mapping[str, Any] | Sequence[Mapping[str, Any] | Message]
"""What a request is about: a conversation, or messages in any layout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSpending:
    """What there is to spend, and by whose counting.

    `counter` None is the one that fits the provider.
    """

    window: int
    reserve: int
    counter: str | TokenCounter | None = None
    calibration: TokenCalibration | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySelection:
    """Which memory a request shows: a plan's, for a frame and a query, or a context as it is.

    `of` are whose memories: an agent's or a space's, whose ledger keeps the record as well, and spaces beside
    it, as far as `where` admits them, None being every active one. `record` says whether it goes into the
    ledger, None as the session does; `cold` that it is the first of its engine.
    """

    of: tuple[AgentContext, ...]
    memory: str | Plan | Context | None = None
    frame: str = ""
    query: str | None = None
    record: bool | None = None
    cold: bool = False
    where: Filter | None = None

    @property
    def query_key(self) -> str:
        """What tells two requests about the same group apart."""
        plan = self.memory
        named = plan.text if isinstance(plan, Context) else plan.name if isinstance(plan, Plan) else plan
        return "\n".join([self.query or "", named or "", self.frame, *(one.agent for one in self.of)])


def request(
    session: AgentContext,
    said: Sayable,
    *,
    spending: TokenSpending,
    provider: str | Provider,
    system: str | Sequence[Mapping[str, Any]] | None,
    tools: Sequence[Mapping[str, Any]],
    remembering: MemorySelection,
    shares: RequestShares | None,
    tiers: Tiers | None,
    anchors: Mapping[str, str] | None,
    pins: Sequence[str | Group],
    previous: Request | None,
) -> Request:
    """The request for a conversation or messages of the session's own, whosever memory it shows."""
    _check_gathers(session, remembering)
    to = _provider(provider)
    counter = _counter(session, to, spending.counter)
    calibration = _calibration(spending.calibration, previous, counter, to)
    limit, notes = _limit(spending, counter, calibration)
    messages, name = _messages(session, said)
    tiers = tiers or Tiers()
    arranged = session.arrangements.of(session.agent, name, to, counter, tiers)
    contexts: list[Context] = []
    recorder = _recorder(remembering)
    with arranged.lock:
        arranged.follow(messages)
        asked = derived(session, arranged.prompt(), remembering.query)
        wanted = RequestSpec(
            limit=limit,
            system=_system(system),
            tools=_tools(tools),
            anchors=_anchors(said, anchors),
            pins=_pins(arranged, pins, name),
            remember=_remember(arranged, remembering, asked, contexts=contexts, recorder=recorder),
            results=_found(session, arranged, name, asked),
            still_stands=lambda ids: _still_stands(remembering, ids),
            query=remembering.query_key,
            admits=repr(remembering.where or ""),
            shares=shares or RequestShares(),
            tiers=tiers,
            previous=previous.state if previous is not None and previous.provider is to else None,
        )
        sizes = {"window": spending.window, "reserve": spending.reserve}
        made = request_of(
            arranged, wanted, **sizes, notes=notes, calibration=calibration, remembered=contexts
        )
    if recorder is not None:
        recorder.record(made.memory, cold=remembering.cold and len(contexts) == 1)
    return made


def _check_gathers(session: AgentContext, remembering: MemorySelection) -> None:
    """Raise InvalidInput for spaces or a filter where nothing is gathered that they could say anything of."""
    first, *beside = remembering.of
    memory = remembering.memory
    if remembering.where is not None and (memory is None or isinstance(memory, Context)):
        given = "isn't given" if memory is None else "is a context that is made already"
        raise InvalidInput(
            f"where filters the memories that a request gathers, but memory {given}. Give the name of a "
            "plan, such as memory='layered', or filter where the context is assembled."
        )
    if (beside or first.agent != session.agent) and memory is None:
        why = "memory isn't given, so that nothing of it would be shown"
    elif beside and isinstance(memory, Context):
        why = "memory is a context that is made already. Name the spaces where it is assembled"
    else:
        return
    raise InvalidInput(
        f"The request is to show what {_named(beside or [first])} holds, but {why}. Or give the name of a "
        "plan, such as memory='layered'."
    )


def _named(spaces: Sequence[AgentContext]) -> str:
    return f"the space {' and the space '.join(repr(space_of(one.agent)) for one in spaces)}"


def _recorder(remembering: MemorySelection) -> Recorder | None:
    """What records the memory of a request. Raises InvalidInput where that is asked and there is nothing."""
    session = remembering.of[0]
    if not (session.records if remembering.record is None else remembering.record):
        return None
    if remembering.memory is not None and not isinstance(remembering.memory, Context):
        return Recorder(session)
    if remembering.record is None:
        return None
    given = "is a context that is made already" if remembering.memory is not None else "isn't given"
    raise InvalidInput(
        f"record=True has nothing to record, since memory {given}. Give the name of a plan, such as "
        "memory='layered', or record the context where it is assembled."
    )


def _provider(name: str | Provider) -> Provider:
    found = as_provider(name)
    if found is None or found is Provider.PLAIN:
        known = ", ".join(each for each, provider in PROVIDERS.items() if provider is not Provider.PLAIN)
        raise InvalidInput(f"provider={str(name)!r} takes no requests: take one of {known}.")
    return found


def _counter(session: AgentContext, provider: Provider, given: str | TokenCounter | None) -> TokenCounter:
    if given is not None:
        return get_counter(given)
    # Claude makes up to twice as many tokens of a text, so a budget in another's would overflow.
    if provider is Provider.ANTHROPIC and not session.counter.name.startswith("claude"):
        return get_counter("claude")
    return session.counter


def _calibration(
    given: TokenCalibration | None, previous: Request | None, counter: TokenCounter, provider: Provider
) -> TokenCalibration | None:
    """What is known of the counter: what is given, or what the request before went by."""
    learned_for = (counter.name, provider.value)
    if given is None:
        known = previous.calibration if previous is not None else None
        return known if known is not None and (known.counter, known.provider) == learned_for else None
    if (given.counter, given.provider) != learned_for:
        raise InvalidInput(
            f"The calibration was learned for {given.counter} and {given.provider}, and this request is "
            f"counted by {counter.name} for {provider}. Keep a calibration for each."
        )
    return given


def _limit(
    spending: TokenSpending, counter: TokenCounter, calibration: TokenCalibration | None
) -> tuple[int, list[TraceNote]]:
    """The tokens to spend by the counter, all margins taken off, and what to say of it."""
    window = checked_count(spending.window, name="window", least=1)
    reserve = checked_count(spending.reserve, name="reserve")
    if reserve >= window:
        raise InvalidInput(
            f"reserve={reserve} leaves nothing of window={window}: reserve fewer tokens for the answer."
        )
    known = calibration or TokenCalibration(counter=counter.name, provider="")
    factor = known.factor(counter.margin)
    limit = math.floor(Fraction(window - reserve) / factor)
    if factor == 1:
        return limit, []
    why = (
        f"the provider counted up to {max(known.ratios):.3f} tokens for one of ours"
        if known.ratios
        else f"the counter {counter.name} is exact to {counter.margin:.0%}"
    )
    text = f"{limit:,} of {window - reserve:,} tokens by {counter.name} are spent, since {why}."
    return limit, [TraceNote(code="calibration" if known.ratios else "margin", text=text)]


def _messages(session: AgentContext, said: Sayable) -> tuple[tuple[Message, ...], str | None]:
    """What is said, and the name of the conversation where it is one."""
    if isinstance(said, Conversation):
        if said.agent != session.agent:
            raise InvalidInput(
                f"The conversation belongs to agent {said.agent!r}, and the engine to {session.agent!r}. "
                "Use the engine that it came from, or a space of that engine's."
            )
        return said.messages(), said.session
    if isinstance(said, Sequence) and any(isinstance(each, Message) for each in said):
        if not all(isinstance(each, Message) for each in said):
            raise InvalidInput("Messages were given both as values and as objects. Give all in one form.")
        values = [each for each in said if isinstance(each, Message)]
        for each in values:
            checked_text("".join([each.text, *(result.text for result in each.results)]), name="messages")
        numbered = [each if each.seq else each.evolve(seq=place) for place, each in enumerate(values, 1)]
        return grouped(numbered), None
    return grouped(read_messages(said)), None


def _system(system: str | Sequence[Mapping[str, Any]] | None) -> list[Message]:
    if system is None or not system:
        return []
    if isinstance(system, str):
        return [Message(role=Role.SYSTEM, parts=(TextPart(text=checked_text(system, name="system")),))]
    return [anthropic.read_system(list(system))]


def _tools(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    if isinstance(tools, str | Mapping) or not all(isinstance(tool, Mapping) for tool in tools):
        raise InvalidInput(f"tools={str(tools)[:60]!r} can't be sent: give a list of the provider's objects.")
    held: list[dict[str, Any]] = json.loads(to_json(list(tools)))
    return held


def _anchors(said: Sayable, given: Mapping[str, str] | None) -> Mapping[str, str]:
    own = said.anchors() if isinstance(said, Conversation) else {}
    for name, text in (given or {}).items():
        checked_text(name, name="anchors")
        checked_text(text, name=f"anchors[{name!r}]")
    return {**own, **(given or {})}


def _pins(arranged: Arrangement, pins: Sequence[str | Group], session: str | None) -> frozenset[str]:
    names = checked_words([pin.id if isinstance(pin, Group) else pin for pin in pins], name="pins")
    for name in names:
        if name not in arranged:
            raise MessageNotFound("group", name, session or "of these messages")
    return frozenset(names)


def _remember(
    arranged: Arrangement,
    remembering: MemorySelection,
    asked: DerivedQuery,
    *,
    contexts: list[Context],
    recorder: Recorder | None,
) -> Callable[[int], MemoryBlock] | None:
    """What gives memory within a budget; each context made is told."""
    memory = remembering.memory
    if memory is None:
        return None
    if isinstance(memory, Context):
        contexts.append(memory)
        given = MemoryBlock(text=memory.text, shows=_shown(memory), required=True)
        return lambda _: given
    plan = memory
    session, *beside = remembering.of
    text = " ".join([asked.prompt, *asked.carried])

    def remember(budget: int) -> MemoryBlock:
        asks: dict[str, Any] = {
            "query": text,
            "budget": budget,
            "where": remembering.where or Filter(),
            "plan": plan,
            "frame": remembering.frame,
            "counter": arranged.counter,
            "spaces": beside,
        }
        if recorder is None:
            context = assemble(session, **asks)
        else:
            context = recorder.watched(assemble, **asks, options={MADE_FOR: "request"})
        contexts.append(context)
        return MemoryBlock(text=context.text if context.items else "", shows=_shown(context))

    return remember


def _shown(context: Context) -> dict[str, float]:
    return {item.memory.version_id: max(item.score, 0.0) for item in context.items}


def _still_stands(remembering: MemorySelection, ids: Sequence[str]) -> bool:
    if isinstance(remembering.memory, Context):
        # It stands as its text does, whosever memories are in it: a space's are no agent's own.
        return True
    found = [each for one in remembering.of for each in one.store.get(one.agent, ids) if each is not None]
    standing = {each.version_id for each in found if each.status in (Status.ACTIVE, Status.ARCHIVED)}
    return standing.issuperset(ids)


def _found(
    session: AgentContext, arranged: Arrangement, name: str | None, asked: DerivedQuery
) -> Callable[[], GroupScores]:
    """How well the groups match, once somebody asks: a window that holds all needs no search."""
    known: list[GroupScores] = []

    def found() -> GroupScores:
        if not known:
            if name is not None:
                scores = matched(session, conversing(session), name, asked)
            else:
                scores = _scores(session, arranged, asked)
            known.append(with_neighbours(arranged, scores))
        return known[0]

    return found


def _scores(session: AgentContext, arranged: Arrangement, asked: DerivedQuery) -> GroupScores:
    """The same scores for messages that no store keeps: by an index made for this question alone."""
    if not asked.terms:
        return GroupScores()
    index = Postings()
    for number, group in enumerate(arranged.order):
        text = "\n".join(indexed_words(message) for message in arranged.members(group))
        index.add(number, index_terms(text, language=session.language))
    scores: dict[str, int] = {}
    bound = 0.0
    for terms, share in ((asked.own, 1), (asked.carried, 2)):
        found = index.score([term_hash(term) for term in terms])
        bound += found.bound / share
        for ordinal, score in zip(found.ordinals.tolist(), found.scores.tolist(), strict=True):
            group = arranged.order[ordinal]
            scores[group] = scores.get(group, 0) + score // share
    return GroupScores(scores=scores, bound=round(bound * UNIT))


# compact: propose a shorter form of a conversation, do it, and undo it.


def compaction(
    session: AgentContext,
    conversation: Conversation,
    *,
    budget: int,
    keep: int,
    counter: str | TokenCounter | None,
    tiers: Tiers | None,
) -> Compaction:
    """What would make a conversation fit a budget. Raises BudgetTooSmall or InvalidInput."""
    _check_own(session, conversation)
    checked_count(budget, name="budget", least=1)
    checked_count(keep, name="keep", least=1)
    counting = session.counter if counter is None else CachedCounter(get_counter(counter))
    how = Compacting(
        budget=spendable(budget, counting),
        counter=counting,
        keep=keep,
        tiers=tiers or Tiers(),
        previous=conversation.anchors().get(ANCHOR, ""),
        summarizer=session.summarizer,
    )
    return compacted(conversation.messages(), how)


def compact(session: AgentContext, conversation: Conversation, proposed: Compaction) -> Compaction:
    """Hide what a compaction hides and keep its summary, in one transaction. Raises MessageNotFound."""
    _check_own(session, conversation)
    if proposed.hides:
        _converse(session, conversation, proposed, hidden=True, text=proposed.summary)
    return proposed


def uncompact(session: AgentContext, conversation: Conversation, done: Compaction) -> Compaction:
    """Put back what a compaction hid, with the summary that stood before it. Raises MessageNotFound."""
    _check_own(session, conversation)
    if done.hides:
        _converse(session, conversation, done, hidden=False, text=done.replaces)
    return done


def _converse(
    session: AgentContext, conversation: Conversation, moved: Compaction, *, hidden: bool, text: str
) -> None:
    hiding = [SetHidden(group=group, hidden=hidden) for group in moved.hides]
    changes: list[ConversationChange] = [*hiding, SetAnchor(name=moved.anchor, text=text)]
    conversing(session).converse(session.agent, conversation.session, changes)


def _check_own(session: AgentContext, conversation: Conversation) -> None:
    if conversation.agent != session.agent:
        raise InvalidInput(
            f"The conversation belongs to agent {conversation.agent!r}, and the engine to {session.agent!r}. "
            "Use the engine that it came from."
        )
