"""Who calls a server: the key of a request, and the engine of the agent or the user that it is for."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from starlette.responses import Response

from germane.access import AccessKey, AccessRight
from germane.errors import GermaneError
from germane.servers.problems import problem

if TYPE_CHECKING:
    from germane.engine import Engine
    from germane.engine.handle import StoreHandle

KNOWN_SECONDS: Final = 1.0
"""How long a key is known before it is looked up again, so that a revoked one ends within that time."""
_MOST_ENGINES: Final = 1000
_MOST_KNOWN: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who makes a request: the key, and the user of it, if any."""

    handle: StoreHandle
    key: AccessKey
    user: str | None
    opens: Callable[[str, str | None], Engine]

    @property
    def engine(self) -> Engine:
        """The engine of the agent or its user."""
        return self.opens(self.key.agent, self.user)

    def refusal(self, right: AccessRight) -> Response | None:
        """The answer to a caller whose key lacks a right; None where it has it."""
        if right in self.key.may:
            return None
        return problem(
            HTTPStatus.FORBIDDEN,
            f"This key may {', '.join(self.key.may)}, and this needs the right to {right}. Create another: "
            f"germane keys create --may {','.join([*self.key.may, right])}.",
        )


class Identities:
    """The callers of a server: by the keys of the store, or by one token where there are none."""

    def __init__(self, handle: StoreHandle, local: AccessKey | None = None, token: str | None = None) -> None:
        """With `local`, the `token` alone is a key, and it is that one."""
        self._handle = handle
        self._local = local
        self._token = token
        self._guard = threading.Lock()
        self._known: OrderedDict[bytes, tuple[float, AccessKey | None]] = OrderedDict()
        self._engines: OrderedDict[tuple[str, str | None], Engine] = OrderedDict()

    def caller(self, authorization: str | None, user: str | None) -> Caller | Response:
        """Who has the key of an Authorization header, for a user, or the answer that refuses them.

        It may read the store.
        """
        scheme, _, text = (authorization or "").partition(" ")
        key = self._key(text.strip()) if scheme.lower() == "bearer" else None
        if key is None:
            return problem(
                HTTPStatus.UNAUTHORIZED,
                "This needs a key: Authorization: Bearer KEY. The key is missing, wrong, revoked or has "
                "expired; `germane keys create` makes one.",
                headers={"www-authenticate": 'Bearer realm="germane"'},
            )
        named = None if user is None else unquote(user)
        if key.user is not None and named not in (None, key.user):
            return problem(HTTPStatus.FORBIDDEN, "This key is for one user, and Germane-User names another.")
        return Caller(handle=self._handle, key=key, user=key.user or named, opens=self._engine)

    def knows(self, authorization: str | None) -> bool:
        """Whether `caller` need not read the store for that header."""
        text = (authorization or "").partition(" ")[2].strip()
        if self._local is not None:
            return True
        with self._guard:
            at, _ = self._known.get(_digest(text), (-KNOWN_SECONDS, None))
        return time.monotonic() - at < KNOWN_SECONDS

    def _key(self, text: str) -> AccessKey | None:
        if self._local is not None:
            return self._local if compare_digest(text.encode(), (self._token or "").encode()) else None
        digest, now = _digest(text), time.monotonic()
        with self._guard:
            at, key = self._known.get(digest, (-KNOWN_SECONDS, None))
        if now - at < KNOWN_SECONDS:
            return key
        key = self._handle.key_of(text)
        with self._guard:
            self._known[digest] = now, key
            while len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)
        return key

    def _engine(self, agent: str, user: str | None) -> Engine:
        with self._guard:
            found = self._engines.get((agent, user))
            if found is not None:
                self._engines.move_to_end((agent, user))
                return found
        made = self._handle.agent(agent)
        made = made if user is None else made.for_user(user)
        with self._guard:
            # Another thread may have made it in the meantime.
            used = self._engines.setdefault((agent, user), made)
            while len(self._engines) > _MOST_ENGINES:
                self._engines.popitem(last=False)
        return used


def _digest(text: str) -> bytes:
    # Neither the text of a key nor what a memory dump could be searched for stays in this process.
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def checked_user(caller: Caller) -> Response | None:
    """The answer to a Germane-User that can't be a name; None for a good one."""
    try:
        caller.engine  # noqa: B018 - Opening it raises for such a name.
    except GermaneError as error:
        return problem(HTTPStatus.UNPROCESSABLE_ENTITY, str(error), error="InvalidInput")
    return None
