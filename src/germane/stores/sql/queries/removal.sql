-- What removes an agent with all that is kept of it, in batches.

-- name: rename_agent
-- Give an agent the name of one that is being removed, so that nobody finds it any more.
UPDATE agents SET name = :name WHERE agent = :agent;

-- name: every_space
-- The numbers of all spaces, and the names of the agents that they are.
SELECT spaces.space, agents.name FROM agents {join} spaces ON spaces.space = agents.agent ORDER BY spaces.space;

-- name: is_space
-- Whether an agent is one that a space is.
SELECT count(*) FROM spaces WHERE space = :space;

-- name: count_rows
-- How many rows of an agent are removed in batches.
SELECT (SELECT count(*) FROM memories WHERE memories.agent = :agent)
     + (SELECT count(*) FROM messages WHERE messages.agent = :agent)
     + (SELECT count(*) FROM conversations WHERE conversations.agent = :agent)
     + (SELECT count(*) FROM assemblies WHERE assemblies.agent = :agent)
     + (SELECT count(*) FROM learning_runs WHERE learning_runs.agent = :agent)
     + (SELECT count(*) FROM changes WHERE changes.agent = :agent)
     + (SELECT count(*) FROM moves WHERE moves.agent = :agent);

-- name: has_acted
-- Whether an agent did anything in a space.
SELECT EXISTS (SELECT 1 FROM space_events WHERE space = :space AND (by = :gone OR member = :gone))
    OR EXISTS (SELECT 1 FROM moves WHERE moves.agent = :agent AND by = :gone)
    OR EXISTS (SELECT 1 FROM life_events WHERE life_events.agent = :agent AND by = :gone);

-- name: disown_events
-- What an agent did in a space is the space's own from now on.
UPDATE space_events SET by = CASE WHEN by = :gone THEN space ELSE by END, member = nullif(member, :gone)
WHERE space = :space AND (by = :gone OR member = :gone);

-- name: disown_moves
-- The same of what it moved in the space's working sets.
UPDATE moves SET by = agent WHERE agent = :agent AND by = :gone;

-- name: disown_life_events
-- The same of what it made of the space's memories.
UPDATE life_events SET by = agent WHERE agent = :agent AND by = :gone;

-- name: some_memories
-- Some of an agent's memories, for those of a space have to be looked for in what others assembled.
SELECT num FROM memories WHERE agent = :agent LIMIT :most;

-- name: remove_some_{table}
-- Remove some of an agent's rows of a table, and what goes with them by its foreign keys.
DELETE FROM {table} WHERE {owner} = :{owner} AND ({order}) IN (
    SELECT {order} FROM {table} WHERE {owner} = :{owner} LIMIT :most
) RETURNING 1;

-- name: remove_some_conversations
-- Remove some conversations, of which no message is left.
DELETE FROM conversations WHERE agent = :agent AND conversation IN (
    SELECT conversation FROM conversations WHERE agent = :agent LIMIT :most
) RETURNING 1;

-- name: remove_memberships
-- An agent is in no space any more.
DELETE FROM members WHERE agent = :agent;

-- name: remove_space
-- Remove a space that nobody is in.
DELETE FROM spaces WHERE space = :space;

-- name: retire_number (sqlite)
-- What goes before an agent's row, with its counters and settings: its number is noted, and never given again.
INSERT INTO settings (name, value) VALUES ('latest_agent', CAST(:agent AS TEXT))
ON CONFLICT (name) DO UPDATE SET value = max(CAST(value AS INTEGER), CAST(excluded.value AS INTEGER));

-- name: retire_number (postgres)
-- What goes before an agent's row: its counters and settings. Its number is never given again.
DELETE FROM states WHERE agent = :agent;

-- name: remove_agent
-- Remove an agent of which nothing else is left.
DELETE FROM agents WHERE agent = :agent;
