-- The memories whose ids end with given bytes: a short id is the last eight hexadecimal digits, four bytes.
CREATE INDEX memories_by_short_id ON memories (agent, substr(chain, 13));
