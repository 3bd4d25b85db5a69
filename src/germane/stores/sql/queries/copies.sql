-- What copies one agent from store to store, table by table; the schema names the columns.

-- name: carried_state
-- The counters and settings of an agent.
SELECT seq, memories, terms, language, learning, judged, moved, attested, lived FROM {states}
WHERE agent = :agent;

-- name: carry_state
-- Give an agent, which has nothing so far, the counters and settings of another store's.
UPDATE {states} SET seq = :seq, memories = :memories,
    terms = :terms, language = :language,
    learning = :learning, judged = :judged, moved = :moved, attested = :attested, lived = :lived
WHERE agent = :agent;

-- name: carried_conversations
-- The conversations of an agent.
SELECT conversation, session, said, revision, opened
FROM conversations WHERE agent = :agent ORDER BY conversation;

-- name: carried_working_sets
-- The agent's rows.
SELECT working_set, name, max_tokens, moved
FROM working_sets WHERE agent = :agent
ORDER BY working_set;

-- name: carried_moves
-- The agent's rows.
SELECT {columns moves} FROM moves WHERE agent = :agent
    AND working_set IN (SELECT working_sets.working_set FROM working_sets WHERE working_sets.agent = :agent)
ORDER BY number;

-- name: carried_life_events
-- The agent's rows. A cluster leaves what refers to a memory that is gone, which is read as referring to none.
SELECT life_events.agent, number, life_events.num, sign, stage_before, stage_after, cause, by, others.num AS other, at
FROM life_events LEFT JOIN memories AS others ON others.agent = life_events.agent AND others.num = life_events.other
WHERE life_events.agent = :agent ORDER BY number;

-- name: carried_{table}
-- An agent's rows of a table, in their order; or a space's.
SELECT {columns {table}} FROM {table} WHERE {owner} = :{owner} ORDER BY {order};

-- name: carry_{table}
-- Put rows of another store into a table that has none of them.
INSERT INTO {table} ({columns {table}}) VALUES ({values {table}});
