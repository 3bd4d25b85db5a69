"""The asynchronous API: each method of the engine, run on a worker thread.

There is no second implementation: the synchronous core is the only one, and SQLite's work never blocks
the event loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from functools import partial, update_wrapper
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from germane.engine import Engine
from germane.engine.handle import StoreHandle
from germane.engine.handle import connect as connect_store
from germane.engine.handle import open as open_engine
from germane.engine.space import Space
from germane.operations.conversation import Conversation
from germane.operations.ledger import Ledger
from germane.operations.quarantine import Quarantine
from germane.operations.working_set import WorkingSet, Wrapping
from germane.protocols import TokenCounter
from germane.working_sets import WorkingSetItem

__all__ = [
    "AsyncConversation",
    "AsyncEngine",
    "AsyncLedger",
    "AsyncQuarantine",
    "AsyncSpace",
    "AsyncStoreHandle",
    "AsyncWorkingSet",
    "connect",
    "open",
]

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")


def _awaited_open(function: Callable[P, Engine]) -> Callable[P, Coroutine[Any, Any, AsyncEngine]]:
    """`germane.open` with its arguments and errors, awaited."""

    async def opened(*args: P.args, **kwargs: P.kwargs) -> AsyncEngine:
        return AsyncEngine(await asyncio.to_thread(function, *args, **kwargs))

    update_wrapper(opened, function)
    return opened


open = _awaited_open(open_engine)  # noqa: A001 - As `germane.open`.


class _Connecting:
    """What `connect` returns: awaited it is the handle, and in `async with` it closes that at the end."""

    def __init__(self, connecting: Callable[[], StoreHandle]) -> None:
        self._connecting = connecting
        self._handle: AsyncStoreHandle | None = None

    def __await__(self) -> Generator[Any, None, AsyncStoreHandle]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> AsyncStoreHandle:
        self._handle = AsyncStoreHandle(await asyncio.to_thread(self._connecting))
        return self._handle

    async def __aexit__(self, *_: object) -> None:
        if self._handle is not None:
            await self._handle.close()


def _connecting(function: Callable[P, StoreHandle]) -> Callable[P, _Connecting]:
    """`germane.connect` with its arguments and errors, for `await` and for `async with`."""

    def connected(*args: P.args, **kwargs: P.kwargs) -> _Connecting:
        return _Connecting(partial(function, *args, **kwargs))

    update_wrapper(connected, function)
    return connected


connect = _connecting(connect_store)


class _Running:
    """What runs on worker threads for an engine, so that closing it takes nothing from under a write.

    A task that is cancelled stops waiting for its thread; nobody else knows then that it still works.
    """

    def __init__(self) -> None:
        self._calls = 0
        self._changed = threading.Condition()

    async def call(self, verb: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of a verb, from a worker thread."""
        return await asyncio.to_thread(self._counted, verb, *args, **kwargs)

    def wait(self) -> None:
        """Return once nothing runs."""
        with self._changed:
            self._changed.wait_for(lambda: self._calls == 0)

    def _counted(self, verb: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._changed:
            self._calls += 1
        try:
            return verb(*args, **kwargs)
        finally:
            with self._changed:
                self._calls -= 1
                self._changed.notify_all()


def _awaited(verb: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """The awaited form of a verb: same arguments, result and errors."""

    async def awaited(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        running: _Running = self._running
        return await running.call(_own(verb, self._behind), *args, **kwargs)

    update_wrapper(awaited, verb)
    return awaited


def _own(verb: Callable[Concatenate[Any, P], R], behind: object) -> Callable[P, R]:
    """The object's own form of a verb: a subclass may have another."""
    found: Callable[P, R] = getattr(behind, getattr(verb, "__name__"))  # noqa: B009 - See `checking`.
    return found


def _awaited_last(verb: Callable[[Engine], None]) -> Callable[[AsyncEngine], Coroutine[Any, Any, None]]:
    """The same for the verb that ends the others, which are waited for."""

    def ended(self: AsyncEngine) -> None:
        self._running.wait()
        verb(self.engine)

    async def awaited(self: AsyncEngine, /) -> None:
        await asyncio.to_thread(ended, self)

    update_wrapper(awaited, verb)
    return awaited


def _awaited_of_conversation(verb: Callable[..., R]) -> Callable[..., Coroutine[Any, Any, R]]:
    """The same for a verb that takes a conversation, which may be an awaited one."""

    async def awaited(self: Any, /, *args: Any, **kwargs: Any) -> R:
        given: Any = [each.conversation if isinstance(each, AsyncConversation) else each for each in args]
        running: _Running = self._running
        return await running.call(_own(verb, self._behind), *given, **kwargs)

    update_wrapper(awaited, verb)
    return awaited


def _awaited_figure(figure: Any) -> Any:
    """The awaited form of a property: reading it gives what is to be awaited."""

    def read(self: Any) -> Coroutine[Any, Any, Any]:
        found: Coroutine[Any, Any, Any] = self._running.call(figure.fget, self._behind)
        return found

    return property(read, doc=figure.__doc__)


def _awaited_as(
    kind: Callable[[R, _Running], A], verb: Callable[Concatenate[Any, P], R]
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, A]]:
    """The same for a verb whose result has verbs that are awaited in their turn: it is given as that kind."""

    async def awaited(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> A:
        running: _Running = self._running
        return kind(await running.call(_own(verb, self._behind), *args, **kwargs), running)

    update_wrapper(awaited, verb)
    return awaited


class AsyncWorkingSet(Wrapping):
    """A working set whose verbs and figures are awaited, and that `recall(..., into=...)` takes.

    `working_set` is the synchronous one behind it. `await working_set.tokens` reads a figure; what iterating
    and `in` do is done by `async for` and `holds`.
    """

    def __init__(self, working_set: WorkingSet, running: _Running | None = None) -> None:
        self.working_set = self._behind = working_set
        self._running = running or _Running()

    @property
    def name(self) -> str:
        """The name of the set."""
        return self.working_set.name

    @property
    def owner(self) -> str:
        """Whose set it is."""
        return self.working_set.owner

    max_tokens = _awaited_figure(WorkingSet.max_tokens)
    tokens = _awaited_figure(WorkingSet.tokens)
    utilization = _awaited_figure(WorkingSet.utilization)
    moved = _awaited_figure(WorkingSet.moved)
    items = _awaited(WorkingSet.items)
    holds = _awaited(WorkingSet.holds)
    has_space = _awaited(WorkingSet.has_space)
    add = _awaited(WorkingSet.add)
    add_many = _awaited(WorkingSet.add_many)
    add_recalled = _awaited(WorkingSet.add_recalled)
    touch = _awaited(WorkingSet.touch)
    remove = _awaited(WorkingSet.remove)
    pin = _awaited(WorkingSet.pin)
    unpin = _awaited(WorkingSet.unpin)
    clear = _awaited(WorkingSet.clear)
    evict = _awaited(WorkingSet.evict)
    resize = _awaited(WorkingSet.resize)
    assemble = _awaited(WorkingSet.assemble)
    changes = _awaited(WorkingSet.changes)
    follow = _awaited(WorkingSet.follow)

    async def __aiter__(self) -> AsyncIterator[WorkingSetItem]:
        for item in await self.items():
            yield item


class AsyncLedger:
    """A ledger whose verbs are awaited. `ledger` is the synchronous one behind it."""

    def __init__(self, ledger: Ledger, running: _Running | None = None) -> None:
        self.ledger = self._behind = ledger
        self._running = running or _Running()

    list = _awaited(Ledger.list)
    show = _awaited(Ledger.show)
    purge = _awaited(Ledger.purge)
    diff = _awaited(Ledger.diff)
    replay = _awaited(Ledger.replay)


class AsyncQuarantine:
    """A quarantine whose verbs are awaited. `quarantine` is the synchronous one behind it."""

    def __init__(self, quarantine: Quarantine, running: _Running | None = None) -> None:
        self.quarantine = self._behind = quarantine
        self._running = running or _Running()

    list = _awaited(Quarantine.list)
    release = _awaited(Quarantine.release)
    purge = _awaited(Quarantine.purge)


class AsyncConversation:
    """A conversation whose verbs are awaited. `conversation` is the synchronous one behind it."""

    def __init__(self, conversation: Conversation, running: _Running | None = None) -> None:
        self.conversation = self._behind = conversation
        self._running = running or _Running()

    @property
    def session(self) -> str:
        """The name of the conversation."""
        return self.conversation.session

    @property
    def agent(self) -> str:
        """The agent or space that owns the conversation."""
        return self.conversation.agent

    exists = _awaited(Conversation.exists)
    append = _awaited(Conversation.append)
    extend = _awaited(Conversation.extend)
    messages = _awaited(Conversation.messages)
    groups = _awaited(Conversation.groups)
    current = _awaited(Conversation.current)
    hide = _awaited(Conversation.hide)
    unhide = _awaited(Conversation.unhide)
    remove = _awaited(Conversation.remove)
    remove_message = _awaited(Conversation.remove_message)
    undo = _awaited(Conversation.undo)
    purge = _awaited(Conversation.purge)
    anchor = _awaited(Conversation.anchor)
    anchors = _awaited(Conversation.anchors)
    state = _awaited_figure(Conversation.state)
    set_state = _awaited(Conversation.set_state)
    summary = _awaited(Conversation.summary)
    without_state = _awaited(Conversation.without_state)
    expand = _awaited(Conversation.expand)
    items = _awaited(Conversation.items)
    payload = _awaited(Conversation.payload)
    window = _awaited(Conversation.window)
    ranked = _awaited(Conversation.ranked)
    anchored = _awaited(Conversation.anchored)


class _Verbs:
    """What an engine and a space have in common, awaited; `_behind` is the synchronous one."""

    _behind: Engine | Space
    _running: _Running

    @property
    def agent(self) -> str:
        """Whose memory this is, also where it is bound to one user."""
        return self._behind.agent

    @property
    def user(self) -> str | None:
        """The user to whom the engine is bound; None for the agent itself, and for a space."""
        return self._behind.user

    @property
    def counter(self) -> TokenCounter:
        """The counter that judges budgets unless a call names another."""
        return self._behind.counter

    remember = _awaited(Engine.remember)
    remember_many = _awaited(Engine.remember_many)
    import_memories = _awaited(Engine.import_memories)
    get = _awaited(Engine.get)
    history = _awaited(Engine.history)
    memories = _awaited(Engine.memories)
    count = _awaited(Engine.count)
    filter_warnings = _awaited(Engine.filter_warnings)
    revise = _awaited(Engine.revise)
    supersede = _awaited(Engine.supersede)
    forget = _awaited(Engine.forget)
    forget_many = _awaited(Engine.forget_many)
    restore = _awaited(Engine.restore)
    purge = _awaited(Engine.purge)
    purge_many = _awaited(Engine.purge_many)
    trace_back = _awaited(Engine.trace_back)
    revoke = _awaited(Engine.revoke)
    confirm = _awaited(Engine.confirm)
    contradict = _awaited(Engine.contradict)
    review = _awaited(Engine.review)
    record_trigger = _awaited(Engine.record_trigger)
    retire = _awaited(Engine.retire)
    lifecycle_state = _awaited(Engine.lifecycle_state)
    lifecycle_states = _awaited(Engine.lifecycle_states)
    maintain = _awaited(Engine.maintain)
    learning_run = _awaited(Engine.learning_run)
    learning_runs = _awaited(Engine.learning_runs)
    unlearn = _awaited(Engine.unlearn)
    calibration = _awaited(Engine.calibration)
    recall = _awaited(Engine.recall)
    assemble = _awaited(Engine.assemble)
    request = _awaited_of_conversation(Engine.request)
    frames = _awaited(Engine.frames)
    kinds = _awaited(Engine.kinds)
    refresh = _awaited(Engine.refresh)
    feedback = _awaited(Engine.feedback)
    observe = _awaited(Engine.observe)
    metrics = _awaited(Engine.metrics)
    ledger = _awaited_as(AsyncLedger, Engine.ledger)
    quarantine = _awaited_as(AsyncQuarantine, Engine.quarantine)
    outcome = _awaited(Engine.outcome)
    set_learning = _awaited(Engine.set_learning)
    reset_learning = _awaited(Engine.reset_learning)
    usage_history = _awaited(Engine.usage_history)
    import_usage_history = _awaited(Engine.import_usage_history)
    expand = _awaited(Engine.expand)
    embed_pending = _awaited(Engine.embed_pending)
    stats = _awaited(Engine.stats)
    doctor = _awaited(Engine.doctor)
    working_set = _awaited_as(AsyncWorkingSet, Engine.working_set)


class AsyncSpace(_Verbs):
    """A space whose verbs are awaited. `space` is the synchronous one behind it."""

    def __init__(self, space: Space, running: _Running | None = None) -> None:
        self.space = self._behind = space
        self._running = running or _Running()

    @property
    def name(self) -> str:
        """The name of the space."""
        return self.space.name

    @property
    def member(self) -> str:
        """The agent that uses the space, whether it is a member or not."""
        return self.space.member

    info = _awaited(Space.info)
    members = _awaited(Space.members)
    join = _awaited(Space.join)
    leave = _awaited(Space.leave)
    promote = _awaited(Space.promote)
    demote = _awaited(Space.demote)
    fail_over = _awaited(Space.fail_over)
    disband = _awaited(Space.disband)
    share = _awaited(Space.share)
    learn_from = _awaited_of_conversation(Space.learn_from)
    consolidate = _awaited(Space.consolidate)
    events = _awaited(Space.events)
    follow = _awaited(Space.follow)
    close = _awaited(Space.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncEngine(_Verbs):
    """An engine whose verbs are awaited. `engine` is the synchronous one behind it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = self._behind = engine
        self._running = _Running()

    def for_user(self, user: str) -> AsyncEngine:
        """This agent for one user, as `Engine.for_user` gives it."""
        return AsyncEngine(self.engine.for_user(user))

    space = _awaited_as(AsyncSpace, Engine.space)
    spaces = _awaited(Engine.spaces)
    conversation = _awaited_as(AsyncConversation, Engine.conversation)
    sessions = _awaited(Engine.sessions)
    events = _awaited(Engine.events)
    changes = _awaited(Engine.changes)
    latest_change = _awaited(Engine.latest_change)
    learn_from = _awaited_of_conversation(Engine.learn_from)
    consolidate = _awaited(Engine.consolidate)
    about = _awaited(Engine.about)
    same_name = _awaited(Engine.same_name)
    compaction = _awaited_of_conversation(Engine.compaction)
    compact = _awaited_of_conversation(Engine.compact)
    uncompact = _awaited_of_conversation(Engine.uncompact)
    close = _awaited_last(Engine.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncStoreHandle:
    """A handle whose verbs are awaited but for `agent`, which does no work. `handle` is the one behind it."""

    def __init__(self, handle: StoreHandle) -> None:
        self.handle = self._behind = handle
        self._running = _Running()

    def agent(self, name: str = "default", *, language: str | None = None) -> AsyncEngine:
        """The engine of an agent, as `StoreHandle.agent` gives it."""
        return AsyncEngine(self.handle.agent(name, language=language))

    agents = _awaited(StoreHandle.agents)
    users = _awaited(StoreHandle.users)
    purge_user = _awaited(StoreHandle.purge_user)
    create_key = _awaited(StoreHandle.create_key)
    keys = _awaited(StoreHandle.keys)
    revoke_key = _awaited(StoreHandle.revoke_key)
    key_of = _awaited(StoreHandle.key_of)
    once = _awaited(StoreHandle.once)
    stats = _awaited(StoreHandle.stats)
    close = _awaited(StoreHandle.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
