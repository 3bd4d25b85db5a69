"""LangChain's standard tests of retrievers, on germane's."""

from __future__ import annotations

from typing import Any

from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests  # type: ignore[import-not-found] # It is there where this runs.

import germane
from germane.frameworks import LangChainRetriever


class TestRetriever(RetrieversIntegrationTests):  # type: ignore[misc] # As above.
    """The tests of LangChain, unchanged."""

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        """The class to test."""
        return LangChainRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        """Its arguments: a memory with five facts."""
        engine = germane.open(":memory:")
        engine.remember_many([f"Locker {number} has the code {number * 37}." for number in range(5)])
        return {"engine": engine}

    @property
    def retriever_query_example(self) -> str:
        """What finds all five."""
        return "What are the codes of the lockers?"
