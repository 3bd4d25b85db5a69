-- What only PostgreSQL runs: searches that leave the rows where they are, and indexes of vectors.
-- Vectors come and go as `germane.stores.postgres.connecting.halfvecs` reads and writes them: float16 in little endian.

-- name: cache_columns (postgres)
-- What a process keeps of the memories written after `above`, in the order of their writing.
SELECT num, id, kind, created_at, importance, CASE scope WHEN 'session' THEN scope_value END, expires_at
FROM memories
WHERE num > :above AND num < :below AND agent = :agent
ORDER BY num;

-- name: postings_of (postgres)
-- The memories that have any of these keys, and how often each occurs, in one row; see the function.
SELECT documents, tokens, nums, lengths, counts, hashes, frequencies
FROM postings_of(:agent, numbers_of(:keys));

-- name: similarities (postgres)
-- The inner product of a vector with each of the agent's, by num, in one row: nums (int8) and products (float4)
-- in network order. No order by distance stands here, so no index can leave any out.
SELECT string_agg(int8send(num), NULL ORDER BY num),
       string_agg(float4send((-(vector::vector <#> :asked::vector))::real), NULL ORDER BY num)
FROM vectors WHERE agent = :agent;

-- name: packed_vectors (postgres)
-- Some of the agent's vectors in one row, by num: nums (int8 in network order), and each as the server sends it.
-- The checksums are -1 where there is none.
SELECT string_agg(int8send(num), NULL ORDER BY num), string_agg(halfvec_send(vector), NULL ORDER BY num),
       array_agg(coalesce(checksum, -1) ORDER BY num)
FROM vectors WHERE agent = :agent AND num = ANY (numbers_of(:nums));

-- name: nearest_by_index (postgres)
-- The agent's vectors with the greatest inner products, by its own index, which may miss some.
-- {agent} and {dimension} are whole numbers, written into the text because the index is for them alone.
SELECT num, -distance FROM (
    SELECT num, vector::halfvec({dimension}) <#> :asked::halfvec({dimension}) AS distance FROM vectors
    WHERE agent = {agent} ORDER BY vector::halfvec({dimension}) <#> :asked::halfvec({dimension}) LIMIT :limit
) AS found ORDER BY distance, num DESC;

-- name: note_erasure (postgres)
-- Note that what was purged of the agent that was entered has to be erased.
SELECT note_erasure(entered(), :purged) WHERE entered() IS NOT NULL;

-- name: set_search_width (postgres)
-- How many candidates the index goes through until the transaction ends, and so how many it can find.
SELECT set_config('hnsw.ef_search', :width, true);

-- name: index_vectors (postgres)
-- Give an agent with very many vectors an index of its own, outside a transaction. {table} is the partition that
-- the agent's rows are in, or `vectors`.
CREATE INDEX CONCURRENTLY IF NOT EXISTS vectors_of_{agent}
ON {table} USING hnsw ((vector::halfvec({dimension})) halfvec_ip_ops) WHERE agent = {agent};

-- name: unindex_vectors (postgres)
-- Take the index away again, outside a transaction.
DROP INDEX CONCURRENTLY IF EXISTS vectors_of_{agent};

-- name: indexed_vectors (postgres)
-- Whether an agent's vectors have an index that can be used.
SELECT indisvalid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE relname = 'vectors_of_' || :agent::text AND relnamespace = current_schema()::regnamespace;
