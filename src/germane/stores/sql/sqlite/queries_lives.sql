-- Every statement about the lives of memories: stages, counts, and the log of what happened to them.

-- name: standing
-- The stage of a memory, and what is counted of it.
SELECT stage, confirmations, successes, failures, triggers, false_alarms, renewed_at
FROM memories LEFT JOIN lives ON lives.num = memories.num
WHERE memories.agent = :agent AND memories.num = :num;

-- name: set_stage
-- Move a memory to another stage, with what that means for finding and trusting it.
UPDATE memories SET stage = :stage, status = :status, confidence = :confidence
WHERE num = :num AND agent = :agent;

-- name: set_life
-- Store what is counted of a memory.
INSERT INTO lives (num, agent, confirmations, successes, failures, triggers, false_alarms, renewed_at)
VALUES (:num, :agent, :confirmations, :successes, :failures, :triggers, :false_alarms, :renewed_at)
ON CONFLICT (num) DO UPDATE SET
    confirmations = excluded.confirmations, successes = excluded.successes, failures = excluded.failures,
    triggers = excluded.triggers, false_alarms = excluded.false_alarms, renewed_at = excluded.renewed_at;

-- name: carry_life
-- The next version of a memory goes on with what was counted of it.
UPDATE lives SET num = :new WHERE num = :num AND agent = :agent;

-- name: count_life_event
-- Give the next event its number.
UPDATE agents SET lived = lived + 1 WHERE agent = :agent;

-- name: insert_life_event
-- Note what happened to a memory, under the number given last.
INSERT INTO life_events (agent, number, num, sign, stage_before, stage_after, cause, by, other, at)
VALUES (
    :agent, (SELECT lived FROM agents WHERE agents.agent = :agent), :num, :sign, :before, :after, :cause,
    coalesce((SELECT agents.agent FROM agents WHERE name = :by), :agent), :other, :at
);

-- name: same_life_events
-- How many events like one are noted of a memory.
SELECT count(*) FROM life_events
WHERE agent = :agent AND num = :num AND sign = :sign AND stage_before = :before AND stage_after = :after
  AND cause = :cause AND at = :at;

-- name: life_events
-- What happened to some memories after the event :since, in order.
SELECT number, memories.chain, memories.version, sign, stage_before, stage_after, cause, agents.name, others.chain,
       life_events.at
FROM life_events
CROSS JOIN memories ON memories.num = life_events.num
CROSS JOIN agents ON agents.agent = life_events.by
LEFT JOIN memories AS others ON others.num = life_events.other
WHERE life_events.agent = :agent AND number > :since
  AND (:nums IS NULL OR life_events.num IN (SELECT value FROM json_each(:nums)))
ORDER BY number LIMIT :limit;

-- name: merge_memory
-- Another memory, which says the same, stands in this memory's place.
UPDATE memories SET superseded_by = :superseded_by, updated_at = :updated_at
WHERE num = :num AND agent = :agent;

-- name: reword_texts
-- Store other renditions and metadata of a memory.
UPDATE texts SET micro = :micro, micro_tokens = :micro_tokens, summary = :summary,
    summary_tokens = :summary_tokens, full_text = :full, full_tokens = :full_tokens, counter = :counter,
    metadata = :metadata
WHERE num = :num AND agent = :agent;

-- name: merged_into
-- All versions of the memories that were merged into a memory, as `versions` has them.
SELECT others.num, others.id, 0, others.version
FROM memories AS merged CROSS JOIN memories AS others ON others.agent = merged.agent AND others.chain = merged.chain
WHERE merged.agent = :agent AND merged.superseded_by = :id AND others.agent = :agent
  AND merged.chain <> (SELECT chain FROM memories WHERE agent = :agent AND id = :id);
