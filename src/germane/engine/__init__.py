"""The engine: one agent's store, counter, kinds and clock, and each operation's turn with them. No policy."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

from germane import operations
from germane.engine.contexts import ContextMethods
from germane.operations.context import AgentContext
from germane.operations.embedding import Embeds
from germane.operations.inputs import checking_verbs, is_eager
from germane.protocols import TokenCounter

if TYPE_CHECKING:
    from datetime import datetime

    from germane.conversation.views import Tiers
    from germane.engine.space import Space
    from germane.ledger import LoggedChange
    from germane.model.conversation import Compaction, ConversationInfo, Message
    from germane.model.extraction import EntityReport, LearningRun
    from germane.model.memory import LifecycleEvent
    from germane.operations.conversation import Conversation
    from germane.protocols import Extractor
    from germane.spaces import Right, SpaceInfo


@checking_verbs
class Engine(ContextMethods):
    """One agent's memory, safe to share between threads; a context manager.

    Made by `germane.open`, or by the handle of a store: `germane.connect(...).agent(name)`.

    Every method works on this agent's memories only. Each raises StoreError when the store can't
    execute the call; its docstring names what else it raises.
    """

    def __init__(
        self,
        session: AgentContext,
        *,
        embeds: Embeds = "by hand",
        release: Callable[[], None] | None = None,
        engines: WeakSet[Engine] | None = None,
    ) -> None:
        """`release` is called when the engine is closed, where it is the one that opened the store.

        `engines` are those of the same handle, which closes them.
        """
        super().__init__(session, embeds=embeds)
        self._engines = WeakSet() if engines is None else engines
        self._embeds = embeds
        self._spaces: WeakSet[Space] = WeakSet()
        self._release = release
        if embeds != "by hand":
            # Nothing is embedded any more for an engine that nobody closed.
            weakref.finalize(self, self._embedding.stop)

    def for_user(self, user: str) -> Engine:
        """This agent for one user: what it stores is that user's, and it reads the agent's own besides.

        Memories, conversations, working sets, the ledger, feedback and exports of it are the user's alone: no
        other user's engine, and not the agent's own, sees, counts or ranks by any of it. The agent's own
        memories take part in every recall and context; only the engine of the agent changes them. It takes no
        connection and no thread, and closing it leaves the store open. Raises InvalidInput for a name that
        can't be one, and on an engine that is bound already.
        """
        embeds: Embeds = "by hand" if self._embeds == "by hand" else "after a write"
        bound = Engine(self._session.for_user(user), embeds=embeds, engines=self._engines)
        self._engines.add(bound)
        return bound

    def conversation(self, session: str, *, state_pattern: str | None = None) -> Conversation:
        """The log of a session, by its name: the same log each time, also after a restart.

        `state_pattern` says how the model writes `Conversation.state` into a message: a text with `{state}`,
        by default between the lines `### STATE` and `### END STATE`. Raises InvalidInput for an empty name,
        a pattern that can't be one, or a store that keeps no conversations.
        """
        given = {} if state_pattern is None else {"state_pattern": state_pattern}
        return operations.conversation.conversation(
            self._session, session, woken=self._embedding.woken, **given
        )

    def sessions(
        self,
        *,
        user: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> tuple[ConversationInfo, ...]:
        """The conversations of this agent, or of the user to whom the engine is bound, the latest first.

        `user` lists those of one user of the agent. With `since`, a time or a text such as "last week", only
        those with a message from then on; with `until` they are as they were then, without later messages.
        `limit` is the most to return, `after` the session that ended the page before. Pages with the same
        `until` have each conversation once, also where messages are added meanwhile. Raises InvalidInput,
        also for a store that keeps no conversations.
        """
        return operations.session_summaries.sessions(
            self._session, user=user, since=since, until=until, limit=limit, after=after
        )

    def compaction(
        self,
        conversation: Conversation,
        *,
        budget: int,
        keep: int = 2,
        counter: str | TokenCounter | None = None,
        tiers: Tiers | None = None,
    ) -> Compaction:
        """What would make a conversation fit `budget` tokens; nothing is done until `compact`.

        Tool results are cut first; if that isn't enough, the oldest groups go but for the last `keep`, and
        a summary stands for them: the engine's summarizer's, or the most informative sentences. What the
        user stated plainly in them is proposed as `drafts`, for `remember_many`; call `learn_from` before it
        to store such facts with their sources. Raises BudgetTooSmall or InvalidInput.
        """
        return operations.request.compaction(
            self._session, conversation, budget=budget, keep=keep, counter=counter, tiers=tiers
        )

    def compact(self, conversation: Conversation, compaction: Compaction) -> Compaction:
        """Hide what a compaction hides, and keep its summary as an anchor. Raises MessageNotFound.

        The log keeps all, and `uncompact` undoes it.
        """
        return operations.request.compact(self._session, conversation, compaction)

    def uncompact(self, conversation: Conversation, compaction: Compaction) -> Compaction:
        """Put back what a compaction hid, and the summary that stood before it. Raises MessageNotFound."""
        return operations.request.compact(self._session, conversation, compaction, undo=True)

    def learn_from(
        self,
        source: Conversation | str | Iterable[Message | Mapping[str, Any]],
        *,
        extractor: Extractor | None = None,
        since: datetime | str | None = None,
        again: bool = False,
        dry_run: bool = False,
    ) -> LearningRun:
        """Learn facts from a conversation, the name of its session, or a list of messages; what was decided.

        `extractor` proposes them: `germane.extractors.RuleExtractor` by default, which needs no model. A
        proposal that its quotations don't support is refused; each other one becomes a new memory, confirms
        or revises a known one, or stands beside one that it contradicts. Nothing is overwritten. A
        conversation is read from where the run before ended, or from the time `since` on, or as a whole with
        `again`. Recalled text is never learned again, and hidden groups aren't read. With `dry_run` nothing
        is stored.
        Raises InvalidInput, MessageNotFound, or what the extractor raises.
        """
        with self._embedding.woken():
            return operations.learning.learn_from(
                self._session, source, extractor=extractor, since=since, again=again, dry_run=dry_run
            )

    def consolidate(
        self, *, extractor: Extractor | None = None, reflect: bool = False, dry_run: bool = False
    ) -> tuple[LearningRun, ...]:
        """Learn from every conversation with messages that weren't read, as `learn_from`; the runs.

        With `reflect`, each topic of four or more facts and episodes is summarized as a note as well, by the
        engine's summarizer or by their most representative sentences. That is a run of its own, the last.
        A note ends with the first of its memories that is purged, replaced, hidden, or expires.
        """
        with self._embedding.woken():
            runs = operations.learning.consolidate(self._session, extractor=extractor, dry_run=dry_run)
            run = operations.reflection.reflect(self._session, dry_run=dry_run) if reflect else None
        return runs if run is None else (*runs, run)

    def about(
        self, name: str, *, as_of: datetime | str | None = None, limit: int | None = None
    ) -> EntityReport:
        """What is known about somebody or something, in order of time, each fact with its sources.

        `name` is a name ("Anna"), a relation ("my sister", "Anna's boss") or "me" for the user. Names are
        merged where a memory says that they are one ("My sister Anna", "Call me Bob"), where a relation has
        one name, and where a short form stands beside its only long form in one session. A name that fits
        several stays apart: the report has several entities, and its notes say why. With `as_of` the
        report is as at that time. `limit` is the most facts of each entity, the latest. Nothing is stored:
        `same_name` corrects a merge. Raises InvalidInput.
        """
        with self._then(as_of) as session:
            return operations.entities.about(session, name, limit=limit, log=self._session)

    def same_name(self, name: str, other: str, *, same: bool = True, reason: str = "") -> LearningRun:
        """Decide that two names are one entity for `about`, or with `same=False` that they aren't.

        The decision is stored as a memory, with its reason, and prevails over what memories state. It is in
        the log of what was learned, and `unlearn` undoes it. Raises InvalidInput for two forms of one name,
        or a store that keeps no such log.
        """
        with self._embedding.woken():
            return operations.entities.same_name(self._session, name, other, same=same, reason=reason)

    def space(self, name: str, *, create: bool = False, admits: Right | str | None = "write") -> Space:
        """The space of that name, as this agent has it; it needs to join before it can do more.

        With `create` it is made where it isn't there, and this agent its first member. `admits` says to
        which rights agents may then join by themselves: "write", "read", or None where a member has to
        let them in. Raises UnknownSpace, SpaceTaken when it is there and this agent no member, or
        InvalidInput.
        """
        if create:
            operations.spaces.create(self._session, name, admits=admits)
        from germane.engine.space import Space  # noqa: PLC0415 - Most engines share nothing.

        space = Space(self._session, name, embeds=self._embeds_in(name))
        self._spaces.add(space)
        return space

    def spaces(self, *, limit: int | None = None, after: str | None = None) -> tuple[SpaceInfo, ...]:
        """The spaces that this agent is a member of, by name.

        `limit` is the most to return, `after` the name that ended the page before. Raises InvalidInput.
        """
        return operations.spaces.spaces_of(self._session, limit=limit, after=after)

    def events(
        self, memory_id: str | None = None, *, after: int = 0, limit: int | None = None
    ) -> tuple[LifecycleEvent, ...]:
        """What moved a memory in all its versions, or all memories: who, when and why, oldest first.

        `after` is the number of the last event known, `limit` the most to return. Raises NotFound.
        """
        return operations.lifecycle.events(self._session, memory_id, after=after, limit=limit)

    def changes(self, *, after: int = 0, limit: int | None = None) -> tuple[LoggedChange, ...]:
        """What happened to the memories after the change numbered `after`, in any process, oldest first.

        It tells what was stored, revised, forgotten, moved, used and purged, without any text; `limit` is the
        most to return. Raises InvalidInput.
        """
        return operations.ledger.changes(self._session, after=after, limit=limit)

    def latest_change(self) -> int:
        """The number of the latest change, from which `changes` can go on; 0 where there is none."""
        return operations.ledger.latest_change(self._session)

    def close(self) -> None:
        """Release the store, unless this is an engine of a store that `connect` opened. Twice is fine.

        What is being embedded just now, and a batch after it, is waited for, 5 seconds at most; the rest
        waits in the store.
        """
        for space in tuple(self._spaces):
            space.close()
        self._embedding.stop()
        if self._release is not None:
            self._release()

    def _embeds_in(self, name: str) -> Embeds:
        """Whether vectors come later here as well, and this agent is one who may store them."""
        embedder = self._session.embedder
        if embedder is None or is_eager(embedder):
            return "by hand"
        member = operations.spaces.required_info(self._session, name).member(self._session.agent)
        return "at once" if member is not None and member.leads else "by hand"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        user = "" if self.user is None else f" user={self.user!r}"
        return f"<germane.Engine agent={self.agent!r}{user} counter={self.counter.name!r}>"
