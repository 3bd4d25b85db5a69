# The public names of germane.ranking, imported when they are first used; see `germane.exports`.

from germane.model.change import UsageHistory as UsageHistory
from germane.model.context import Fused as Fused
from germane.model.learning import Example as Example
from germane.model.learning import Feedback as Feedback
from germane.model.learning import Impressions as Impressions
from germane.model.learning import LearningReport as LearningReport
from germane.model.learning import ObserveResult as ObserveResult
from germane.model.learning import OutcomeHistory as OutcomeHistory
from germane.model.learning import OutcomeRecord as OutcomeRecord
from germane.model.learning import OutcomeResult as OutcomeResult
from germane.model.learning import Weights as Weights
from germane.model.query import LearningStatus as LearningStatus
from germane.ranking.eviction import Decay as Decay
from germane.ranking.signals import fuse_ranks as fuse_ranks
from germane.ranking.signals import fuse_scores as fuse_scores

__all__: list[str]
