-- The statements about spaces. Whatever reads or writes a space's rows names the space, or the one agent
-- whose memberships are asked for.

-- name: space
-- What is stored of a space itself, and how far its memories and its working sets have come, where it is
-- entered.
SELECT spaces.space, admits, created_at, joined, happened, seq, moved
FROM agents JOIN spaces ON spaces.space = agents.agent
LEFT JOIN states ON states.agent = number_of(%(name)s) WHERE agents.name = %(name)s;

-- name: members
-- Who is in a space, in their order.
SELECT agents.name, rights, role, joined_at, place
FROM members JOIN agents USING (agent) WHERE members.space = %(space)s ORDER BY place;

-- name: members_of
-- The same by the space's name.
SELECT agents.name, rights, role, joined_at, place
FROM members JOIN agents USING (agent) WHERE members.space = number_of(%(name)s) ORDER BY place;

-- name: spaces_of
-- The names of the spaces that an agent is in.
SELECT tenants.name FROM agents
JOIN members ON members.agent = agents.agent
JOIN agents AS tenants ON tenants.agent = members.space
WHERE agents.name = %(name)s ORDER BY tenants.name;

-- name: happened
-- The number of a space's latest event.
SELECT happened FROM agents JOIN spaces ON spaces.space = agents.agent WHERE agents.name = %(name)s;

-- name: set_space
-- Store a space as it is now; one that was disbanded begins anew, and its events are numbered on.
INSERT INTO spaces (space, admits, created_at, joined)
SELECT agent, %(admits)s::text, %(created_at)s::bigint, %(joined)s::bigint FROM agents WHERE name = %(name)s
ON CONFLICT (space) DO UPDATE SET
    admits = excluded.admits, created_at = excluded.created_at, joined = excluded.joined;

-- name: set_member
-- Store a member as it is now.
INSERT INTO members (space, agent, rights, role, joined_at, place)
SELECT %(space)s::bigint, agent, %(rights)s::text, %(role)s::text, %(joined_at)s::bigint, %(place)s::bigint
FROM agents WHERE name = %(name)s
ON CONFLICT (space, agent) DO UPDATE SET
    rights = excluded.rights, role = excluded.role, joined_at = excluded.joined_at, place = excluded.place;

-- name: remove_member
-- An agent is in the space no more.
DELETE FROM members WHERE space = %(space)s AND agent = (SELECT agent FROM agents WHERE name = %(name)s);

-- name: remove_members
-- Nobody is in the space any more.
DELETE FROM members WHERE space = %(space)s;

-- name: remove_events
-- Nothing is told any more of a space that was disbanded.
DELETE FROM space_events WHERE space = %(space)s;

-- name: written
-- How far the changes and the moves of the space's memories go.
SELECT seq, moved FROM states WHERE agent = %(agent)s;

-- name: changes_to_tell
-- What became of memories since a change, each with what it is now.
SELECT changes.num, what, chain, version, memories.status
FROM changes LEFT JOIN memories ON memories.num = changes.num AND memories.agent = %(agent)s
WHERE changes.agent = %(agent)s AND changes.seq > %(seq)s ORDER BY changes.seq;

-- name: moves_to_tell
-- What became of working sets since a move.
SELECT what, moves.id, working_sets.name, moves.at
FROM moves LEFT JOIN working_sets
    ON working_sets.working_set = moves.working_set AND working_sets.agent = %(agent)s
WHERE moves.agent = %(agent)s AND moves.number > %(number)s ORDER BY moves.number;

-- name: told_id
-- The id of a memory that was purged, from the event that told of its coming.
SELECT id FROM space_events WHERE space = %(space)s AND num = %(num)s AND what IN ('remember', 'revise');

-- name: insert_event
-- Note what happened.
INSERT INTO space_events (space, number, what, by, num, id, former, member, held_in, at)
SELECT %(space)s, %(number)s, %(what)s, (SELECT agent FROM agents WHERE name = %(by)s), %(num)s, %(id)s,
       %(former)s, (SELECT agent FROM agents WHERE name = %(member)s), %(held_in)s, %(at)s;

-- name: set_happened
-- Note the number of the latest event.
UPDATE spaces SET happened = %(happened)s WHERE space = %(space)s;

-- name: events
-- What happened after an event, in order.
SELECT number, what, actors.name, id, former, objects.name, held_in, at
FROM space_events
JOIN agents AS actors ON actors.agent = space_events.by
LEFT JOIN agents AS objects ON objects.agent = space_events.member
WHERE space = %(space)s AND number > %(since)s ORDER BY number LIMIT nullif(%(limit)s::bigint, -1);

-- name: one_of_each_chain
-- A version of every chain, by which the whole chain is purged.
SELECT (array_agg(id ORDER BY id))[1] FROM memories WHERE agent = %(agent)s GROUP BY chain ORDER BY chain;

-- name: remove_working_sets
-- Remove an agent's working sets with all that they hold.
DELETE FROM working_sets WHERE agent = %(agent)s;
