-- What is known of the use of memories: judgements, and how work turned out.

-- name: learning
-- Whether an agent learns from use, and the number of its latest judgement.
SELECT learning, judged FROM {states} WHERE agent = :agent;

-- name: set_learning
-- Switch an agent's learning on or off.
UPDATE {states} SET learning = :on WHERE agent = :agent;

-- name: judgement
-- What is known of a memory in a context.
SELECT used, parts FROM shown WHERE agent = :agent AND context = :context AND num = :num;

-- name: count_judgement
-- Give the next judgement its number, so many after the latest, or note that some are gone.
UPDATE {states} SET judged = judged + :by WHERE agent = :agent;

-- name: insert_judgement
-- Store a judgement under its number; what was used once stays used, and parts stay those of the first time.
INSERT INTO shown (agent, context, num, given, used, parts)
SELECT {states}.agent, :context, :num, judged, :used, :parts FROM {states} WHERE {states}.agent = :agent
ON CONFLICT (agent, context, num) DO UPDATE SET given = excluded.given,
    used = {greatest}(shown.used, excluded.used), parts = coalesce(nullif(shown.parts, '{}'), excluded.parts);

-- name: remove_old_judgements
-- Remove all but the latest judgements of an agent.
DELETE FROM shown
WHERE agent = :agent
  AND given <= (SELECT judged FROM {states} WHERE {states}.agent = :agent) - :most;

-- name: examples
-- What an agent was told of use, in a total order; without parts there is nothing to learn from.
SELECT context, chain, version, superseded_by, used, parts, given FROM shown {join} memories USING ({key})
WHERE shown.agent = :agent AND parts IS NOT NULL ORDER BY context, memories.id;

-- name: count_examples
-- How many examples an agent has.
SELECT count(*) FROM shown WHERE agent = :agent AND parts <> '{}';

-- name: remove_unused
-- Remove what is known of memories that were not used.
DELETE FROM shown WHERE agent = :agent AND used = 0;

-- name: remove_parts
-- Leave nothing to learn from.
UPDATE shown SET parts = NULL WHERE agent = :agent AND parts IS NOT NULL;

-- name: insert_outcome
-- Store how work turned out with a memory that a context showed; the latest word on that context stands.
INSERT INTO outcomes ({columns outcomes})
SELECT {states}.agent, :context, :num, attested, :worth, :weight, :at FROM {states} WHERE {states}.agent = :agent
ON CONFLICT (agent, context, num) DO UPDATE SET
    given = excluded.given, worth = excluded.worth, weight = excluded.weight, at = excluded.at;

-- name: attested
-- The number of an agent's latest outcome.
SELECT attested FROM {states} WHERE agent = :agent;

-- name: count_outcome
-- Give the next outcome its number, or note that some are gone.
UPDATE {states} SET attested = attested + 1 WHERE agent = :agent;

-- name: outcome
-- What is known of a memory in a context.
SELECT worth, weight FROM outcomes WHERE agent = :agent AND context = :context AND num = :num;

-- name: remove_old_outcomes
-- Remove all but the latest outcomes of an agent.
DELETE FROM outcomes
WHERE agent = :agent
  AND given <= (SELECT attested FROM {states} WHERE {states}.agent = :agent) - :most;

-- name: outcomes
-- How work turned out with an agent's memories, in a total order.
SELECT context, chain, version, superseded_by, worth, weight, at FROM outcomes {join} memories USING ({key})
WHERE outcomes.agent = :agent ORDER BY context, memories.id;
