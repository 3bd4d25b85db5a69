# The public names of germane.frameworks, imported when they are first used; see `germane.exports`.

from germane.frameworks.agent_framework import AgentFrameworkContext as AgentFrameworkContext
from germane.frameworks.agent_framework import AgentFrameworkHistory as AgentFrameworkHistory
from germane.frameworks.anthropic import AnthropicMemoryTool as AnthropicMemoryTool
from germane.frameworks.anthropic import AsyncAnthropicMemoryTool as AsyncAnthropicMemoryTool
from germane.frameworks.google_adk import ADKMemoryService as ADKMemoryService
from germane.frameworks.google_adk_sessions import ADKSessionService as ADKSessionService
from germane.frameworks.langchain import LangChainHistory as LangChainHistory
from germane.frameworks.langchain import LangChainMemory as LangChainMemory
from germane.frameworks.langchain import LangChainRetriever as LangChainRetriever
from germane.frameworks.langgraph import LangGraphStore as LangGraphStore
from germane.frameworks.llama_index import LlamaIndexMemoryBlock as LlamaIndexMemoryBlock
from germane.frameworks.llama_index import LlamaIndexRetriever as LlamaIndexRetriever
from germane.frameworks.openai_agents import OpenAIAgentsSession as OpenAIAgentsSession
from germane.frameworks.openai_agents import openai_agents_filter as openai_agents_filter
from germane.frameworks.pydantic_ai import PydanticAIMemory as PydanticAIMemory

__all__: list[str]
