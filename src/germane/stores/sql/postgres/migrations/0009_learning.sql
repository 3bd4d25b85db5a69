-- What was learned from conversations, by run. `run` is JSON with the proposals, the decisions on them and the answers
-- of models; what it has of a purged memory or message is removed in the same transaction. `through` is the number of
-- the last message of the session that was read; `session` is NULL for messages that aren't stored.
CREATE TABLE learning_runs (
    agent   bigint NOT NULL REFERENCES agents (agent),
    number  bigint NOT NULL,
    id      bytea  NOT NULL CHECK (length(id) = 16),
    session text COLLATE "C",
    through bigint NOT NULL,
    run     text COLLATE "C" NOT NULL,
    PRIMARY KEY (agent, number)
) {partitioned};

CREATE UNIQUE INDEX learning_runs_by_id ON learning_runs (agent, id);

ALTER TABLE learning_runs ENABLE ROW LEVEL SECURITY;

CREATE POLICY entered ON learning_runs USING (agent = (SELECT entered()));
