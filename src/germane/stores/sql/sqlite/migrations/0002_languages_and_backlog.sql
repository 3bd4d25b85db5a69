-- Each agent has a language, and what no model has embedded yet is listed.

ALTER TABLE agents ADD COLUMN language TEXT NOT NULL DEFAULT 'english';

-- Memories that no model has embedded yet. One that is neither here nor among the vectors has been
-- embedded, and has no direction: none of its words are known to the model.
CREATE TABLE unembedded (
    num   INTEGER PRIMARY KEY REFERENCES memories (num) ON DELETE CASCADE,
    agent INTEGER NOT NULL
) STRICT;

INSERT INTO unembedded (num, agent)
SELECT num, agent FROM memories WHERE num NOT IN (SELECT num FROM vectors);
