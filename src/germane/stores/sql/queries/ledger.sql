-- Recorded assemblies, and what the store was like when they were made. Those that read what was before name the
-- columns that SQLite has, since their rows go into a store in memory.

-- name: insert_assembly
-- Store an assembly under the number after `latest_assembly`. A cluster can't tell a duplicate in INSERT … SELECT.
INSERT INTO assemblies ({columns assemblies})
VALUES (:agent, :number, :id, :at, :context, :sha256, :tokens, :candidates, :asked);

-- name: insert_assembled (sqlite)
-- Store a candidate of an assembly; none where its memory is gone.
INSERT INTO assembled ({columns assembled})
SELECT
    :agent, :number, :place, memories.num, :section, :score, :parts, :level, :reason, :tokens, :short_by, :pinned
FROM agents AS owners
CROSS JOIN memories ON memories.agent = owners.agent AND memories.version = :version AND memories.num IN (
    SELECT one.num FROM memories AS one WHERE one.agent = owners.agent AND one.id = :id
    UNION ALL
    SELECT one.num FROM memories AS one WHERE one.agent = owners.agent AND one.chain = :id AND one.version > 1
)
WHERE owners.name = :owner;

-- name: insert_assembled (postgres)
-- Store a candidate of an assembly; none where its memory is gone.
SELECT keep_candidate(
    :agent, :number, :place, :owner, :id, :version, :section, :score, :parts, :level, :reason, :tokens, :short_by,
    :pinned
);

-- name: withhold_hash
-- For a text that a purged memory stood in: fewer of what was included are there.
UPDATE assemblies SET sha256 = NULL
WHERE agent = :agent AND number = :number AND :included > (
    SELECT count(*) FROM assembled WHERE agent = :agent AND number = :number AND reason IS NULL
);

-- name: remove_old_assemblies
-- All but the latest :most of an agent.
DELETE FROM assemblies
WHERE agent = :agent
  AND number <= (SELECT max(number) FROM assemblies WHERE agent = :agent) - :most;

-- name: remove_assembly
-- One of an agent's assemblies.
DELETE FROM assemblies WHERE agent = :agent AND number = :number;

-- name: assembly
-- A recorded assembly by its id.
SELECT number, id, at, context, sha256, tokens, candidates, asked
FROM assemblies WHERE agent = :agent AND id = :id;

-- name: assemblies
-- The latest first; before the one numbered :before, made at :since or later.
SELECT number, id, at, context, sha256, tokens, candidates, asked
FROM assemblies
WHERE agent = :agent AND (:since::bigint IS NULL OR at >= :since::bigint)
  AND (:before::bigint IS NULL OR number < :before::bigint)
ORDER BY number DESC {limit};

-- name: assembled (sqlite)
-- The candidates of an assembly that are still stored, by rank, and whether they were used.
SELECT memories.chain, memories.version, memories.kind, owners.name, section, score, assembled.parts, level, reason,
       tokens, short_by, assembled.pinned, shown.used
FROM assembled
CROSS JOIN memories ON memories.num = assembled.num
CROSS JOIN agents AS owners ON owners.agent = memories.agent
LEFT JOIN shown ON shown.agent = assembled.agent AND shown.context = :context AND shown.num = assembled.num
WHERE assembled.agent = :agent AND assembled.number = :number ORDER BY place;

-- name: assembled (postgres)
-- The candidates of an assembly that are still stored, by rank, and whether they were used.
SELECT id, version, kind, owner_name, section, score, parts, level, reason, tokens, short_by, pinned, used
FROM candidates_of(:agent, :number, :context) ORDER BY place;

-- name: latest_assembly
-- The number of the agent's latest assembly; 0 for none.
SELECT coalesce(max(number), 0) FROM assemblies WHERE agent = :agent;

-- name: point
-- What says how far an agent's memories have come.
SELECT seq, judged, attested, lived, learning FROM {states} WHERE {state_of :agent};

-- name: point_at
-- The same at a moment, as far as times are stored: judgements are as they are now.
SELECT coalesce((SELECT min(seq) - 1 FROM changes WHERE changes.agent = :agent AND at > :at), seq), judged,
    coalesce((SELECT min(given) - 1 FROM outcomes WHERE outcomes.agent = :agent AND at > :at), attested),
    coalesce((SELECT min(number) - 1 FROM life_events WHERE life_events.agent = :agent AND at > :at), lived),
    learning
FROM {states} WHERE {states}.agent = :agent;

-- name: altered
-- What happened after the change :seq to the memories that were there then, and which were added.
SELECT DISTINCT what, chain, version, superseded_by, memories.status
FROM changes LEFT JOIN memories ON memories.num = changes.num AND memories.agent = :agent
WHERE changes.agent = :agent AND changes.seq > :seq AND (changes.num <= :last OR what = 'insert')
ORDER BY chain NULLS FIRST, version, what;

-- name: count_purged
-- How many memories that were there after the change :seq are gone.
SELECT count(*) FROM changes
WHERE agent = :agent AND seq > :seq AND num <= :last AND what = 'purge';

-- name: past_agents
-- The agent itself, as it is now.
SELECT agent, name, seq, memories, terms, language, learning, judged, moved, attested, lived
FROM {states} {postgres: JOIN agents USING (agent)} WHERE {states}.agent = :agent;

-- name: past_memories
-- What was stored by then.
SELECT {columns memories} FROM memories WHERE agent = :agent AND num <= :last;

-- name: past_texts
-- Their texts.
SELECT * FROM texts WHERE agent = :agent AND num <= :last;

-- name: past_tags
-- Their tags.
SELECT * FROM tags WHERE agent = :agent AND num <= :last;

-- name: past_places
-- Their places.
SELECT * FROM places WHERE agent = :agent AND num <= :last;

-- name: past_lex
-- The forward records of the memories that were there.
SELECT {columns lex} FROM lex WHERE agent = :agent AND num <= :last;

-- name: past_vectors
-- Their vectors; one that came later was not there.
SELECT * FROM vectors
WHERE agent = :agent AND num <= :last AND num NOT IN (
    SELECT num FROM changes WHERE agent = :agent AND seq > :seq AND what = 'vector'
);

-- name: past_unembedded
-- What waited for a vector then.
SELECT num, agent FROM unembedded WHERE agent = :agent AND num <= :last
UNION
SELECT num, agent FROM changes
WHERE agent = :agent AND seq > :seq AND what = 'vector' AND num BETWEEN 1 AND :last
  AND num IN (SELECT num FROM memories WHERE agent = :agent);

-- name: past_shown
-- What was judged by then.
SELECT * FROM shown WHERE agent = :agent AND num <= :last AND given <= :judged;

-- name: past_outcomes
-- What was attested by then.
SELECT * FROM outcomes WHERE agent = :agent AND num <= :last AND given <= :attested;

-- name: past_lives
-- What is counted of them.
SELECT * FROM lives WHERE agent = :agent AND num <= :last;

-- name: past_settings
-- The model whose vectors are stored.
SELECT name, value FROM settings WHERE name IN ('embedding_name', 'embedding_dimension');

-- name: superseded_since
-- Which memories were heads after the change :seq, and whether it was the next version that ended their validity.
SELECT DISTINCT changes.num, coalesce(one.valid_until = after.valid_from, 1 = 0)
FROM changes {join} memories AS one ON {+}one.agent = :agent AND one.num = changes.num
    LEFT JOIN memories AS after ON after.agent = :agent AND after.id = one.superseded_by
WHERE changes.agent = :agent AND seq > :seq AND changes.num <= :last AND what = 'supersede';

-- name: moved_since
-- Where memories stood before the first change after :seq that moved them to another status.
SELECT num, stood FROM changes AS one
WHERE agent = :agent AND seq > :seq AND num <= :last AND stood IS NOT NULL AND seq = (
    SELECT min(seq) FROM changes WHERE agent = :agent AND num = one.num AND seq > :seq AND stood IS NOT NULL
);

-- name: stages_then
-- At which stage a memory stood before the first thing that happened to it after the event :lived.
SELECT num, stage_before FROM life_events AS one
WHERE one.agent = :agent AND num <= :last AND number = (
    SELECT min(number) FROM life_events WHERE agent = :agent AND num = one.num AND number > :lived
);

-- name: uses_since
-- How often memories were used after the judgement :judged.
SELECT num, count(*) FROM shown
WHERE agent = :agent AND num <= :last AND used = 1 AND given > :judged GROUP BY num;

-- name: be_head
-- As before another one stood in its place.
UPDATE memories SET superseded_by = NULL, valid_until = CASE WHEN :ended THEN NULL ELSE valid_until END
WHERE agent = :agent AND num = :num;

-- name: be_at
-- As before it went to another status or stage.
UPDATE memories SET status = coalesce(:status, status), stage = coalesce(:stage, stage)
WHERE agent = :agent AND num = :num;

-- name: unuse
-- As before so many uses.
UPDATE memories SET access_count = {greatest}(0, access_count - :uses)
WHERE agent = :agent AND num = :num;

-- name: set_point
-- How far the copy of a store has come.
UPDATE {states} SET seq = :seq, judged = :judged, attested = :attested, lived = :lived,
    learning = :learning
WHERE {states}.agent = :agent;

-- name: logged_changes
-- What happened to memories after the change :seq, in order, each with what the memory is now.
SELECT changes.seq, what, chain, version, memories.status
FROM changes LEFT JOIN memories ON memories.num = changes.num AND memories.agent = :agent
WHERE changes.agent = :agent AND changes.seq > :seq AND what NOT IN ('supersede', 'vector')
ORDER BY changes.seq {limit};
