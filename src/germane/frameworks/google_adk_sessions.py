"""Google ADK sessions in germane (extra `google-adk`): a session service for runners."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from germane.engine import Engine
from germane.engine.handle import StoreHandle
from germane.errors import MessageNotFound, MissingExtra
from germane.frameworks.shared import to_the_end

try:
    from google.adk.errors.already_exists_error import AlreadyExistsError
    from google.adk.errors.session_not_found_error import SessionNotFoundError
    from google.adk.events.event import Event
    from google.adk.events.event_actions import EventActions
    from google.adk.sessions.base_session_service import (
        BaseSessionService,
        GetSessionConfig,
        ListSessionsResponse,
    )
    from google.adk.sessions.session import Session
    from google.adk.sessions.state import State
except ImportError as error:
    raise MissingExtra(feature="The session service of Google ADK", extra="google-adk") from error

__all__ = ["ADKSessionService"]

_FIELD: Final = "google_adk"
"""The field of a logged message with the framework's own form of its event."""
_SHARED: Final = "google_adk"
"""The conversation with the state of a user or an app; `google_adk/NAME` has that of a session."""
_UPDATED: Final = "updated"
"""The anchor with the time of the last change of a session, which marks that there is such a session."""


class ADKSessionService(BaseSessionService):
    """The sessions of each app and user in a store, for `Runner(session_service=...)`.

    An app is an agent of the store, and its user one of that agent's users. The events of a session are its
    conversation log, which contexts of later sessions quote. State is stored as JSON: of the session, the
    user ("user:") or the app ("app:"); "temp:" is never stored. A cancelled call still finishes what it
    began. All methods raise InvalidInput for a name that can't be one of an agent, user or session.
    """

    def __init__(self, handle: StoreHandle) -> None:
        self._handle = handle

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Store a new session with its state. Raises AlreadyExistsError for a known id."""
        name = (session_id or "").strip() or str(uuid.uuid4())
        given = EventActions(state_delta=dict(state or {})).model_dump(mode="json")["state_delta"]

        def create() -> Session:
            if self._is_known(app_name, user_id, name):
                raise AlreadyExistsError(f"Session with id {name} already exists.")
            self._change(app_name, user_id, name, given, at=time.time())
            return self._session(app_name, user_id, name)

        return await to_the_end(create)

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """A session with its events, or the part of them that `config` names; None for an unknown id."""
        name = session_id.strip()

        def get() -> Session | None:
            if not self._is_known(app_name, user_id, name):
                return None
            events = [Event.model_validate(own) for own in self._logged(app_name, user_id, name)]
            session = self._session(app_name, user_id, name, events)
            session.events = [*_wanted(events, config)]
            return session

        return await to_the_end(get)

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """The sessions of a user, or of all users, without their events; the latest last."""

        def every() -> list[Session]:
            known = self._handle.users()
            users = [user for user in known if app_name in known[user]] if user_id is None else [user_id]
            names = [
                (user, each.session.removeprefix(f"{_SHARED}/"))
                for user in users
                for each in self._engine(app_name, user).sessions()
                if each.session.startswith(f"{_SHARED}/")
            ]
            return [self._session(app_name, *one) for one in names if self._is_known(app_name, *one)]

        found = await to_the_end(every)
        found.sort(key=lambda one: (one.last_update_time, one.user_id, one.id))
        return ListSessionsResponse(sessions=found)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete a session with its events and state for good; an unknown one is fine."""
        name = session_id.strip()

        def delete() -> None:
            for conversation in (f"{_SHARED}/{name}", name):
                with suppress(MessageNotFound):
                    self._engine(app_name, user_id).conversation(conversation).purge(confirm=True)

        await to_the_end(delete)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """The state of a user in an app, by keys without "user:"."""
        return await to_the_end(
            lambda: _values(self._engine(app_name, user_id).conversation(_SHARED).anchors())
        )

    async def append_event(self, session: Session, event: Event) -> Event:
        """Add an event to a session and its log, and its changes of state; an equal event is added once.

        Partial events aren't stored. Raises SessionNotFoundError for a session that isn't stored.
        """
        app, user, name = session.app_name, session.user_id, session.id

        def is_new() -> bool:
            if not self._is_known(app, user, name):
                raise SessionNotFoundError(f"Session {name} not found.")
            return _dump(event) not in self._logged(app, user, name, containing=json.dumps(event.id))

        if event.partial or not await to_the_end(is_new):
            return event
        await super().append_event(session, event)
        session.last_update_time = event.timestamp

        def append() -> None:
            own = _dump(event)
            role = "user" if event.author == "user" else "assistant"
            self._engine(app, user).conversation(name).append(
                {"role": role, "content": _text(event), _FIELD: own},
                provider="openai",
                created_at=datetime.fromtimestamp(event.timestamp, UTC),
            )
            self._change(app, user, name, own.get("actions", {}).get("state_delta", {}), at=event.timestamp)

        await to_the_end(append)
        return event

    def _engine(self, app_name: str, user_id: str) -> Engine:
        return self._handle.agent(app_name).for_user(user_id)

    def _logged(self, app: str, user: str, name: str, *, containing: str = "") -> list[dict[str, Any]]:
        """The events of a session in the framework's own form, of those whose JSON contains a text."""
        messages = self._engine(app, user).conversation(name).messages()
        extras = [json.loads(one.extra) for one in messages if one.extra and containing in one.extra]
        return [extra[_FIELD] for extra in extras if _FIELD in extra]

    def _anchors(self, app: str, user: str, name: str) -> Mapping[str, str]:
        return self._engine(app, user).conversation(f"{_SHARED}/{name}").anchors()

    def _is_known(self, app: str, user: str, name: str) -> bool:
        return _UPDATED in self._anchors(app, user, name)

    def _change(self, app: str, user: str, name: str, delta: Mapping[str, Any], *, at: float) -> None:
        """Store a change of state, each value where its prefix says, and its time in the session."""
        engine = self._engine(app, user)
        own = engine.conversation(f"{_SHARED}/{name}")
        shared = {
            State.APP_PREFIX: self._handle.agent(app).conversation(_SHARED),
            State.USER_PREFIX: engine.conversation(_SHARED),
        }
        for key, value in delta.items():
            prefix = next((each for each in shared if key.startswith(each)), "")
            if not key.startswith(State.TEMP_PREFIX):
                shared.get(prefix, own).anchor(_anchor(key.removeprefix(prefix)), json.dumps(value))
        own.anchor(_UPDATED, json.dumps(at))

    def _session(self, app: str, user: str, name: str, events: Sequence[Event] = ()) -> Session:
        """A session without events, and with all state that it sees. Its log was first to be written, so
        changes by its `events` count above what is stored of its state.
        """
        own = self._anchors(app, user, name)
        state, updated = _values(own), float(own[_UPDATED])
        for event in events:
            state |= event.actions.state_delta
        shared = {State.APP_PREFIX: self._handle.agent(app), State.USER_PREFIX: self._engine(app, user)}
        for prefix, engine in shared.items():
            values = _values(engine.conversation(_SHARED).anchors())
            state |= {prefix + key: value for key, value in values.items()}
        return Session(id=name, app_name=app, user_id=user, state=state, last_update_time=updated)


# State: each value is an anchor of a conversation without messages, which no context shows.


def _values(anchors: Mapping[str, str]) -> dict[str, Any]:
    return {json.loads(name): json.loads(text) for name, text in anchors.items() if name != _UPDATED}


def _anchor(key: str) -> str:
    return json.dumps(key)  # Any text in quotation marks is a name, and none of them is `_UPDATED`.


def _wanted(events: Sequence[Event], config: GetSessionConfig | None) -> Sequence[Event]:
    """The events that a session is read with."""
    if config is not None and config.num_recent_events is not None:
        events = events[max(len(events) - config.num_recent_events, 0) :]
    if config is not None and config.after_timestamp is not None:
        # All after the last one that is too old, as in the framework's own service.
        old = [place for place, event in enumerate(events, 1) if event.timestamp < config.after_timestamp]
        events = events[old[-1] :] if old else events
    return events


def _dump(event: Event) -> dict[str, Any]:
    return event.model_dump(mode="json", exclude_defaults=True)


def _text(event: Event) -> str:
    parts = (event.content.parts or ()) if event.content is not None else ()
    return "\n".join(part.text for part in parts if part.text and not part.thought)
