-- Spaces. Whatever reads or writes a space's rows names the space, or the one agent whose memberships are asked for.

-- name: space
-- What is stored of a space itself, and how far its memories and working sets have come, where it is entered.
SELECT spaces.space, admits, created_at, joined, happened, seq, moved
FROM agents {join} spaces ON spaces.space = agents.agent
{postgres: LEFT JOIN states ON states.agent = number_of(:name)} WHERE agents.name = :name;

-- name: members
-- Who is in a space, in their order.
SELECT agents.name, rights, role, joined_at, place
FROM members {join} agents USING (agent) WHERE members.space = :space ORDER BY place;

-- name: members_of
-- Who is in a space, in their order, by the space's name.
SELECT agents.name, rights, role, joined_at, place
FROM members {join} agents USING (agent) WHERE members.space = {number_of :name} ORDER BY place;

-- name: spaces_of
-- The names of the spaces that an agent is in, after :after.
SELECT tenants.name FROM agents
{join} members ON members.agent = agents.agent
{join} agents AS tenants ON tenants.agent = members.space
WHERE agents.name = :name AND tenants.name > :after::text ORDER BY tenants.name {limit};

-- name: happened
-- The number of a space's latest event.
SELECT happened FROM agents {join} spaces ON spaces.space = agents.agent WHERE agents.name = :name;

-- name: set_space
-- Store a space as it is now; one that was disbanded begins anew, and its events are numbered on.
INSERT INTO spaces (space, admits, created_at, joined)
SELECT agent, :admits::text, :created_at::bigint, :joined::bigint FROM agents WHERE name = :name
ON CONFLICT (space) DO UPDATE SET
    admits = excluded.admits, created_at = excluded.created_at, joined = excluded.joined;

-- name: set_member
-- Store a member as it is now.
INSERT INTO members (space, agent, rights, role, joined_at, place)
SELECT :space::bigint, agent, :rights::text, :role::text, :joined_at::bigint, :place::bigint
FROM agents WHERE name = :name
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
SELECT seq, moved FROM {states} WHERE agent = :agent;

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
INSERT INTO space_events ({columns space_events})
SELECT :space, :number, :what, (SELECT agent FROM agents WHERE name = :by), :num, :id,
       :former, (SELECT agent FROM agents WHERE name = :member), :held_in, :at;

-- name: set_happened
-- Note the number of the latest event.
UPDATE spaces SET happened = :happened WHERE space = :space;

-- name: events
-- What happened after an event, in order.
SELECT number, what, actors.name, id, former, objects.name, held_in, at
FROM space_events
{join} agents AS actors ON actors.agent = space_events.by
LEFT JOIN agents AS objects ON objects.agent = space_events.member
WHERE space = :space AND number > :since ORDER BY number {limit};

-- name: one_of_each_chain
-- A version of every chain, by which the whole chain is purged.
SELECT {sqlite: min(id)}{postgres: (array_agg(id ORDER BY id))[1]} FROM memories WHERE agent = :agent
GROUP BY chain ORDER BY chain;
