-- Assemblies can be recorded, to be repeated, compared and measured.

-- What was assembled, without any text of a memory. `asked` is JSON of what it takes to repeat it; the words of
-- the question are in it, and they are the caller's. `context` is the key that feedback names it by. `sha256` is
-- of the text, and NULL once a memory that stood in it is purged: a hash of few words can be guessed.
CREATE TABLE assemblies (
    agent      INTEGER NOT NULL REFERENCES agents (agent),
    number     INTEGER NOT NULL,
    id         BLOB    NOT NULL CHECK (length(id) = 16),
    at         INTEGER NOT NULL,
    context    BLOB    NOT NULL CHECK (length(context) = 16),
    sha256     BLOB    CHECK (length(sha256) = 32),
    tokens     INTEGER NOT NULL,
    candidates INTEGER NOT NULL,
    asked      TEXT    NOT NULL,
    PRIMARY KEY (agent, number)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX assemblies_by_id ON assemblies (agent, id);

-- The candidates of each, by rank. `num` may be a memory of a space that took part.
CREATE TABLE assembled (
    agent    INTEGER NOT NULL,
    number   INTEGER NOT NULL,
    place    INTEGER NOT NULL,
    num      INTEGER NOT NULL REFERENCES memories (num) ON DELETE CASCADE,
    section  TEXT    NOT NULL,
    score    REAL    NOT NULL,
    parts    TEXT    NOT NULL,
    level    TEXT,
    reason   TEXT,
    tokens   INTEGER NOT NULL,
    short_by INTEGER NOT NULL,
    pinned   INTEGER NOT NULL CHECK (pinned IN (0, 1)),
    PRIMARY KEY (agent, number, place),
    FOREIGN KEY (agent, number) REFERENCES assemblies (agent, number) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX assembled_by_memory ON assembled (num);

-- In the transaction of the purge, however the memory goes.
CREATE TRIGGER assembled_purged AFTER DELETE ON assembled WHEN old.reason IS NULL
BEGIN
    UPDATE assemblies SET sha256 = NULL WHERE agent = old.agent AND number = old.number;
END;
