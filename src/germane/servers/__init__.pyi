# The public names of germane.servers, imported when they are first used; see `germane.exports`.

from germane.servers.hook import HostEvents as HostEvents
from germane.servers.mcp import MemoryTools as MemoryTools
from germane.servers.mcp import mcp_server as mcp_server

__all__: list[str]
