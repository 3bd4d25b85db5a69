-- Queries about where memories apply, and about how work turned out with them.

-- name: insert_place
-- Note where a memory stands besides its scope; two of its places may be written alike.
INSERT INTO places (agent, place, num) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING;

-- name: places
-- The different places of an agent's memories. Each is looked up after the one before, however many share it.
WITH RECURSIVE known (place) AS (
    SELECT min(place) FROM places WHERE agent = %(agent)s
    UNION ALL
    SELECT (SELECT min(places.place) FROM places WHERE agent = %(agent)s AND places.place > known.place)
    FROM known WHERE known.place IS NOT NULL
)
SELECT place FROM known WHERE place IS NOT NULL;

-- name: where_applies_to
-- A condition for {filter}.
AND (
    (scope, scope_value) IN (VALUES %(applies_to)s)
    OR num IN (
        SELECT places.num FROM places
        WHERE places.agent = %(agent)s AND places.place = ANY (texts_of(%(places)s))
    )
)

-- name: insert_outcome
-- Store how work turned out with a memory that a context showed; the latest word on that context stands.
INSERT INTO outcomes (agent, context, num, given, worth, weight, at)
SELECT states.agent, %(context)s, %(num)s, attested, %(worth)s, %(weight)s, %(at)s FROM states
WHERE states.agent = %(agent)s
ON CONFLICT (agent, context, num) DO UPDATE SET
    given = excluded.given, worth = excluded.worth, weight = excluded.weight, at = excluded.at;

-- name: attested
-- The number of an agent's latest outcome.
SELECT attested FROM states WHERE agent = %(agent)s;

-- name: count_outcome
-- Give the next outcome its number, or note that some are gone.
UPDATE states SET attested = attested + 1 WHERE agent = %(agent)s;

-- name: outcome
-- What is known of a memory in a context.
SELECT worth, weight FROM outcomes WHERE agent = %(agent)s AND context = %(context)s AND num = %(num)s;

-- name: remove_old_outcomes
-- Remove all but the latest outcomes of an agent.
DELETE FROM outcomes
WHERE agent = %(agent)s
  AND given <= (SELECT attested FROM states WHERE states.agent = %(agent)s) - %(most)s;

-- name: outcomes
-- How work turned out with an agent's memories, in a total order.
SELECT context, chain, version, superseded_by, worth, weight, at FROM outcomes JOIN memories USING (agent, num)
WHERE outcomes.agent = %(agent)s ORDER BY context, memories.id;

-- name: tokens_by_scope
-- What the active memories of an agent take, by the name of their scope.
SELECT scope, sum(full_tokens)::bigint FROM memories JOIN texts USING (agent, num)
WHERE memories.num > %(above)s AND memories.num < %(below)s AND memories.agent = %(agent)s AND status = 'active'
GROUP BY scope ORDER BY scope;

-- name: largest
-- The active memories of an agent of more than so many tokens, the longest first.
SELECT chain, kind, scope, scope_value, micro, full_tokens FROM memories JOIN texts USING (agent, num)
WHERE memories.num > %(above)s AND memories.num < %(below)s AND memories.agent = %(agent)s AND status = 'active'
  AND full_tokens > %(least)s
ORDER BY full_tokens DESC, chain LIMIT %(most)s;
