-- Agents share memories in spaces.

-- A space is an agent of its own, and `space` its number. `admits` is the most that an agent may give itself
-- by joining, NULL where members let others in. `joined` counts the joinings, `happened` numbers the latest
-- event. The row of a space that was disbanded stays, without members, so that no event has the number of
-- another.
CREATE TABLE spaces (
    space      INTEGER PRIMARY KEY REFERENCES agents (agent),
    admits     TEXT    CHECK (admits IN ('read', 'write')),
    created_at INTEGER NOT NULL,
    joined     INTEGER NOT NULL,
    happened   INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Who is in each space; `place` is the place in the order of joining. Who waits to take over may write.
CREATE TABLE members (
    space     INTEGER NOT NULL REFERENCES spaces (space),
    agent     INTEGER NOT NULL REFERENCES agents (agent),
    rights    TEXT    NOT NULL CHECK (rights IN ('read', 'write')),
    role      TEXT    NOT NULL CHECK (role = 'active' OR (role = 'passive' AND rights = 'write')),
    joined_at INTEGER NOT NULL,
    place     INTEGER NOT NULL,
    PRIMARY KEY (space, agent)
) STRICT, WITHOUT ROWID;

CREATE INDEX members_by_agent ON members (agent);

-- What happened in each space, without any text, until it is disbanded. `by` is the agent that did it and
-- `member` the one that it was done to. `num` and `id` name the memory; they stay when it is purged, as the
-- record that it was there. `former` is the version that a revision replaced. `held_in` names the working
-- set.
CREATE TABLE space_events (
    space   INTEGER NOT NULL,
    number  INTEGER NOT NULL,
    what    TEXT    NOT NULL,
    by      INTEGER NOT NULL,
    num     INTEGER,
    id      BLOB    CHECK (length(id) = 16),
    former  BLOB    CHECK (length(former) = 16),
    member  INTEGER,
    held_in TEXT,
    at      INTEGER,
    PRIMARY KEY (space, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX space_events_by_memory ON space_events (space, num) WHERE what IN ('remember', 'revise');
