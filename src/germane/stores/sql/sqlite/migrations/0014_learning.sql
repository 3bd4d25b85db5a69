-- What was learned from conversations, by run. `run` is JSON with the proposals, the decisions on them and the answers
-- of models; what it has of a purged memory or message is removed in the same transaction. `through` is the number of
-- the last message of the session that was read; `session` is NULL for messages that aren't stored.
CREATE TABLE learning_runs (
    agent   INTEGER NOT NULL REFERENCES agents (agent),
    number  INTEGER NOT NULL,
    id      BLOB    NOT NULL CHECK (length(id) = 16),
    session TEXT,
    through INTEGER NOT NULL,
    run     TEXT    NOT NULL,
    PRIMARY KEY (agent, number)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX learning_runs_by_id ON learning_runs (agent, id);
