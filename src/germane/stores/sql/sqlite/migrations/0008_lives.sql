-- Memories live: they stand at stages, and what moves them is counted and noted.

-- The stage by the lifecycle of its kind; NULL where that has none, and where nothing has happened to a memory
-- that was stored before there were stages.
ALTER TABLE memories ADD COLUMN stage TEXT;

-- The number of the latest event in the life of a memory.
ALTER TABLE agents ADD COLUMN lived INTEGER NOT NULL DEFAULT 0;

-- What is counted of a memory, where anything is; `false_alarms` are among the `triggers`.
CREATE TABLE lives (
    num           INTEGER PRIMARY KEY REFERENCES memories (num) ON DELETE CASCADE,
    agent         INTEGER NOT NULL,
    confirmations INTEGER NOT NULL,
    successes     INTEGER NOT NULL,
    failures      INTEGER NOT NULL,
    triggers      INTEGER NOT NULL,
    false_alarms  INTEGER NOT NULL,
    renewed_at    INTEGER
) STRICT;

-- What happened to memories, by whom and why, without any text. `other` had a part in it.
CREATE TABLE life_events (
    agent        INTEGER NOT NULL,
    number       INTEGER NOT NULL,
    num          INTEGER NOT NULL REFERENCES memories (num) ON DELETE CASCADE,
    sign         TEXT    NOT NULL,
    stage_before TEXT    NOT NULL,
    stage_after  TEXT    NOT NULL,
    cause        TEXT    NOT NULL,
    by           INTEGER NOT NULL,
    other        INTEGER REFERENCES memories (num) ON DELETE SET NULL,
    at           INTEGER NOT NULL,
    PRIMARY KEY (agent, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX life_events_by_memory ON life_events (num);

CREATE INDEX life_events_by_other ON life_events (other);
