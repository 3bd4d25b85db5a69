# The public names of germane.conversation, imported when they are first used; see `germane.exports`.

from germane.conversation.formats import Payload as Payload
from germane.conversation.layout import RequestShares as RequestShares
from germane.conversation.views import RecallLimits as RecallLimits
from germane.conversation.views import Tiers as Tiers
from germane.model.conversation import Anchored as Anchored
from germane.model.conversation import Compaction as Compaction
from germane.model.conversation import ConversationInfo as ConversationInfo
from germane.model.conversation import DerivedQuery as DerivedQuery
from germane.model.conversation import Group as Group
from germane.model.conversation import LeftOut as LeftOut
from germane.model.conversation import MessageRole as MessageRole
from germane.model.conversation import OpaquePart as OpaquePart
from germane.model.conversation import Provider as Provider
from germane.model.conversation import Selection as Selection
from germane.model.conversation import SessionSummary as SessionSummary
from germane.model.conversation import TextPart as TextPart
from germane.model.conversation import ToolCall as ToolCall
from germane.model.conversation import ToolResult as ToolResult
from germane.model.request import PartUsage as PartUsage
from germane.model.request import RequestState as RequestState
from germane.model.request import TokenCalibration as TokenCalibration

__all__: list[str]
