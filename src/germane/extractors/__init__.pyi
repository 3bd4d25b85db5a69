# The public names of germane.extractors, imported when they are first used; see `germane.exports`.

from germane.extractors.models import AnthropicExtractor as AnthropicExtractor
from germane.extractors.models import ModelExtractor as ModelExtractor
from germane.extractors.models import OpenAIExtractor as OpenAIExtractor
from germane.extractors.models import recorded as recorded
from germane.extractors.rules import RuleExtractor as RuleExtractor
from germane.model.extraction import Decision as Decision
from germane.model.extraction import Effect as Effect
from germane.model.extraction import Entity as Entity
from germane.model.extraction import EntityFact as EntityFact
from germane.model.extraction import EntityReport as EntityReport
from germane.model.extraction import Extraction as Extraction
from germane.model.extraction import LearningRun as LearningRun
from germane.model.extraction import MemoryState as MemoryState
from germane.model.extraction import ModelAnswer as ModelAnswer
from germane.model.extraction import NameMerge as NameMerge
from germane.model.extraction import Proposal as Proposal
from germane.model.extraction import ProposalOutcome as ProposalOutcome
from germane.model.extraction import Quote as Quote

__all__: list[str]
