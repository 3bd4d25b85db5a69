-- The last four bytes of a memory's id, its short id. A column, since a policy keeps the comparison of an expression
-- that isn't leakproof from an index.
ALTER TABLE memories ADD COLUMN short_id bytea GENERATED ALWAYS AS (substr(chain, 13)) STORED;

CREATE INDEX memories_by_short_id ON memories (agent, short_id);
