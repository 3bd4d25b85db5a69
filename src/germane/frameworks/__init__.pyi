# The public names of germane.frameworks, imported when they are first used; see `germane.exports`.

from germane.frameworks.langgraph import LangGraphStore as LangGraphStore

__all__: list[str]
