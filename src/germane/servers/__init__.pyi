# The public names of germane.servers, imported when they are first used; see `germane.exports`.

from germane.servers.hook import HostEvents as HostEvents
from germane.servers.mcp import MemoryTools as MemoryTools
from germane.servers.mcp import mcp_server as mcp_server
from germane.servers.rest import Limits as Limits
from germane.servers.rest import RestServer as RestServer
from germane.servers.rest import openapi_document as openapi_document
from germane.servers.rest import rest_app as rest_app
from germane.servers.rest import serve as serve

__all__: list[str]
