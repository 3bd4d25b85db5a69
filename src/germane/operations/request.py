"""request and compact: a request to a model that fits its window, and a shorter form of a conversation."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from typing import Any, Final, TypeAlias

from germane.conversation.compaction import ANCHOR, Compacting, compacted
from germane.conversation.formats import PROVIDERS, anthropic, as_provider, openai, read_messages
from germane.conversation.formats.parts import to_json
from germane.conversation.groups import grouped
from germane.conversation.layout import Arrangement, MemoryBlock, Recall, RequestShares, RequestSpec
from germane.conversation.solver import request_of
from germane.conversation.views import Tiers
from germane.errors import InvalidInput, MessageNotFound
from germane.kinds import BUILT_IN
from germane.ledger import MADE_FOR, SESSION
from germane.model.context import Context, TraceNote
from germane.model.conversation import (
    Compaction,
    ConversationChange,
    DerivedQuery,
    Group,
    Message,
    MessageRole,
    Provider,
    SetAnchor,
    SetHidden,
    TextPart,
)
from germane.model.memory import Level, Memory, Status, split_id
from germane.model.plan import Plan, RollOver, Section, Share
from germane.model.query import CandidateTable, Filter, SearchResult
from germane.model.request import Request, RequestState, TokenCalibration
from germane.model.text import is_space, space_of
from germane.model.validation import checked_text, checked_words
from germane.operations.assemble import AssembleRequest, assemble
from germane.operations.context import AgentContext
from germane.operations.conversation import Conversation
from germane.operations.frame import MessageFilter, PlanInput
from germane.operations.inputs import checked_count
from germane.operations.recording import Recorder
from germane.operations.search import passage_search
from germane.operations.turn_search import LONG_AGO, FindTurns, TurnSearch, derived, group_of
from germane.packing.render import heading_of
from germane.pipeline import PipelineInput
from germane.pipeline import assemble as assemble_context
from germane.plans.layered import LONGEST_FIRST
from germane.protocols import TokenCounter
from germane.renditions import renditions_of
from germane.stores.location import CONVERSATIONS
from germane.stores.relational.conversation_cache import ConversationIndex
from germane.stores.relational.message_columns import columns_of
from germane.tokens import CachedCounter, get_counter, spendable

Sayable: TypeAlias = Conversation | str | Mapping[str, Any] | Sequence[Mapping[str, Any] | Message]
"""The dialogue of a request: a conversation, or messages in any layout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSpending:
    """The window of a model, the tokens reserved for its answer, and how tokens are counted.

    `counter` None is the one that fits the provider.
    """

    window: int
    reserve: int
    counter: str | TokenCounter | None = None
    calibration: TokenCalibration | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySelection:
    """The memory of a request: a plan, for a frame and a query, or a context as it is.

    `of` are the sessions of the agent or space whose memories are shown and whose ledger gets the record, and
    of spaces beside it. `where` filters the memories, None being every active one. `record` says whether the
    assembly is recorded, None as the session does; `cold` that it is the first of its engine.
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
        """A key by which two requests about the same group differ."""
        plan = self.memory
        named = plan.text if isinstance(plan, Context) else plan.name if isinstance(plan, Plan) else plan
        return "\n".join([self.query or "", named or "", self.frame, *(one.agent for one in self.of)])


def request(
    session: AgentContext,
    given: Sayable,
    *,
    spending: TokenSpending,
    provider: str | Provider,
    system: str | Sequence[Mapping[str, Any]] | None,
    tools: Sequence[Mapping[str, Any]],
    selection: MemorySelection,
    shares: RequestShares | None,
    tiers: Tiers | None,
    anchors: Mapping[str, str] | None,
    pins: Sequence[str | Group],
    previous: Request | RequestState | Mapping[str, Any] | None,
) -> Request:
    """The request for a conversation or messages of the session, with the memory that is selected."""
    _check_gathers(session, selection)
    to = _provider(provider)
    counter = _counter(session, to, spending.counter)
    before = _state(previous)
    calibration = _calibration(spending.calibration, before, counter, to)
    limit, notes = _limit(spending, counter, calibration)
    messages, name = _messages(session, given)
    tiers = tiers or Tiers()
    arranged = session.arrangements.of(session.agent, name, to, counter, tiers)
    contexts: list[Context] = []
    recorder = _recorder(selection)
    with arranged.lock:
        arranged.follow(messages)
        query = derived(session, arranged.prompt(), selection.query)
        spec = RequestSpec(
            limit=limit,
            system=_system(system),
            tools=_tools(tools),
            anchors=_anchors(given, anchors),
            pins=_pins(arranged, pins, name),
            remember=_remember(
                arranged,
                selection,
                query,
                contexts=contexts,
                recorder=recorder,
                messages=_other_messages(session, selection, messages, name),
            ),
            recall=_recall(session, arranged, name, query),
            still_stands=lambda ids: _still_stands(selection, ids),
            query=selection.query_key,
            admits=repr(selection.where or ""),
            shares=shares or RequestShares(),
            previous=before if before.calibration.provider == to.value else None,
        )
        sizes = {"window": spending.window, "reserve": spending.reserve}
        made = request_of(arranged, spec, **sizes, notes=notes, calibration=calibration, remembered=contexts)
    if isinstance(given, Mapping):
        made = _counted_without(made, sum(each.form in _BESIDE for each in messages[:2]))
    if recorder is not None:
        options = {MADE_FOR: "request", **({} if name is None else {SESSION: name})}
        recorder.record(made.memory, options=options, cold=selection.cold and len(contexts) == 1)
    return made


_BESIDE: Final = frozenset({anthropic.SYSTEM, openai.INSTRUCTIONS})
"""The forms of the messages that a provider's arguments name beside the list of messages."""


def _counted_without(made: Request, opening: int) -> Request:
    """The request with origins counted in the list of messages alone, which `opening` messages precede."""
    return replace(
        made,
        origins=tuple(tuple(place - opening for place in places) for places in made.origins),
        shortened=frozenset(place - opening for place in made.shortened),
    )


def _check_gathers(session: AgentContext, selection: MemorySelection) -> None:
    """Raise InvalidInput for spaces or a filter where no memories are gathered."""
    first = selection.of[0]
    beside = [one for one in selection.of[1:] if is_space(one.agent)]
    memory = selection.memory
    if selection.where is not None and (memory is None or isinstance(memory, Context)):
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


def _recorder(selection: MemorySelection) -> Recorder | None:
    """The recorder of a request's memory, if any. Raises InvalidInput where recording finds no memory."""
    session = selection.of[0]
    if not (session.records if selection.record is None else selection.record):
        return None
    if selection.memory is not None and not isinstance(selection.memory, Context):
        return Recorder(session)
    if selection.record is None:
        return None
    given = "is a context that is made already" if selection.memory is not None else "isn't given"
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


def _state(previous: Request | RequestState | Mapping[str, Any] | None) -> RequestState:
    if isinstance(previous, Mapping):
        return RequestState.from_json(previous)
    return (
        RequestState() if previous is None else previous.state if isinstance(previous, Request) else previous
    )


def _calibration(
    given: TokenCalibration | None, before: RequestState, counter: TokenCounter, provider: Provider
) -> TokenCalibration | None:
    """The calibration of the counter: the given one, or that of the previous request."""
    learned_for = (counter.name, provider.value)
    if given is None:
        known = before.calibration
        return known if (known.counter, known.provider) == learned_for else None
    if (given.counter, given.provider) != learned_for:
        raise InvalidInput(
            f"The calibration was learned for {given.counter} and {given.provider}, and this request is "
            f"counted by {counter.name} for {provider}. Keep a calibration for each."
        )
    return given


def _limit(
    spending: TokenSpending, counter: TokenCounter, calibration: TokenCalibration | None
) -> tuple[int, list[TraceNote]]:
    """The tokens to spend by the counter, without margins, and a note on these."""
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


def _messages(session: AgentContext, given: Sayable) -> tuple[tuple[Message, ...], str | None]:
    """The messages, and the name of the conversation where they are one."""
    if isinstance(given, Conversation):
        _check_own(session, given)
        return tuple(given.without_state(given.messages())), given.session
    if isinstance(given, Sequence) and any(isinstance(each, Message) for each in given):
        if not all(isinstance(each, Message) for each in given):
            raise InvalidInput("Messages were given both as values and as objects. Give all in one form.")
        values = [each for each in given if isinstance(each, Message)]
        for each in values:
            checked_text("".join([each.text, *(result.text for result in each.results)]), name="messages")
        numbered = [each if each.seq else each.evolve(seq=place) for place, each in enumerate(values, 1)]
        return grouped(numbered), None
    return grouped(read_messages(given)), None


def _other_messages(
    session: AgentContext, selection: MemorySelection, messages: Sequence[Message], name: str | None
) -> MessageFilter:
    """The messages of other conversations than the one that is sent. A space has none."""
    sessions = {(each.agent, each.session) for each in messages if each.session}
    texts = frozenset({each.own_text.strip() for each in messages} - {""}) if name is None else frozenset()
    return MessageFilter(
        of=selection.of[0].sides,
        sessions=frozenset(sessions | ({(session.agent, name)} if name is not None else set())),
        texts=texts,
    )


def _system(system: str | Sequence[Mapping[str, Any]] | None) -> list[Message]:
    if system is None or not system:
        return []
    if isinstance(system, str):
        return [Message(role=MessageRole.SYSTEM, parts=(TextPart(text=checked_text(system, name="system")),))]
    return [anthropic.read_system(list(system))]


def _tools(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    if isinstance(tools, str | Mapping) or not all(isinstance(tool, Mapping) for tool in tools):
        raise InvalidInput(f"tools={str(tools)[:60]!r} can't be sent: give a list of the provider's objects.")
    sent: list[dict[str, Any]] = json.loads(to_json(list(tools)))
    return sent


def _anchors(source: Sayable, given: Mapping[str, str] | None) -> Mapping[str, str]:
    own = source.anchors() if isinstance(source, Conversation) else {}
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
    selection: MemorySelection,
    query: DerivedQuery,
    *,
    contexts: list[Context],
    recorder: Recorder | None,
    messages: MessageFilter,
) -> Callable[[int], MemoryBlock] | None:
    """A function that assembles memory within a budget, and adds each context to `contexts`."""
    memory = selection.memory
    if memory is None:
        return None
    if isinstance(memory, Context):
        contexts.append(memory)
        given = MemoryBlock(text=memory.text, shows=_shown(memory), required=True)
        return lambda _: given
    plan = memory
    session, *beside = selection.of

    def remember(budget: int) -> MemoryBlock:
        request = AssembleRequest(
            query=query.text,
            where=selection.where or Filter(),
            counter=arranged.counter,
            how=PlanInput(plan=plan, frame=selection.frame, budget=budget),
            spaces=tuple(beside),
            messages=messages,
        )
        context = assemble(session, request) if recorder is None else recorder.assemble(request)
        contexts.append(context)
        return MemoryBlock(text=context.text if context.items else "", shows=_shown(context))

    return remember


def _shown(context: Context) -> dict[str, float]:
    return {item.memory.version_id: max(item.score, 0.0) for item in context.items}


def _still_stands(selection: MemorySelection, ids: Sequence[str]) -> bool:
    if isinstance(selection.memory, Context):
        # Its text is given, whosever memories are in it: a space's are no agent's own.
        return True
    found = [each for one in selection.of for each in one.store.get(one.agent, ids) if each is not None]
    current = {each.version_id for each in found if each.status in (Status.ACTIVE, Status.ARCHIVED)}
    return current.issuperset(one for one in ids if not one.endswith("@0")) and all(
        _is_visible(selection.of[0], split_id(one)[0]) for one in ids if one.endswith("@0")
    )


def _is_visible(session: AgentContext, message_id: str) -> bool:
    found = (CONVERSATIONS.required(one.store).message(one.agent, message_id) for one in session.sides)
    return any(message is not None and not message.hidden for message in found)


_TURN: Final = BUILT_IN.require("episode")
_RECALLED: Final = Plan(
    name="recalled",
    sections=(
        Section(
            name="recalled",
            heading="",
            kinds=(_TURN.name,),
            share=Share(weight=1),
            levels=LONGEST_FIRST,
            by_session=True,
        ),
    ),
    roll_over=RollOver.BEST,
)
"""Shows turns as a context shows those that are memories."""


def _recall(session: AgentContext, arranged: Arrangement, name: str | None, query: DerivedQuery) -> Recall:
    """A function that shows the turns that match a query, as `assemble` shows memories.

    It searches when it is first called: a window of all groups needs no search.
    """
    messages = [each for group in arranged.order for each in arranged.members(group)]

    @cache
    def search() -> TurnSearch:
        if name is None:
            by_number = {each.seq: each for each in messages}
            index = ConversationIndex(session.language, lambda numbers: [by_number[one] for one in numbers])
            index.add(0, columns_of(messages, session.language))
            find: FindTurns = index.search
        else:
            find = partial(CONVERSATIONS.required(session.store).search, session.agent, name)
        return TurnSearch.of(
            session,
            find,
            messages,
            query.text,
            tiers=arranged.tiers,
            renditions=lambda text: renditions_of(_TURN, {"content": text}, arranged.counter),
            known=arranged.turns,
        )

    found = cache(lambda groups: search().found(groups))

    def recall(groups: Sequence[str], budget: int, shown: Container[str]) -> MemoryBlock:
        result = found(frozenset(groups))
        table = CandidateTable.of(result.slices[0])
        new = [place for place, turn in enumerate(table.memories) if _name_of(turn) not in shown]
        return _within(arranged, search(), replace(result, slices=(table.at(new),)), budget)

    return recall


def _within(arranged: Arrangement, search: TurnSearch, found: SearchResult, budget: int) -> MemoryBlock:
    """The turns that were found in at most so many tokens, each session under its day, in their order."""
    passages = passage_search(search.session, search.query, found)
    given = PipelineInput(
        plan=_RECALLED,
        question=search.parsed.question,
        query=search.query,
        budget=budget,
        counter=arranged.counter,
        kinds=BUILT_IN,
        lines=arranged.lines,
        now=search.scoring(found).now,
        prefer=search.parsed.prefers,
        passages=None if passages is None else passages.scores,
    )
    items = sorted(assemble_context(given, found).items, key=lambda item: item.memory.id)
    lines: list[str] = []
    scores: dict[str, float] = {}
    for item in items:
        day = heading_of(_RECALLED.sections[0], item.memory, BUILT_IN)
        if item.memory.created_at != LONG_AGO and day not in lines:
            lines.append(day)
        lines.append(item.text)
        # An excerpt shows what one question is answered by, and not another.
        excerpt = "" if item.level is Level.FULL else item.text
        scores[_name_of(item.memory, excerpt)] = max(item.score, 0.0)
    return MemoryBlock(text="\n".join(lines), shows=scores)


def _name_of(turn: Memory, excerpt: str = "") -> str:
    """The name of a turn, or of what is shown of it."""
    part = f"/{zlib.crc32(excerpt.encode('utf-8', 'surrogatepass'))}" if excerpt else ""
    return f"{group_of(turn)} {turn.id}{part}"


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
    """A compaction that makes a conversation fit a budget. Raises BudgetTooSmall or InvalidInput."""
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


def compact(
    session: AgentContext, conversation: Conversation, proposed: Compaction, *, undo: bool = False
) -> Compaction:
    """Hide the groups of a compaction and store its summary as an anchor, in one transaction, or `undo` that.

    Undoing restores the summary that the compaction replaced. Raises MessageNotFound.
    """
    _check_own(session, conversation)
    if proposed.hides:
        text = proposed.replaces if undo else proposed.summary
        changes: list[ConversationChange] = [
            *(SetHidden(group=group, hidden=not undo) for group in proposed.hides),
            SetAnchor(name=proposed.anchor, text=text),
        ]
        CONVERSATIONS.required(session.store).apply(session.agent, conversation.session, changes)
    return proposed


def _check_own(session: AgentContext, conversation: Conversation) -> None:
    if conversation.agent != session.agent:
        raise InvalidInput(
            f"The conversation belongs to agent {conversation.agent!r}, and the engine to {session.agent!r}. "
            "Use the engine that it came from, or a space of that engine's."
        )
