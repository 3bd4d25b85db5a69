-- Recorded assemblies, and what the store was like when they were made. Those that read what was before name the
-- columns that the SQLite store has, since their rows go into one.

-- name: insert_assembly
-- A recorded assembly, under the agent's next number.
INSERT INTO assemblies (agent, number, id, at, context, sha256, tokens, candidates, asked)
SELECT %(agent)s, coalesce(max(number), 0) + 1, %(id)s, %(at)s, %(context)s, %(sha256)s, %(tokens)s, %(candidates)s,
       %(asked)s
FROM assemblies WHERE agent = %(agent)s;

-- name: insert_assembled
-- A candidate; nothing where its memory was purged in the meantime. Its owner may be a space.
SELECT keep_candidate(
    %(agent)s, %(number)s, %(place)s, %(owner)s, %(id)s, %(version)s, %(section)s, %(score)s, %(parts)s, %(level)s,
    %(reason)s, %(tokens)s, %(short_by)s, %(pinned)s
);

-- name: withhold_hash
-- For a text that a purged memory stood in: fewer of what was included are there.
UPDATE assemblies SET sha256 = NULL
WHERE agent = %(agent)s AND number = %(number)s AND %(included)s > (
    SELECT count(*) FROM assembled WHERE agent = %(agent)s AND number = %(number)s AND reason IS NULL
);

-- name: remove_old_assemblies
-- All but the latest `most` of an agent.
DELETE FROM assemblies
WHERE agent = %(agent)s
  AND number <= (SELECT max(number) FROM assemblies WHERE agent = %(agent)s) - %(most)s;

-- name: assembly
-- A recorded assembly by its id.
SELECT number, id, at, context, sha256, tokens, candidates, asked
FROM assemblies WHERE agent = %(agent)s AND id = %(id)s;

-- name: assemblies
-- The latest first; before the one numbered `before`, made at `since` or later.
SELECT number, id, at, context, sha256, tokens, candidates, asked
FROM assemblies
WHERE agent = %(agent)s AND (%(since)s::bigint IS NULL OR at >= %(since)s::bigint)
  AND (%(before)s::bigint IS NULL OR number < %(before)s::bigint)
ORDER BY number DESC LIMIT nullif(%(limit)s::bigint, -1);

-- name: assembled
-- The candidates of an assembly that are still stored, with what feedback said of them.
SELECT id, version, kind, owner_name, section, score, parts, level, reason, tokens, short_by, pinned, used
FROM candidates_of(%(agent)s, %(number)s, %(context)s) ORDER BY place;

-- name: latest_assembly
-- The number of the agent's latest assembly.
SELECT max(number) FROM assemblies WHERE agent = %(agent)s;

-- name: point
-- How far an agent's store has come.
SELECT seq, judged, attested, lived, learning FROM states WHERE states.agent = number_of(%(agent)s);

-- name: altered
-- What happened after the change `seq` to the memories that were there then, and which were added.
SELECT DISTINCT what, chain, version, superseded_by, memories.status
FROM changes LEFT JOIN memories ON memories.num = changes.num AND memories.agent = %(agent)s
WHERE changes.agent = %(agent)s AND changes.seq > %(seq)s AND (changes.num <= %(last)s OR what = 'insert')
ORDER BY chain NULLS FIRST, version, what;

-- name: count_purged
-- How many memories that were there after the change `seq` are gone.
SELECT count(*) FROM changes
WHERE agent = %(agent)s AND seq > %(seq)s AND num <= %(last)s AND what = 'purge';

-- name: past_agents
-- The agent itself.
SELECT agent, name, seq, memories, terms, language, learning, judged, moved, attested, lived
FROM states JOIN agents USING (agent) WHERE states.agent = %(agent)s;

-- name: past_memories
-- What was stored by then.
SELECT * FROM memories WHERE agent = %(agent)s AND num <= %(last)s;

-- name: past_texts
-- Their texts.
SELECT * FROM texts WHERE agent = %(agent)s AND num <= %(last)s;

-- name: past_tags
-- Their tags.
SELECT * FROM tags WHERE agent = %(agent)s AND num <= %(last)s;

-- name: past_places
-- Their places.
SELECT * FROM places WHERE agent = %(agent)s AND num <= %(last)s;

-- name: past_lex
-- Their forward records.
SELECT num, agent, length, hashes, frequencies FROM lex WHERE agent = %(agent)s AND num <= %(last)s;

-- name: past_vectors
-- Their vectors; one that came later was not there.
SELECT * FROM vectors
WHERE agent = %(agent)s AND num <= %(last)s AND num NOT IN (
    SELECT num FROM changes WHERE agent = %(agent)s AND seq > %(seq)s AND what = 'vector'
);

-- name: past_unembedded
-- What waited for a vector then.
SELECT num, agent FROM unembedded WHERE agent = %(agent)s AND num <= %(last)s
UNION
SELECT num, agent FROM changes
WHERE agent = %(agent)s AND seq > %(seq)s AND what = 'vector' AND num BETWEEN 1 AND %(last)s
  AND num IN (SELECT num FROM memories WHERE agent = %(agent)s);

-- name: past_shown
-- What was judged by then.
SELECT * FROM shown WHERE agent = %(agent)s AND num <= %(last)s AND given <= %(judged)s;

-- name: past_outcomes
-- What was attested by then.
SELECT * FROM outcomes WHERE agent = %(agent)s AND num <= %(last)s AND given <= %(attested)s;

-- name: past_lives
-- What is counted of them.
SELECT * FROM lives WHERE agent = %(agent)s AND num <= %(last)s;

-- name: past_settings
-- The model whose vectors are stored.
SELECT name, value FROM settings WHERE name IN ('embedding_name', 'embedding_dimension');

-- name: superseded_since
-- Which memories were heads after the change `seq`.
SELECT DISTINCT num FROM changes
WHERE agent = %(agent)s AND seq > %(seq)s AND num <= %(last)s AND what = 'supersede';

-- name: moved_since
-- Which memories went to another status after the change `seq`.
SELECT DISTINCT num FROM changes
WHERE agent = %(agent)s AND seq > %(seq)s AND num <= %(last)s AND what = 'status';

-- name: stages_then
-- At which stage a memory stood before the first thing that happened to it after the event `lived`.
SELECT num, stage_before FROM life_events AS one
WHERE one.agent = %(agent)s AND num <= %(last)s AND number = (
    SELECT min(number) FROM life_events WHERE agent = %(agent)s AND num = one.num AND number > %(lived)s
);

-- name: uses_since
-- How often memories were used after the judgement `judged`.
SELECT num, count(*) FROM shown
WHERE agent = %(agent)s AND num <= %(last)s AND used = 1 AND given > %(judged)s GROUP BY num;

-- name: be_head
-- As before another one stood in its place.
UPDATE memories SET superseded_by = NULL, status = 'active' WHERE agent = %(agent)s AND num = %(num)s;

-- name: be_at
-- As before it went to another status or stage.
UPDATE memories SET status = coalesce(%(status)s, status), stage = coalesce(%(stage)s, stage)
WHERE agent = %(agent)s AND num = %(num)s;

-- name: unuse
-- As before so many uses.
UPDATE memories SET access_count = greatest(0, access_count - %(uses)s)
WHERE agent = %(agent)s AND num = %(num)s;

-- name: set_point
-- How far the copy of a store has come.
UPDATE states SET seq = %(seq)s, judged = %(judged)s, attested = %(attested)s, lived = %(lived)s,
    learning = %(learning)s
WHERE states.agent = %(agent)s;
