-- Runs that learned from conversations. The number of a run counts those of its agent.

-- name: next_run
-- The number that an agent's next run gets.
SELECT coalesce(max(number), 0) + 1 FROM learning_runs WHERE agent = :agent;

-- name: insert_run
-- Store a run.
INSERT INTO learning_runs ({columns learning_runs}) VALUES (:agent, :number, :id, :session, :through, :run);

-- name: rewrite_run
-- Store what became of a run, or what is left of it after a purge.
UPDATE learning_runs SET through = :through, run = :run WHERE agent = :agent AND number = :number;

-- name: run_by_id
-- A run by its id.
SELECT number, run FROM learning_runs WHERE agent = :agent AND id = :id;

-- name: runs
-- An agent's runs, the latest first; before the one numbered :before, of one session or of all.
SELECT number, run FROM learning_runs
WHERE agent = :agent AND (:before::bigint IS NULL OR number < :before::bigint)
  AND (:session::text IS NULL OR session = :session::text)
ORDER BY number DESC {limit};

-- name: learned_through
-- How far the messages of a session were read.
SELECT coalesce(max(through), 0) FROM learning_runs WHERE agent = :agent AND session = :session;

-- name: remove_runs
-- The runs of a session go with its messages.
DELETE FROM learning_runs WHERE agent = :agent AND session = :session;

-- name: reinstate_memory
-- A version becomes the current one again, as it stood before a later one replaced it.
UPDATE memories SET status = :status, superseded_by = NULL, updated_at = :updated_at, valid_until = :valid_until,
    confidence = :confidence, stage = :stage
WHERE num = :num AND agent = :agent;
