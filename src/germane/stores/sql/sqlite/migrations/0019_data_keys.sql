-- The key of each agent's data in an encrypted store, encrypted itself by the key of the store. Without its row nothing
-- of the agent can be read any more.
CREATE TABLE data_keys (
    agent   INTEGER PRIMARY KEY REFERENCES agents (agent) ON DELETE CASCADE,
    wrapped BLOB    NOT NULL
) STRICT;
