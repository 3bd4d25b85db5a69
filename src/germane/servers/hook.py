"""Memory at the events of a host: what to add to a model's context, and what to take in of a transcript.

The contract is that of Claude Code's hooks: an event is a JSON object, and what is printed at the start of a
session or at a prompt goes into the model's context.
https://code.claude.com/docs/en/hooks
"""

from __future__ import annotations

import json
import os
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from germane.errors import AssemblyNotFound, InvalidInput
from germane.importers.host_transcripts import read_host_transcript
from germane.model.context import RefreshReason
from germane.model.text import fenced

if TYPE_CHECKING:
    from germane.engine import Engine
    from germane.model.context import Context
    from germane.model.conversation import Message
    from germane.operations.conversation import Conversation

__all__ = ["EVENTS", "MOST_CHARACTERS", "HostEvents"]

MOST_CHARACTERS: Final = 10_000
"""Characters of an answer; hosts replace longer ones by a preview."""

EVENTS: Final = ("SessionStart", "UserPromptSubmit", "PreCompact", "Stop", "SessionEnd")
"""The events that are answered. Nothing is done at any other."""

_MOST_SESSIONS: Final = 256


class HostEvents:
    """Answers a host's events from an agent's memory, and remembers the last context of each session."""

    def __init__(
        self, engine: Engine, *, budget: int = 800, refs: Path | None = None, learns: bool = False
    ) -> None:
        """`budget` are the tokens of a context. With `learns`, facts are learned at the end of a session.

        `refs` is a file with the id of each session's last context in the ledger, and no text. Another
        process goes on from there, with an engine that records.
        """
        self._engine = engine
        self._budget = budget
        self._refs = refs
        self._learns = learns
        self._contexts: OrderedDict[str, Context] = OrderedDict()

    def answer(self, event: str | bytes | Mapping[str, Any]) -> str:
        """What to print at an event: text for the model, marked as recalled, or nothing.

        The start of a session gets what holds for every task. A prompt gets a new context where the last
        one of the session doesn't serve it. Before a compaction and at each end the transcript is added to
        the conversation of the session's name, and at the end of a session summed up,
        and learned from where that is switched on. Raises InvalidInput
        for what is no event, UnreadableSource for a transcript, and what the engine raises.
        """
        fields = _fields(event)
        name, session = str(fields.get("hook_event_name")), str(fields.get("session_id") or "default")
        if name == "SessionStart":
            self._forget(session)
            return self._shown(session, lambda budget: self._engine.assemble("", budget=budget))
        if name == "UserPromptSubmit":
            return self._at_prompt(session, str(fields.get("prompt") or ""))
        if name in EVENTS:
            if name == "PreCompact":
                # What was shown so far leaves the window.
                self._forget(session)
            self._take_in(session, fields, ends=name == "SessionEnd")
        return ""

    def _at_prompt(self, session: str, prompt: str) -> str:
        last = self._last(session)
        conversation = self._engine.conversation(session)
        refreshed = self._engine.refresh(last, prompt, budget=self._budget, conversation=conversation)
        if not refreshed.needed or refreshed.reason is RefreshReason.PRESSURE:
            return ""

        def again(budget: int) -> Context:
            if budget == self._budget:
                return refreshed.context
            return self._engine.assemble(prompt, budget=budget, conversation=conversation)

        return self._shown(session, again)

    def _shown(self, session: str, make: Callable[[int], Context]) -> str:
        """The text of a context that `make` makes for a budget, unless the session has it; never too long."""
        budget = self._budget
        while True:
            made = make(budget)
            text = fenced(made.text) if made.text.strip() else ""
            if len(text) < MOST_CHARACTERS:  # A line feed follows.
                break
            budget = budget * 9 * MOST_CHARACTERS // (10 * len(text))
        last = self._contexts.get(session)
        self._contexts[session] = made
        self._contexts.move_to_end(session)
        while len(self._contexts) > _MOST_SESSIONS:
            self._contexts.popitem(last=False)
        if made.ref is not None:
            others = {name: ref for name, ref in self._read().items() if name != session}
            self._write(others | {session: made.ref})
        # The model has it already.
        return "" if last is not None and last.text == made.text else text

    def _last(self, session: str) -> Context | None:
        """The session's last context, of this process or another."""
        ref = self._read().get(session)
        if session not in self._contexts and ref is not None:
            with suppress(AssemblyNotFound):  # Somebody has cleared the ledger.
                made = self._engine.ledger().replay(ref).context
                if made is not None:
                    self._contexts[session] = made
        return self._contexts.get(session)

    def _forget(self, session: str) -> None:
        self._contexts.pop(session, None)
        refs = self._read()
        if refs.pop(session, None) is not None:
            self._write(refs)

    def _read(self) -> dict[str, str]:
        if self._refs is None or not self._refs.exists():
            return {}
        try:
            found: dict[str, str] = dict(json.loads(self._refs.read_text(encoding="utf-8")))
        except ValueError:  # Cut off by a power failure; contexts are made anew.
            return {}
        return found

    def _write(self, refs: Mapping[str, str]) -> None:
        """Write the latest sessions' refs, whole or not at all."""
        if self._refs is not None:
            latest = dict(list(refs.items())[-_MOST_SESSIONS:])
            new = self._refs.with_suffix(f".{os.getpid()}")
            new.write_text(json.dumps(latest), encoding="utf-8")
            new.replace(self._refs)

    def _take_in(self, session: str, fields: Mapping[str, Any], *, ends: bool) -> None:
        path = fields.get("transcript_path")
        if not isinstance(path, str) or not Path(path).is_file():
            return
        conversation = self._engine.conversation(session)
        conversation.extend(_new(conversation, read_host_transcript(Path(path))))
        if ends and any(message.own_text.strip() for message in conversation.messages()):
            conversation.summary()
            if self._learns:
                self._engine.learn_from(conversation)


def _new(conversation: Conversation, messages: tuple[Message, ...]) -> list[Message]:
    """The messages that the conversation doesn't have yet, also not hidden."""

    def key(message: Message) -> tuple[object, ...]:
        return message.role, message.created_at, message.parts

    known = Counter(map(key, conversation.messages(hidden=True)))
    known.subtract(map(key, messages))
    # What stands in the transcript more often than in the log is new, the last of it.
    left = {each: -count for each, count in known.items() if count < 0}
    new = []
    for message in reversed(messages):
        if left.get(key(message), 0) > 0:
            left[key(message)] -= 1
            new.append(message)
    return new[::-1]


def _fields(event: str | bytes | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(event, Mapping):
        return event
    try:
        fields = json.loads(event)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"The event is no JSON ({error}). A host passes an object on standard input."
        ) from None
    if not isinstance(fields, dict):
        raise InvalidInput(
            f"The event is {str(fields)[:40]!r}. A host passes an object with hook_event_name."
        )
    return fields
