-- Agents, and the settings of the whole store.

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
-- the settings that a process has to agree with, whether the agent has any conversation, and how many memories.
SELECT agent, seq, language, judged, attested, lived, learning,
       (SELECT value FROM settings WHERE name = 'tokenizer') AS tokenizer,
       (SELECT value FROM settings WHERE name = 'embedding_name') AS embedding_name,
       (SELECT value FROM settings WHERE name = 'embedding_dimension') AS embedding_dimension,
       EXISTS (SELECT 1 FROM conversations WHERE conversations.agent = {sqlite: agents.agent}{postgres: number_of(:name)}) AS converses,
       memories
FROM {states} WHERE {state_of :name};

-- name: agents
-- Every agent's number, latest change, name and language. PostgreSQL lets all read the names; seq is NULL where its
-- policies hide the rest.
SELECT agent, seq, name, language FROM agents {postgres: LEFT JOIN states USING (agent)} ORDER BY agent;

-- name: agent_figures
-- How many memories an agent has, of any status, and when one of them was last written.
SELECT count(*), max(updated_at) FROM memories WHERE agent = :agent;

-- name: add_agent (sqlite)
-- Give a new agent its number, and never that of one that was removed.
INSERT INTO agents (agent, name)
SELECT 1 + max(
    coalesce((SELECT max(agent) FROM agents), 0),
    coalesce((SELECT CAST(value AS INTEGER) FROM settings WHERE name = 'latest_agent'), 0)
), :name
WHERE true ON CONFLICT (name) DO NOTHING;

-- name: add_agent (postgres)
-- Give a new agent its number.
SELECT add_agent(:name);

-- name: lock_agent
-- The agent's latest change. Nobody else writes for the agent until this transaction ends; SQLite has one writer.
SELECT seq FROM {states} WHERE agent = :agent {postgres: FOR UPDATE};

-- name: advance_agent
-- Move the agent's change number and counters at the end of a transaction.
UPDATE {states} SET seq = :seq, memories = memories + :memories, terms = terms + :terms
WHERE agent = :agent;

-- name: set_agent_language
-- Change the language of an agent whose memories are about to be indexed anew.
UPDATE {states} SET language = :language WHERE agent = :agent;

-- name: set_agent_terms
-- Count the agent's terms anew after a reindex, and note the change.
UPDATE {states} SET seq = :seq, terms = :terms WHERE agent = :agent;

-- name: number
-- The number of an agent, or of a space by the name of its agent. PostgreSQL waits for whoever lets it into a space.
SELECT agent FROM agents WHERE name = :name {postgres: FOR UPDATE};

-- name: reply
-- The answer to a request, and a hash of what was asked.
SELECT done, mark, answer FROM replies WHERE agent = :agent AND name = :name;

-- name: begin_reply
-- Note that a request is under way.
INSERT INTO replies (agent, name, at, mark) VALUES (:agent, :name, :at, :mark);

-- name: end_reply
-- Store the answer to a request, unless something was purged since it began.
UPDATE replies SET done = 1, answer = CASE WHEN mark IS NOT NULL THEN :answer::bytea END
WHERE agent = :agent AND name = :name AND at = :at;

-- name: remove_reply
-- A request was not answered, and may be sent again.
DELETE FROM replies WHERE agent = :agent AND name = :name AND at = :at;

-- name: remove_replies
-- Remove the answers from before a time, requests that must have died, and the oldest answers beyond so many bytes.
DELETE FROM replies WHERE agent = :agent AND (at < :since OR (done = 0 AND at < :alive) OR name IN (
    SELECT name FROM (
        SELECT name, row_number() OVER latest AS place, sum(coalesce(length(answer), 0)) OVER latest AS size
        FROM replies WHERE agent = :agent AND done = 1 WINDOW latest AS (ORDER BY at DESC, name)
    ) AS answered WHERE place > :most OR size > :bytes
));

-- name: blank_replies (sqlite)
-- Take the answers away that may tell what is purged, whoever asked; `note_erasure` does it in PostgreSQL.
UPDATE replies SET mark = NULL, answer = NULL WHERE mark IS NOT NULL;
