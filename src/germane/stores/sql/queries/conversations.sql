-- Conversations, their messages, and the words of those.

-- name: conversation
-- A conversation's numbers, what was opened last in it, and the language of its agent's words.
SELECT conversations.agent, conversation, said, revision, opened, language
FROM {states} {join} conversations ON conversations.agent = {states}.agent
WHERE {state_of :agent} AND session = :session;

-- name: conversations
-- Every conversation of an agent at a glance, as it was at :until; those that began later are left out.
SELECT session, count(num) FILTER (WHERE (created_at > :until::bigint) IS NOT TRUE),
    coalesce(sum(hidden) FILTER (WHERE (created_at > :until::bigint) IS NOT TRUE), 0)::bigint,
    min(created_at), max(created_at) FILTER (WHERE (created_at > :until::bigint) IS NOT TRUE)
FROM conversations LEFT JOIN messages USING (agent, conversation)
WHERE conversations.agent = {number_of :agent} GROUP BY conversation, session
HAVING (min(created_at) > :until::bigint) IS NOT TRUE ORDER BY session;

-- name: conversation_rows
-- All conversations of an agent with their numbers, and the language of its words.
SELECT session, conversations.agent, conversation, said, revision, opened, language
FROM {states} {join} conversations ON conversations.agent = {states}.agent
WHERE {state_of :agent} ORDER BY conversation;

-- name: add_conversation
-- Begin a conversation. No number is used up where it has begun.
INSERT INTO conversations (agent, session)
SELECT {states}.agent, :session::text FROM {states} WHERE {state_of :agent} AND NOT EXISTS (
    SELECT 1 FROM conversations WHERE conversations.agent = {number_of :agent} AND session = :session
) ON CONFLICT DO NOTHING;

-- name: advance_conversation
-- Move a conversation's numbers at the end of a transaction.
UPDATE conversations SET said = :said, revision = :revision, opened = :opened
WHERE agent = :agent AND conversation = :conversation;

-- name: insert_message
-- Store a message.
INSERT INTO messages ({columns messages}) VALUES ({values messages});

-- name: messages_since
-- The messages of a conversation after a number, in order.
SELECT {columns messages} FROM messages
WHERE num > :above AND num < :below AND {+}agent = :agent ORDER BY num;

-- name: messages_latest
-- The last visible messages of a conversation, the latest first.
SELECT {columns messages} FROM messages WHERE num > :above AND num < :below AND {+}agent = :agent AND hidden = 0
ORDER BY num DESC LIMIT :most;

-- name: messages_of_agent
-- The messages of all conversations of an agent, in order.
SELECT {columns messages} FROM messages
WHERE {sqlite: num IN (
    SELECT one.num FROM conversations CROSS JOIN messages AS one
        ON one.num > (conversations.conversation << 32) AND one.num < ((conversations.conversation + 1) << 32)
    WHERE conversations.agent = :agent
) AND} {+}agent = :agent ORDER BY num;

-- name: messages_numbered
-- The messages of these numbers.
SELECT {columns messages} FROM messages WHERE num {numbers :nums} AND {+}agent = :agent;

-- name: groups_opened
-- The visible groups of a conversation in the order in which they were opened.
SELECT group_name FROM messages
WHERE num > :above AND num < :below AND {+}agent = :agent
    AND hidden = 0 AND group_name IS NOT NULL AND role <> 'system'
GROUP BY group_name ORDER BY MIN(num);

-- name: messages_kept
-- The messages that stand in every window: the system's, and those of no group.
SELECT {columns messages} FROM messages WHERE num > :above AND num < :below AND agent = :agent
    AND hidden = 0 AND (group_name IS NULL OR role = 'system') ORDER BY num;

-- name: messages_left
-- Which messages there are, and which of them are hidden.
SELECT num, hidden FROM messages
WHERE num > :above AND num < :below AND {+}agent = :agent ORDER BY num;

-- name: messages_of_group
-- The messages of a group, in order.
SELECT {columns messages} FROM messages
WHERE {+}agent = :agent AND conversation = :conversation AND group_name = :group_name ORDER BY num;

-- name: message
-- One message, and its session.
SELECT {columns messages}, session FROM messages {join} conversations USING (agent, conversation)
WHERE messages.agent = {number_of :agent} AND messages.id = :id;

-- name: group_hidden
-- Whether a group is hidden; no row where there is no such group.
SELECT hidden FROM messages
WHERE {+}agent = :agent AND conversation = :conversation AND group_name = :group_name LIMIT 1;

-- name: hide_group
-- Take a group out of its conversation, or put it back.
UPDATE messages SET hidden = :hidden
WHERE {+}agent = :agent AND conversation = :conversation AND group_name = :group_name;

-- name: remove_group
-- Delete the messages of a group.
DELETE FROM messages
WHERE {+}agent = :agent AND conversation = :conversation AND group_name = :group_name;

-- name: remove_message
-- Delete one message.
DELETE FROM messages WHERE num = :num AND agent = :agent;

-- name: rewrite_message
-- Store other parts of a message.
UPDATE messages SET parts = :parts, checksum = :checksum WHERE num = :num AND agent = :agent;

-- name: remove_conversation
-- Delete a conversation; its messages and anchors go with it by their foreign keys.
DELETE FROM conversations WHERE agent = :agent AND conversation = :conversation;

-- name: opened_last
-- The group that was opened last, after another one went.
SELECT group_name FROM messages
WHERE num > :above AND num < :below AND {+}agent = :agent AND group_name IS NOT NULL
GROUP BY group_name ORDER BY min(num) DESC LIMIT 1;

-- name: set_anchor
-- Store a text that stands outside any window.
INSERT INTO anchors (conversation, agent, name, text) VALUES (:conversation, :agent, :name, :text)
ON CONFLICT ({postgres: agent,} conversation, name) DO UPDATE SET text = excluded.text;

-- name: remove_anchor
-- Remove a text that stands outside any window.
DELETE FROM anchors WHERE agent = :agent AND conversation = :conversation AND name = :name;

-- name: anchors
-- The texts that stand outside any window.
SELECT anchors.name, text, agent, conversation FROM conversations {join} anchors USING (agent, conversation)
WHERE conversations.agent = {number_of :agent} AND session = :session ORDER BY anchors.name;

-- name: insert_message_lex
-- Store the forward record of a message, or the one of these rules in place of another.
INSERT INTO message_lex ({columns message_lex}) VALUES ({values message_lex})
ON CONFLICT ({key}) DO UPDATE SET
    rules = excluded.rules, length = excluded.length, hashes = excluded.hashes, frequencies = excluded.frequencies,
    vector = coalesce(excluded.vector, message_lex.vector),
    checksum = CASE WHEN excluded.vector IS NULL THEN message_lex.checksum ELSE excluded.checksum END;

-- name: set_message_vector
-- Store the vector of a message, or with NULL let it wait for one.
UPDATE message_lex SET vector = :vector, checksum = :checksum WHERE num = :num AND agent = :agent;

-- name: message_vectors
-- The vectors of a conversation's messages after a number.
SELECT num, vector, checksum FROM message_lex
WHERE num > :above AND num < :below AND {+}agent = :agent AND vector IS NOT NULL ORDER BY num;

-- name: message_vectors_of
-- The vectors of some messages.
SELECT num, vector, checksum FROM message_lex WHERE num {numbers :nums} AND {+}agent = :agent AND vector IS NOT NULL;

-- name: messages_waiting
-- The latest messages that wait for a vector, by when they were stored, and their sessions.
SELECT {columns messages}, session FROM messages {join} conversations USING (agent, conversation)
WHERE messages.agent = :agent AND messages.num IN (
    SELECT num FROM message_lex WHERE agent = :agent AND vector IS NULL ORDER BY num DESC LIMIT :most
);

-- name: count_waiting
-- How many messages wait for a vector.
SELECT count(*) FROM message_lex WHERE agent = :agent AND vector IS NULL;

-- name: drop_message_vectors
-- Let all messages of an agent wait for a vector.
UPDATE message_lex SET vector = NULL, checksum = NULL WHERE agent = :agent AND vector IS NOT NULL AND {sqlite: num IN (
    SELECT one.num FROM conversations CROSS JOIN messages AS one
        ON one.num > (conversations.conversation << 32) AND one.num < ((conversations.conversation + 1) << 32)
    WHERE conversations.agent = :agent
)}{postgres: num IS NOT NULL};

-- name: packed_messages
-- The blocks of messages that are packed, each beside the record of its last message.
SELECT num, packed FROM message_lex
WHERE num > :above AND num < :below AND agent = :agent AND packed IS NOT NULL ORDER BY num;

-- name: pack_messages
-- Store a block of messages as an index reads it; NULL deletes those that are packed.
UPDATE message_lex SET packed = :packed::bytea WHERE num > :above AND num < :below AND {+}agent = :agent
    AND coalesce(packed, :packed::bytea) IS NOT NULL;

-- name: message_lex
-- The forward records of a conversation's messages after a number, but for those that other rules made.
SELECT num, length, hashes, frequencies FROM message_lex
WHERE num > :above AND num < :below AND {+}agent = :agent AND rules = :rules ORDER BY num;

-- name: message_lex_of_agent
-- The same of all conversations of an agent.
SELECT num, length, hashes, frequencies FROM message_lex
WHERE {sqlite: num IN (
    SELECT one.num FROM conversations CROSS JOIN messages AS one
        ON one.num > (conversations.conversation << 32) AND one.num < ((conversations.conversation + 1) << 32)
    WHERE conversations.agent = :agent
) AND} {+}agent = :agent AND rules = :rules ORDER BY num;
