-- Every statement about the lives of memories: stages, counts, and the log of what happened to them.

-- name: standing
-- The stage of a memory, and what is counted of it.
SELECT stage, confirmations, successes, failures, triggers, false_alarms, renewed_at
FROM memories LEFT JOIN lives ON lives.agent = memories.agent AND lives.num = memories.num
WHERE memories.agent = %(agent)s AND memories.num = %(num)s;

-- name: set_stage
-- Move a memory to another stage, with what that means for finding and trusting it.
UPDATE memories SET stage = %(stage)s, status = %(status)s, confidence = %(confidence)s
WHERE num = %(num)s AND agent = %(agent)s;

-- name: set_life
-- Store what is counted of a memory.
INSERT INTO lives (num, agent, confirmations, successes, failures, triggers, false_alarms, renewed_at)
VALUES (
    %(num)s, %(agent)s, %(confirmations)s, %(successes)s, %(failures)s, %(triggers)s, %(false_alarms)s,
    %(renewed_at)s
)
ON CONFLICT (agent, num) DO UPDATE SET
    confirmations = excluded.confirmations, successes = excluded.successes, failures = excluded.failures,
    triggers = excluded.triggers, false_alarms = excluded.false_alarms, renewed_at = excluded.renewed_at;

-- name: carry_life
-- The next version of a memory goes on with what was counted of it.
UPDATE lives SET num = %(new)s WHERE num = %(num)s AND agent = %(agent)s;

-- name: count_life_event
-- Give the next event its number.
UPDATE states SET lived = lived + 1 WHERE agent = %(agent)s;

-- name: insert_life_event
-- Note what happened to a memory, under the number given last.
INSERT INTO life_events (agent, number, num, sign, stage_before, stage_after, cause, by, other, at)
SELECT states.agent, lived, %(num)s, %(sign)s, %(before)s, %(after)s, %(cause)s,
       coalesce((SELECT agents.agent FROM agents WHERE name = %(by)s), states.agent), %(other)s, %(at)s
FROM states WHERE states.agent = %(agent)s;

-- name: same_life_events
-- How many events like one are noted of a memory.
SELECT count(*) FROM life_events
WHERE agent = %(agent)s AND num = %(num)s AND sign = %(sign)s AND stage_before = %(before)s
  AND stage_after = %(after)s AND cause = %(cause)s AND at = %(at)s;

-- name: life_events
-- What happened to some memories after the event `since`, in order.
SELECT number, memories.chain, memories.version, sign, stage_before, stage_after, cause, agents.name, others.chain,
       life_events.at
FROM life_events
JOIN memories ON memories.agent = life_events.agent AND memories.num = life_events.num
JOIN agents ON agents.agent = life_events.by
LEFT JOIN memories AS others ON others.agent = life_events.agent AND others.num = life_events.other
WHERE life_events.agent = %(agent)s AND number > %(since)s
  AND (%(nums)s::text IS NULL OR life_events.num = ANY (ARRAY(SELECT unnest(numbers_of(%(nums)s::text)))))
ORDER BY number LIMIT nullif(%(limit)s::bigint, -1);

-- name: merge_memory
-- Another memory, which says the same, stands in this memory's place.
UPDATE memories SET superseded_by = %(superseded_by)s, updated_at = %(updated_at)s
WHERE num = %(num)s AND agent = %(agent)s;

-- name: reword_texts
-- Store other renditions and metadata of a memory.
UPDATE texts SET micro = %(micro)s, micro_tokens = %(micro_tokens)s, summary = %(summary)s,
    summary_tokens = %(summary_tokens)s, full_text = %(full)s, full_tokens = %(full_tokens)s,
    counter = %(counter)s, metadata = %(metadata)s
WHERE num = %(num)s AND agent = %(agent)s;

-- name: merged_into
-- All versions of the memories that were merged into a memory, as `versions` has them.
SELECT others.num, others.id, 0, others.version
FROM memories AS merged JOIN memories AS others ON others.agent = merged.agent AND others.chain = merged.chain
WHERE merged.agent = %(agent)s AND merged.superseded_by = %(id)s
  AND merged.chain <> (SELECT chain FROM memories WHERE agent = %(agent)s AND id = %(id)s);
