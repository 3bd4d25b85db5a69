# The public names of germane.frameworks, imported when they are first used; see `germane.exports`.

from germane.frameworks.anthropic import AnthropicMemoryTool as AnthropicMemoryTool
from germane.frameworks.anthropic import AsyncAnthropicMemoryTool as AsyncAnthropicMemoryTool
from germane.frameworks.langgraph import LangGraphStore as LangGraphStore

__all__: list[str]
