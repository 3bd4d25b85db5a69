-- Agents hold memories in working sets, and every move is noted.

-- The number of the latest move in any of the agent's sets.
ALTER TABLE agents ADD COLUMN moved INTEGER NOT NULL DEFAULT 0;

-- What an agent holds in mind: named sets of its memories. `moved` numbers the set's latest move.
CREATE TABLE working_sets (
    working_set INTEGER PRIMARY KEY,
    agent       INTEGER NOT NULL REFERENCES agents (agent),
    name        TEXT    NOT NULL,
    max_tokens  INTEGER NOT NULL CHECK (max_tokens >= 0),
    moved       INTEGER NOT NULL DEFAULT 0,
    UNIQUE (agent, name)
) STRICT;

-- The memories of each set; `place` is the number of the move that added or touched it last.
CREATE TABLE held (
    working_set INTEGER NOT NULL REFERENCES working_sets (working_set) ON DELETE CASCADE,
    num         INTEGER NOT NULL REFERENCES memories (num) ON DELETE CASCADE,
    agent       INTEGER NOT NULL,
    place       INTEGER NOT NULL,
    entered_at  INTEGER NOT NULL,
    touched_at  INTEGER NOT NULL,
    touches     INTEGER NOT NULL,
    pinned      INTEGER NOT NULL CHECK (pinned IN (0, 1)),
    recalled    INTEGER NOT NULL CHECK (recalled IN (0, 1)),
    PRIMARY KEY (working_set, num)
) STRICT, WITHOUT ROWID;

CREATE INDEX held_by_memory ON held (num);

-- What became of working sets, without any text: other processes follow by it. `id` is the memory's, NULL
-- where the move is the set's own, and stays when the memory is purged, as the record that it was there;
-- `former` is the version that a revision replaced. `by` is the agent who moved it, which in a shared
-- set isn't the one that owns it.
CREATE TABLE moves (
    agent       INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    working_set INTEGER NOT NULL,
    what        TEXT    NOT NULL CHECK (what IN (
        'add', 'touch', 'pin', 'unpin', 'evict', 'remove', 'clear', 'forget', 'purge', 'revise', 'resize'
    )),
    id          BLOB    CHECK (length(id) = 16),
    former      BLOB    CHECK (length(former) = 16),
    by          INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (agent, number)
) STRICT, WITHOUT ROWID;
