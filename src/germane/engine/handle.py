"""Opens stores: one handle for all agents of a process, or an engine of one agent."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self
from weakref import WeakSet

from germane.engine import Engine
from germane.ids import IdSequence
from germane.kinds import Kind
from germane.model.plan import Frame
from germane.operations.inputs import checked_agent, checking, checking_verbs, is_eager
from germane.operations.setup import AUTO, DEFAULT_COUNTER, EngineOptions, OpenStore, opened
from germane.protocols import Clock, Embedder, FrameSelector, Reranker, Store, Summarizer, TokenCounter
from germane.stores.location import TIMEOUT
from germane.stores.relational.store import RelationalStore

if TYPE_CHECKING:
    from germane.ledger import AgentFigures, StoreUsage


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
    timeout: float = TIMEOUT,
    pool_size: int | None = None,
    cache_bytes: int | None = None,
    clock: Clock | None = None,
    ids: IdSequence | None = None,
    record: bool = False,
) -> StoreHandle:
    """Connect to a store for any number of agents: `connect(...).agent("newton")` is an engine.

    All handles and engines of a process that name the same address in the same way share one pool of at most
    `pool_size` connections (10), one writer, and caches of at most `cache_bytes` (512 MiB) for all agents;
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
        timeout=timeout,
        pool_size=pool_size,
        cache_bytes=cache_bytes,
    )
    return StoreHandle(store, options, read_only=read_only)


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

    def __init__(self, opened: OpenStore, options: EngineOptions, *, read_only: bool = False) -> None:
        self._opened = opened
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
        engine = Engine(session, embeds="after a write" if self._embeds else "by hand")
        self._engines.add(engine)
        return engine

    def agents(self) -> tuple[AgentFigures, ...]:
        """The agents and spaces of the store, how many memories each has, and when each last wrote one.

        Raises InvalidInput for a Store of your own.
        """
        from germane.operations.stores import agents_of  # noqa: PLC0415 - Most processes list none.

        return agents_of(self._opened.store)

    def stats(self) -> StoreUsage:
        """Connections and caches of the store in this process. Raises InvalidInput for your own Store."""
        store = self._opened.store
        if not isinstance(store, RelationalStore):
            from germane.operations.stores import without_tables  # noqa: PLC0415 - As above.

            raise without_tables(store)
        return store.usage()

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
        return Engine(session, embeds="at once" if self._embeds else "by hand", release=self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<germane.StoreHandle {getattr(self._opened.store, 'location', '')!r}>"
