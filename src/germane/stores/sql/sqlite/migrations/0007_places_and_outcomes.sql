-- Memories are found by where they apply, and by how work turned out with them.

-- Where a memory stands besides its scope: path scopes, lists of patterns, further scopes; so that a filter
-- reads the few different places of an agent, and not the many memories.
CREATE TABLE places (
    agent INTEGER NOT NULL,
    place TEXT    NOT NULL,
    num   INTEGER NOT NULL REFERENCES memories (num) ON DELETE CASCADE,
    PRIMARY KEY (agent, place, num)
) STRICT, WITHOUT ROWID;

CREATE INDEX places_by_memory ON places (num);

INSERT INTO places (agent, place, num)
SELECT agent, 'path:' || scope_value, num FROM memories WHERE scope = 'path';

INSERT INTO places (agent, place, num)
SELECT agent, 'paths:' || json_extract(metadata, '$.paths'), num FROM texts
WHERE json_type(metadata, '$.paths') = 'array' AND json_array_length(metadata, '$.paths') > 0
  AND NOT EXISTS (SELECT 1 FROM json_each(texts.metadata, '$.paths') WHERE type <> 'text');

-- The number of the latest outcome told.
ALTER TABLE agents ADD COLUMN attested INTEGER NOT NULL DEFAULT 0;

-- How work turned out with what contexts showed, without any text: `worth` is 1 where it succeeded and 0
-- where it failed, `weight` what that says of this memory, `given` the outcome's number.
CREATE TABLE outcomes (
    agent   INTEGER NOT NULL,
    context BLOB    NOT NULL CHECK (length(context) = 16),
    num     INTEGER NOT NULL REFERENCES memories (num) ON DELETE CASCADE,
    given   INTEGER NOT NULL,
    worth   REAL    NOT NULL CHECK (worth BETWEEN 0 AND 1),
    weight  REAL    NOT NULL CHECK (weight BETWEEN 0 AND 1),
    at      INTEGER NOT NULL,
    PRIMARY KEY (agent, context, num)
) STRICT, WITHOUT ROWID;

CREATE INDEX outcomes_by_memory ON outcomes (num);

CREATE INDEX outcomes_by_age ON outcomes (agent, given);
