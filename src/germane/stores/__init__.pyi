# The public names of germane.stores, imported when they are first used; see `germane.exports`.

from germane.engine.handle import StoreHandle as StoreHandle
from germane.ledger import AgentFigures as AgentFigures
from germane.ledger import CacheUsage as CacheUsage
from germane.ledger import DatabaseStatus as DatabaseStatus
from germane.ledger import EmbeddingIdentity as EmbeddingIdentity
from germane.ledger import Erasure as Erasure
from germane.ledger import Finding as Finding
from germane.ledger import LargeMemory as LargeMemory
from germane.ledger import StoreStats as StoreStats
from germane.ledger import StoreUsage as StoreUsage
from germane.ledger import VectorIndex as VectorIndex
from germane.model.change import Applied as Applied
from germane.model.change import ApplySignal as ApplySignal
from germane.model.change import ImportUsage as ImportUsage
from germane.model.change import Insert as Insert
from germane.model.change import Merge as Merge
from germane.model.change import Purge as Purge
from germane.model.change import RecordOutcome as RecordOutcome
from germane.model.change import RecordUse as RecordUse
from germane.model.change import Revise as Revise
from germane.model.change import Reword as Reword
from germane.model.change import SetStatus as SetStatus
from germane.model.change import SetVector as SetVector
from germane.model.query import CandidateTable as CandidateTable
from germane.model.query import SearchResult as SearchResult
from germane.model.query import Slice as Slice
from germane.operations.setup import reembed as reembed
from germane.operations.stores import CopyReport as CopyReport
from germane.operations.stores import Removal as Removal
from germane.operations.stores import copy_store as copy_store
from germane.operations.stores import distribute_store as distribute_store
from germane.operations.stores import erase_purged as erase_purged
from germane.operations.stores import index_vectors as index_vectors
from germane.operations.stores import migrate_store as migrate_store
from germane.operations.stores import reindex_store as reindex_store
from germane.operations.stores import remove_agent as remove_agent
from germane.operations.stores import store_agents as store_agents
from germane.operations.stores import store_status as store_status
from germane.operations.stores import vacuum_store as vacuum_store
from germane.stores.location import Following as Following
from germane.stores.location import location_of as location_of
from germane.stores.postgres.store import PostgresStore as PostgresStore
from germane.stores.relational.agents import AgentCopy as AgentCopy
from germane.stores.sqlite.store import SqliteStore as SqliteStore

__all__: list[str]
