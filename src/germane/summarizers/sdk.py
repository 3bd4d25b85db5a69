"""What summaries through a provider's official SDK have in common.

Level: summarizers. An SDK is imported when the first text is shortened.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar

from germane.errors import MissingExtra
from germane.protocols import TokenCounter
from germane.summarizers.asking import ModelSummarizer
from germane.summarizers.circuit import Circuit

__all__ = ["SdkSummarizer"]


class SdkSummarizer(ModelSummarizer, ABC):
    """Asks a model through the client of an SDK, which is made once; a subclass says how it is asked."""

    package: ClassVar[str]
    """The SDK to import, and the extra that brings it."""
    client: ClassVar[str]
    """The name of its client class."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        key: str | None = None,
        timeout: float = 20.0,
        retries: int = 2,
        counter: str | TokenCounter = "o200k",
        circuit: Circuit | None = None,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(self._answer, name=model, counter=counter, circuit=circuit, timer=timer)
        self.model = model
        self._options = {"base_url": base_url, "api_key": key, "timeout": timeout, "max_retries": retries}
        self._client: Any = None

    @abstractmethod
    def _asked(self, client: Any, request: str, most: int) -> str:
        """The model's answer, of `most` tokens at most."""

    def _answer(self, request: str, tokens: int) -> str:
        if self._client is None:
            try:
                sdk = import_module(self.package)
            except ImportError as missing:
                raise MissingExtra(feature=f"Summaries by {self.client}", extra=self.package) from missing
            self._client = getattr(sdk, self.client)(**self._options)
        return self._asked(self._client, request, 3 * tokens)
