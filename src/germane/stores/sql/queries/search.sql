-- What a process keeps of an agent's memories in order to search them. PostgreSQL has more in `postgres.sql`.

-- name: cache_rows
-- What a cache keeps of the memories written after :above, in the order of their writing.
SELECT memories.num, id, kind, created_at, importance, CASE scope WHEN 'session' THEN scope_value END,
       expires_at, length, hashes, frequencies
FROM memories {join} lex USING ({key})
WHERE memories.num > :above AND memories.num < :below AND {+}memories.agent = :agent
ORDER BY memories.num;

-- name: cache_vectors
-- The vectors of the memories written after :above.
SELECT num, vector FROM vectors
WHERE agent = :agent AND num > :above AND num < :below ORDER BY num;

-- name: vectors
-- The vectors of some memories.
SELECT num, vector FROM vectors
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
SELECT memories.num, hashes, vector
FROM {each :nums} {join} memories ON {+}memories.agent = :agent AND memories.num = asked.value
    {join} lex ON {+}lex.agent = :agent AND lex.num = asked.value
    LEFT JOIN vectors ON vectors.agent = :agent AND vectors.num = asked.value
{postgres: ORDER BY asked.key};
