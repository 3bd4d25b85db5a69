# The public names of germane.importers, imported when they are first used; see `germane.exports`.

from germane.importers.dialogue import read_transcript as read_transcript
from germane.importers.git import changed_paths as changed_paths
from germane.importers.git import read_git as read_git
from germane.importers.layouts import Layout as Layout
from germane.importers.layouts import layout_of as layout_of
from germane.importers.layouts import read as read
from germane.importers.locomo import DialogueTurn as DialogueTurn
from germane.importers.locomo import EvidenceReport as EvidenceReport
from germane.importers.locomo import LocomoConversation as LocomoConversation
from germane.importers.locomo import LocomoQuestion as LocomoQuestion
from germane.importers.locomo import conversation_drafts as conversation_drafts
from germane.importers.locomo import evidence_report as evidence_report
from germane.importers.locomo import read_locomo as read_locomo
from germane.importers.markdown import read_markdown as read_markdown
from germane.importers.project import read_project as read_project
from germane.importers.records import memory_from_json as memory_from_json
from germane.importers.records import memory_to_json as memory_to_json
from germane.importers.records import read_jsonl as read_jsonl
from germane.importers.records import read_memories as read_memories
from germane.importers.report import Gone as Gone
from germane.importers.report import ImportReport as ImportReport
from germane.importers.report import Moved as Moved
from germane.importers.report import Progress as Progress
from germane.importers.report import Secret as Secret
from germane.importers.report import Written as Written
from germane.importers.report import find_secrets as find_secrets
from germane.importers.sources import Skipped as Skipped
from germane.importers.sync import watch as watch
from germane.importers.transfer import export_jsonl as export_jsonl
from germane.importers.transfer import import_source as import_source
from germane.importers.transfer import read_scoped as read_scoped
from germane.importers.transfer import write_block as write_block

__all__: list[str]
