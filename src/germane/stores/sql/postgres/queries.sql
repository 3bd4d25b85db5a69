-- Every statement that the PostgreSQL store runs, by name: those of the SQLite store, with the same placeholders
-- and the same columns, and some of its own in `queries_postgres.sql`.
-- Whatever reads or writes an agent's rows names the agent, and joins carry it on, so that each statement finds
-- all of its rows in one partition or shard. No value is ever formatted into a statement: where a filter is
-- allowed, {filter} is replaced by conditions named `where_...` below.
-- Vectors come and go as `germane.stores.postgres.connecting.halfvecs` reads and writes them: float16 in little endian.

-- name: record_migration
-- Note that a migration is done, in its own transaction.
INSERT INTO migrations (number, name) VALUES (%(number)s, %(name)s);

-- name: settings
-- All settings that hold for the whole store.
SELECT name, value FROM settings;

-- name: add_setting
-- Store a setting of the whole store where there is none of that name.
INSERT INTO settings (name, value) VALUES (%(name)s, %(value)s) ON CONFLICT DO NOTHING;

-- name: change_setting
-- Store another value of a setting of the whole store.
UPDATE settings SET value = %(value)s WHERE name = %(name)s;

-- name: remove_setting
-- Forget a setting of the whole store.
DELETE FROM settings WHERE name = %(name)s;

-- name: agent
-- The agent's number, latest change and language; the latest judgement, outcome and event, and whether it learns;
-- and the settings that a process has to agree with.
SELECT agent, seq, language, judged, attested, lived, learning,
       (SELECT value FROM settings WHERE name = 'tokenizer'),
       (SELECT value FROM settings WHERE name = 'embedding_name'),
       (SELECT value FROM settings WHERE name = 'embedding_dimension')
FROM states WHERE agent = number_of(%(name)s);

-- name: agents
-- Every agent's number, name and language, for what has to be done to all of them. Names can be read by all; seq
-- is NULL where the policies keep the rest from who asks.
SELECT agent, seq, name, language FROM agents LEFT JOIN states USING (agent) ORDER BY agent;

-- name: agent_figures
-- How many memories an agent has, of any status, and when one of them was last written.
SELECT count(*), max(updated_at) FROM memories WHERE agent = %(agent)s;

-- name: add_agent
-- Give a new agent its number.
SELECT add_agent(%(name)s);

-- name: lock_agent
-- The agent's latest change, after which nobody else writes for it until this transaction ends.
SELECT seq FROM states WHERE agent = %(agent)s FOR UPDATE;

-- name: advance_agent
-- Move the agent's change number and counters at the end of a transaction.
UPDATE states SET seq = %(seq)s, memories = memories + %(memories)s, terms = terms + %(terms)s
WHERE agent = %(agent)s;

-- name: set_agent_language
-- Change the language of an agent whose memories are about to be indexed anew.
UPDATE states SET language = %(language)s WHERE agent = %(agent)s;

-- name: set_agent_terms
-- Count the agent's terms anew after a reindex, and note the change.
UPDATE states SET seq = %(seq)s, terms = %(terms)s WHERE agent = %(agent)s;

-- name: insert_memory
-- Store the narrow part of a memory.
INSERT INTO memories (
    num, agent, id, kind, status, scope, scope_value, subject, importance, confidence, outcome, trust,
    source, pinned, created_at, updated_at, chain, version, content_hash, seen_count, access_count,
    accessed_at, supersedes, superseded_by, stage
) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s);

-- name: insert_texts
-- Store the texts of a memory.
INSERT INTO texts (
    num, agent, content, micro, micro_tokens, summary, summary_tokens, full_text, full_tokens, counter,
    tags, metadata
) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s);

-- name: insert_tag
-- Make a tag searchable; a memory may name a tag twice.
INSERT INTO tags (agent, tag, num) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING;

-- name: insert_lex
-- Store the forward record of a memory.
INSERT INTO lex (num, agent, length, hashes, frequencies) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (agent, num) DO UPDATE SET
    length = excluded.length, hashes = excluded.hashes, frequencies = excluded.frequencies;

-- name: insert_vector
-- Store or replace the vector of a memory.
INSERT INTO vectors (num, agent, vector) VALUES (%s, %s, %s)
ON CONFLICT (agent, num) DO UPDATE SET vector = excluded.vector;

-- name: remove_vector
-- Remove the vector of a memory that the model gives no direction.
DELETE FROM vectors WHERE num = %(num)s AND agent = %(agent)s;

-- name: insert_unembedded
-- Note that a memory waits for a vector.
INSERT INTO unembedded (num, agent) VALUES (%s, %s) ON CONFLICT DO NOTHING;

-- name: insert_all_unembedded
-- Note that all of an agent's memories wait for vectors of another model.
INSERT INTO unembedded (num, agent)
SELECT num, agent FROM memories WHERE num > %(above)s AND num < %(below)s AND agent = %(agent)s
ON CONFLICT DO NOTHING;

-- name: remove_unembedded
-- Note that a memory was embedded.
DELETE FROM unembedded WHERE num = %(num)s AND agent = %(agent)s;

-- name: insert_change
-- Note what happened to a memory.
INSERT INTO changes (agent, seq, num, what) VALUES (%s, %s, %s, %s);

-- name: see_memory
-- A memory was remembered again.
UPDATE memories SET seen_count = %(seen_count)s, updated_at = %(updated_at)s, status = %(status)s
WHERE num = %(num)s AND agent = %(agent)s;

-- name: use_memory
-- A memory was used in a context.
UPDATE memories SET access_count = access_count + 1,
    accessed_at = greatest(coalesce(accessed_at, %(at)s), %(at)s)
WHERE num = %(num)s AND agent = %(agent)s;

-- name: supersede_memory
-- A newer version stands in this memory's place.
UPDATE memories SET status = 'superseded', superseded_by = %(superseded_by)s, updated_at = %(updated_at)s
WHERE num = %(num)s AND agent = %(agent)s;

-- name: set_status
-- Move a memory to another status.
UPDATE memories SET status = %(status)s, updated_at = %(updated_at)s
WHERE num = %(num)s AND agent = %(agent)s;

-- name: purge_memory
-- Remove a memory; its texts, tags, forward record, vector and the like go with it by their foreign keys, and
-- what assemblies say of it by the function.
SELECT purge_memory(%(agent)s, %(num)s);

-- name: purge_vectors
-- Remove the agent's vectors, before another model makes new ones.
DELETE FROM vectors WHERE agent = %(agent)s AND num > %(above)s AND num < %(below)s;

-- name: learning
-- Whether an agent learns from use, and the number of its latest judgement.
SELECT learning, judged FROM states WHERE agent = %(agent)s;

-- name: set_learning
-- Switch an agent's learning on or off.
UPDATE states SET learning = %(on)s WHERE agent = %(agent)s;

-- name: judgement
-- What is known of a memory in a context.
SELECT used, parts FROM shown WHERE agent = %(agent)s AND context = %(context)s AND num = %(num)s;

-- name: count_judgement
-- Give the next judgement its number, so many after the latest, or note that some are gone.
UPDATE states SET judged = judged + %(by)s WHERE agent = %(agent)s;

-- name: insert_judgement
-- Store a judgement under its number; what was used once stays used, and parts stay those of the first time.
INSERT INTO shown (agent, context, num, given, used, parts)
SELECT states.agent, %(context)s, %(num)s, judged, %(used)s, %(parts)s FROM states WHERE states.agent = %(agent)s
ON CONFLICT (agent, context, num) DO UPDATE SET
    given = excluded.given, used = greatest(shown.used, excluded.used), parts = coalesce(nullif(shown.parts, '{}'), excluded.parts);

-- name: remove_old_judgements
-- Remove all but the latest judgements of an agent.
DELETE FROM shown
WHERE agent = %(agent)s
  AND given <= (SELECT judged FROM states WHERE states.agent = %(agent)s) - %(most)s;

-- name: examples
-- What an agent was told of use, in a total order; without parts there is nothing to learn from.
SELECT context, chain, version, superseded_by, used, parts, given FROM shown JOIN memories USING (agent, num)
WHERE shown.agent = %(agent)s AND parts IS NOT NULL ORDER BY context, memories.id;

-- name: count_examples
-- How many examples an agent has.
SELECT count(*) FROM shown WHERE agent = %(agent)s AND parts <> '{}';

-- name: remove_unused
-- Remove what is known of memories that were not used.
DELETE FROM shown WHERE agent = %(agent)s AND used = 0;

-- name: remove_parts
-- Leave nothing to learn from.
UPDATE shown SET parts = NULL WHERE agent = %(agent)s AND parts IS NOT NULL;

-- name: num
-- The number of a version of a memory, by the memory's id or a former id of a version; version 0 is the latest.
SELECT num FROM (
    SELECT num, version FROM memories
    WHERE agent = %(agent)s AND id = coalesce((SELECT chain FROM memories WHERE agent = %(agent)s AND id = %(id)s), %(id)s)
    UNION ALL
    SELECT num, version FROM memories
    WHERE agent = %(agent)s AND chain = coalesce((SELECT chain FROM memories WHERE agent = %(agent)s AND id = %(id)s), %(id)s) AND version > 1
) AS versions WHERE %(version)s::bigint IN (0, version) ORDER BY version DESC, num DESC LIMIT 1;

-- name: nums_by_head
-- Which heads have these content hashes. They are made a list once, and not for every row that is looked at.
SELECT num FROM memories
WHERE agent = %(agent)s AND superseded_by IS NULL AND content_hash = ANY (ARRAY(SELECT unnest(texts_of(%(hashes)s))));

-- name: nums_by_past
-- Which superseded versions have these content hashes, oldest version first.
SELECT num FROM memories
WHERE agent = %(agent)s AND superseded_by IS NOT NULL AND content_hash = ANY (ARRAY(SELECT unnest(texts_of(%(hashes)s))))
ORDER BY version, num;

-- name: versions
-- All versions of a memory and whether each is the head, in order, by the id that `num` takes.
SELECT num, id, superseded_by IS NULL, version FROM memories
WHERE agent = %(agent)s AND id = coalesce((SELECT chain FROM memories WHERE agent = %(agent)s AND id = %(id)s), %(id)s)
UNION ALL
SELECT num, id, superseded_by IS NULL, version FROM memories
WHERE agent = %(agent)s AND chain = coalesce((SELECT chain FROM memories WHERE agent = %(agent)s AND id = %(id)s), %(id)s) AND version > 1
ORDER BY 4, 1;

-- name: length
-- How many terms a memory has, so that the agent's counter follows a purge.
SELECT length FROM lex WHERE agent = %(agent)s AND num = %(num)s;

-- name: records
-- Whole memories by their numbers, in the order of those.
SELECT memories.num, memories.id, kind, status, scope, scope_value, subject, importance, confidence, outcome,
       trust, source, pinned, created_at, updated_at, chain, version, content_hash, seen_count,
       access_count, accessed_at, supersedes,
       coalesce((SELECT chain FROM memories AS after
                 WHERE after.agent = %(agent)s AND after.id = memories.superseded_by), superseded_by), stage,
       content, micro, micro_tokens, summary, summary_tokens, full_text, full_tokens, counter, tags, metadata
FROM unnest(numbers_of(%(nums)s)) WITH ORDINALITY AS asked (num, place)
JOIN memories ON memories.agent = %(agent)s AND memories.num = asked.num
JOIN texts ON texts.agent = %(agent)s AND texts.num = asked.num
ORDER BY asked.place;

-- name: record_by_id
-- A whole memory by the id of a row and its agent's name: most are the current version of a memory.
SELECT memories.num, memories.id, kind, status, scope, scope_value, subject, importance, confidence, outcome,
       trust, source, pinned, created_at, updated_at, chain, version, content_hash, seen_count,
       access_count, accessed_at, supersedes,
       coalesce((SELECT chain FROM memories AS after
                 WHERE after.agent = number_of(%(agent)s) AND after.id = memories.superseded_by), superseded_by), stage,
       content, micro, micro_tokens, summary, summary_tokens, full_text, full_tokens, counter, tags, metadata
FROM memories JOIN texts USING (agent, num)
WHERE memories.agent = number_of(%(agent)s) AND memories.id = %(id)s;

-- name: record_by_version
-- The same of a version of a memory, as `num` finds it, by the name of its agent.
SELECT memories.num, memories.id, kind, status, scope, scope_value, subject, importance, confidence, outcome,
       trust, source, pinned, created_at, updated_at, chain, version, content_hash, seen_count,
       access_count, accessed_at, supersedes,
       coalesce((SELECT chain FROM memories AS after
                 WHERE after.agent = number_of(%(agent)s) AND after.id = memories.superseded_by), superseded_by), stage,
       content, micro, micro_tokens, summary, summary_tokens, full_text, full_tokens, counter, tags, metadata
FROM memories JOIN texts USING (agent, num)
WHERE memories.agent = number_of(%(agent)s) AND memories.num = (
    SELECT num FROM (
        SELECT num, version FROM memories
        WHERE agent = number_of(%(agent)s) AND id = coalesce(
            (SELECT chain FROM memories WHERE agent = number_of(%(agent)s) AND id = %(id)s), %(id)s
        )
        UNION ALL
        SELECT num, version FROM memories
        WHERE agent = number_of(%(agent)s) AND version > 1 AND chain = coalesce(
            (SELECT chain FROM memories WHERE agent = number_of(%(agent)s) AND id = %(id)s), %(id)s
        )
    ) AS versions WHERE %(version)s::bigint IN (0, version) ORDER BY version DESC, num DESC LIMIT 1
);

-- name: find_newest
-- A page of memories, latest created first; the page before ended at (edge_time, edge_id).
SELECT num FROM memories
WHERE agent = %(agent)s {filter}
  AND (%(edge_id)s::bytea IS NULL OR created_at < %(edge_time)s::bigint
       OR (created_at = %(edge_time)s::bigint AND id < %(edge_id)s::bytea))
ORDER BY created_at DESC, id DESC LIMIT nullif(%(limit)s::bigint, -1);

-- name: find_oldest
-- A page of memories in the order of their creation.
SELECT num FROM memories
WHERE agent = %(agent)s {filter}
  AND (%(edge_id)s::bytea IS NULL OR created_at > %(edge_time)s::bigint
       OR (created_at = %(edge_time)s::bigint AND id > %(edge_id)s::bytea))
ORDER BY created_at, id LIMIT nullif(%(limit)s::bigint, -1);

-- name: find_important
-- A page of memories, most important first, then latest created.
SELECT num FROM memories
WHERE agent = %(agent)s {filter}
  AND (%(edge_id)s::bytea IS NULL OR importance < %(edge_importance)s::double precision
       OR (importance = %(edge_importance)s::double precision
           AND (created_at < %(edge_time)s::bigint
                OR (created_at = %(edge_time)s::bigint AND id < %(edge_id)s::bytea))))
ORDER BY importance DESC, created_at DESC, id DESC LIMIT nullif(%(limit)s::bigint, -1);

-- name: edge
-- Where a page ended.
SELECT id, created_at, importance FROM memories WHERE agent = %(agent)s AND num = %(num)s;

-- name: admitted
-- Every memory that a filter admits.
SELECT num FROM memories WHERE num > %(above)s AND num < %(below)s AND agent = %(agent)s {filter};

-- name: admitted_among
-- Which of these memories a filter admits.
SELECT num FROM memories
WHERE num = ANY (numbers_of(%(nums)s)) AND agent = %(agent)s {filter};

-- name: where_statuses
-- A condition for {filter}.
AND status IN (%(statuses)s)

-- name: where_kinds
-- A condition for {filter}.
AND kind IN (%(kinds)s)

-- name: where_scopes
-- A condition for {filter}.
AND (scope, scope_value) IN (VALUES %(scopes)s)

-- name: where_subject
-- A condition for {filter}.
AND subject = %(subject)s

-- name: where_source
-- A condition for {filter}.
AND source = %(source)s

-- name: where_metadata
-- A condition for {filter}. No jsonb holds a NUL: for both sides it is a character that no text has.
AND EXISTS (
    SELECT FROM texts
    WHERE texts.agent = %(agent)s AND texts.num = memories.num
      AND replace(texts.metadata, '\u0000', '\ufdd0')::jsonb @> replace(%(metadata)s::text, '\u0000', '\ufdd0')::jsonb
)

-- name: where_without
-- A condition for {filter}.
AND (outcome IS NULL OR outcome NOT IN (%(without)s))

-- name: where_since
-- A condition for {filter}.
AND created_at >= %(since)s

-- name: where_until
-- A condition for {filter}.
AND created_at < %(until)s

-- name: where_importance
-- A condition for {filter}.
AND importance >= %(min_importance)s

-- name: where_pinned
-- A condition for {filter}. A truth value and a number are both welcome.
AND pinned = (%(pinned)s::text)::boolean::integer

-- name: where_embedded
-- A condition for {filter}.
AND NOT EXISTS (
    SELECT FROM unembedded WHERE unembedded.agent = %(agent)s AND unembedded.num = memories.num
)

-- name: where_unembedded
-- A condition for {filter}.
AND num IN (SELECT unembedded.num FROM unembedded WHERE unembedded.agent = %(agent)s)

-- name: where_tags
-- A condition for {filter}. The semicolon is the character after the colon. The bounds are made before the
-- join, since a policy lets only a comparison of columns use the index.
AND num IN (
    SELECT tags.num FROM (VALUES %(tags)s) AS asked (wanted) JOIN tags ON tags.tag = wanted
    WHERE tags.agent = %(agent)s
    UNION ALL
    SELECT tags.num
    FROM (SELECT wanted || ':' AS low, wanted || ';' AS high FROM (VALUES %(tags)s) AS asked (wanted) OFFSET 0) AS below
    JOIN tags ON tags.tag > low AND tags.tag < high
    WHERE tags.agent = %(agent)s
)

-- name: where_tags_of_few
-- The same for {filter} where only a few memories are asked about: their tags are read, not all that match.
AND EXISTS (
    SELECT FROM tags JOIN (VALUES %(tags)s) AS asked (wanted)
        ON (tags.tag = wanted OR (tags.tag > wanted || ':' AND tags.tag < wanted || ';'))
    WHERE tags.agent = %(agent)s AND tags.num = memories.num
)

-- name: cache_rows
-- What a cache keeps of the memories written after `above`, in the order of their writing.
SELECT memories.num, id, kind, created_at, importance, CASE scope WHEN 'session' THEN scope_value END,
       length, hashes, frequencies
FROM memories JOIN lex USING (agent, num)
WHERE memories.num > %(above)s AND memories.num < %(below)s AND memories.agent = %(agent)s
ORDER BY memories.num;

-- name: cache_vectors
-- The vectors of the memories written after `above`.
SELECT num, vector FROM vectors
WHERE agent = %(agent)s AND num > %(above)s AND num < %(below)s ORDER BY num;

-- name: vectors
-- The vectors of some memories.
SELECT num, vector FROM vectors
WHERE agent = %(agent)s AND num = ANY (numbers_of(%(nums)s)) ORDER BY num;

-- name: changes
-- What happened since a cache last looked.
SELECT num, what FROM changes WHERE agent = %(agent)s AND seq > %(seq)s ORDER BY seq;

-- name: forwards_to_renew
-- The texts to index anew, a batch at a time.
SELECT texts.num, content, subject, tags, metadata FROM memories JOIN texts USING (agent, num)
WHERE memories.num > %(above)s AND memories.num < %(below)s AND memories.agent = %(agent)s
ORDER BY memories.num LIMIT 1000;

-- name: counts
-- How many memories there are of each kind and status, with their tokens and times.
SELECT kind, status, count(*), sum(full_tokens)::bigint, min(created_at), max(created_at)
FROM memories JOIN texts USING (agent, num)
WHERE memories.num > %(above)s AND memories.num < %(below)s AND memories.agent = %(agent)s
GROUP BY kind, status ORDER BY kind, status;

-- name: count_vectors
-- How many of the agent's memories have a vector.
SELECT count(*) FROM vectors WHERE agent = %(agent)s AND num > %(above)s AND num < %(below)s;

-- name: count_unembedded
-- How many of the agent's memories wait for a vector; what is forgotten doesn't.
SELECT count(*) FROM unembedded JOIN memories USING (agent, num)
WHERE unembedded.agent = %(agent)s AND unembedded.num > %(above)s AND unembedded.num < %(below)s
  AND status <> 'forgotten';

-- name: check_counters
-- The agent's counters beside what is stored.
SELECT memories, terms,
       (SELECT count(*) FROM memories WHERE memories.agent = %(agent)s),
       (SELECT coalesce(sum(length), 0)::bigint FROM lex WHERE lex.agent = %(agent)s)
FROM states WHERE agent = %(agent)s;

-- name: check_missing
-- Memories without texts, or without a forward record.
SELECT chain, texts.num IS NULL, lex.num IS NULL
FROM memories LEFT JOIN texts ON texts.agent = memories.agent AND texts.num = memories.num
    LEFT JOIN lex ON lex.agent = memories.agent AND lex.num = memories.num
WHERE memories.agent = %(agent)s AND (texts.num IS NULL OR lex.num IS NULL);

-- name: check_orphans
-- Rows whose memory is gone or belongs to another agent.
SELECT 'texts', count(*) FROM texts WHERE agent = %(agent)s
    AND NOT EXISTS (SELECT FROM memories AS m WHERE m.num = texts.num AND m.agent = texts.agent)
UNION ALL
SELECT 'tags', count(*) FROM tags WHERE agent = %(agent)s
    AND NOT EXISTS (SELECT FROM memories AS m WHERE m.num = tags.num AND m.agent = tags.agent)
UNION ALL
SELECT 'lex', count(*) FROM lex WHERE agent = %(agent)s
    AND NOT EXISTS (SELECT FROM memories AS m WHERE m.num = lex.num AND m.agent = lex.agent)
UNION ALL
SELECT 'vectors', count(*) FROM vectors WHERE agent = %(agent)s
    AND NOT EXISTS (SELECT FROM memories AS m WHERE m.num = vectors.num AND m.agent = vectors.agent)
UNION ALL
SELECT 'unembedded', count(*) FROM unembedded WHERE agent = %(agent)s
    AND NOT EXISTS (SELECT FROM memories AS m WHERE m.num = unembedded.num AND m.agent = unembedded.agent)
UNION ALL
SELECT 'shown', count(*) FROM shown WHERE agent = %(agent)s
    AND NOT EXISTS (SELECT FROM memories AS m WHERE m.num = shown.num AND m.agent = shown.agent)
UNION ALL
SELECT 'held', count(*) FROM held WHERE agent = %(agent)s
    AND NOT EXISTS (SELECT FROM memories AS m WHERE m.num = held.num AND m.agent = held.agent);

-- name: check_embedded
-- Memories that have a vector and are listed as waiting for one.
SELECT chain FROM memories JOIN vectors USING (agent, num) JOIN unembedded USING (agent, num)
WHERE memories.agent = %(agent)s;

-- name: check_forwards
-- Forward records that can't be read: four bytes a hash, one byte a frequency.
SELECT chain FROM memories JOIN lex USING (agent, num)
WHERE memories.agent = %(agent)s AND length(hashes) <> 4 * length(frequencies);

-- name: check_vectors
-- Vectors of another length than the model's.
SELECT chain FROM memories JOIN vectors USING (agent, num)
WHERE memories.agent = %(agent)s AND vector_dims(vector) <> %(dimension)s;

-- name: check_chains
-- Chains that have no head, or more than one. A chain without one may end in another, with which it was merged.
SELECT chain, count(*) FILTER (WHERE superseded_by IS NULL) AS heads FROM memories WHERE agent = %(agent)s
GROUP BY chain HAVING count(*) FILTER (WHERE superseded_by IS NULL) > 1
    OR (count(*) FILTER (WHERE superseded_by IS NULL) = 0 AND NOT EXISTS (
        SELECT FROM memories AS old JOIN memories AS new ON new.agent = old.agent AND new.id = old.superseded_by
        WHERE old.agent = %(agent)s AND new.chain <> old.chain AND old.chain = memories.chain
    ))
ORDER BY chain;

-- name: check_heads
-- Superseded versions whose successor is not stored.
SELECT chain FROM memories AS old WHERE old.agent = %(agent)s AND superseded_by IS NOT NULL
    AND NOT EXISTS (SELECT FROM memories AS new WHERE new.agent = %(agent)s AND new.id = old.superseded_by);

-- name: held_state
-- An owner's numbers, and those of one working set, which may not be there.
SELECT agents.agent, states.seq, states.moved, working_set, max_tokens, working_sets.moved
FROM agents LEFT JOIN states ON states.agent = number_of(%(owner)s)
    LEFT JOIN working_sets ON working_sets.agent = number_of(%(owner)s) AND working_sets.name = %(set_name)s
WHERE agents.name = %(owner)s;

-- name: moved
-- The number of an owner's latest move.
SELECT moved FROM states WHERE agent = number_of(%(owner)s);

-- name: last_move
-- The same by the owner's number.
SELECT moved FROM states WHERE agent = %(agent)s;

-- name: add_working_set
-- Give an owner a working set of a new name. No number is used up where there is one.
INSERT INTO working_sets (agent, name, max_tokens)
SELECT %(agent)s::bigint, %(set_name)s::text, %(max_tokens)s::bigint
WHERE NOT EXISTS (SELECT FROM working_sets WHERE agent = %(agent)s AND name = %(set_name)s)
ON CONFLICT (agent, name) DO NOTHING;

-- name: working_sets
-- The names of an owner's working sets.
SELECT name FROM working_sets WHERE agent = %(agent)s ORDER BY name;

-- name: resize_set
-- Let a working set hold more or less.
UPDATE working_sets SET max_tokens = %(max_tokens)s WHERE working_set = %(working_set)s AND agent = %(agent)s;

-- name: insert_move
-- Note what becomes of a working set, before it does.
INSERT INTO moves (agent, number, working_set, what, id, former, by, at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s);

-- name: advance_moves
-- Move the owner's number of moves at the end of a transaction.
UPDATE states SET moved = %(number)s WHERE agent = %(agent)s;

-- name: advance_set
-- Move a working set's number with it.
UPDATE working_sets SET moved = %(number)s WHERE working_set = %(working_set)s AND agent = %(agent)s;

-- name: prune_touches
-- Drop touches that are so long past that nobody follows by them; what was taken in and out stays noted.
DELETE FROM moves
WHERE agent = %(agent)s AND number > %(above)s AND number <= %(below)s AND what = 'touch';

-- name: moves
-- What became of an owner's working sets since a move.
SELECT number, working_sets.name, what, id, former, agents.name, at
FROM moves JOIN working_sets USING (agent, working_set) JOIN agents ON agents.agent = moves.by
WHERE moves.agent = %(agent)s AND number > %(since)s ORDER BY number LIMIT nullif(%(limit)s::bigint, -1);

-- name: memory_to_hold
-- What decides whether a memory can be held.
SELECT chain, status FROM memories WHERE agent = %(agent)s AND num = %(num)s;

-- name: held_entry
-- Whether a working set holds a memory, and if so whether it is pinned there.
SELECT num, pinned FROM held WHERE agent = %(agent)s AND working_set = %(working_set)s AND num = %(num)s;

-- name: held_entries
-- What a working set holds, the one touched longest ago first.
SELECT held.num, chain, held.pinned FROM held JOIN memories USING (agent, num)
WHERE held.agent = %(agent)s AND working_set = %(working_set)s ORDER BY place;

-- name: sets_holding
-- Which working sets hold a memory.
SELECT working_set FROM held WHERE num = %(num)s AND agent = %(agent)s ORDER BY working_set;

-- name: insert_held
-- Take a memory into a working set.
INSERT INTO held (agent, working_set, num, place, entered_at, touched_at, touches, pinned, recalled)
VALUES (%(agent)s, %(working_set)s, %(num)s, %(place)s, %(at)s, %(at)s, 0, %(pinned)s, %(recalled)s);

-- name: touch_held
-- Move a held memory to the end; a clock that runs backwards moves no time back.
UPDATE held SET place = %(place)s, touched_at = greatest(touched_at, %(at)s), touches = touches + 1,
    pinned = greatest(pinned, %(pinned)s), recalled = greatest(recalled, %(recalled)s)
WHERE working_set = %(working_set)s AND num = %(num)s AND agent = %(agent)s;

-- name: pin_held
-- Pin a held memory, or unpin it.
UPDATE held SET pinned = %(pinned)s
WHERE working_set = %(working_set)s AND num = %(num)s AND agent = %(agent)s;

-- name: replace_held
-- Give a memory's place in a working set to its next version.
UPDATE held SET num = %(new)s WHERE working_set = %(working_set)s AND num = %(num)s AND agent = %(agent)s;

-- name: remove_held
-- Take a memory out of a working set.
DELETE FROM held WHERE working_set = %(working_set)s AND num = %(num)s AND agent = %(agent)s;

-- name: held_rows
-- All of a working set.
SELECT num, place, entered_at, touched_at, touches, pinned, recalled FROM held
WHERE agent = %(agent)s AND working_set = %(working_set)s;

-- name: held_rows_moved
-- Which memories of a working set were moved since a cache last looked, with what it holds of them now.
SELECT DISTINCT moves.id, held.num, place, entered_at, touched_at, touches, pinned, recalled
FROM moves LEFT JOIN held ON held.agent = %(agent)s AND held.working_set = moves.working_set AND held.num IN (
    SELECT memories.num FROM memories WHERE memories.agent = %(agent)s AND memories.id = moves.id
    UNION ALL
    SELECT memories.num FROM memories
    WHERE memories.agent = %(agent)s AND memories.chain = moves.id AND memories.version > 1
)
WHERE moves.agent = %(agent)s AND number > %(since)s AND moves.working_set = %(working_set)s
  AND moves.id IS NOT NULL;

-- name: features
-- What the index knows of some memories, in their order.
SELECT memories.num, hashes, vector
FROM unnest(numbers_of(%(nums)s)) WITH ORDINALITY AS asked (num, place)
JOIN memories ON memories.agent = %(agent)s AND memories.num = asked.num
JOIN lex ON lex.agent = %(agent)s AND lex.num = asked.num
LEFT JOIN vectors ON vectors.agent = %(agent)s AND vectors.num = asked.num
ORDER BY asked.place;

-- name: conversation
-- A conversation's numbers, what was opened last in it, and the language of its agent's words.
SELECT conversations.agent, conversation, said, revision, opened, language
FROM states JOIN conversations USING (agent)
WHERE states.agent = number_of(%(agent)s) AND session = %(session)s;

-- name: conversations
-- Every conversation of an agent at a glance.
SELECT session, count(num), coalesce(sum(hidden), 0)::bigint, min(created_at), max(created_at)
FROM conversations LEFT JOIN messages USING (agent, conversation)
WHERE conversations.agent = number_of(%(agent)s) GROUP BY conversation, session ORDER BY session;

-- name: add_conversation
-- Begin a conversation. No number is used up where it has begun.
INSERT INTO conversations (agent, session)
SELECT states.agent, %(session)s::text FROM states
WHERE states.agent = number_of(%(agent)s) AND NOT EXISTS (
    SELECT FROM conversations WHERE conversations.agent = number_of(%(agent)s) AND session = %(session)s
)
ON CONFLICT DO NOTHING;

-- name: advance_conversation
-- Move a conversation's numbers at the end of a transaction.
UPDATE conversations SET said = %(said)s, revision = %(revision)s, opened = %(opened)s
WHERE agent = %(agent)s AND conversation = %(conversation)s;

-- name: insert_message
-- Store a message.
INSERT INTO messages (
    num, agent, conversation, id, group_name, role, provider, form, created_at, hidden, parts, extra
) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s);

-- name: messages_since
-- The messages of a conversation after a number, in order.
SELECT num, id, group_name, role, provider, form, created_at, hidden, parts, extra FROM messages
WHERE num > %(above)s AND num < %(below)s AND agent = %(agent)s ORDER BY num;

-- name: groups_opened
-- The visible groups of a conversation in the order in which they were opened.
SELECT group_name FROM messages
WHERE num > %(above)s AND num < %(below)s AND agent = %(agent)s
    AND hidden = 0 AND group_name IS NOT NULL AND role <> 'system'
GROUP BY group_name ORDER BY MIN(num);

-- name: messages_kept
-- The messages that stand in every window: the system's, and those of no group.
SELECT num, id, group_name, role, provider, form, created_at, hidden, parts, extra FROM messages
WHERE num > %(above)s AND num < %(below)s AND agent = %(agent)s
    AND hidden = 0 AND (group_name IS NULL OR role = 'system') ORDER BY num;

-- name: messages_left
-- Which messages there are, and which of them are hidden.
SELECT num, hidden FROM messages
WHERE num > %(above)s AND num < %(below)s AND agent = %(agent)s ORDER BY num;

-- name: messages_of_group
-- The messages of a group, in order.
SELECT num, id, group_name, role, provider, form, created_at, hidden, parts, extra FROM messages
WHERE agent = %(agent)s AND conversation = %(conversation)s AND group_name = %(group_name)s ORDER BY num;

-- name: message
-- One message, and its session.
SELECT num, id, group_name, role, provider, form, created_at, hidden, parts, extra, session
FROM messages JOIN conversations USING (agent, conversation)
WHERE messages.agent = number_of(%(agent)s) AND messages.id = %(id)s;

-- name: group_hidden
-- Whether a group is hidden; no row where there is no such group.
SELECT hidden FROM messages
WHERE agent = %(agent)s AND conversation = %(conversation)s AND group_name = %(group_name)s LIMIT 1;

-- name: hide_group
-- Take a group out of its conversation, or put it back.
UPDATE messages SET hidden = %(hidden)s
WHERE agent = %(agent)s AND conversation = %(conversation)s AND group_name = %(group_name)s;

-- name: remove_group
-- Delete the messages of a group.
DELETE FROM messages
WHERE agent = %(agent)s AND conversation = %(conversation)s AND group_name = %(group_name)s;

-- name: remove_message
-- Delete one message.
DELETE FROM messages WHERE num = %(num)s AND agent = %(agent)s;

-- name: remove_conversation
-- Delete a conversation; its messages and anchors go with it by their foreign keys.
DELETE FROM conversations WHERE agent = %(agent)s AND conversation = %(conversation)s;

-- name: opened_last
-- The group that was opened last, after another one went.
SELECT group_name FROM messages
WHERE num > %(above)s AND num < %(below)s AND agent = %(agent)s AND group_name IS NOT NULL
GROUP BY group_name ORDER BY min(num) DESC LIMIT 1;

-- name: set_anchor
-- Store a text that stands outside any window.
INSERT INTO anchors (conversation, agent, name, text)
VALUES (%(conversation)s, %(agent)s, %(name)s, %(text)s)
ON CONFLICT (agent, conversation, name) DO UPDATE SET text = excluded.text;

-- name: remove_anchor
-- Remove a text that stands outside any window.
DELETE FROM anchors WHERE agent = %(agent)s AND conversation = %(conversation)s AND name = %(name)s;

-- name: anchors
-- The texts that stand outside any window.
SELECT anchors.name, text FROM conversations JOIN anchors USING (agent, conversation)
WHERE conversations.agent = number_of(%(agent)s) AND session = %(session)s
ORDER BY anchors.name;

-- name: check_messages
-- Messages whose number isn't of their conversation, or whose conversation is another agent's.
SELECT messages.id FROM messages JOIN conversations USING (agent, conversation)
WHERE messages.agent = %(agent)s
  AND ((num >> 32) <> conversation OR (num & 4294967295) > said);
