"""Answers to requests with an Idempotency-Key, so that one sent again is answered as before and done once."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from starlette.responses import Response

from germane.servers.problems import problem

_REPLIES: Final = 1000
_SECONDS: Final = 86_400
_BYTES: Final = 1 << 20


class Replies:
    """The answers of a day, the latest thousand, in this process."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, tuple[float, str, Response | None]] = OrderedDict()
        self._guard = threading.Lock()

    def once(self, name: str, mark: str, answer: Callable[[], Response]) -> Response:
        """The answer, which is made only where no request of that name was answered before.

        `mark` identifies the content of the request; another request of the same name is refused.
        """
        earlier = self._begin(name, mark)
        if earlier is not None:
            return earlier
        made = None
        try:
            made = answer()
        finally:
            self._end(name, made)
        return made

    def _begin(self, name: str, mark: str) -> Response | None:
        with self._guard:
            at, known, answer = self._answers.get(name, (0.0, "", None))
            if not known or time.monotonic() - at > _SECONDS:
                self._answers[name] = time.monotonic(), mark, None
                return None
        if known != mark:
            return problem(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                "This Idempotency-Key was used for another request. Use a new key for each request.",
                error="InvalidInput",
            )
        if answer is None:
            return problem(
                HTTPStatus.CONFLICT,
                "The request with this Idempotency-Key is still under way.",
                headers={"retry-after": "1"},
            )
        again = Response(answer.body, answer.status_code)
        again.raw_headers = [*answer.raw_headers, (b"idempotency-replayed", b"true")]
        return again

    def _end(self, name: str, answer: Response | None) -> None:
        """Keep an answer for the next request of that name, unless it says to try again or is too long."""
        with self._guard:
            at, mark, _ = self._answers[name]
            if (
                answer is None
                or answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR
                or len(answer.body) > _BYTES
            ):
                del self._answers[name]
                return
            self._answers[name] = at, mark, answer
            while len(self._answers) > _REPLIES:
                self._answers.popitem(last=False)
