"""conversation: the log of a session, views of it, and the memories that it already contains."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from germane.conversation import formats
from germane.conversation.compaction import cost_by
from germane.conversation.formats import Payload, as_provider, read_message, read_messages, write_messages
from germane.conversation.formats.parts import in_parts, in_words, named, names_of_calls, spoken_lines
from germane.conversation.groups import (
    WEIGHTS,
    RecencyScope,
    current_of,
    derive_query,
    groups_of,
    placed,
    prompt_of,
    ranked,
    window,
    with_earlier,
)
from germane.conversation.views import RecallLimits, Tiers, anchored, tiered, tiering
from germane.errors import InvalidInput, MessageNotFound, PurgeNotConfirmed
from germane.model.conversation import (
    Anchored,
    ConversationChange,
    Cost,
    DerivedQuery,
    Group,
    GroupScores,
    LastGroups,
    Message,
    OpaquePart,
    Provider,
    PurgeMessages,
    RemoveGroup,
    RemoveMessage,
    Selection,
    SetAnchor,
    SetHidden,
    ToolCall,
    ToolResult,
)
from germane.model.memory import Memory, Rendition, Renditions, Scope
from germane.model.query import CandidateTable, Filter, Query, SearchResult, Slice
from germane.model.validation import as_utc, checked_moment, checked_text
from germane.operations.context import AgentContext
from germane.operations.inputs import checked_count, checking_verbs, embed_texts
from germane.operations.passages import by_passages
from germane.operations.search import ParsedQuery, passage_search, query_of, understand
from germane.protocols import TokenCounter
from germane.ranking.relevance import Scoring, outside, rank
from germane.retrieval.quality import english_idf
from germane.retrieval.tokenizer import query_terms, term_hash
from germane.stores.location import CONVERSATIONS
from germane.stores.relational.conversation_cache import TurnVectors
from germane.stores.relational.conversation_records import SPEAKER
from germane.tokens import CachedCounter, get_counter, spendable

if TYPE_CHECKING:
    from germane.stores.relational.conversations import ConversationTables


def conversation(session: AgentContext, name: str) -> Conversation:
    """The conversation of that name. Raises InvalidInput for an empty name, or a store without any."""
    if not checked_text(name, name="session").strip():
        raise InvalidInput(f"session={name!r} is empty: give the conversation a name, such as 'chat-42'.")
    return Conversation(session, name, CONVERSATIONS.required(session.store))


@checking_verbs
class Conversation:
    """One session's messages, in the order in which they were appended, and views of them.

    Groups are named by id or given as they are. What is hidden or removed is in no view.
    """

    def __init__(self, session: AgentContext, name: str, log: ConversationTables) -> None:
        self._session = session
        self._name = name
        self._log = log

    @property
    def session(self) -> str:
        """The name of the conversation."""
        return self._name

    @property
    def agent(self) -> str:
        """The agent or space that owns the conversation."""
        return self._session.agent

    def append(
        self,
        message: str | Mapping[str, Any] | Message,
        content: str | Sequence[Mapping[str, Any]] | None = None,
        *,
        tool_calls: Sequence[Call] = (),
        tool_results: Sequence[Result] = (),
        provider: str | Provider | None = None,
        group: str | Group | None = None,
        created_at: datetime | None = None,
    ) -> Message:
        """Add a message at the end: a role with its content, or a whole message in a provider's layout.

        A user's message opens a group unless one is named; answers join it, and results join their calls.
        `provider` names the layout, which is detected otherwise; beside a role it names the provider of the
        tool traffic. Raises InvalidInput for an invalid message.
        """
        given = message_of(message, content, tool_calls, tool_results, as_provider(provider))
        return append(self._session, self._log, self._name, [given], group=_id_of(group), at=created_at)[0]

    def extend(
        self,
        messages: Iterable[Mapping[str, Any] | Message] | Mapping[str, Any],
        *,
        provider: str | Provider | None = None,
    ) -> tuple[Message, ...]:
        """Add many messages, all or none: a list, or a request with its system or instructions.

        Raises InvalidInput, naming the message by its number, for an invalid one.
        """
        given: Any = messages if isinstance(messages, Mapping) else list(messages)
        if isinstance(given, list) and any(isinstance(each, Message) for each in given):
            read = tuple(message_of(each, None, (), (), as_provider(provider)) for each in given)
        else:
            read = read_messages(given, provider)
        return append(self._session, self._log, self._name, read)

    def messages(self, *, hidden: bool = False) -> tuple[Message, ...]:
        """All messages in order; with `hidden`, those of hidden groups as well."""
        return self._log.messages(self.agent, self._name, hidden=hidden)

    def groups(self, *, hidden: bool = False) -> tuple[Group, ...]:
        """All groups in the order in which they were opened; with `hidden`, the hidden ones as well."""
        return groups_of(self.messages(hidden=hidden), hidden=hidden)

    def current(self) -> Group | None:
        """The group being formed: the one that was opened last. None before the first."""
        groups = self.groups()
        return groups[-1] if groups else None

    def hide(self, group: str | Group) -> Group:
        """Remove a group from every view; it stays stored. Raises MessageNotFound."""
        return self._change(group, lambda name: SetHidden(group=name, hidden=True))

    def unhide(self, group: str | Group) -> Group:
        """Restore a hidden group to its place. Raises MessageNotFound."""
        return self._change(group, lambda name: SetHidden(group=name, hidden=False))

    def remove(self, group: str | Group) -> Group:
        """Delete a group, and return what it was. Raises MessageNotFound."""
        return self._change(group, lambda name: RemoveGroup(group=name))

    def remove_message(self, message_id: str) -> Message:
        """Delete one message, and return what it was. Raises MessageNotFound."""
        return self._log.apply(self.agent, self._name, [RemoveMessage(message_id=message_id)])[0]

    def undo(self) -> Group | None:
        """Delete the current group, and return what it was; None where there is none."""
        current = self.current()
        return current and self.remove(current)

    def purge(self, group: str | Group | None = None, *, confirm: bool = False) -> int:
        """Delete a group, or the whole conversation and its anchors, and every trace of their text.

        Returns how many messages went. It rewrites the file and can't be undone, so it needs
        `confirm=True`. Raises PurgeNotConfirmed or MessageNotFound.
        """
        if confirm is not True:
            raise PurgeNotConfirmed
        self._session.passages.clear()
        self._session.heard.clear()
        self._session.lines.clear()
        return len(self._log.apply(self.agent, self._name, [PurgeMessages(group=_id_of(group))]))

    def anchor(self, name: str, text: str) -> None:
        """Store a text outside any window, in place of the one of the same name; an empty one removes it.

        `state` and `scratchpad` are two names that agents use; each text is a block of its own.
        """
        if not checked_text(name, name="name").strip():
            raise InvalidInput(f"name={name!r} is empty: give the anchor a name, such as 'state'.")
        checked_text(text, name="text")
        self._log.apply(self.agent, self._name, [SetAnchor(name=name, text=text)])

    def anchors(self) -> Mapping[str, str]:
        """The texts that are stored outside any window, by name."""
        return self._log.anchors(self.agent, self._name)

    def expand(self, message_id: str) -> str | list[dict[str, Any]]:
        """The whole of a message, where a view has cut it. Raises MessageNotFound, for a hidden one too.

        It is a text. A message with images, files and the like is a list of content parts instead: its words
        as parts of type "text", and what has no text as it was given, in its provider's form.
        """
        message = self._log.message(self.agent, message_id)
        if message is None or message.session != self._name or message.hidden:
            raise MessageNotFound("message", message_id, self._name)
        names: dict[str, str] = {}
        if message.results:
            for each in self.messages():
                names |= names_of_calls(each)
        content = (*message.parts, *(part for result in message.results for part in result.content))
        if any(isinstance(part, OpaquePart) and named(part) for part in content):
            return in_parts(message, names)
        return in_words(message, names)

    def payload(self, provider: str | Provider, messages: Iterable[Message] | None = None) -> Payload:
        """Messages in a provider's layout; all visible ones unless a view's are given.

        Messages of another provider are sent as text, without their tool traffic.
        """
        return write_messages(self.messages() if messages is None else messages, provider)

    def window(
        self,
        groups: int = 0,
        *,
        budget: int | None = None,
        counter: str | TokenCounter | None = None,
        tiers: Tiers | None = None,
    ) -> Selection:
        """The last `groups` groups (0 all, -1 none), of at most `budget` tokens; the tighter limit counts.

        System messages and those of no group are always selected. `tiers` shortens tool results.
        Raises BudgetTooSmall and InvalidInput.
        """
        end = self._end(groups)
        messages = self.messages() if end is None else end.messages
        shown = _shown(messages, tiers)
        cost, most = self._cost(budget, counter, shown)
        found = _of(shown, window(messages, groups=groups, budget=most, cost=cost))
        return found if end is None else with_earlier(found, end.opened)

    def ranked(
        self,
        groups: int = 0,
        *,
        query: str | None = None,
        budget: int | None = None,
        counter: str | TokenCounter | None = None,
        recency_scope: RecencyScope = "all",
        counts_current: bool = True,
        depth: int | None = None,
        weights: Sequence[float] = WEIGHTS,
        tiers: Tiers | None = None,
    ) -> Selection:
        """The best `groups` groups (0 all, -1 the current alone) for a query, in their order.

        The query is the latest prompt unless one is given; one without terms ranks by recency
        alone. `weights` are those of words and recency. `recency_scope="matched"`, `counts_current=False`
        and `depth=20` select as std_slop does; see `germane.conversation.groups`. Raises BudgetTooSmall
        and InvalidInput.
        """
        messages = self.messages()
        prompt = "".join(map(prompt_of, groups_of(messages)[-1:])) if query is None else query
        search = self._search(messages, checked_text(prompt, name="query"))
        shown = _shown(messages, tiers)
        cost, most = self._cost(budget, counter, shown)
        best = ranked(
            messages,
            search.by_group(gated=False).scores if search.query.terms else None,
            groups=groups,
            budget=most,
            cost=cost,
            recency_scope=recency_scope,
            counts_current=counts_current,
            depth=depth,
            weights=weights,
        )
        return _of(shown, best)

    def anchored(
        self,
        groups: int = 5,
        *,
        query: str | None = None,
        budget: int | None = None,
        counter: str | TokenCounter | None = None,
        recall: RecallLimits | None = None,
        tiers: Tiers | None = None,
    ) -> Anchored:
        """The last `groups` groups unbroken, and beside them anchors and what is recalled from before.

        The query is the latest prompt unless one is given; where the prompt is too short, the topic of the
        exchanges before it joins the query. Tool results are cut to `tiers`. Raises BudgetTooSmall and
        InvalidInput.
        """
        messages = self.messages()
        shown = _shown(messages, tiers or Tiers())
        wanted = derived(self._session, messages, query)
        scores = self._search(messages, wanted.text).by_group()
        cost, most = self._cost(budget, counter, shown)
        found = anchored(
            messages,
            scores,
            groups=groups,
            budget=most,
            cost=cost,
            anchors=self.anchors(),
            query=wanted,
            recall=recall,
            tiers=tiers,
        )
        return replace(found, window=_of(shown, found.window))

    def __repr__(self) -> str:
        return f"<germane.Conversation session={self._name!r} agent={self.agent!r}>"

    def _change(self, group: str | Group, make: Callable[[str], ConversationChange]) -> Group:
        """The group with the messages that a change of it hid, showed or deleted."""
        name = _id_of(group)
        if name is None:
            raise InvalidInput("group=None names no group: name one, such as conversation.current().")
        return Group(id=name, messages=self._log.apply(self.agent, self._name, [make(name)]))

    def _end(self, groups: int) -> LastGroups | None:
        """The messages that a window of so many groups needs, where the store can read only these."""
        if type(groups) is not int or groups < 1:
            return None
        return self._log.last_groups(self.agent, self._name, groups)

    def _search(self, messages: Sequence[Message], text: str) -> TurnSearch:
        find = partial(self._log.search, self.agent, self._name)
        return TurnSearch.of(self._session, find, messages, text)

    def _cost(
        self, budget: int | None, counter: str | TokenCounter | None, shown: Callable[[Message], Message]
    ) -> tuple[Cost, int | None]:
        """The cost of a message as it is shown, and the budget without the counter's margin."""
        counts = self._session.counter if counter is None else CachedCounter(get_counter(counter))
        cost = cost_by(counts)
        most = None if budget is None else spendable(checked_count(budget, name="budget"), counts)
        return (lambda message: cost(shown(message))), most


def _shown(messages: Sequence[Message], tiers: Tiers | None) -> Callable[[Message], Message]:
    """A function that cuts a message's results to the tiers, if there are any."""
    if tiers is None:
        return lambda message: message
    return tiering(messages, active=current_of(messages), tiers=tiers)


def _of(shown: Callable[[Message], Message], selection: Selection) -> Selection:
    return replace(selection, messages=tuple(map(shown, selection.messages)))


def _id_of(group: str | Group | None) -> str | None:
    if group is None:
        return None
    name = group.id if isinstance(group, Group) else checked_text(group, name="group")
    if not name:
        raise InvalidInput("group='' names no group: name one, or leave it out to have it found.")
    return name


# Append messages to a conversation's log: read them, and find the group of each.

Call: TypeAlias = ToolCall | Mapping[str, Any]
"""A call, as itself or as an object with `id`, `name` and `arguments`."""

Result: TypeAlias = ToolResult | Mapping[str, Any]
"""A result, as itself or as an object with `call_id`, `content` and maybe `is_error`."""


def message_of(
    message: str | Mapping[str, Any] | Message,
    content: str | Sequence[Mapping[str, Any]] | None,
    tool_calls: Sequence[Call],
    tool_results: Sequence[Result],
    provider: Provider | None,
) -> Message:
    """The message in one of the forms that `Conversation.append` takes. Raises InvalidInput."""
    if not isinstance(message, str):
        if content is not None or tool_calls or tool_results:
            raise InvalidInput(
                "A whole message was given and more beside it. Put all into the message, or name a role."
            )
        return message if isinstance(message, Message) else read_message(message, provider)
    fields: dict[str, Any] = {"role": message, "tool_calls": tool_calls, "tool_results": tool_results}
    if content is not None:
        fields["content"] = content
    given = formats.read_plain({name: value for name, value in fields.items() if value != ()})
    if not given.parts:
        raise InvalidInput(
            f"A message of the role {message!r} was given without content, calls or results. Give any."
        )
    return given if provider is None else given.evolve(provider=provider)


def append(
    session: AgentContext,
    log: ConversationTables,
    name: str,
    messages: Sequence[Message],
    *,
    group: str | None = None,
    at: datetime | None = None,
) -> tuple[Message, ...]:
    """Store messages at the end of a conversation, each under an id of its own, and return them as stored."""
    if not messages:
        return ()
    now = as_utc(session.clock(), name="clock")
    moment = None if at is None else checked_moment(at, name="created_at")
    new = [
        message.evolve(
            id=session.ids.next(now),
            group=group if group is not None else message.group,
            created_at=moment or message.created_at or now,
            hidden=False,
        )
        for message in messages
    ]
    # Only a result needs earlier messages: it belongs to the group of its call.
    returns = any(message.results and message.group is None for message in new)
    earlier = log.messages(session.agent, name, hidden=True) if returns else ()
    return log.apply(session.agent, name, [placed(new, earlier)])


# Search a conversation for the turns that match a prompt, ranked as memories are.

_USUAL_RARITY = 6.5
"""The rarity of every term in a language without word statistics: that of a fairly rare word."""
_GATHERED = 100
"""Turns of each signal, as many as `recall` gathers of memories."""
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
"""The moment of messages that have none."""
_LATEST = 100
"""Messages that show whether a conversation is such a transcript."""


FindTurns: TypeAlias = Callable[..., SearchResult]
"""Searches the turns of a conversation, as `ConversationIndex.search` does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSearch:
    """A question about a conversation, whose turns have vectors if the embedder is `instant`.

    `known` are the turns that were made before, by tiers and renditions like these.
    """

    session: AgentContext
    parsed: ParsedQuery
    query: Query
    find: FindTurns
    names: bool
    tiers: Tiers
    renditions: Callable[[str], Renditions]
    known: dict[Hashable, Memory]

    @classmethod
    def of(
        cls,
        session: AgentContext,
        find: FindTurns,
        messages: Sequence[Message],
        text: str,
        *,
        tiers: Tiers | None = None,
        renditions: Callable[[str], Renditions] | None = None,
        known: dict[Hashable, Memory] | None = None,
    ) -> TurnSearch:
        """The search for a text. A time in its words counts from the latest message, so no clock is read."""
        if not getattr(session.embedder, "instant", False):
            session = replace(session, embedder=None)
        now = next((each.created_at for each in reversed(messages) if each.created_at), LONG_AGO)
        parsed = understand(session, text, Filter(), now=now)
        return cls(
            session=session,
            parsed=parsed,
            query=query_of(parsed, (Slice(limit=_GATHERED),)),
            find=find,
            names=_has_names(messages),
            tiers=tiers or Tiers(),
            renditions=renditions or partial(_whole, counter=session.counter),
            known={} if known is None else known,
        )

    def found(self, groups: Container[str] | None = None) -> SearchResult:
        """The best turns of these groups, or of all, by words and by meaning; none without a word to find."""
        if not self.query.informative:
            return SearchResult(slices=((),), by_relevance=False)
        embedder = self.session.embedder
        vectors = None
        if embedder is not None and self.query.vector is not None:
            vectors = TurnVectors(embedder.name, partial(embed_texts, embedder))
        found = self.find(self.query, self._made, vectors=vectors, groups=groups)
        return by_passages(passage_search(self.session, self.query, found), found)

    def scoring(self, found: SearchResult) -> Scoring:
        """What the scores of turns are made of, as those of memories."""
        return Scoring(
            now=LONG_AGO,
            query=self.query,
            lexical_bound=found.lexical_bound,
            window_bound=found.window_bound,
            prefer=self.parsed.prefers,
            order=self.parsed.question.order,
        )

    def by_group(self, *, gated: bool = True) -> GroupScores:
        """The best score of a turn in each group that passes the gate, or else that has any word at all."""
        found = self.found()
        ranking = rank(found.slices[0], self.scoring(found))
        table = ranking.table
        # Turns of dialogue pass the gate. Here each is judged by itself.
        alone = {name: table.column(name) for name in ("lexical", "semantic", "coverage")}
        out = np.nan_to_num(alone["lexical"]) <= 0
        if gated or out.all():
            out = outside(
                CandidateTable(table.memories, alone),
                exempt=np.zeros(len(table), dtype=np.bool_),
                information=self.query.information,
                least_cosine=self.query.least_cosine,
            )
        scores: dict[str, float] = {}
        for place, score in zip(ranking.order, ranking.scores, strict=True):
            if not out[place]:
                scores.setdefault(group_of(table.memories[place]), score)
        return GroupScores(scores=scores, bound=1.0 if scores else 0.0)

    def _made(self, turn: Sequence[Message], session: str) -> Memory:
        """A turn as what is ranked and shown: its words, who speaks, and its group."""
        key = (turn[0].seq, len(turn), session, self.names)
        if key not in self.known:
            self.known[key] = self._new(turn, session)
        return self.known[key]

    def _new(self, turn: Sequence[Message], session: str) -> Memory:
        first = turn[0]
        named = SPEAKER.match(first.text) if self.names else None
        lines = list(spoken_lines(tiered(turn, active=None, tiers=self.tiers)))
        # Who is named in the text needs no role before it.
        text = "\n".join(words if named else f"{role}: {words}" for role, words in lines)
        at = first.created_at or LONG_AGO
        return Memory(
            id=f"{first.seq:010}",
            agent=first.agent,
            kind="episode",
            content=text,
            renditions=self.renditions(text),
            created_at=at,
            updated_at=at,
            scope=Scope(name="session", value=session),
            metadata={"speaker": named[1] if named else first.role.value, "group": first.group},
        )


def _has_names(messages: Sequence[Message]) -> bool:
    """Whether most messages begin with a name, as `germane chat import` writes a dialogue of people."""
    latest = [each.text for each in messages[-_LATEST:] if each.text]
    return 2 * sum(SPEAKER.match(text) is not None for text in latest) > len(latest)


def _whole(text: str, counter: TokenCounter) -> Renditions:
    """A text at its full length, for a view that shows no shorter one."""
    full = Rendition(text=text, tokens=counter.count(text))
    return Renditions(micro=full, summary=full, full=full, counter=counter.name)


def group_of(turn: Memory) -> str:
    """The group of a turn that a search found."""
    return str(turn.metadata["group"])


def derived(session: AgentContext, messages: Sequence[Message], query: str | None) -> DerivedQuery:
    """The query's own terms, or those of the latest prompt and its topic."""
    terms_of = partial(query_terms, language=session.language)
    if query is not None:
        return DerivedQuery(prompt=query, own=terms_of(checked_text(query, name="query")))
    rarity = partial(rarities, language=session.language, usual=_USUAL_RARITY)
    return derive_query(messages, terms_of=terms_of, rarity=rarity)


def rarities(terms: Sequence[str], *, language: str, usual: float) -> Sequence[float]:
    """The rarity of each term in English; `usual` for each in another language."""
    if language != "english" or not terms:
        return [usual] * len(terms)
    hashes = np.array([term_hash(term) for term in terms], dtype=np.uint32)
    weights: list[float] = english_idf().of(hashes).tolist()
    return weights
