-- What was used is counted once for each context, and an agent may learn from it.

-- Whether the agent learns, and the number of the latest judgement of what it was shown.
ALTER TABLE agents ADD COLUMN learning INTEGER NOT NULL DEFAULT 0 CHECK (learning IN (0, 1));
ALTER TABLE agents ADD COLUMN judged INTEGER NOT NULL DEFAULT 0;

-- What became of memories that contexts showed, without any text: `context` is a hash, `given` the
-- judgement's number, `parts` those of the score as JSON, or NULL where nothing is learned from it.
CREATE TABLE shown (
    agent   INTEGER NOT NULL,
    context BLOB    NOT NULL CHECK (length(context) = 16),
    num     INTEGER NOT NULL REFERENCES memories (num) ON DELETE CASCADE,
    given   INTEGER NOT NULL,
    used    INTEGER NOT NULL CHECK (used IN (0, 1)),
    parts   TEXT,
    PRIMARY KEY (agent, context, num)
) STRICT, WITHOUT ROWID;

CREATE INDEX shown_by_memory ON shown (num);

CREATE INDEX shown_by_age ON shown (agent, given);
