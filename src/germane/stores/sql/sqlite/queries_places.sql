-- Queries about where memories apply, and about how work turned out with them.

-- name: insert_place
-- Note where a memory stands besides its scope; two of its places may be written alike.
INSERT INTO places (agent, place, num) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- name: places
-- The different places of an agent's memories. Each is looked up after the one before, however many share it.
WITH RECURSIVE known (place) AS (
    SELECT min(place) FROM places WHERE agent = :agent
    UNION ALL
    SELECT (SELECT min(places.place) FROM places WHERE agent = :agent AND places.place > known.place)
    FROM known WHERE known.place IS NOT NULL
)
SELECT place FROM known WHERE place IS NOT NULL;

-- name: where_applies_to
-- A condition for {filter}.
AND (
    (scope, scope_value) IN (VALUES :applies_to)
    OR num IN (
        SELECT places.num FROM places
        WHERE places.agent = :agent AND places.place IN (SELECT value FROM json_each(:places))
    )
)

-- name: insert_outcome
-- Store how work turned out with a memory that a context showed; the latest word on that context stands.
INSERT INTO outcomes (agent, context, num, given, worth, weight, at)
VALUES (
    :agent, :context, :num, (SELECT attested FROM agents WHERE agents.agent = :agent), :worth, :weight, :at
)
ON CONFLICT (agent, context, num) DO UPDATE SET
    given = excluded.given, worth = excluded.worth, weight = excluded.weight, at = excluded.at;

-- name: attested
-- The number of an agent's latest outcome.
SELECT attested FROM agents WHERE agent = :agent;

-- name: count_outcome
-- Give the next outcome its number, or note that some are gone.
UPDATE agents SET attested = attested + 1 WHERE agent = :agent;

-- name: outcome
-- What is known of a memory in a context.
SELECT worth, weight FROM outcomes WHERE agent = :agent AND context = :context AND num = :num;

-- name: remove_old_outcomes
-- Remove all but the latest outcomes of an agent.
DELETE FROM outcomes
WHERE agent = :agent AND given <= (SELECT attested FROM agents WHERE agents.agent = :agent) - :most;

-- name: outcomes
-- How work turned out with an agent's memories, in a total order.
SELECT context, chain, version, superseded_by, worth, weight, at FROM outcomes CROSS JOIN memories USING (num)
WHERE outcomes.agent = :agent ORDER BY context, memories.id;

-- name: tokens_by_scope
-- What the active memories of an agent take, by the name of their scope.
SELECT scope, sum(full_tokens) FROM memories CROSS JOIN texts USING (num)
WHERE memories.num > :above AND memories.num < :below AND +memories.agent = :agent AND status = 'active' GROUP BY scope;

-- name: largest
-- The active memories of an agent of more than so many tokens, the longest first.
SELECT chain, kind, scope, scope_value, micro, full_tokens FROM memories CROSS JOIN texts USING (num)
WHERE memories.num > :above AND memories.num < :below AND +memories.agent = :agent AND status = 'active' AND full_tokens > :least
ORDER BY full_tokens DESC, chain LIMIT :most;
