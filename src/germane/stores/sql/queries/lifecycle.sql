-- The lives of memories: stages, counts, and the log of what happened to them.

-- name: standing
-- The stages of memories, and what is counted of each.
SELECT memories.num, stage, confirmations, successes, failures, triggers, false_alarms, renewed_at
FROM {each :nums} {join} memories ON {+}memories.agent = :agent AND memories.num = asked.value
    LEFT JOIN lives ON lives.agent = memories.agent AND lives.num = memories.num;

-- name: set_stage
-- Move a memory to another stage, with what that means for finding and trusting it.
UPDATE memories SET stage = :stage, status = :status, confidence = :confidence
WHERE num = :num AND agent = :agent;

-- name: set_life
-- Store what is counted of a memory.
INSERT INTO lives ({columns lives})
VALUES (:num, :agent, :confirmations, :successes, :failures, :triggers, :false_alarms, :renewed_at)
ON CONFLICT ({key}) DO UPDATE SET
    confirmations = excluded.confirmations, successes = excluded.successes, failures = excluded.failures,
    triggers = excluded.triggers, false_alarms = excluded.false_alarms, renewed_at = excluded.renewed_at;

-- name: carry_life
-- The next version of a memory goes on with what was counted of it.
UPDATE lives SET num = :new WHERE num = :num AND agent = :agent;

-- name: count_life_event
-- Give the next event its number.
UPDATE {states} SET lived = lived + 1 WHERE agent = :agent;

-- name: insert_life_event
-- Note what happened to a memory, under the number given last.
INSERT INTO life_events ({columns life_events})
SELECT {states}.agent, lived, :num, :sign, :before, :after, :cause,
       coalesce((SELECT agents.agent FROM agents WHERE name = :by), {states}.agent), :other, :at
FROM {states} WHERE {states}.agent = :agent;

-- name: same_life_events
-- How many events like one are noted of a memory.
SELECT count(*) FROM life_events
WHERE agent = :agent AND num = :num AND sign = :sign AND stage_before = :before
  AND stage_after = :after AND cause = :cause AND at = :at;

-- name: life_events
-- What happened to some memories after the event :since, in order.
SELECT number, memories.chain, memories.version, sign, stage_before, stage_after, cause, agents.name, others.chain,
       life_events.at
FROM life_events
{join} memories ON memories.agent = life_events.agent AND memories.num = life_events.num
{join} agents ON agents.agent = life_events.by
LEFT JOIN memories AS others ON others.agent = life_events.agent AND others.num = life_events.other
WHERE life_events.agent = :agent AND number > :since AND (:nums::text IS NULL OR life_events.num
    {sqlite: IN (SELECT value FROM json_each(:nums))}{postgres: = ANY (ARRAY(SELECT unnest(numbers_of(:nums::text))))})
ORDER BY number {limit};
