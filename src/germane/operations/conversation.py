"""conversation: the log of a session, views of it, and the memories that it already contains."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from germane.conversation import formats
from germane.conversation.compaction import cost_by
from germane.conversation.formats import (
    Payload,
    as_provider,
    read_message,
    read_messages,
    write_messages,
    written_alone,
)
from germane.conversation.formats.parts import in_parts, in_words, named, names_of_calls
from germane.conversation.groups import (
    WEIGHTS,
    RecencyScope,
    current_of,
    groups_of,
    is_always_selected,
    named_by,
    placed,
    prompt_of,
    ranked,
    ranked_by_name,
    window,
    with_earlier,
)
from germane.conversation.state_block import DEFAULT_PATTERN, STATE, StateBlock
from germane.conversation.views import RecallLimits, Tiers, anchored, tiering
from germane.errors import EmbeddingFailed, InvalidInput, MessageNotFound, PurgeNotConfirmed
from germane.model.conversation import (
    Anchored,
    ConversationChange,
    Cost,
    Group,
    LastGroups,
    Message,
    MessageRole,
    Messages,
    OpaquePart,
    Provider,
    PurgeMessages,
    RemoveGroup,
    RemoveMessage,
    RewriteMessage,
    Selection,
    SessionSummary,
    SetAnchor,
    SetHidden,
    ToolCall,
    ToolResult,
    deferred,
)
from germane.model.memory import Vector
from germane.model.validation import as_utc, checked_moment, checked_text
from germane.operations.context import AgentContext
from germane.operations.inputs import checked_count, checking_verbs, vectors_to_store
from germane.operations.turn_search import LATEST, TurnSearch, derived
from germane.protocols import TokenCounter
from germane.stores.location import CONVERSATIONS
from germane.stores.relational.conversation_records import indexed_words
from germane.tokens import CachedCounter, get_counter, spendable

if TYPE_CHECKING:
    from germane.stores.relational.conversations import ConversationTables


def conversation(
    session: AgentContext,
    name: str,
    *,
    state_pattern: str = DEFAULT_PATTERN,
    woken: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Conversation:
    """The conversation of that name; what it stores, it stores inside of `woken`.

    Raises InvalidInput for an empty name, a pattern that can't be one, or a store without conversations.
    """
    if not checked_text(name, name="session").strip():
        raise InvalidInput(f"session={name!r} is empty: give the conversation a name, such as 'chat-42'.")
    log = CONVERSATIONS.required(session.store)
    return Conversation(session, name, log, StateBlock(state_pattern), woken)


@checking_verbs
class Conversation:
    """One session's messages, in the order in which they were appended, and views of them.

    Groups are named by id or given as they are. What is hidden or removed is in no view.
    """

    def __init__(
        self,
        session: AgentContext,
        name: str,
        log: ConversationTables,
        block: StateBlock,
        woken: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._session = session
        self._name = name
        self._log = log
        self._block = block
        self._woken = woken

    @property
    def session(self) -> str:
        """The name of the conversation."""
        return self._name

    @property
    def agent(self) -> str:
        """The agent or space that owns the conversation."""
        return self._session.agent

    def exists(self) -> bool:
        """Whether the conversation was begun, by a message or an anchor, and not purged since."""
        return self._log.has(self.agent, self._name)

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
        return self._append([given], group=_id_of(group), at=created_at)[0]

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
        return self._append(read)

    def messages(
        self, *, hidden: bool = False, limit: int | None = None, after: int = 0
    ) -> tuple[Message, ...]:
        """The messages in order, all of them by default; with `hidden`, those of hidden groups as well.

        `limit` is the most to return, `after` the `seq` of the message that ended the page before. Raises
        InvalidInput.
        """
        checked_count(after, name="after")
        most = None if limit is None else checked_count(limit, name="limit")
        found = self._log.messages(self.agent, self._name, hidden=hidden)
        first = bisect_right(found, after, key=attrgetter("seq")) if after else 0
        return found if most is None and not first else found[first:][:most]

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
        return self._apply(RemoveMessage(message_id=message_id))[0]

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
        removed = self._apply(PurgeMessages(group=_id_of(group)))
        self._session.clear_texts()
        return len(removed)

    def anchor(self, name: str, text: str) -> None:
        """Store a text outside any window, in place of the one of the same name; an empty one removes it.

        `state` and `scratchpad` are two names that agents use; each text is a block of its own.
        """
        if not checked_text(name, name="name").strip():
            raise InvalidInput(f"name={name!r} is empty: give the anchor a name, such as 'state'.")
        checked_text(text, name="text")
        self._log.apply(self.agent, self._name, [SetAnchor(name=name, text=text)])

    @property
    def state(self) -> str:
        """What the work stands at: the block of the latest message of the assistant that has one, or "".

        The block is what matches the `state_pattern` of `Engine.conversation`. It is stored as the anchor
        `state` when the message is appended, so it stands outside any window, and views show the message
        without it. Setting it is `set_state`.
        """
        return self.anchors().get(STATE, "")

    @state.setter
    def state(self, text: str) -> None:
        """Write another state, as `set_state` does."""
        self.set_state(text)

    def set_state(self, text: str) -> None:
        """Write another state into the last message of the assistant, and store it; an empty one removes it.

        Where the assistant wrote nothing yet it is stored alone. Raises InvalidInput.
        """
        checked_text(text, name="state")
        last = next((each for each in reversed(self.messages()) if each.role is MessageRole.ASSISTANT), None)
        changes: list[ConversationChange] = [SetAnchor(name=STATE, text=text.strip())]
        if last is not None:
            written = self._block.written(last, text.strip())
            if written.parts != last.parts and written.parts:
                changes.append(RewriteMessage(message_id=last.id, parts=written.parts))
        self._log.apply(self.agent, self._name, changes)

    def summary(self, *, store: bool = True) -> SessionSummary:
        """What the session was about: its title, topics, first and last message, and open questions.

        With a summarizer, its text is the `summary`. It is stored as an episode with the key
        `session:` and the name, which is found as memories are, also by the session's `title` in
        `Engine.sessions`; it is made anew where the log has changed, and purged when a part of the log is
        hidden or removed. `store=False` only returns it. Raises InvalidInput for a session without a message
        that user or assistant wrote.
        """
        from germane.operations.session_summaries import summarized  # noqa: PLC0415 - Few sessions have one.

        return summarized(self._session, self._name, self.without_state(self.messages()), store=store)

    def without_state(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The messages without their blocks of state; the same sequence where none has any."""
        cut = [self._block.without(each) for each in messages]
        changed = any(one is not other for one, other in zip(cut, messages, strict=True))
        return Messages(cut) if changed else messages

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

    def items(self, provider: str | Provider) -> list[dict[str, Any]]:
        """The visible messages as they were appended, one after the other, in a provider's layout.

        Unlike `payload`, it moves and drops nothing: a result without its call stays, and so does a call
        without its result. A provider's own messages are what was appended, field for field; those of another
        are sent as text. Texts that were given beside the messages (`system`, `instructions`) are no items.
        Raises InvalidInput for an unknown provider.
        """
        wanted = as_provider(provider) or Provider.PLAIN
        return [item for message in self.messages() for item in written_alone(message, wanted)]

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
        shown = self._shown(messages, tiers)
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
        how: dict[str, Any] = {
            "recency_scope": recency_scope,
            "counts_current": counts_current,
            "depth": depth,
            "weights": weights,
        }
        if budget is None and tiers is None and (end := self._end(groups, searches=True)) is not None:
            return self._ranked_of(end, groups, query, counter, how)
        messages = self.messages()
        prompt = "".join(map(prompt_of, groups_of(messages)[-1:])) if query is None else query
        search = self._search(messages, checked_text(prompt, name="query"))
        shown = self._shown(messages, tiers)
        cost, most = self._cost(budget, counter, shown)
        best = ranked(
            messages,
            search.by_group(gated=False).scores if search.query.terms else None,
            groups=groups,
            budget=most,
            cost=cost,
            **how,
        )
        return _of(shown, best)

    def _ranked_of(
        self,
        end: LastGroups,
        groups: int,
        query: str | None,
        counter: str | TokenCounter | None,
        how: Mapping[str, Any],
    ) -> Selection:
        """The same without a budget, by what is stored of the log: only what is selected is read of it."""
        last = [each for each in end.messages if end.opened and each.group == end.opened[-1]]
        prompt = "".join(map(prompt_of, groups_of(last)[-1:])) if query is None else query
        latest = self._log.latest(self.agent, self._name, LATEST)
        search = self._search(latest, checked_text(prompt, name="query"))
        if not search.query.terms:
            return ranked(self.messages(), None, groups=groups, **how)
        scores = search.by_group(gated=False).scores
        best = ranked_by_name(end.opened, scores, groups=groups, **how)
        always = [each for each in end.messages if is_always_selected(each)]
        chosen = self._log.of_groups(self.agent, self._name, best.groups)
        by_number = {each.seq: each for each in (*always, *chosen)}
        shown = [self._block.without(by_number[number]) for number in sorted(by_number)]
        cost, _ = self._cost(None, counter, self._block.without)
        # Who reads no count needn't wait for a counter to load its vocabulary.
        return replace(best, messages=tuple(shown), tokens=deferred(lambda: sum(map(cost, shown))))

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
        shown = self._shown(messages, tiers or Tiers())
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
        return Group(id=name, messages=self._apply(make(name)))

    def _append(
        self, messages: Sequence[Message], *, group: str | None = None, at: datetime | None = None
    ) -> tuple[Message, ...]:
        states = [state for each in messages if (state := self._block.read(each)) is not None]
        beside = [SetAnchor(name=STATE, text=states[-1])] if states else []
        with self._woken():
            return append(self._session, self._log, self._name, messages, group=group, at=at, beside=beside)

    def _apply(self, change: ConversationChange) -> tuple[Message, ...]:
        """The messages that a change moves, with the state and without the summary of what it leaves."""
        from germane.operations.session_summaries import forget_summary  # noqa: PLC0415 - As above.

        forget_summary(self._session, self._name, change, self.messages)
        return self._log.apply(self.agent, self._name, [*self._restated(change), change])

    def _restated(self, change: ConversationChange) -> list[ConversationChange]:
        """What sets the state to that of the messages that a change leaves, where it moves a block."""
        returns = isinstance(change, SetHidden) and not change.hidden
        if not returns and not self.state:
            return []
        every = self.messages(hidden=True)
        moved = named_by(change, every)
        if not any(each.seq in moved and self._block.read(each) is not None for each in every):
            return []
        left = (each for each in every if (returns if each.seq in moved else not each.hidden))
        states = [state for each in left if (state := self._block.read(each)) is not None]
        return [SetAnchor(name=STATE, text=states[-1] if states else "")]

    def _shown(self, messages: Sequence[Message], tiers: Tiers | None) -> Callable[[Message], Message]:
        """A function that takes the state out of a message, and cuts its results to the tiers, if any."""
        without = self._block.without
        if tiers is None:
            return without
        cut = tiering(messages, active=current_of(messages), tiers=tiers)
        return lambda message: cut(without(message))

    def _end(self, groups: int, *, searches: bool = False) -> LastGroups | None:
        """The messages that a window of so many groups needs, where the store can read only these."""
        if type(groups) is not int or groups < 1:
            return None
        return self._log.last_groups(self.agent, self._name, groups, searches=searches)

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
    beside: Sequence[SetAnchor] = (),
) -> tuple[Message, ...]:
    """Store messages at the end of a conversation, each under an id of its own, and return them as stored.

    The anchors `beside` are set in the same transaction.
    """
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
    added = replace(placed(new, earlier), vectors=_vectors(session, new))
    return log.apply(session.agent, name, [added, *beside])


def _vectors(session: AgentContext, messages: Sequence[Message]) -> tuple[Vector | None, ...]:
    """The vectors to store with messages; they wait for them where the embedder isn't eager, or fails."""
    if session.embedder is None:
        return ()
    try:
        return tuple(vectors_to_store(session.embedder, [indexed_words(each) for each in messages]))
    except EmbeddingFailed:
        # What was written is stored all the same.
        return ()
