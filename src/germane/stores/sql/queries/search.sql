-- What a process keeps of an agent's memories in order to search them. PostgreSQL has more in `postgres.sql`.

-- name: block_rows
-- What a cache and a block have of the memories written after :above, in the order of their writing, but for what
-- `unusual_memories` finds. The seventh column is 0 for those that may not be read late, see `UnreadMemory`, 1 for
-- those that may, and 2 for those of which that depends on their records.
SELECT memories.num, id, kind, created_at, importance, CASE scope WHEN 'session' THEN scope_value END,
       CASE WHEN version > 1 OR valid_from IS NOT NULL OR valid_until IS NOT NULL THEN 0
           WHEN full_tokens <= :short AND {sqlite: instr}{postgres: strpos}(metadata, '"status"') = 0 THEN 1 ELSE 2 END,
       length, hashes, frequencies
FROM memories {join} lex USING ({key}) {join} texts USING ({key})
WHERE memories.num > :above AND memories.num < :below AND {+}memories.agent = :agent
ORDER BY memories.num {limit};

-- name: unusual_memories
-- The memories that aren't simply active, current and usable for ever. The condition is that of an index.
SELECT num, status = 'active', status = 'archived', superseded_by IS NULL, coalesce(outcome, '') <> 'abandoned', expires_at FROM memories
WHERE agent = :agent AND num > :above AND num < :below
  AND (status <> 'active' OR superseded_by IS NOT NULL OR outcome = 'abandoned' OR expires_at IS NOT NULL)
ORDER BY num;

-- name: agent_counters
-- How many memories an agent has, and how many terms these have.
SELECT memories, terms FROM {states} WHERE agent = :agent;

-- name: memory_blocks
-- The blocks of the memories written after :above, each with the last num of its memories and the one before its first.
SELECT num, above, entries, words FROM memory_blocks
WHERE agent = :agent AND num > :above AND num < :below ORDER BY num;

-- name: memory_block_vectors
-- The same, with the vectors of those that have them.
SELECT num, above, vectors FROM memory_blocks
WHERE agent = :agent AND num > :above AND num < :below AND vectors IS NOT NULL ORDER BY num;

-- name: memory_block_ranges
-- The same, with the number of memories and whether there are vectors.
SELECT num, above, memories, vectors IS NOT NULL FROM memory_blocks
WHERE agent = :agent AND num > :above AND num < :below ORDER BY num;

-- name: insert_memory_block
-- Store a block.
INSERT INTO memory_blocks (num, agent, above, memories, entries, words, vectors) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: set_block_vectors
-- Store the vectors of a block.
UPDATE memory_blocks SET vectors = :vectors WHERE num = :num AND agent = :agent;

-- name: widen_block
-- Let the block that follows a gap without memories begin where the gap does.
UPDATE memory_blocks SET above = :above WHERE num = :num AND agent = :agent;

-- name: remove_blocks
-- Remove the blocks of the memories written after :above.
DELETE FROM memory_blocks WHERE agent = :agent AND num > :above AND num < :below;

-- name: unpack_memories
-- Remove the blocks of some memories.
DELETE FROM memory_blocks WHERE agent = :agent AND EXISTS (
    SELECT 1 FROM {each :nums} WHERE asked.value > memory_blocks.above AND asked.value <= memory_blocks.num
);

-- name: unpack_vectors_of
-- Remove the packed vectors of the blocks of some memories.
UPDATE memory_blocks SET vectors = NULL WHERE agent = :agent AND vectors IS NOT NULL AND EXISTS (
    SELECT 1 FROM {each :nums} WHERE asked.value > memory_blocks.above AND asked.value <= memory_blocks.num
);

-- name: unpack_all_vectors
-- Remove all packed vectors of an agent.
UPDATE memory_blocks SET vectors = NULL WHERE agent = :agent AND vectors IS NOT NULL;

-- name: cache_vectors
-- The vectors of the memories written after :above, with their checksums.
SELECT num, vector, checksum FROM vectors
WHERE agent = :agent AND num > :above AND num < :below ORDER BY num;

-- name: vectors
-- The vectors of some memories, with their checksums.
SELECT num, vector, checksum FROM vectors
WHERE agent = :agent AND num {numbers :nums} ORDER BY num;

-- name: changes
-- What happened since a cache last looked.
SELECT num, what FROM changes WHERE agent = :agent AND seq > :seq ORDER BY seq;

-- name: expiries
-- When some memories expire.
SELECT num, expires_at FROM memories WHERE agent = :agent AND num {numbers :nums} ORDER BY num;

-- name: forwards_to_renew
-- The texts to index anew, a batch at a time.
SELECT texts.num, content, subject, tags, metadata FROM memories {join} texts USING ({key})
WHERE memories.num > :above AND memories.num < :below AND {+}memories.agent = :agent
ORDER BY memories.num LIMIT 1000;

-- name: features
-- What the index knows of some memories.
SELECT memories.num, hashes, vector, checksum
FROM {each :nums} {join} memories ON {+}memories.agent = :agent AND memories.num = asked.value
    {join} lex ON {+}lex.agent = :agent AND lex.num = asked.value
    LEFT JOIN vectors ON vectors.agent = :agent AND vectors.num = asked.value
{postgres: ORDER BY asked.key};
