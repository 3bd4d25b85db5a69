-- What a check of the store looks at.

-- name: check_counters
-- The agent's counters beside what is stored.
SELECT memories, terms,
       (SELECT count(*) FROM memories WHERE memories.agent = :agent),
       (SELECT coalesce(sum(length), 0)::bigint FROM lex WHERE lex.agent = :agent)
FROM {states} WHERE agent = :agent;

-- name: check_missing
-- Memories without texts, or without a forward record.
SELECT chain, texts.num IS NULL, lex.num IS NULL
FROM memories LEFT JOIN texts ON texts.agent = memories.agent AND texts.num = memories.num
    LEFT JOIN lex ON lex.agent = memories.agent AND lex.num = memories.num
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
SELECT chain FROM memories {join} vectors USING ({key}) {join} unembedded USING ({key})
WHERE memories.agent = :agent;

-- name: forwards_of
-- The stored forward records of some memories, with the memories' ids.
SELECT memories.num, id, length, hashes, frequencies FROM memories {join} lex USING ({key})
WHERE {+}memories.agent = :agent AND memories.num {numbers :nums};

-- name: check_chains
-- Chains that have no head, or more than one. A chain without one may end in another, with which it was merged.
SELECT chain, count(*) FILTER (WHERE superseded_by IS NULL) AS heads FROM memories WHERE agent = :agent
GROUP BY chain HAVING count(*) FILTER (WHERE superseded_by IS NULL) > 1
    OR (count(*) FILTER (WHERE superseded_by IS NULL) = 0 AND NOT EXISTS (
        SELECT 1 FROM memories AS old {join} memories AS new ON new.agent = old.agent AND new.id = old.superseded_by
        WHERE old.agent = :agent AND new.chain <> old.chain AND old.chain = memories.chain
    ))
ORDER BY chain;

-- name: check_heads
-- Superseded versions whose successor is not stored.
SELECT chain FROM memories AS old WHERE old.agent = :agent AND superseded_by IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM memories AS new WHERE new.agent = :agent AND new.id = old.superseded_by);

-- name: half_memories
-- Memories without texts.
SELECT memories.num, chain FROM memories LEFT JOIN texts ON texts.agent = memories.agent AND texts.num = memories.num
WHERE memories.agent = :agent AND texts.num IS NULL;

-- name: set_aside_memory
-- Take a damaged memory out of results, or give it the chain that it begins.
UPDATE memories SET chain = :chain, status = :status, trust = :trust, outcome = :outcome WHERE num = :num AND agent = :agent;

-- name: set_aside_texts
-- Note that a memory is damaged.
UPDATE texts SET tags = :tags, metadata = :metadata, checksum = :checksum WHERE num = :num AND agent = :agent;

-- name: set_agent_memories
-- Count the agent's memories anew.
UPDATE {states} SET memories = (SELECT count(*) FROM memories WHERE memories.agent = :agent) WHERE agent = :agent;

-- name: remove_tags
-- Remove all tags of an agent, before they are made anew from the texts.
DELETE FROM tags WHERE agent = :agent;

-- name: remove_places
-- The same of the places.
DELETE FROM places WHERE agent = :agent;

-- name: remove_embedded
-- Nothing that has a vector waits for one.
DELETE FROM unembedded WHERE num > :above AND num < :below AND {+}agent = :agent
    AND EXISTS (SELECT 1 FROM vectors WHERE vectors.agent = :agent AND vectors.num = unembedded.num);

-- name: seal_message
-- Store the checksum of a message as it is.
UPDATE messages SET checksum = :checksum WHERE num = :num AND agent = :agent;

-- name: remove_message_record
-- Remove what is stored of a message's words and vector, so that it is made anew when it is needed.
DELETE FROM message_lex WHERE num = :num AND agent = :agent;

-- name: unpack_messages
-- Remove the packed messages of an agent, and let caches read its conversations again.
UPDATE message_lex SET packed = NULL WHERE agent = :agent AND packed IS NOT NULL;

-- name: renew_conversations
-- Let caches read an agent's conversations again.
UPDATE conversations SET revision = revision + 1 WHERE agent = :agent;

-- name: message_rows
-- Messages of an agent's, a batch at a time.
SELECT {columns messages} FROM messages WHERE agent = :agent AND num > :above ORDER BY num LIMIT 1000;

-- name: message_records
-- What is stored of the words and vectors of some messages.
SELECT num, rules, length, hashes, frequencies, vector, checksum FROM message_lex
WHERE agent = :agent AND num {numbers :nums};

-- name: check_messages
-- Messages whose number isn't of their conversation, or whose conversation is another agent's.
SELECT messages.id FROM messages {join} conversations USING ({postgres: agent,} conversation)
WHERE messages.agent = :agent AND (
    {sqlite: conversations.agent <> messages.agent OR} (num >> 32) <> conversation OR (num & 4294967295) > said
);
