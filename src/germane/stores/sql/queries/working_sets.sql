-- Working sets, what they hold, and what became of them.

-- name: held_state
-- An owner's numbers, and those of one working set, which may not be there.
SELECT agents.agent, {states}.seq, {states}.moved, working_set, max_tokens, working_sets.moved AS set_moved
FROM agents {postgres: LEFT JOIN states ON states.agent = number_of(:owner)}
    LEFT JOIN working_sets ON working_sets.name = :set_name
        AND working_sets.agent = {sqlite: agents.agent}{postgres: number_of(:owner)}
WHERE agents.name = :owner;

-- name: moved
-- The number of an owner's latest move.
SELECT moved FROM {states} WHERE {state_of :owner};

-- name: last_move
-- The same by the owner's number.
SELECT moved FROM {states} WHERE agent = :agent;

-- name: add_working_set
-- Give an owner a working set of a new name. No number is used up where there is one.
INSERT INTO working_sets (agent, name, max_tokens)
SELECT :agent::bigint, :set_name::text, :max_tokens::bigint
WHERE NOT EXISTS (SELECT 1 FROM working_sets WHERE agent = :agent AND name = :set_name)
ON CONFLICT (agent, name) DO NOTHING;

-- name: working_sets
-- The names of an owner's working sets.
SELECT name FROM working_sets WHERE agent = :agent ORDER BY name;

-- name: resize_set
-- Let a working set hold more or less.
UPDATE working_sets SET max_tokens = :max_tokens WHERE working_set = :working_set AND agent = :agent;

-- name: insert_move
-- Note what becomes of a working set, before it does.
INSERT INTO moves ({columns moves}) VALUES ({values moves});

-- name: advance_moves
-- Move the owner's number of moves at the end of a transaction.
UPDATE {states} SET moved = :number WHERE agent = :agent;

-- name: advance_set
-- Move a working set's number with it.
UPDATE working_sets SET moved = :number WHERE working_set = :working_set AND agent = :agent;

-- name: prune_touches
-- Drop touches that are so long past that nobody follows by them; what was taken in and out stays noted.
DELETE FROM moves
WHERE agent = :agent AND number > :above AND number <= :below AND what = 'touch';

-- name: moves
-- What became of an owner's working sets since a move.
SELECT number, working_sets.name, what, id, former, agents.name, at
FROM moves {join} working_sets USING (agent, working_set) {join} agents ON agents.agent = moves.by
WHERE moves.agent = :agent AND number > :since ORDER BY number {limit};

-- name: memory_to_hold
-- What decides whether a memory can be held.
SELECT chain, status FROM memories WHERE agent = :agent AND num = :num;

-- name: held_entry
-- Whether a working set holds a memory, and if so whether it is pinned there.
SELECT num, pinned FROM held WHERE agent = :agent AND working_set = :working_set AND num = :num;

-- name: held_entries
-- What a working set holds, the one touched longest ago first.
SELECT held.num, chain, held.pinned FROM held {join} memories USING ({key})
WHERE held.agent = :agent AND working_set = :working_set ORDER BY place;

-- name: sets_holding
-- Which working sets hold a memory.
SELECT working_set FROM held WHERE num = :num AND agent = :agent ORDER BY working_set;

-- name: insert_held
-- Take a memory into a working set.
INSERT INTO held (agent, working_set, num, place, entered_at, touched_at, touches, pinned, recalled)
VALUES (:agent, :working_set, :num, :place, :at, :at, 0, :pinned, :recalled);

-- name: touch_held
-- Move a held memory to the end; a clock that runs backwards moves no time back.
UPDATE held SET place = :place, touched_at = {greatest}(touched_at, :at), touches = touches + 1,
    pinned = {greatest}(pinned, :pinned), recalled = {greatest}(recalled, :recalled)
WHERE working_set = :working_set AND num = :num AND agent = :agent;

-- name: pin_held
-- Pin a held memory, or unpin it.
UPDATE held SET pinned = :pinned
WHERE working_set = :working_set AND num = :num AND agent = :agent;

-- name: replace_held
-- Give a memory's place in a working set to its next version.
UPDATE held SET num = :new WHERE working_set = :working_set AND num = :num AND agent = :agent;

-- name: remove_held
-- Take a memory out of a working set.
DELETE FROM held WHERE working_set = :working_set AND num = :num AND agent = :agent;

-- name: held_rows
-- All of a working set.
SELECT num, place, entered_at, touched_at, touches, pinned, recalled FROM held
WHERE agent = :agent AND working_set = :working_set;

-- name: held_rows_moved
-- Which memories of a working set were moved since a cache last looked, with what it holds of them now.
SELECT DISTINCT moves.id, held.num, place, entered_at, touched_at, touches, pinned, recalled
FROM moves LEFT JOIN held ON held.agent = :agent AND held.working_set = moves.working_set AND held.num IN (
    SELECT memories.num FROM memories WHERE memories.agent = :agent AND memories.id = moves.id
    UNION ALL
    SELECT memories.num FROM memories
    WHERE memories.agent = :agent AND memories.chain = moves.id AND memories.version > 1
)
WHERE moves.agent = :agent AND number > :since AND moves.working_set = :working_set
  AND moves.id IS NOT NULL;

-- name: remove_working_sets
-- Remove an agent's working sets with all that they hold.
DELETE FROM working_sets WHERE agent = :agent;
