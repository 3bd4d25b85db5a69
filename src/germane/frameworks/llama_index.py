"""LlamaIndex memory in germane (extra `llama-index`): a block for `Memory`, and a retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from germane.engine import Engine
from germane.errors import MissingExtra
from germane.frameworks.shared import to_the_end

try:
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.memory import BaseMemoryBlock
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
    from pydantic import ConfigDict, Field, PrivateAttr
except ImportError as error:
    raise MissingExtra(feature="The memory of LlamaIndex", extra="llama-index") from error

__all__ = ["LlamaIndexMemoryBlock", "LlamaIndexRetriever"]

_LEAST: Final = 20
"""Tokens below which a shortened context says nothing."""


class LlamaIndexMemoryBlock(BaseMemoryBlock[str]):
    """The best context of an engine for the last user message, within `budget` tokens.

    Messages that leave the short-term memory are logged in the conversation of the session, or of `session`
    where LlamaIndex names none, and quoted from there in later sessions. Where LlamaIndex asks for fewer
    tokens, the context is assembled anew. For `Memory.from_defaults(memory_blocks=[...])`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    name: str = Field(default="germane")
    priority: int = Field(default=1, description="0 would exempt it from LlamaIndex's limit of tokens.")
    engine: Engine = Field(exclude=True)
    budget: int = Field(default=1000, description="Tokens of a context at most.")
    session: str = Field(default="llama-index", description="The conversation of messages without a session.")
    _question: str = PrivateAttr(default="")

    async def _aget(self, messages: list[ChatMessage] | None = None, **_: Any) -> str:
        questions = [each.content for each in messages or () if each.role == "user" and each.content]
        self._question = str(questions[-1]) if questions else ""
        return await self._context(self.budget)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        await to_the_end(lambda: self._log(messages))

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """The best context that is at least so many tokens shorter; None where that leaves nothing."""
        # Of a block without a context, LlamaIndex passes an empty list.
        budget = self.engine.counter.count(content) - tokens_to_truncate if content else 0
        return await self._context(budget) or None if budget >= _LEAST else None

    async def _context(self, budget: int) -> str:
        if not self._question:
            return ""
        context = await asyncio.to_thread(self.engine.assemble, self._question, budget=budget)
        return context.text

    def _log(self, messages: Sequence[ChatMessage]) -> None:
        for message in messages:
            session = message.additional_kwargs.get("session_id") or self.session
            if message.content and message.role in ("user", "assistant", "system"):
                self.engine.conversation(str(session)).append(str(message.role.value), message.content)


class LlamaIndexRetriever(BaseRetriever):
    """`engine.recall` as a retriever: nodes with the memory's id, text, kind, subject and score.

    `limit` is how many nodes a question gets at most; other arguments are filters of `recall`.
    """

    def __init__(self, engine: Engine, *, limit: int = 10, **filters: Any) -> None:
        super().__init__()
        self._engine = engine
        self._limit = limit
        self._filters = filters

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self._engine.recall(query_bundle.query_str, limit=self._limit, **self._filters)
        return [
            NodeWithScore(
                node=TextNode(
                    id_=one.id,
                    text=one.content,
                    metadata={"kind": one.kind, "subject": one.memory.subject, "source": one.memory.source},
                ),
                score=one.score,
            )
            for one in found
        ]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)
