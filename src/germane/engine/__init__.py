"""The engine: one agent's store, counter, kinds and clock, and each operation's turn with them. No policy."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self
from weakref import WeakSet

from germane import operations
from germane.engine.contexts import ContextMethods
from germane.ids import IdSequence
from germane.kinds import Kind
from germane.model.plan import Frame
from germane.operations.context import AgentContext
from germane.operations.inputs import checking, checking_verbs, is_eager
from germane.operations.setup import AUTO, opened
from germane.protocols import Clock, Embedder, FrameSelector, Reranker, Store, Summarizer, TokenCounter
from germane.stores.location import CONVERSATIONS

if TYPE_CHECKING:
    from germane.conversation.views import Tiers
    from germane.engine.space import Space
    from germane.model.conversation import Compaction, ConversationInfo
    from germane.model.memory import LifecycleEvent
    from germane.operations.conversation import Conversation
    from germane.spaces import Right, SpaceInfo

# Opens an agent's memory.

DEFAULT_COUNTER = "o200k"


@checking
def open(  # noqa: A001 - It is `germane.open`.
    location: str | Path | Store,
    *,
    agent: str = "default",
    embedder: Embedder | str | None = AUTO,
    counter: str | TokenCounter = DEFAULT_COUNTER,
    summarizer: Summarizer | None = None,
    reranker: Reranker | None = None,
    kinds: Iterable[Kind] = (),
    frames: Iterable[Frame] | str | Path = (),
    frame_selector: FrameSelector | None = None,
    language: str | None = None,
    durability: Literal["full", "relaxed"] = "full",
    read_only: bool = False,
    replica: str | None = None,
    clock: Clock | None = None,
    ids: IdSequence | None = None,
    record: bool = False,
) -> Engine:
    """Open an agent's memory: a path to a SQLite file, ":memory:", a PostgreSQL address, or your own Store.

    The file, or the tables at an address ("postgresql://…", with the extra `postgres`), are made when they
    aren't there. `replica` is the address of a standby of that server, which answers what is read once it has
    what this process wrote. `embedder` is "bundled", "minilm" (with the extra `onnx`), an object, or None for
    words alone. By default it is what GERMANE_EMBEDDER names, else what made the store's vectors, else the
    bundled one; vectors of a model that isn't at hand are left aside. A Store of your own uses an embedder
    only if you give one. A `reranker` scores the 50 best results of each query anew. `durability="relaxed"`
    may lose the last moments before a power cut, never consistency. `language` is the one whose endings are
    cut from words, by its Snowball name; it stays with the agent ("english" until one is given); another
    indexes its memories anew. `frames` are further frames, or a TOML file of them; `frame_selector` chooses
    one for "auto". `clock` replaces the system's, and `ids` what makes ids, for tests and replays. With
    `record`, assemblies go into the ledger. Raises InvalidInput, UnreadableSource, MissingExtra,
    StoreUnavailable, StoreBusy, SchemaTooNew, and EmbedderMismatch.
    """
    session = opened(
        location,
        agent=agent,
        embedder=embedder,
        counter=counter,
        summarizer=summarizer,
        reranker=reranker,
        kinds=kinds,
        frames=frames,
        frame_selector=frame_selector,
        language=language,
        durability=durability,
        read_only=read_only,
        replica=replica,
        clock=clock,
        ids=ids,
        record=record,
    )
    slow = session.embedder is not None and not is_eager(session.embedder) and not read_only
    return Engine(session, embed_in_background=slow)


@checking_verbs
class Engine(ContextMethods):
    """One agent's memory. Made by `germane.open`; safe to share between threads; a context manager.

    Every method works on this agent's memories only. Each raises StoreError when the store can't
    do what is asked; what else it raises is named there.
    """

    def __init__(self, session: AgentContext, *, embed_in_background: bool = False) -> None:
        super().__init__(session, embed_in_background=embed_in_background)
        self._spaces: WeakSet[Space] = WeakSet()
        if embed_in_background:
            # The thread must not outlive an engine that nobody closed.
            weakref.finalize(self, self._embedding.stop)

    def conversation(self, session: str) -> Conversation:
        """The log of a session, by its name: the same log each time, also after a restart.

        Raises InvalidInput for an empty name, or a store that keeps no conversations.
        """
        return operations.conversation.conversation(self._session, session)

    def conversations(self) -> tuple[ConversationInfo, ...]:
        """All conversations of this agent, by the names of their sessions.

        Raises InvalidInput for a store that keeps none.
        """
        return CONVERSATIONS.required(self._session.store).sessions(self.agent)

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
        a summary stands for them: the engine's summarizer's, or the most telling sentences. What was said
        in them that sounds worth keeping is proposed as `drafts`, for `remember_many`. Raises
        BudgetTooSmall or InvalidInput.
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

        space = Space(self._session, name, embed_in_background=self._embeds_in_background(name))
        self._spaces.add(space)
        return space

    def spaces(self) -> tuple[SpaceInfo, ...]:
        """The spaces that this agent is a member of, by name."""
        return operations.spaces.spaces_of(self._session)

    def events(
        self, memory_id: str | None = None, *, after: int = 0, limit: int | None = None
    ) -> tuple[LifecycleEvent, ...]:
        """What moved a memory in all its versions, or all memories: who, when and why, oldest first.

        `after` is the number of the last event known, `limit` the most to return. Raises NotFound.
        """
        return operations.lifecycle.events(self._session, memory_id, after=after, limit=limit)

    def close(self) -> None:
        """Release the store. Closing twice is fine.

        What is being embedded just now, and a batch after it, is waited for, 5 seconds at most; the rest
        waits in the store.
        """
        for space in tuple(self._spaces):
            space.close()
        self._embedding.stop()
        self._session.store.close()

    def _embeds_in_background(self, name: str) -> bool:
        """Whether vectors come later here as well, and this agent is one who may store them."""
        embedder = self._session.embedder
        if embedder is None or is_eager(embedder):
            return False
        member = operations.spaces.required_info(self._session, name).member(self.agent)
        return member is not None and member.leads

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<germane.Engine agent={self.agent!r} counter={self.counter.name!r}>"
