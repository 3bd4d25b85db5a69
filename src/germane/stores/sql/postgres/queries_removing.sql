-- What removes an agent with all that is kept of it, in batches, whatever the store is kept in.

-- name: number
-- The number of an agent, or of a space by the name of its agent. Whoever lets it into a space has been waited for.
SELECT agent FROM agents WHERE name = %(name)s FOR UPDATE;

-- name: rename_agent
-- Give an agent the name of one that is being removed, so that nobody finds it any more.
UPDATE agents SET name = %(name)s WHERE agent = %(agent)s;

-- name: every_space
-- The numbers of all spaces, and the names of the agents that they are.
SELECT spaces.space, agents.name FROM agents JOIN spaces ON spaces.space = agents.agent ORDER BY spaces.space;

-- name: is_space
-- Whether an agent is one that a space is.
SELECT count(*) FROM spaces WHERE space = %(space)s;

-- name: count_rows
-- How many rows of an agent are removed in batches.
SELECT (SELECT count(*) FROM memories WHERE memories.agent = %(agent)s)
     + (SELECT count(*) FROM messages WHERE messages.agent = %(agent)s)
     + (SELECT count(*) FROM conversations WHERE conversations.agent = %(agent)s)
     + (SELECT count(*) FROM assemblies WHERE assemblies.agent = %(agent)s)
     + (SELECT count(*) FROM changes WHERE changes.agent = %(agent)s)
     + (SELECT count(*) FROM moves WHERE moves.agent = %(agent)s);

-- name: has_acted
-- Whether an agent did anything in a space.
SELECT EXISTS (SELECT FROM space_events WHERE space = %(space)s AND (by = %(gone)s OR member = %(gone)s))
    OR EXISTS (SELECT FROM moves WHERE moves.agent = %(agent)s AND by = %(gone)s)
    OR EXISTS (SELECT FROM life_events WHERE life_events.agent = %(agent)s AND by = %(gone)s);

-- name: disown_events
-- What an agent did in a space is the space's own from now on.
UPDATE space_events SET by = CASE by WHEN %(gone)s THEN space ELSE by END, member = nullif(member, %(gone)s)
WHERE space = %(space)s AND (by = %(gone)s OR member = %(gone)s);

-- name: disown_moves
-- The same of what it moved in the space's working sets.
UPDATE moves SET by = agent WHERE agent = %(agent)s AND by = %(gone)s;

-- name: disown_life_events
-- The same of what it made of the space's memories.
UPDATE life_events SET by = agent WHERE agent = %(agent)s AND by = %(gone)s;

-- name: some_memories
-- Some of an agent's memories, for those of a space have to be looked for in what others assembled.
SELECT num FROM memories WHERE agent = %(agent)s LIMIT %(most)s;

-- name: remove_memories
-- Remove some memories, and what goes with them by its foreign keys.
DELETE FROM memories WHERE agent = %(agent)s AND num IN (
    SELECT num FROM memories WHERE agent = %(agent)s LIMIT %(most)s
) RETURNING 1;

-- name: remove_assemblies
-- Remove some of what was assembled.
DELETE FROM assemblies WHERE agent = %(agent)s AND number IN (
    SELECT number FROM assemblies WHERE agent = %(agent)s LIMIT %(most)s
) RETURNING 1;

-- name: remove_messages
-- Remove some messages.
DELETE FROM messages WHERE agent = %(agent)s AND num IN (
    SELECT num FROM messages WHERE agent = %(agent)s LIMIT %(most)s
) RETURNING 1;

-- name: remove_conversations
-- Remove some conversations, of which no message is left.
DELETE FROM conversations WHERE agent = %(agent)s AND conversation IN (
    SELECT conversation FROM conversations WHERE agent = %(agent)s LIMIT %(most)s
) RETURNING 1;

-- name: remove_changes
-- Remove some of the numbers of what changed.
DELETE FROM changes WHERE agent = %(agent)s AND seq IN (
    SELECT seq FROM changes WHERE agent = %(agent)s LIMIT %(most)s
) RETURNING 1;

-- name: remove_moves
-- Remove some of what became of working sets.
DELETE FROM moves WHERE agent = %(agent)s AND number IN (
    SELECT number FROM moves WHERE agent = %(agent)s LIMIT %(most)s
) RETURNING 1;

-- name: remove_memberships
-- An agent is in no space any more.
DELETE FROM members WHERE agent = %(agent)s;

-- name: remove_space
-- Remove a space that nobody is in.
DELETE FROM spaces WHERE space = %(space)s;

-- name: retire_number
-- What goes before an agent's row: its counters and settings. Its number is never given again.
DELETE FROM states WHERE agent = %(agent)s;

-- name: remove_agent
-- Remove an agent of which nothing else is left.
DELETE FROM agents WHERE agent = %(agent)s;
