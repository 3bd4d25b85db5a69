-- Memories as they are written and read. Whatever reads or writes an agent's rows names the agent.
-- No value is ever formatted into a statement: where a filter is allowed, {filter} is replaced by conditions.

-- name: insert_memory
-- Store the narrow part of a memory.
INSERT INTO memories ({columns memories}) VALUES ({values memories});

-- name: insert_texts
-- Store the texts of a memory.
INSERT INTO texts ({columns texts}) VALUES ({values texts});

-- name: insert_tag
-- Make a tag searchable; a memory may name a tag twice.
INSERT INTO tags ({columns tags}) VALUES ({values tags}) ON CONFLICT DO NOTHING;

-- name: insert_lex
-- Store the forward record of a memory.
INSERT INTO lex ({columns lex}) VALUES ({values lex})
ON CONFLICT ({key}) DO UPDATE SET
    length = excluded.length, hashes = excluded.hashes, frequencies = excluded.frequencies;

-- name: insert_vector
-- Store or replace the vector of a memory.
INSERT INTO vectors ({columns vectors}) VALUES ({values vectors})
ON CONFLICT ({key}) DO UPDATE SET vector = excluded.vector, checksum = excluded.checksum;

-- name: remove_vector
-- Remove the vector of a memory that the model gives no direction.
DELETE FROM vectors WHERE num = :num AND agent = :agent;

-- name: insert_unembedded
-- Note that a memory waits for a vector.
INSERT INTO unembedded ({columns unembedded}) VALUES ({values unembedded}) ON CONFLICT DO NOTHING;

-- name: insert_all_unembedded
-- Note that all of an agent's memories wait for vectors of another model.
INSERT INTO unembedded (num, agent)
SELECT num, agent FROM memories WHERE num > :above AND num < :below AND {+}memories.agent = :agent
ON CONFLICT DO NOTHING;

-- name: remove_unembedded
-- Note that a memory was embedded.
DELETE FROM unembedded WHERE num = :num AND agent = :agent;

-- name: insert_change
-- Note what happened to a memory.
INSERT INTO changes ({columns changes}) VALUES ({values changes});

-- name: see_memory
-- A memory was remembered again.
UPDATE memories SET seen_count = :seen_count, updated_at = :updated_at, status = :status
WHERE num = :num AND agent = :agent;

-- name: use_memory
-- A memory was used in a context.
UPDATE memories SET access_count = access_count + 1,
    accessed_at = {greatest}(coalesce(accessed_at, :at), :at)
WHERE num = :num AND agent = :agent;

-- name: supersede_memory
-- A newer version stands in this memory's place.
UPDATE memories SET status = 'superseded', superseded_by = :superseded_by, updated_at = :updated_at,
    valid_until = CASE WHEN valid_from >= :ends::bigint OR valid_until <= :ends::bigint THEN valid_until
                       ELSE coalesce(:ends::bigint, valid_until) END
WHERE num = :num AND agent = :agent;

-- name: expire_memory
-- All versions of a memory expire at this time.
UPDATE memories SET expires_at = :expires_at WHERE num = :num AND agent = :agent;

-- name: set_status
-- Move a memory to another status.
UPDATE memories SET status = :status, updated_at = :updated_at
WHERE num = :num AND agent = :agent;

-- name: purge_memory (sqlite)
-- Remove a memory; its texts, tags, forward record, vector and the like go with it by their foreign keys.
DELETE FROM memories WHERE num = :num AND agent = :agent;

-- name: purge_memory (postgres)
-- Remove a memory with all that refers to it; see the function.
SELECT purge_memory(:agent, :num);

-- name: purge_vectors
-- Remove the agent's vectors, before another model makes new ones.
DELETE FROM vectors WHERE agent = :agent AND num > :above AND num < :below;

-- name: num
-- The number and status of a version, by the memory's id or a former id of a version; version 0 is the latest.
SELECT num, status FROM (
    SELECT num, version, status FROM memories
    WHERE agent = :agent AND id = coalesce((SELECT chain FROM memories WHERE agent = :agent AND id = :id), :id)
    UNION ALL
    SELECT num, version, status FROM memories
    WHERE agent = :agent AND version > 1
      AND chain = coalesce((SELECT chain FROM memories WHERE agent = :agent AND id = :id), :id)
) AS versions WHERE :version::bigint IN (0, version) ORDER BY version DESC, num DESC LIMIT 1;

-- name: nums_by_head
-- Which heads have these content hashes.
SELECT num FROM memories WHERE agent = :agent AND superseded_by IS NULL AND content_hash {texts :hashes};

-- name: nums_by_past
-- Which superseded versions have these content hashes, oldest version first.
SELECT num FROM memories WHERE agent = :agent AND superseded_by IS NOT NULL AND content_hash {texts :hashes}
ORDER BY version, num;

-- name: head_by_key
-- The number and the chain of the current memory with a key.
SELECT num, chain FROM memories WHERE agent = :agent AND key = :key AND superseded_by IS NULL;

-- name: reflections
-- The active summaries of several memories, which their key tells; their metadata names the members.
SELECT coalesce(chain, memories.id), metadata FROM memories {join} texts USING ({key})
WHERE memories.agent = :agent AND key >= 'reflection:' AND key < 'reflection;' AND superseded_by IS NULL
  AND status = 'active';

-- name: versions
-- All versions of a memory and whether each is the head, in order, by the id that `num` takes.
SELECT num, id, superseded_by IS NULL, version, expires_at, status FROM memories
WHERE agent = :agent AND id = coalesce((SELECT chain FROM memories WHERE agent = :agent AND id = :id), :id)
UNION ALL
SELECT num, id, superseded_by IS NULL, version, expires_at, status FROM memories
WHERE agent = :agent AND version > 1
  AND chain = coalesce((SELECT chain FROM memories WHERE agent = :agent AND id = :id), :id)
ORDER BY 4, 1;

-- name: length
-- How many terms a memory has, so that the agent's counter follows a purge.
SELECT length FROM lex WHERE agent = :agent AND num = :num;

-- name: records
-- Whole memories by their numbers, and the memory that each was superseded by.
SELECT {record}, coalesce((SELECT chain FROM memories AS after
    WHERE after.agent = :agent AND after.id = memories.superseded_by), superseded_by) AS successor
FROM {each :nums} {join} memories ON {+}memories.agent = :agent AND memories.num = asked.value
    {join} texts ON {+}texts.agent = :agent AND texts.num = asked.value
{postgres: ORDER BY asked.key};

-- name: contents
-- What some memories say, and whom it is about.
SELECT texts.num, content, subject
FROM {each :nums} {join} memories ON {+}memories.agent = :agent AND memories.num = asked.value
    {join} texts ON {+}texts.agent = :agent AND texts.num = asked.value;

-- name: record_by_id
-- A whole memory, as in `records`, by the id of a row and its agent's name: most are the current version.
SELECT {record}, coalesce((SELECT chain FROM memories AS after
    WHERE after.agent = {sqlite: memories.agent}{postgres: number_of(:agent)} AND after.id = memories.superseded_by), superseded_by) AS successor
FROM memories {join} texts USING ({key}) WHERE memories.agent = {number_of :agent} AND memories.id = :id;

-- name: record_by_version
-- A whole memory, as in `records`, by a version of a memory, as `num` finds it, and the name of its agent.
SELECT {record}, coalesce((SELECT chain FROM memories AS after
    WHERE after.agent = {sqlite: memories.agent}{postgres: number_of(:agent)} AND after.id = memories.superseded_by), superseded_by) AS successor
FROM memories {join} texts USING ({key})
WHERE memories.agent = {number_of :agent} AND memories.num = (
    SELECT num FROM (
        SELECT num, version FROM memories
        WHERE agent = {number_of :agent} AND id = coalesce(
            (SELECT chain FROM memories WHERE agent = {number_of :agent} AND id = :id), :id
        )
        UNION ALL
        SELECT num, version FROM memories
        WHERE agent = {number_of :agent} AND version > 1 AND chain = coalesce(
            (SELECT chain FROM memories WHERE agent = {number_of :agent} AND id = :id), :id
        )
    ) AS versions WHERE :version::bigint IN (0, version) ORDER BY version DESC, num DESC LIMIT 1
);

-- name: find_newest
-- A page of memories, latest created first; the page before ended at (:edge_time, :edge_id).
SELECT num FROM memories
WHERE agent = :agent {filter}
  AND (:edge_id::bytea IS NULL OR created_at < :edge_time::bigint
       OR (created_at = :edge_time::bigint AND id < :edge_id::bytea))
ORDER BY created_at DESC, id DESC {limit};

-- name: find_oldest
-- A page of memories in the order of their creation.
SELECT num FROM memories
WHERE agent = :agent {filter}
  AND (:edge_id::bytea IS NULL OR created_at > :edge_time::bigint
       OR (created_at = :edge_time::bigint AND id > :edge_id::bytea))
ORDER BY created_at, id {limit};

-- name: find_important
-- A page of memories, most important first, then latest created.
SELECT num FROM memories
WHERE agent = :agent {filter}
  AND (:edge_id::bytea IS NULL OR importance < :edge_importance::double precision
       OR (importance = :edge_importance::double precision
           AND (created_at < :edge_time::bigint
                OR (created_at = :edge_time::bigint AND id < :edge_id::bytea))))
ORDER BY importance DESC, created_at DESC, id DESC {limit};

-- name: edge
-- Where a page ended.
SELECT id, created_at, importance FROM memories WHERE agent = :agent AND num = :num;

-- name: counts
-- How many memories there are of each kind and status, with their tokens and times.
SELECT kind, status, count(*) AS memories, sum(full_tokens)::bigint AS tokens, min(created_at) AS oldest,
       max(created_at) AS newest
FROM memories {join} texts USING ({key})
WHERE memories.num > :above AND memories.num < :below AND {+}memories.agent = :agent
GROUP BY kind, status ORDER BY kind, status;

-- name: count_vectors
-- How many of the agent's memories have a vector.
SELECT count(*) FROM vectors WHERE agent = :agent AND num > :above AND num < :below;

-- name: count_unembedded
-- How many of the agent's memories wait for a vector; what is forgotten doesn't.
SELECT count(*) FROM unembedded {join} memories USING ({key})
WHERE unembedded.agent = :agent AND unembedded.num > :above AND unembedded.num < :below
  AND status <> 'forgotten';

-- name: insert_place
-- Note where a memory stands besides its scope; two of its places may be written alike.
INSERT INTO places ({columns places}) VALUES ({values places}) ON CONFLICT DO NOTHING;

-- name: tokens_by_scope
-- What the active memories of an agent take, by the name of their scope.
SELECT scope, sum(full_tokens)::bigint FROM memories {join} texts USING ({key})
WHERE memories.num > :above AND memories.num < :below AND {+}memories.agent = :agent AND status = 'active'
GROUP BY scope ORDER BY scope;

-- name: largest
-- The active memories of an agent of more than so many tokens, the longest first.
SELECT memories.num, chain, kind, scope, scope_value, micro, full_tokens FROM memories {join} texts USING ({key})
WHERE memories.num > :above AND memories.num < :below AND {+}memories.agent = :agent AND status = 'active'
  AND full_tokens > :least
ORDER BY full_tokens DESC, chain LIMIT :most;

-- name: merge_memory
-- Another memory, which says the same, stands in this memory's place.
UPDATE memories SET superseded_by = :superseded_by, updated_at = :updated_at
WHERE num = :num AND agent = :agent;

-- name: reword_texts
-- Store other renditions and metadata of a memory.
UPDATE texts SET micro = :micro, micro_tokens = :micro_tokens, summary = :summary,
    summary_tokens = :summary_tokens, full_text = :full_text, full_tokens = :full_tokens,
    counter = :counter, metadata = :metadata, checksum = :checksum
WHERE num = :num AND agent = :agent;

-- name: merged_into
-- All versions of the memories that were merged into a memory, as `versions` has them.
SELECT others.num, others.id, 0, others.version, others.expires_at, others.status
FROM memories AS merged {join} memories AS others ON others.agent = :agent AND others.chain = merged.chain
WHERE merged.agent = :agent AND merged.superseded_by = :id
  AND merged.chain <> (SELECT chain FROM memories WHERE agent = :agent AND id = :id);
