-- The key of each agent's data in an encrypted store, encrypted itself by the key of the store. Without its row nothing
-- of the agent can be read any more. They are few, so that the table has no partitions.
CREATE TABLE data_keys (
    agent   bigint PRIMARY KEY REFERENCES agents (agent) ON DELETE CASCADE,
    wrapped bytea  NOT NULL
);

ALTER TABLE data_keys ENABLE ROW LEVEL SECURITY;

CREATE POLICY entered ON data_keys USING (agent = (SELECT entered()));
