"""Opens stores: one handle for all agents of a process, or an engine of one agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self
from weakref import WeakSet

from germane import operations
from germane.engine import Engine
from germane.ids import IdSequence
from germane.kinds import Kind
from germane.model.plan import Frame
from germane.model.text import user_tenant
from germane.model.validation import as_utc
from germane.operations.embedding import Embeds
from germane.operations.inputs import checked_agent, checking, checking_verbs, is_eager
from germane.operations.setup import AUTO, DEFAULT_COUNTER, EngineOptions, OpenStore, opened
from germane.protocols import Clock, Embedder, FrameSelector, Reranker, Store, Summarizer, TokenCounter
from germane.stores.location import TIMEOUT, location_of

if TYPE_CHECKING:
    from germane.access import AccessKey, AccessRight, Attempt, NewKey
    from germane.ledger import AgentFigures, Progress, StoreUsage
    from germane.operations.stores import Removal


@checking
def connect(
    location: str | Path | Store,
    *,
    embedder: Embedder | str | None = AUTO,
    counter: str | TokenCounter = DEFAULT_COUNTER,
    summarizer: Summarizer | None = None,
    reranker: Reranker | None = None,
    kinds: Iterable[Kind] = (),
    frames: Iterable[Frame] | str | Path = (),
    frame_selector: FrameSelector | None = None,
    durability: Literal["full", "relaxed"] = "full",
    read_only: bool = False,
    replica: str | None = None,
    key: bytes | str | None = None,
    timeout: float = TIMEOUT,
    pool_size: int | None = None,
    cache_bytes: int | None = None,
    clock: Clock | None = None,
    ids: IdSequence | None = None,
    record: bool = False,
) -> StoreHandle:
    """Connect to a store for any number of agents: `connect(...).agent("newton")` is an engine.

    All handles and engines of a process that name the same address in the same way share one pool of at most
    `pool_size` connections (10), one writer, and caches of at most `cache_bytes` (450 MiB) for all agents;
    the least recently used leave first. `timeout` is how many seconds to wait for a connection, for other
    writers of the same agent, and for a server that restarts. The other arguments are those of
    `germane.open`, and hold for all engines of the handle. Raises what that raises, and InvalidInput for a
    size that differs from that of the same store where it is open.
    """
    options = EngineOptions.of(
        counter=counter,
        kinds=kinds,
        frames=frames,
        frame_selector=frame_selector,
        summarizer=summarizer,
        reranker=reranker,
        clock=clock,
        ids=ids,
        record=record,
    )
    store = opened(
        location,
        embedder,
        durability=durability,
        read_only=read_only,
        replica=replica,
        key=key,
        timeout=timeout,
        pool_size=pool_size,
        cache_bytes=cache_bytes,
    )
    return StoreHandle(store, options, location, read_only=read_only)


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
    key: bytes | str | None = None,
    clock: Clock | None = None,
    ids: IdSequence | None = None,
    record: bool = False,
) -> Engine:
    """Open an agent's memory: a path to a SQLite file, ":memory:", a PostgreSQL address, or your own Store.

    The file, or the tables at an address ("postgresql://…", with the extra `postgres`), are made when they
    aren't there; engines of one process share what is open of the same address. `replica` is the address of a
    standby of that server, which answers what is read once it has what this process wrote. `embedder` is
    "bundled", "minilm" (with the extra `onnx`), an object, or None for words alone. By default it is what
    GERMANE_EMBEDDER names, else what made the store's vectors, else the bundled one; vectors of a model that
    isn't at hand are left aside. A Store of your own uses an embedder only if you give one. A `reranker`
    scores the 50 best results of each query anew. `durability="relaxed"` may lose the last moments before a
    power cut, never consistency. `language` is the one whose endings are cut from words, by its Snowball
    name; it stays with the agent ("english" until one is given); another indexes its memories anew. `frames`
    are further frames, or a TOML file of them; `frame_selector` chooses one for "auto". `clock` replaces the
    system's, and `ids` what makes ids, for tests and replays. With `record`, assemblies go into the ledger.
    Raises InvalidInput, UnreadableSource, MissingExtra, StoreUnavailable, StoreBusy, SchemaTooNew, and
    EmbedderMismatch.
    """
    checked_agent(agent)  # Before a file is made.
    handle = connect(
        location,
        embedder=embedder,
        counter=counter,
        summarizer=summarizer,
        reranker=reranker,
        kinds=kinds,
        frames=frames,
        frame_selector=frame_selector,
        durability=durability,
        read_only=read_only,
        replica=replica,
        key=key,
        clock=clock,
        ids=ids,
        record=record,
    )
    return handle.only(agent, language=language)


@checking_verbs
class StoreHandle:
    """A store for all agents of a process. Made by `connect`; threads may share it; a context manager.

    After a fork a child may go on with it: connections are opened anew there, or each call raises
    StoreUnavailable where another thread used the store while the process forked.
    """

    def __init__(
        self, opened: OpenStore, options: EngineOptions, location: object, *, read_only: bool = False
    ) -> None:
        self._opened = opened
        self._location = location
        self._options = options
        slow = opened.embedder is not None and not is_eager(opened.embedder)
        self._embeds = slow and not read_only
        self._engines: WeakSet[Engine] = WeakSet()

    def agent(self, name: str = "default", *, language: str | None = None) -> Engine:
        """The engine of an agent. It takes no connection and no thread, and reads nothing until it is used.

        Closing it leaves the store open. `language` is as in `germane.open`. With an embedder that isn't
        eager, what the agent wrote before is embedded after its next write. Raises InvalidInput.
        """
        session = self._options.context(self._opened, checked_agent(name), language)
        embeds: Embeds = "after a write" if self._embeds else "by hand"
        engine = Engine(session, embeds=embeds, engines=self._engines)
        self._engines.add(engine)
        return engine

    def agents(self) -> tuple[AgentFigures, ...]:
        """The agents, users and spaces of the store, how many memories each has, and its last write.

        A space is named `space:NAME`, one user of an agent `user:NAME:AGENT`.
        Raises InvalidInput for a Store of your own.
        """
        return operations.stores.agents_of(self._opened.store)

    def users(
        self, *, agent: str | None = None, limit: int | None = None, after: str | None = None
    ) -> Mapping[str, tuple[str, ...]]:
        """The users that `Engine.for_user` named, by name, each with the agents that know something of them.

        With `agent` those of one agent. `limit` is the most to return, `after` the user that ended the page
        before. Raises InvalidInput, also for a Store of your own, and StoreUnavailable for a PostgreSQL role
        that may see one agent at a time: use the owner's address, repeating the call doesn't help.
        """
        return operations.stores.users_of(self._opened.store, agent=agent, limit=limit, after=after)

    def purge_user(
        self,
        user: str,
        *,
        agent: str | None = None,
        confirm: bool = False,
        progress: Progress | None = None,
    ) -> Removal:
        """Remove all that any agent knows of a user: memories, conversations, working sets, ledger, feedback.

        With `agent` only what that one knows. It can't be undone, so it needs `confirm=True`. When it
        returns, nothing of that user is found any more, and a file holds no bytes of it; in PostgreSQL
        `erase_purged` is due. What the user's engines put into spaces stays there, in the name of the space.
        Called again after an interruption, it does the rest. Raises PurgeNotConfirmed, LastActive for a space
        that would be left to members that may only read, StoreBusy, InvalidInput, and StoreUnavailable for a
        PostgreSQL role that may see one agent at a time: use the owner's address.
        """
        return operations.stores.purge_user(
            self._opened.store,
            self._location,
            user,
            agent=agent,
            confirm=confirm,
            progress=progress,
            now=as_utc(self._options.clock(), name="clock"),
        )

    def create_key(
        self,
        agent: str,
        *,
        user: str | None = None,
        may: Iterable[AccessRight | str] = ("read", "write"),
        expires: datetime | timedelta | str | None = None,
    ) -> NewKey:
        """Make a key for an agent, or for one user of it, by which a server knows who asks.

        The store has its hash alone: the text of the result is shown once. `may` are "read", "write" and
        "admin", of which none includes another; `expires` is a time, such as "2027-01-31", or how long it is
        valid, None for ever. Raises InvalidInput, also for a Store of your own.
        """
        clock = self._options.clock
        return operations.access.create_key(
            self._opened.store, agent, user=user, may=may, expires=expires, clock=clock
        )

    def keys(self) -> tuple[AccessKey, ...]:
        """Every key of the store, also those revoked or expired, the oldest first. Raises InvalidInput."""
        return operations.access.keys(self._opened.store)

    def revoke_key(self, key_id: str) -> AccessKey:
        """End a key for good, by its id. Raises InvalidInput for an unknown one."""
        return operations.access.revoke_key(self._opened.store, key_id, clock=self._options.clock)

    def key_of(self, text: str) -> AccessKey | None:
        """The valid key of that text, which is compared in constant time; None for what is none."""
        return operations.access.key_of(self._opened.store, text, clock=self._options.clock)

    def once(
        self,
        agent: str,
        key: str,
        request: bytes,
        make: Callable[[], bytes | None],
        *,
        user: str | None = None,
        gives_up: timedelta | float = 120,
    ) -> Attempt:
        """Do what a request asks once, however often it is sent with the same `key`, to whatever process.

        `make` does it and returns the answer, or None for one after which it may be sent again. The answer is
        stored for a day, of an agent or its `user` the latest 1,000 and 32 MiB, each of 256 KiB at most. A
        purge takes away all answers that may hold what it removes. A request that has been under way for
        `gives_up` seconds counts as having died with its process, and is done by who sends it again. Raises
        what `make` raises, StoreError, and InvalidInput, also for a Store of your own.
        """
        name = checked_agent(agent) if user is None else user_tenant(user, checked_agent(agent))
        seconds = gives_up if isinstance(gives_up, timedelta) else timedelta(seconds=gives_up)
        return operations.replies.once(
            self._opened.store, name, key, request, make, gives_up=seconds, clock=self._options.clock
        )

    def stats(self) -> StoreUsage:
        """Connections and caches of the store in this process. Raises InvalidInput for your own Store."""
        return operations.stores.usage_of(self._opened.store)

    def close(self) -> None:
        """End the handle and its engines; the store closes with the last of its users here. Twice is fine."""
        for engine in tuple(self._engines):
            engine.close()
        self._opened.store.close()

    def only(self, name: str, *, language: str | None = None) -> Engine:
        """An engine that closes the handle when it is closed: what `germane.open` returns."""
        try:
            session = self._options.context(self._opened, checked_agent(name), language)
            session.words.name  # noqa: B018 - Raises for a language or a store that can't be used.
        except BaseException:
            self.close()
            raise
        embeds: Embeds = "at once" if self._embeds else "by hand"
        return Engine(session, embeds=embeds, release=self.close, engines=self._engines)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        place = self._location
        shown = location_of(place) if isinstance(place, str | Path) else type(place).__name__
        return f"<germane.StoreHandle {shown!r}>"
