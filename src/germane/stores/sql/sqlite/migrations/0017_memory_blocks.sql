-- What a search reads of many memories as three values: their columns, their words and their vectors. The memories are those
-- whose nums are greater than `above` and not greater than `num`, the last one's; see `memory_blocks.py`.
CREATE TABLE memory_blocks (
    num      INTEGER PRIMARY KEY REFERENCES memories (num) ON DELETE CASCADE,
    agent    INTEGER NOT NULL,
    above    INTEGER NOT NULL,
    memories INTEGER NOT NULL,
    entries  BLOB    NOT NULL,
    words    BLOB    NOT NULL,
    vectors  BLOB
) STRICT;

CREATE INDEX memories_unusual ON memories (agent, num)
WHERE status <> 'active' OR superseded_by IS NOT NULL OR outcome = 'abandoned' OR expires_at IS NOT NULL;
