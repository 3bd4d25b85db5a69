-- What a search reads of many memories as three values: their columns, their words and their vectors. The memories are those
-- whose nums are greater than `above` and not greater than `num`, the last one's; see `memory_blocks.py`.
CREATE TABLE memory_blocks (
    num      bigint NOT NULL,
    agent    bigint NOT NULL,
    above    bigint NOT NULL,
    memories bigint NOT NULL,
    entries  bytea  NOT NULL,
    words    bytea  NOT NULL,
    vectors  bytea,
    PRIMARY KEY (agent, num),
    FOREIGN KEY (agent, num) REFERENCES memories (agent, num) ON DELETE CASCADE
) {partitioned};

-- They are read whole, and hardly get smaller.
ALTER TABLE memory_blocks ALTER COLUMN entries SET STORAGE EXTERNAL, ALTER COLUMN words SET STORAGE EXTERNAL,
    ALTER COLUMN vectors SET STORAGE EXTERNAL;

ALTER TABLE memory_blocks ENABLE ROW LEVEL SECURITY;

CREATE POLICY entered ON memory_blocks USING (agent = (SELECT entered()));

CREATE INDEX memories_unusual ON memories (agent, num)
WHERE status <> 'active' OR superseded_by IS NOT NULL OR outcome = 'abandoned' OR expires_at IS NOT NULL;
