-- Every statement that the SQLite store runs, by name. Each says what it is for.
-- Whatever reads or writes an agent's rows names the agent. No value is ever formatted into a statement:
-- where a filter is allowed, {filter} is replaced by conditions named `where_...` below.
-- A plus before a column keeps SQLite from choosing an index for it where the nums lead straight to the rows.

-- name: record_migration
-- Note that a migration is done, in its own transaction.
INSERT INTO migrations (number, name) VALUES (:number, :name);

-- name: settings
-- All settings that hold for the whole store.
SELECT name, value FROM settings;

-- name: add_setting
-- Store a setting of the whole store where there is none of that name.
INSERT INTO settings (name, value) VALUES (:name, :value) ON CONFLICT DO NOTHING;

-- name: change_setting
-- Store another value of a setting of the whole store.
UPDATE settings SET value = :value WHERE name = :name;

-- name: remove_setting
-- Forget a setting of the whole store.
DELETE FROM settings WHERE name = :name;

-- name: agent
-- The agent's number, latest change and language; the latest judgement, outcome and event, and whether it learns;
-- and the settings that a process has to agree with.
SELECT agents.agent, seq, language, judged, attested, lived, learning,
       (SELECT value FROM settings WHERE name = 'tokenizer'),
       (SELECT value FROM settings WHERE name = 'embedding_name'),
       (SELECT value FROM settings WHERE name = 'embedding_dimension')
FROM agents WHERE agents.name = :name;

-- name: agents
-- Every agent's number, name and language, for what has to be done to all of them.
SELECT agent, seq, name, language FROM agents ORDER BY agent;

-- name: agent_figures
-- How many memories an agent has, of any status, and when one of them was last written.
SELECT count(*), max(updated_at) FROM memories WHERE agent = :agent;

-- name: add_agent
-- Give a new agent its number, and never that of one that was removed.
INSERT INTO agents (agent, name)
SELECT 1 + max(
    coalesce((SELECT max(agent) FROM agents), 0),
    coalesce((SELECT CAST(value AS INTEGER) FROM settings WHERE name = 'latest_agent'), 0)
), :name
WHERE true ON CONFLICT (name) DO NOTHING;

-- name: lock_agent
-- The agent's latest change, after which nobody else writes for it: no two write at once in this store.
SELECT seq FROM agents WHERE agent = :agent;

-- name: advance_agent
-- Move the agent's change number and counters at the end of a transaction.
UPDATE agents SET seq = :seq, memories = memories + :memories, terms = terms + :terms
WHERE agent = :agent;

-- name: set_agent_language
-- Change the language of an agent whose memories are about to be indexed anew.
UPDATE agents SET language = :language WHERE agent = :agent;

-- name: set_agent_terms
-- Count the agent's terms anew after a reindex, and note the change.
UPDATE agents SET seq = :seq, terms = :terms WHERE agent = :agent;

-- name: insert_memory
-- Store the narrow part of a memory.
INSERT INTO memories (
    num, agent, id, kind, status, scope, scope_value, subject, importance, confidence, outcome, trust,
    source, pinned, created_at, updated_at, chain, version, content_hash, seen_count, access_count,
    accessed_at, supersedes, superseded_by, stage
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_texts
-- Store the texts of a memory.
INSERT INTO texts (
    num, agent, content, micro, micro_tokens, summary, summary_tokens, full_text, full_tokens, counter,
    tags, metadata
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_tag
-- Make a tag searchable; a memory may name a tag twice.
INSERT INTO tags (agent, tag, num) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- name: insert_lex
-- Store the forward record of a memory.
INSERT INTO lex (num, agent, length, hashes, frequencies) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (num) DO UPDATE SET
    length = excluded.length, hashes = excluded.hashes, frequencies = excluded.frequencies;

-- name: insert_vector
-- Store or replace the vector of a memory.
INSERT INTO vectors (num, agent, vector) VALUES (?, ?, ?)
ON CONFLICT (num) DO UPDATE SET vector = excluded.vector;

-- name: remove_vector
-- Remove the vector of a memory that the model gives no direction.
DELETE FROM vectors WHERE num = :num AND agent = :agent;

-- name: insert_unembedded
-- Note that a memory waits for a vector.
INSERT INTO unembedded (num, agent) VALUES (?, ?) ON CONFLICT DO NOTHING;

-- name: insert_all_unembedded
-- Note that all of an agent's memories wait for vectors of another model.
INSERT INTO unembedded (num, agent)
SELECT num, agent FROM memories WHERE num > :above AND num < :below AND +memories.agent = :agent
ON CONFLICT DO NOTHING;

-- name: remove_unembedded
-- Note that a memory was embedded.
DELETE FROM unembedded WHERE num = :num AND agent = :agent;

-- name: insert_change
-- Note what happened to a memory.
INSERT INTO changes (agent, seq, num, what) VALUES (?, ?, ?, ?);

-- name: see_memory
-- A memory was remembered again.
UPDATE memories SET seen_count = :seen_count, updated_at = :updated_at, status = :status
WHERE num = :num AND agent = :agent;

-- name: use_memory
-- A memory was used in a context.
UPDATE memories SET access_count = access_count + 1, accessed_at = max(coalesce(accessed_at, :at), :at)
WHERE num = :num AND agent = :agent;

-- name: supersede_memory
-- A newer version stands in this memory's place.
UPDATE memories SET status = 'superseded', superseded_by = :superseded_by, updated_at = :updated_at
WHERE num = :num AND agent = :agent;

-- name: set_status
-- Move a memory to another status.
UPDATE memories SET status = :status, updated_at = :updated_at
WHERE num = :num AND agent = :agent;

-- name: purge_memory
-- Remove a memory; its texts, tags, forward record, vector and the like go with it by their foreign keys.
DELETE FROM memories WHERE num = :num AND agent = :agent;

-- name: purge_vectors
-- Remove the agent's vectors, before another model makes new ones.
DELETE FROM vectors WHERE agent = :agent AND num > :above AND num < :below;

-- name: learning
-- Whether an agent learns from use, and the number of its latest judgement.
SELECT learning, judged FROM agents WHERE agent = :agent;

-- name: set_learning
-- Switch an agent's learning on or off.
UPDATE agents SET learning = :on WHERE agent = :agent;

-- name: judgement
-- What is known of a memory in a context.
SELECT used, parts FROM shown WHERE agent = :agent AND context = :context AND num = :num;

-- name: count_judgement
-- Give the next judgement its number, so many after the latest, or note that some are gone.
UPDATE agents SET judged = judged + :by WHERE agent = :agent;

-- name: insert_judgement
-- Store a judgement under its number; what was used once stays used, and parts stay those of the first time.
INSERT INTO shown (agent, context, num, given, used, parts)
VALUES (:agent, :context, :num, (SELECT judged FROM agents WHERE agents.agent = :agent), :used, :parts)
ON CONFLICT (agent, context, num) DO UPDATE SET
    given = excluded.given, used = max(used, excluded.used), parts = coalesce(nullif(parts, '{}'), excluded.parts);

-- name: remove_old_judgements
-- Remove all but the latest judgements of an agent.
DELETE FROM shown
WHERE agent = :agent AND given <= (SELECT judged FROM agents WHERE agents.agent = :agent) - :most;

-- name: examples
-- What an agent was told of use, in a total order; without parts there is nothing to learn from.
SELECT context, chain, version, superseded_by, used, parts, given FROM shown CROSS JOIN memories USING (num)
WHERE shown.agent = :agent AND parts IS NOT NULL ORDER BY context, memories.id;

-- name: count_examples
-- How many examples an agent has.
SELECT count(*) FROM shown WHERE agent = :agent AND parts <> '{}';

-- name: remove_unused
-- Remove what is known of memories that were not used.
DELETE FROM shown WHERE agent = :agent AND used = 0;

-- name: remove_parts
-- Leave nothing to learn from.
UPDATE shown SET parts = NULL WHERE agent = :agent AND parts IS NOT NULL;

-- name: num
-- The number of a version of a memory, by the memory's id or a former id of a version; version 0 is the latest.
SELECT num FROM (
    SELECT num, version FROM memories
    WHERE agent = :agent AND id = coalesce((SELECT chain FROM memories WHERE agent = :agent AND id = :id), :id)
    UNION ALL
    SELECT num, version FROM memories
    WHERE agent = :agent AND chain = coalesce((SELECT chain FROM memories WHERE agent = :agent AND id = :id), :id) AND version > 1
) WHERE :version IN (0, version) ORDER BY version DESC, num DESC LIMIT 1;

-- name: nums_by_head
-- Which heads have these content hashes.
SELECT num FROM memories
WHERE agent = :agent AND superseded_by IS NULL
  AND content_hash IN (SELECT value FROM json_each(:hashes));

-- name: nums_by_past
-- Which superseded versions have these content hashes, oldest version first.
SELECT num FROM memories
WHERE agent = :agent AND superseded_by IS NOT NULL
  AND content_hash IN (SELECT value FROM json_each(:hashes))
ORDER BY version, num;

-- name: versions
-- All versions of a memory and whether each is the head, in order, by the id that `num` takes.
SELECT num, id, superseded_by IS NULL, version FROM memories
WHERE agent = :agent AND id = coalesce((SELECT chain FROM memories WHERE agent = :agent AND id = :id), :id)
UNION ALL
SELECT num, id, superseded_by IS NULL, version FROM memories
WHERE agent = :agent AND chain = coalesce((SELECT chain FROM memories WHERE agent = :agent AND id = :id), :id) AND version > 1
ORDER BY 4, 1;

-- name: length
-- How many terms a memory has, so that the agent's counter follows a purge.
SELECT length FROM lex WHERE agent = :agent AND num = :num;

-- name: records
-- Whole memories by their numbers.
SELECT memories.num, memories.id, kind, status, scope, scope_value, subject, importance, confidence, outcome,
       trust, source, pinned, created_at, updated_at, chain, version, content_hash, seen_count,
       access_count, accessed_at, supersedes,
       coalesce((SELECT chain FROM memories AS after
                 WHERE after.agent = :agent AND after.id = memories.superseded_by), superseded_by), stage,
       content, micro, micro_tokens, summary, summary_tokens, full_text, full_tokens, counter, tags, metadata
FROM json_each(:nums) CROSS JOIN memories ON memories.num = value CROSS JOIN texts ON texts.num = memories.num
WHERE +memories.agent = :agent;

-- name: record_by_id
-- A whole memory by the id of a row and its agent's name: most are the current version of a memory.
SELECT memories.num, memories.id, kind, status, scope, scope_value, subject, importance, confidence, outcome,
       trust, source, pinned, created_at, updated_at, chain, version, content_hash, seen_count,
       access_count, accessed_at, supersedes,
       coalesce((SELECT chain FROM memories AS after
                 WHERE after.agent = memories.agent AND after.id = memories.superseded_by), superseded_by), stage,
       content, micro, micro_tokens, summary, summary_tokens, full_text, full_tokens, counter, tags, metadata
FROM memories CROSS JOIN texts USING (num)
WHERE memories.agent = (SELECT agent FROM agents WHERE name = :agent) AND memories.id = :id;

-- name: record_by_version
-- The same of a version of a memory, as `num` finds it, by the name of its agent.
SELECT memories.num, memories.id, kind, status, scope, scope_value, subject, importance, confidence, outcome,
       trust, source, pinned, created_at, updated_at, chain, version, content_hash, seen_count,
       access_count, accessed_at, supersedes,
       coalesce((SELECT chain FROM memories AS after
                 WHERE after.agent = memories.agent AND after.id = memories.superseded_by), superseded_by), stage,
       content, micro, micro_tokens, summary, summary_tokens, full_text, full_tokens, counter, tags, metadata
FROM memories CROSS JOIN texts USING (num)
WHERE memories.agent = (SELECT agent FROM agents WHERE name = :agent) AND memories.num = (
    SELECT num FROM (
        SELECT num, version FROM memories
        WHERE agent = (SELECT agent FROM agents WHERE name = :agent) AND id = coalesce(
            (SELECT chain FROM memories WHERE agent = (SELECT agent FROM agents WHERE name = :agent) AND id = :id), :id
        )
        UNION ALL
        SELECT num, version FROM memories
        WHERE agent = (SELECT agent FROM agents WHERE name = :agent) AND version > 1 AND chain = coalesce(
            (SELECT chain FROM memories WHERE agent = (SELECT agent FROM agents WHERE name = :agent) AND id = :id), :id
        )
    ) WHERE :version IN (0, version) ORDER BY version DESC, num DESC LIMIT 1
);

-- name: find_newest
-- A page of memories, latest created first; the page before ended at (:edge_time, :edge_id).
SELECT num FROM memories
WHERE agent = :agent {filter}
  AND (:edge_id IS NULL OR created_at < :edge_time OR (created_at = :edge_time AND id < :edge_id))
ORDER BY created_at DESC, id DESC LIMIT :limit;

-- name: find_oldest
-- A page of memories in the order of their creation.
SELECT num FROM memories
WHERE agent = :agent {filter}
  AND (:edge_id IS NULL OR created_at > :edge_time OR (created_at = :edge_time AND id > :edge_id))
ORDER BY created_at, id LIMIT :limit;

-- name: find_important
-- A page of memories, most important first, then latest created.
SELECT num FROM memories
WHERE agent = :agent {filter}
  AND (:edge_id IS NULL OR importance < :edge_importance
       OR (importance = :edge_importance
           AND (created_at < :edge_time OR (created_at = :edge_time AND id < :edge_id))))
ORDER BY importance DESC, created_at DESC, id DESC LIMIT :limit;

-- name: edge
-- Where a page ended.
SELECT id, created_at, importance FROM memories WHERE agent = :agent AND num = :num;

-- name: admitted
-- Every memory that a filter admits.
SELECT num FROM memories WHERE num > :above AND num < :below AND +agent = :agent {filter};

-- name: admitted_among
-- Which of these memories a filter admits.
SELECT num FROM memories
WHERE num IN (SELECT value FROM json_each(:nums)) AND +agent = :agent {filter};

-- name: where_statuses
-- A condition for {filter}.
AND status IN (:statuses)

-- name: where_kinds
-- A condition for {filter}.
AND kind IN (:kinds)

-- name: where_scopes
-- A condition for {filter}.
AND (scope, scope_value) IN (VALUES :scopes)

-- name: where_subject
-- A condition for {filter}.
AND subject = :subject

-- name: where_source
-- A condition for {filter}.
AND source = :source

-- name: where_metadata
-- A condition for {filter}. In JSON a truth value is no number, and a whole number may be written as a fraction.
AND NOT EXISTS (
    SELECT 1 FROM json_each(:metadata) AS wanted
    WHERE NOT EXISTS (
        SELECT 1 FROM texts, json_each(texts.metadata) AS held
        WHERE texts.num = memories.num AND memories.agent = :agent AND held."key" = wanted."key" AND held.value IS wanted.value
          AND CASE held.type WHEN 'real' THEN 'integer' ELSE held.type END
            = CASE wanted.type WHEN 'real' THEN 'integer' ELSE wanted.type END
    )
)

-- name: where_without
-- A condition for {filter}.
AND (outcome IS NULL OR outcome NOT IN (:without))

-- name: where_since
-- A condition for {filter}.
AND created_at >= :since

-- name: where_until
-- A condition for {filter}.
AND created_at < :until

-- name: where_importance
-- A condition for {filter}.
AND importance >= :min_importance

-- name: where_pinned
-- A condition for {filter}.
AND pinned = :pinned

-- name: where_embedded
-- A condition for {filter}. The numbers of an agent's memories begin with the agent's own.
AND num NOT IN (
    SELECT unembedded.num FROM unembedded
    WHERE unembedded.agent = :agent AND unembedded.num BETWEEN :agent << 40 AND (:agent + 1) << 40
)

-- name: where_unembedded
-- A condition for {filter}, as above.
AND num IN (
    SELECT unembedded.num FROM unembedded
    WHERE unembedded.agent = :agent AND unembedded.num BETWEEN :agent << 40 AND (:agent + 1) << 40
)

-- name: where_tags
-- A condition for {filter}. The semicolon is the character after the colon.
AND num IN (
    SELECT tags.num FROM (SELECT column1 AS wanted FROM (VALUES :tags)) CROSS JOIN tags
    WHERE tags.agent = :agent AND tags.tag = wanted
    UNION ALL
    SELECT tags.num FROM (SELECT column1 AS wanted FROM (VALUES :tags)) CROSS JOIN tags
    WHERE tags.agent = :agent AND tags.tag > wanted || ':' AND tags.tag < wanted || ';'
)

-- name: where_tags_of_few
-- The same for {filter} where only a few memories are asked about: their tags are read, not all that match.
AND EXISTS (
    SELECT 1 FROM (SELECT column1 AS wanted FROM (VALUES :tags)) CROSS JOIN tags
    WHERE tags.num = memories.num AND tags.agent = :agent
      AND (tags.tag = wanted OR (tags.tag > wanted || ':' AND tags.tag < wanted || ';'))
)

-- name: cache_rows
-- What a cache keeps of the memories written after :above, in the order of their writing.
SELECT memories.num, id, kind, created_at, importance, CASE scope WHEN 'session' THEN scope_value END,
       length, hashes, frequencies
FROM memories CROSS JOIN lex USING (num)
WHERE memories.num > :above AND memories.num < :below AND +memories.agent = :agent
ORDER BY memories.num;

-- name: cache_vectors
-- The vectors of the memories written after :above.
SELECT num, vector FROM vectors
WHERE agent = :agent AND num > :above AND num < :below ORDER BY num;

-- name: vectors
-- The vectors of some memories.
SELECT num, vector FROM vectors
WHERE agent = :agent AND num IN (SELECT value FROM json_each(:nums)) ORDER BY num;

-- name: changes
-- What happened since a cache last looked.
SELECT num, what FROM changes WHERE agent = :agent AND seq > :seq ORDER BY seq;

-- name: forwards_to_renew
-- The texts to index anew, a batch at a time.
SELECT texts.num, content, subject, tags, metadata FROM memories CROSS JOIN texts USING (num)
WHERE memories.num > :above AND memories.num < :below AND +memories.agent = :agent
ORDER BY memories.num LIMIT 1000;

-- name: counts
-- How many memories there are of each kind and status, with their tokens and times.
SELECT kind, status, count(*), sum(full_tokens), min(created_at), max(created_at)
FROM memories CROSS JOIN texts USING (num)
WHERE memories.num > :above AND memories.num < :below AND +memories.agent = :agent GROUP BY kind, status;

-- name: count_vectors
-- How many of the agent's memories have a vector.
SELECT count(*) FROM vectors WHERE agent = :agent AND num > :above AND num < :below;

-- name: count_unembedded
-- How many of the agent's memories wait for a vector; what is forgotten doesn't.
SELECT count(*) FROM unembedded CROSS JOIN memories USING (num)
WHERE unembedded.agent = :agent AND unembedded.num > :above AND unembedded.num < :below
  AND status <> 'forgotten';

-- name: check_counters
-- The agent's counters beside what is stored.
SELECT memories, terms,
       (SELECT count(*) FROM memories WHERE memories.agent = :agent),
       (SELECT coalesce(sum(length), 0) FROM lex WHERE lex.agent = :agent)
FROM agents WHERE agent = :agent;

-- name: check_missing
-- Memories without texts, or without a forward record.
SELECT chain, texts.num IS NULL, lex.num IS NULL
FROM memories LEFT JOIN texts ON texts.num = memories.num LEFT JOIN lex ON lex.num = memories.num
WHERE memories.agent = :agent AND (texts.num IS NULL OR lex.num IS NULL);

-- name: check_orphans
-- Rows whose memory is gone or belongs to another agent.
SELECT 'texts', count(*) FROM texts WHERE agent = :agent
    AND NOT EXISTS (SELECT 1 FROM memories AS m WHERE m.num = texts.num AND m.agent = texts.agent)
UNION ALL
SELECT 'tags', count(*) FROM tags WHERE agent = :agent
    AND NOT EXISTS (SELECT 1 FROM memories AS m WHERE m.num = tags.num AND m.agent = tags.agent)
UNION ALL
SELECT 'lex', count(*) FROM lex WHERE agent = :agent
    AND NOT EXISTS (SELECT 1 FROM memories AS m WHERE m.num = lex.num AND m.agent = lex.agent)
UNION ALL
SELECT 'vectors', count(*) FROM vectors WHERE agent = :agent
    AND NOT EXISTS (SELECT 1 FROM memories AS m WHERE m.num = vectors.num AND m.agent = vectors.agent)
UNION ALL
SELECT 'unembedded', count(*) FROM unembedded WHERE agent = :agent
    AND NOT EXISTS (SELECT 1 FROM memories AS m WHERE m.num = unembedded.num AND m.agent = unembedded.agent)
UNION ALL
SELECT 'shown', count(*) FROM shown WHERE agent = :agent
    AND NOT EXISTS (SELECT 1 FROM memories AS m WHERE m.num = shown.num AND m.agent = shown.agent)
UNION ALL
SELECT 'held', count(*) FROM held WHERE agent = :agent
    AND NOT EXISTS (SELECT 1 FROM memories AS m WHERE m.num = held.num AND m.agent = held.agent);

-- name: check_embedded
-- Memories that have a vector and are listed as waiting for one.
SELECT chain FROM memories CROSS JOIN vectors USING (num) CROSS JOIN unembedded USING (num)
WHERE memories.agent = :agent;

-- name: check_forwards
-- Forward records that can't be read: four bytes a hash, one byte a frequency.
SELECT chain FROM memories CROSS JOIN lex USING (num)
WHERE memories.agent = :agent AND length(hashes) <> 4 * length(frequencies);

-- name: check_vectors
-- Vectors of another length than the model's: two bytes a dimension.
SELECT chain FROM memories CROSS JOIN vectors USING (num)
WHERE memories.agent = :agent AND length(vector) <> 2 * :dimension;

-- name: check_chains
-- Chains that have no head, or more than one. A chain without one may end in another, with which it was merged.
SELECT chain, sum(superseded_by IS NULL) AS heads FROM memories WHERE agent = :agent
GROUP BY chain HAVING heads > 1 OR (heads = 0 AND NOT EXISTS (
    SELECT 1 FROM memories AS old CROSS JOIN memories AS new
    WHERE old.agent = :agent AND new.agent = :agent AND new.id = old.superseded_by
      AND new.chain <> old.chain AND old.chain = memories.chain
));

-- name: check_heads
-- Superseded versions whose successor is not stored.
SELECT chain FROM memories AS old WHERE old.agent = :agent AND superseded_by IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM memories AS new WHERE new.agent = :agent AND new.id = old.superseded_by);

-- name: held_state
-- An owner's numbers, and those of one working set, which may not be there.
SELECT agents.agent, agents.seq, agents.moved, working_set, max_tokens, working_sets.moved
FROM agents LEFT JOIN working_sets ON working_sets.agent = agents.agent AND working_sets.name = :set_name
WHERE agents.name = :owner;

-- name: moved
-- The number of an owner's latest move.
SELECT moved FROM agents WHERE name = :owner;

-- name: last_move
-- The same by the owner's number.
SELECT moved FROM agents WHERE agent = :agent;

-- name: add_working_set
-- Give an owner a working set of a new name.
INSERT INTO working_sets (agent, name, max_tokens) VALUES (:agent, :set_name, :max_tokens)
ON CONFLICT (agent, name) DO NOTHING;

-- name: working_sets
-- The names of an owner's working sets.
SELECT name FROM working_sets WHERE agent = :agent ORDER BY name;

-- name: resize_set
-- Let a working set hold more or less.
UPDATE working_sets SET max_tokens = :max_tokens WHERE working_set = :working_set AND agent = :agent;

-- name: insert_move
-- Note what becomes of a working set, before it does.
INSERT INTO moves (agent, number, working_set, what, id, former, by, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: advance_moves
-- Move the owner's number of moves at the end of a transaction.
UPDATE agents SET moved = :number WHERE agent = :agent;

-- name: advance_set
-- Move a working set's number with it.
UPDATE working_sets SET moved = :number WHERE working_set = :working_set AND agent = :agent;

-- name: prune_touches
-- Drop touches that are so long past that nobody follows by them; what was taken in and out stays noted.
DELETE FROM moves WHERE agent = :agent AND number > :above AND number <= :below AND what = 'touch';

-- name: moves
-- What became of an owner's working sets since a move.
SELECT number, working_sets.name, what, id, former, agents.name, at
FROM moves CROSS JOIN working_sets USING (working_set) CROSS JOIN agents ON agents.agent = moves.by
WHERE moves.agent = :agent AND number > :since ORDER BY number LIMIT :limit;

-- name: memory_to_hold
-- What decides whether a memory can be held.
SELECT chain, status FROM memories WHERE agent = :agent AND num = :num;

-- name: held_entry
-- Whether a working set holds a memory, and if so whether it is pinned there.
SELECT num, pinned FROM held WHERE agent = :agent AND working_set = :working_set AND num = :num;

-- name: held_entries
-- What a working set holds, the one touched longest ago first.
SELECT held.num, chain, held.pinned FROM held CROSS JOIN memories ON memories.num = held.num
WHERE held.agent = :agent AND working_set = :working_set ORDER BY place;

-- name: sets_holding
-- Which working sets hold a memory.
SELECT working_set FROM held WHERE num = :num AND agent = :agent ORDER BY working_set;

-- name: insert_held
-- Take a memory into a working set.
INSERT INTO held (agent, working_set, num, place, entered_at, touched_at, touches, pinned, recalled)
VALUES (:agent, :working_set, :num, :place, :at, :at, 0, :pinned, :recalled);

-- name: touch_held
-- Move a held memory to the end; a clock that runs backwards moves no time back.
UPDATE held SET place = :place, touched_at = max(touched_at, :at), touches = touches + 1,
    pinned = max(pinned, :pinned), recalled = max(recalled, :recalled)
WHERE working_set = :working_set AND num = :num AND agent = :agent;

-- name: pin_held
-- Pin a held memory, or unpin it.
UPDATE held SET pinned = :pinned WHERE working_set = :working_set AND num = :num AND agent = :agent;

-- name: replace_held
-- Give a memory's place in a working set to its next version.
UPDATE held SET num = :new WHERE working_set = :working_set AND num = :num AND agent = :agent;

-- name: remove_held
-- Take a memory out of a working set.
DELETE FROM held WHERE working_set = :working_set AND num = :num AND agent = :agent;

-- name: held_rows
-- All of a working set.
SELECT num, place, entered_at, touched_at, touches, pinned, recalled FROM held
WHERE agent = :agent AND working_set = :working_set;

-- name: held_rows_moved
-- Which memories of a working set were moved since a cache last looked, with what it holds of them now.
SELECT DISTINCT moves.id, held.num, place, entered_at, touched_at, touches, pinned, recalled
FROM moves LEFT JOIN held ON held.agent = :agent AND held.working_set = moves.working_set AND held.num IN (
    SELECT memories.num FROM memories WHERE memories.agent = :agent AND memories.id = moves.id
    UNION ALL
    SELECT memories.num FROM memories
    WHERE memories.agent = :agent AND memories.chain = moves.id AND memories.version > 1
)
WHERE moves.agent = :agent AND number > :since AND moves.working_set = :working_set AND moves.id IS NOT NULL;

-- name: features
-- What the index knows of some memories.
SELECT memories.num, hashes, vector
FROM json_each(:nums) CROSS JOIN memories ON memories.num = value CROSS JOIN lex ON lex.num = memories.num
LEFT JOIN vectors ON vectors.num = memories.num
WHERE +memories.agent = :agent;

-- name: conversation
-- A conversation's numbers, what was opened last in it, and the language of its agent's words.
SELECT agents.agent, conversation, said, revision, opened, language
FROM agents CROSS JOIN conversations ON conversations.agent = agents.agent
WHERE agents.name = :agent AND session = :session;

-- name: conversations
-- Every conversation of an agent at a glance.
SELECT session, count(num), coalesce(sum(hidden), 0), min(created_at), max(created_at)
FROM agents CROSS JOIN conversations ON conversations.agent = agents.agent
    LEFT JOIN messages USING (conversation)
WHERE agents.name = :agent GROUP BY conversation ORDER BY session;

-- name: add_conversation
-- Begin a conversation.
INSERT INTO conversations (agent, session)
SELECT agents.agent, :session FROM agents WHERE agents.name = :agent
ON CONFLICT DO NOTHING;

-- name: advance_conversation
-- Move a conversation's numbers at the end of a transaction.
UPDATE conversations SET said = :said, revision = :revision, opened = :opened
WHERE agent = :agent AND conversation = :conversation;

-- name: insert_message
-- Store a message.
INSERT INTO messages (
    num, agent, conversation, id, group_name, role, provider, form, created_at, hidden, parts, extra
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: messages_since
-- The messages of a conversation after a number, in order.
SELECT num, id, group_name, role, provider, form, created_at, hidden, parts, extra FROM messages
WHERE num > :above AND num < :below AND +agent = :agent ORDER BY num;

-- name: groups_opened
-- The visible groups of a conversation in the order in which they were opened.
SELECT group_name FROM messages
WHERE num > :above AND num < :below AND +agent = :agent
    AND hidden = 0 AND group_name IS NOT NULL AND role <> 'system'
GROUP BY group_name ORDER BY MIN(num);

-- name: messages_kept
-- The messages that stand in every window: the system's, and those of no group.
SELECT num, id, group_name, role, provider, form, created_at, hidden, parts, extra FROM messages
WHERE num > :above AND num < :below AND +agent = :agent
    AND hidden = 0 AND (group_name IS NULL OR role = 'system') ORDER BY num;

-- name: messages_left
-- Which messages there are, and which of them are hidden.
SELECT num, hidden FROM messages WHERE num > :above AND num < :below AND +agent = :agent ORDER BY num;

-- name: messages_of_group
-- The messages of a group, in order.
SELECT num, id, group_name, role, provider, form, created_at, hidden, parts, extra FROM messages
WHERE +agent = :agent AND conversation = :conversation AND group_name = :group_name ORDER BY num;

-- name: message
-- One message, and its session.
SELECT num, id, group_name, role, provider, form, created_at, hidden, parts, extra, session
FROM agents CROSS JOIN messages ON messages.agent = agents.agent
    CROSS JOIN conversations USING (conversation)
WHERE agents.name = :agent AND messages.id = :id;

-- name: group_hidden
-- Whether a group is hidden; no row where there is no such group.
SELECT hidden FROM messages
WHERE +agent = :agent AND conversation = :conversation AND group_name = :group_name LIMIT 1;

-- name: hide_group
-- Take a group out of its conversation, or put it back.
UPDATE messages SET hidden = :hidden
WHERE +agent = :agent AND conversation = :conversation AND group_name = :group_name;

-- name: remove_group
-- Delete the messages of a group.
DELETE FROM messages WHERE +agent = :agent AND conversation = :conversation AND group_name = :group_name;

-- name: remove_message
-- Delete one message.
DELETE FROM messages WHERE num = :num AND agent = :agent;

-- name: remove_conversation
-- Delete a conversation; its messages and anchors go with it by their foreign keys.
DELETE FROM conversations WHERE agent = :agent AND conversation = :conversation;

-- name: opened_last
-- The group that was opened last, after another one went.
SELECT group_name FROM messages
WHERE num > :above AND num < :below AND +agent = :agent AND group_name IS NOT NULL
GROUP BY group_name ORDER BY min(num) DESC LIMIT 1;

-- name: set_anchor
-- Store a text that stands outside any window.
INSERT INTO anchors (conversation, agent, name, text) VALUES (:conversation, :agent, :name, :text)
ON CONFLICT (conversation, name) DO UPDATE SET text = excluded.text;

-- name: remove_anchor
-- Remove a text that stands outside any window.
DELETE FROM anchors WHERE agent = :agent AND conversation = :conversation AND name = :name;

-- name: anchors
-- The texts that stand outside any window.
SELECT anchors.name, text FROM agents CROSS JOIN conversations ON conversations.agent = agents.agent
    CROSS JOIN anchors USING (conversation)
WHERE agents.name = :agent AND session = :session
ORDER BY anchors.name;

-- name: check_messages
-- Messages whose number isn't of their conversation, or whose conversation is another agent's.
SELECT messages.id FROM messages CROSS JOIN conversations USING (conversation)
WHERE messages.agent = :agent
  AND (conversations.agent <> messages.agent OR num >> 32 <> conversation OR num & 0xFFFFFFFF > said);
