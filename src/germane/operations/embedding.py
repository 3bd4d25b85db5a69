"""Embeds the memories that wait for a vector: in the foreground, or on one thread for all agents of a store.

A crash loses nothing that this module has: the store records which memories wait.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock, Thread, current_thread
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from germane.errors import EmbeddingFailed, GermaneError, InvalidInput, NotFound
from germane.forks import renewed
from germane.model.memory import NOWHERE, Memory, Status
from germane.model.query import Filter
from germane.model.text import counted
from germane.operations.inputs import checked_count, embed_texts, is_eager
from germane.protocols import Embedder, Store
from germane.stores.location import CONVERSATIONS

if TYPE_CHECKING:
    from germane.ledger import Finding, Progress
    from germane.model.conversation import Message

_EAGER_BATCH: Final = 1000
_SLOW_BATCH: Final = 64
_BATCHES_OF_A_PAGE: Final = 8
_FEWER: Final = 4  # A batch that failed is tried again with a quarter as many.
_FAILURES_IN_A_ROW: Final = 8
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
_LOOK_AGAIN: Final = 30.0
_BETWEEN_AGENTS: Final = 0.1
_LONGEST_PATIENCE: Final = 3600.0
_MOST_DOUBLINGS: Final = 10
_GOODBYE: Final = 5.0

_WAITING: Final = Filter(embedded=False, statuses=(Status.ACTIVE, Status.SUPERSEDED, Status.ARCHIVED))
"""What is forgotten isn't shown to any model; restored, it waits again."""


Embeds: TypeAlias = Literal["by hand", "after a write", "at once"]
"""When the memories of an agent are embedded in the background: never, from its first write on, or now."""


class Embedding:
    """The embedding of one agent's memories: in the background where the embedder is slow."""

    def __init__(
        self, backlog: Backlog | None, background: BackgroundEmbedding | None, embeds: Embeds
    ) -> None:
        """`backlog` is None without an embedder."""
        self._backlog = backlog
        self._background = None if embeds == "by hand" else background
        if embeds == "at once" and self._background is not None and self._backlog is not None:
            self._background.wake(self._backlog)

    def embed_pending(self, *, limit: int | None, progress: Progress | None) -> int:
        """Embed what waits, as `Backlog.drain` does. Raises InvalidInput where there is no embedder."""
        if self._backlog is None:
            raise InvalidInput(
                "There is no embedder to do it: the store was opened without one. Open it with embedder=..., "
                "on the command line with --embedder or GERMANE_EMBEDDER."
            )
        if limit is not None:
            checked_count(limit, name="limit")
        return self._backlog.drain(limit=limit, progress=progress)

    @contextmanager
    def woken(self) -> Iterator[None]:
        """Whatever is stored inside, even by half, is embedded soon."""
        try:
            yield
        finally:
            if self._background is not None and self._backlog is not None:
                self._background.wake(self._backlog)

    def findings(self) -> tuple[Finding, ...]:
        """What `doctor` has to say of the backlog."""
        if self._backlog is None:
            return ()
        attended = self._background is not None and self._background.is_attending(self._backlog)
        return self._backlog.findings(attended=attended)

    def stop(self) -> None:
        """Embed in the background no more. Stopping twice is fine."""
        if self._background is not None and self._backlog is not None:
            self._background.dismiss(self._backlog)


@dataclass(frozen=True, slots=True)
class _WaitingMessage:
    """A message that waits for a vector, by its number in the store."""

    num: int
    message: Message

    @property
    def version_id(self) -> str:
        """What names it among all that waits."""
        return f"message {self.num}"

    @property
    def content(self) -> str:
        """The text to embed."""
        from germane.stores.relational.conversation_records import indexed_words  # noqa: PLC0415 - With messages.

        return indexed_words(self.message)


_Waiting: TypeAlias = "Memory | _WaitingMessage"


class Backlog:
    """The memories of an agent that wait for a vector, newest first: they are recalled soonest. Messages of
    its conversations come after them.

    Threads may share it. A batch that the embedder refuses is made smaller, until the text that it
    refuses is alone; that one is set aside, so that it holds up no other, and tried again last.
    Several processes may embed the same memory at the same time: the same vector is then stored twice.
    """

    def __init__(self, store: Store, agent: str, embedder: Embedder) -> None:
        self._store = store
        self._agent = agent
        self._embedder = embedder
        self._most = _EAGER_BATCH if is_eager(embedder) else _SLOW_BATCH
        self._size = self._most
        self._page: list[str] = []
        self._aside: set[str] = set()
        self._turn = renewed(Lock())
        self.failures = 0
        self.last_error: GermaneError | None = None

    def step(self, most: int | None = None) -> int:
        """Embed a batch of at most so many memories: how many; 0 when none waits that isn't set aside.

        Raises EmbeddingFailed or StoreError. What was embedded before stays.
        """
        with self._turn:
            size = self._size if most is None else min(self._size, most)
            batch: Sequence[_Waiting] = self._next(size) or self._messages(size)
            if not batch:
                return 0
            try:
                self._embed(batch)
            except GermaneError as error:
                self._note(error, batch)
                raise
            self.failures = 0
            if not self._aside:
                self.last_error = None
            self._size = min(self._most, self._size * _FEWER)
            return len(batch)

    def drain(self, *, limit: int | None = None, progress: Progress | None = None) -> int:
        """Embed all that waits, or `limit` memories of it: how many it was.

        Raises EmbeddingFailed when some of it can't be, after everything else is done, or after
        failures in a row that tell of an embedder that doesn't work at all; StoreError at once.
        """
        self._begin_again()
        done = 0
        waiting = self._store.stats(self._agent).pending if progress else 0
        while limit is None or done < limit:
            try:
                count = self.step(None if limit is None else limit - done)
            except EmbeddingFailed:
                if self.failures >= _FAILURES_IN_A_ROW:
                    break
                continue
            if not count:
                break
            done += count
            if progress is not None:
                progress(done, max(done, waiting if limit is None else min(waiting, limit)))
        if self.last_error is not None:
            raise EmbeddingFailed(
                f"Embedded {counted(done, 'memory')}; {self._pending()} left: {self.last_error} "
                "They are found by their words until then; mend the embedder, and call again."
            ) from self.last_error
        return done

    @property
    def has_set_aside(self) -> bool:
        """Whether some memory waits that the embedder refused."""
        return bool(self._aside)

    def retry_aside(self) -> None:
        """Let what was set aside wait like everything else."""
        with self._turn:
            self._aside.clear()

    def findings(self, *, attended: bool) -> tuple[Finding, ...]:
        """What `doctor` says of it: nothing while all is embedded, or an attended backlog makes progress."""
        from germane.ledger import Finding  # noqa: PLC0415 - Few processes check.

        pending = self._pending()
        error = self.last_error
        if pending == "0 memories" or (attended and error is None):
            return ()
        failed = f"; the last of {self.failures or 'several'} failures: {error}" if error is not None else ""
        return (
            Finding(
                code="pending-vectors",
                text=f"Without a vector of {self._embedder.name!r}: {pending}{failed}.",
                remedy="They are found by their words meanwhile. Embed them now with `germane db embed` "
                "(Engine.embed_pending in Python).",
            ),
        )

    def _pending(self) -> str:
        """How many memories wait, and how many messages, if any."""
        log = CONVERSATIONS.of(self._store)
        messages = 0 if log is None else log.pending(self._agent)
        also = f" and {counted(messages, 'message')}" if messages else ""
        return f"{counted(self._store.stats(self._agent).pending, 'memory')}{also}"

    def _begin_again(self) -> None:
        with self._turn:
            self._aside.clear()
            self._page.clear()
            self._size = self._most
            self.failures = 0
            self.last_error = None

    def _next(self, count: int) -> list[Memory]:
        """The next memories to embed, as they are now: some of the page may be gone or forgotten."""
        while True:
            if not self._page:
                limit = self._most * _BATCHES_OF_A_PAGE + len(self._aside)
                found = self._store.find(self._agent, _WAITING, limit=limit)
                self._page = [memory.version_id for memory in found if memory.version_id not in self._aside]
                if not self._page:
                    return []
            ids, self._page = self._page[:count], self._page[count:]
            stored = self._store.get(self._agent, ids)
            batch = [each for each in stored if each is not None and each.status in _WAITING.statuses]
            if batch:
                return batch

    def _messages(self, count: int) -> list[_WaitingMessage]:
        """The latest messages of conversations to embed, once no memory waits any more."""
        log = CONVERSATIONS.of(self._store)
        if log is None:
            return []
        found = [
            _WaitingMessage(num, each) for num, each in log.waiting(self._agent, count + len(self._aside))
        ]
        return [each for each in found if each.version_id not in self._aside][:count]

    def _embed(self, batch: Sequence[_Waiting]) -> None:
        vectors = [
            NOWHERE if vector is None else vector
            for vector in embed_texts(self._embedder, [each.content for each in batch])
        ]
        messages = {
            each.num: vector
            for each, vector in zip(batch, vectors, strict=True)
            if isinstance(each, _WaitingMessage)
        }
        if messages:
            CONVERSATIONS.required(self._store).store_vectors(self._agent, messages)
            return
        from germane.model.change import SetVector  # noqa: PLC0415 - Most processes embed nothing later.

        changes = [
            SetVector(memory_id=memory.version_id, vector=vector)
            for memory, vector in zip(batch, vectors, strict=True)
        ]
        while changes:
            try:
                self._store.apply(self._agent, changes)
            except NotFound as purged:
                # Somebody purged it while its vector was made.
                changes = [each for each in changes if each.memory_id != purged.memory_id]
            else:
                return

    def _note(self, error: GermaneError, batch: Sequence[_Waiting]) -> None:
        self.failures += 1
        self.last_error = error
        self._page.clear()
        if not isinstance(error, EmbeddingFailed):
            return
        if len(batch) == 1:
            self._aside.add(batch[0].version_id)
        else:
            self._size = max(1, len(batch) // _FEWER)


@dataclass(eq=False, slots=True)
class _Job:
    """A backlog and when to look at it. `due` and `earliest` are seconds of the monotonic clock."""

    backlog: Backlog
    due: float = 0.0
    earliest: float = (
        0.0  # After a failure a write doesn't shorten the pause: the embedder is no better for it.
    )
    woken: bool = False
    last: bool = False
    patience: float = field(default_factory=lambda: _LOOK_AGAIN)
    idle: float = 0.0
    done: Event = field(default_factory=Event)


class BackgroundEmbedding:
    """One daemon thread that embeds backlogs: when woken, every half minute, and after a crash at once.

    It starts with the first backlog and ends with the last one. After a failure a backlog pauses for 1, 2,
    4 … 60 seconds. What was set aside is tried again when all else is done: after half a minute, then a
    minute, and so on up to an hour. A forked child starts a thread of its own when it is woken there.
    """

    def __init__(self) -> None:
        self._jobs: dict[Backlog, _Job] = {}
        self._guard = renewed(Lock())
        self._changed = renewed(Event())
        self._thread: Thread | None = None

    def wake(self, backlog: Backlog) -> None:
        """Look at a backlog now, and again and again until it is dismissed."""
        with self._guard:
            job = self._jobs.setdefault(backlog, _Job(backlog))
            job.woken, job.due = True, job.earliest
            # There is none at first, and none in a forked child.
            if self._thread is None or not self._thread.is_alive():
                self._thread = Thread(target=self._run, name="germane-embedding", daemon=True)
                self._thread.start()
        self._changed.set()

    def is_attending(self, backlog: Backlog) -> bool:
        """Whether the thread works and has this backlog."""
        return backlog in self._jobs and self._thread is not None and self._thread.is_alive()

    def dismiss(self, backlog: Backlog) -> None:
        """Stop embedding a backlog, after one more batch; waits 5 seconds at most."""
        with self._guard:
            job = self._jobs.get(backlog)
            if job is None:
                return
            job.last, job.due = True, 0.0
        if self._thread is None or not self._thread.is_alive():
            with self._guard:
                self._jobs.pop(backlog, None)
            return
        self._changed.set()
        if self._thread is not current_thread():
            job.done.wait(_GOODBYE)

    def _run(self) -> None:
        while True:
            self._changed.clear()
            with self._guard:
                if not self._jobs:
                    self._thread = None
                    return
                job = min(self._jobs.values(), key=lambda each: each.due)
            wait = job.due - time.monotonic()
            if wait > 0:
                self._changed.wait(wait)
            else:
                self._work(job)

    def _work(self, job: _Job) -> None:
        # What was stored just before the end is the newest, so it is in the batch after it.
        last, job.woken, count = job.last, False, 0
        # However many agents there are, they are looked at ten times a second at most.
        pause = max(_LOOK_AGAIN, _BETWEEN_AGENTS * len(self._jobs))
        backlog = job.backlog
        try:
            if not (last and backlog.failures):
                count = backlog.step()
        except GermaneError:
            # The backlog keeps the error for `doctor`.
            doublings = min(backlog.failures - 1, _MOST_DOUBLINGS)
            pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**doublings)
            job.earliest = time.monotonic() + pause
        with self._guard:
            if last:
                self._jobs.pop(backlog, None)
                job.done.set()
            elif not job.last:
                now = time.monotonic()
                again = count or (job.woken and job.earliest <= now)
                job.due = now if again else now + pause
        if not count and not job.woken and job.earliest <= time.monotonic():
            _look_again(job)


def _look_again(job: _Job) -> None:
    if not job.backlog.has_set_aside:
        job.patience, job.idle = _LOOK_AGAIN, 0.0
        return
    job.idle += _LOOK_AGAIN
    if job.idle >= job.patience:
        job.backlog.retry_aside()
        job.patience, job.idle = min(2 * job.patience, _LONGEST_PATIENCE), 0.0
