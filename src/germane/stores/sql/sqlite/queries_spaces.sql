-- The statements about spaces. Whatever reads or writes a space's rows names the space, or the one agent
-- whose memberships are asked for.

-- name: space
-- What is stored of a space itself, and how far its memories and its working sets have come.
SELECT spaces.space, admits, created_at, joined, happened, seq, moved
FROM agents CROSS JOIN spaces ON spaces.space = agents.agent WHERE agents.name = :name;

-- name: members
-- Who is in a space, in their order.
SELECT agents.name, rights, role, joined_at, place
FROM members CROSS JOIN agents USING (agent) WHERE members.space = :space ORDER BY place;

-- name: members_of
-- The same by the space's name.
SELECT agents.name, rights, role, joined_at, place
FROM agents AS tenants CROSS JOIN members ON members.space = tenants.agent
CROSS JOIN agents ON agents.agent = members.agent
WHERE tenants.name = :name ORDER BY place;

-- name: spaces_of
-- The names of the spaces that an agent is in.
SELECT tenants.name FROM agents
CROSS JOIN members ON members.agent = agents.agent
CROSS JOIN agents AS tenants ON tenants.agent = members.space
WHERE agents.name = :name ORDER BY tenants.name;

-- name: happened
-- The number of a space's latest event.
SELECT happened FROM agents CROSS JOIN spaces ON spaces.space = agents.agent WHERE agents.name = :name;

-- name: set_space
-- Store a space as it is now; one that was disbanded begins anew, and its events are numbered on.
INSERT INTO spaces (space, admits, created_at, joined)
SELECT agent, :admits, :created_at, :joined FROM agents WHERE name = :name
ON CONFLICT (space) DO UPDATE SET
    admits = excluded.admits, created_at = excluded.created_at, joined = excluded.joined;

-- name: set_member
-- Store a member as it is now.
INSERT INTO members (space, agent, rights, role, joined_at, place)
SELECT :space, agent, :rights, :role, :joined_at, :place FROM agents WHERE name = :name
ON CONFLICT (space, agent) DO UPDATE SET
    rights = excluded.rights, role = excluded.role, joined_at = excluded.joined_at, place = excluded.place;

-- name: remove_member
-- An agent is in the space no more.
DELETE FROM members WHERE space = :space AND agent = (SELECT agent FROM agents WHERE name = :name);

-- name: remove_members
-- Nobody is in the space any more.
DELETE FROM members WHERE space = :space;

-- name: remove_events
-- Nothing is told any more of a space that was disbanded.
DELETE FROM space_events WHERE space = :space;

-- name: written
-- How far the changes and the moves of the space's memories go.
SELECT seq, moved FROM agents WHERE agent = :agent;

-- name: changes_to_tell
-- What became of memories since a change, each with what it is now.
SELECT changes.num, what, chain, version, memories.status
FROM changes LEFT JOIN memories ON memories.num = changes.num AND memories.agent = :agent
WHERE changes.agent = :agent AND changes.seq > :seq ORDER BY changes.seq;

-- name: moves_to_tell
-- What became of working sets since a move.
SELECT what, moves.id, working_sets.name, moves.at
FROM moves LEFT JOIN working_sets
    ON working_sets.working_set = moves.working_set AND working_sets.agent = :agent
WHERE moves.agent = :agent AND moves.number > :number ORDER BY moves.number;

-- name: told_id
-- The id of a memory that was purged, from the event that told of its coming.
SELECT id FROM space_events WHERE space = :space AND num = :num AND what IN ('remember', 'revise');

-- name: insert_event
-- Note what happened.
INSERT INTO space_events (space, number, what, by, num, id, former, member, held_in, at)
VALUES (:space, :number, :what, (SELECT agent FROM agents WHERE name = :by), :num, :id, :former,
        (SELECT agent FROM agents WHERE name = :member), :held_in, :at);

-- name: set_happened
-- Note the number of the latest event.
UPDATE spaces SET happened = :happened WHERE space = :space;

-- name: events
-- What happened after an event, in order.
SELECT number, what, actors.name, id, former, objects.name, held_in, at
FROM space_events
CROSS JOIN agents AS actors ON actors.agent = space_events.by
LEFT JOIN agents AS objects ON objects.agent = space_events.member
WHERE space = :space AND number > :since ORDER BY number LIMIT :limit;

-- name: one_of_each_chain
-- A version of every chain, by which the whole chain is purged.
SELECT min(id) FROM memories WHERE agent = :agent GROUP BY chain;

-- name: remove_working_sets
-- Remove an agent's working sets with all that they hold.
DELETE FROM working_sets WHERE agent = :agent;
