-- Schema version 10.
-- The baseline: a new store gets it, and then every later step, a file such as `migrations/0011_colours.sql` beside this
-- one. A store of an older version is refused, so a step that others may have seen is never changed.
--
-- Numbers inside, ids outside: `agent` stands for an agent's name. `num` stands for a memory's id; it is
-- the agent's number shifted left by 40 bits plus the change number under which the memory was stored.
-- So an agent's rows lie together, are sorted by when they were written, and no num is ever used twice.
-- Times are microseconds since 1970 in UTC. Ids are the 16 bytes of a UUID, which sort as their text does.

-- Which migrations this store has seen.
CREATE TABLE migrations (
    number INTEGER PRIMARY KEY,
    name   TEXT NOT NULL
) STRICT;

-- What holds for the whole store: the tokenizer's version, and the model that made the vectors.
CREATE TABLE settings (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row per agent. `seq` is the number of its latest change; `memories` and `terms` count what is
-- stored and how many terms it has, so that a check can compare. `language` names the stemmer of its words,
-- `learning` says whether it learns from use, `judged` numbers the latest judgement of what it was shown,
-- `moved` the latest move in its working sets, `attested` the latest outcome told, and `lived` the latest event
-- in the life of a memory.
CREATE TABLE agents (
    agent    INTEGER PRIMARY KEY,
    name     TEXT    NOT NULL UNIQUE,
    seq      INTEGER NOT NULL DEFAULT 0,
    memories INTEGER NOT NULL DEFAULT 0,
    terms    INTEGER NOT NULL DEFAULT 0,
    language TEXT NOT NULL DEFAULT 'english',
    learning INTEGER NOT NULL DEFAULT 0 CHECK (learning IN (0, 1)),
    judged INTEGER NOT NULL DEFAULT 0,
    moved INTEGER NOT NULL DEFAULT 0,
    attested INTEGER NOT NULL DEFAULT 0,
    lived INTEGER NOT NULL DEFAULT 0
) STRICT;

-- What filters, orders and counters need of each memory; narrow, because counters change. `stage` is NULL where
-- its kind has no lifecycle.
CREATE TABLE memories (
    num           INTEGER PRIMARY KEY,
    agent         INTEGER NOT NULL REFERENCES agents (agent),
    id            BLOB    NOT NULL CHECK (length(id) = 16),
    kind          TEXT    NOT NULL,
    status        TEXT    NOT NULL CHECK (status IN ('active', 'superseded', 'archived', 'forgotten')),
    scope         TEXT    NOT NULL,
    scope_value   TEXT    NOT NULL,
    subject       TEXT,
    importance    REAL    NOT NULL CHECK (importance BETWEEN 0 AND 10),
    confidence    REAL    NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    outcome       TEXT,
    trust         TEXT    NOT NULL,
    source        TEXT,
    pinned        INTEGER NOT NULL CHECK (pinned IN (0, 1)),
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    chain         BLOB    NOT NULL CHECK (length(chain) = 16),
    version       INTEGER NOT NULL CHECK (version > 1 OR (version = 1 AND chain = id)),
    content_hash  TEXT    NOT NULL CHECK (content_hash <> ''),
    seen_count    INTEGER NOT NULL,
    access_count  INTEGER NOT NULL,
    accessed_at   INTEGER,
    supersedes    BLOB,
    superseded_by BLOB,
    stage         TEXT
) STRICT;

CREATE UNIQUE INDEX memories_by_id ON memories (agent, id);

-- Only heads are unique: a memory may be revised back to what an earlier version of it said.
CREATE UNIQUE INDEX memories_by_head ON memories (agent, content_hash) WHERE superseded_by IS NULL;

CREATE INDEX memories_by_past ON memories (agent, content_hash) WHERE superseded_by IS NOT NULL;

CREATE INDEX memories_by_time ON memories (agent, created_at, id);

-- First versions are found by their id, which is the chain's.
CREATE INDEX memories_by_chain ON memories (agent, chain) WHERE version > 1;

-- The texts of each memory. `full_text` is NULL where it is the content itself.
CREATE TABLE texts (
    num            INTEGER PRIMARY KEY REFERENCES memories (num) ON DELETE CASCADE,
    agent          INTEGER NOT NULL,
    content        TEXT    NOT NULL,
    micro          TEXT    NOT NULL,
    micro_tokens   INTEGER NOT NULL,
    summary        TEXT    NOT NULL,
    summary_tokens INTEGER NOT NULL,
    full_text      TEXT,
    full_tokens    INTEGER NOT NULL,
    counter        TEXT    NOT NULL,
    tags           TEXT    NOT NULL,
    metadata       TEXT    NOT NULL
) STRICT;

-- The tags again, one a row, so that a filter finds `a:b:c` by `a:b`.
CREATE TABLE tags (
    agent INTEGER NOT NULL,
    tag   TEXT    NOT NULL,
    num   INTEGER NOT NULL REFERENCES memories (num) ON DELETE CASCADE,
    PRIMARY KEY (agent, tag, num)
) STRICT, WITHOUT ROWID;

CREATE INDEX tags_by_memory ON tags (num);

-- Where a memory stands besides its scope: path scopes, lists of patterns, further scopes; so that a filter
-- reads the few different places of an agent, and not the many memories.
CREATE TABLE places (
    agent INTEGER NOT NULL,
    place TEXT    NOT NULL,
    num   INTEGER NOT NULL REFERENCES memories (num) ON DELETE CASCADE,
    PRIMARY KEY (agent, place, num)
) STRICT, WITHOUT ROWID;

CREATE INDEX places_by_memory ON places (num);

-- The forward record of each memory: its distinct terms' hashes (uint32, little endian, ascending), how
-- often each occurs (uint8), and how many terms there are in all. There is no dictionary of terms.
CREATE TABLE lex (
    num         INTEGER PRIMARY KEY REFERENCES memories (num) ON DELETE CASCADE,
    agent       INTEGER NOT NULL,
    length      INTEGER NOT NULL,
    hashes      BLOB    NOT NULL,
    frequencies BLOB    NOT NULL
) STRICT;

-- Embeddings: float16, little endian, of unit length.
CREATE TABLE vectors (
    num    INTEGER PRIMARY KEY REFERENCES memories (num) ON DELETE CASCADE,
    agent  INTEGER NOT NULL,
    vector BLOB    NOT NULL
) STRICT;

-- Memories that no model has embedded yet. One that is neither here nor among the vectors has been
-- embedded, and has no direction: none of its words are known to the model.
CREATE TABLE unembedded (
    num   INTEGER PRIMARY KEY REFERENCES memories (num) ON DELETE CASCADE,
    agent INTEGER NOT NULL
) STRICT;

-- What happened, without any text: caches catch up by it. A purged memory's num stays here as the
-- record that it is gone. num 0 stands for all of the agent's memories.
CREATE TABLE changes (
    agent INTEGER NOT NULL,
    seq   INTEGER NOT NULL,
    num   INTEGER NOT NULL,
    what  TEXT    NOT NULL CHECK (what IN ('insert', 'see', 'supersede', 'status', 'vector', 'purge', 'reindex')),
    PRIMARY KEY (agent, seq)
) STRICT, WITHOUT ROWID;

-- What became of memories that contexts showed, without any text: `context` is a hash, `given` the
-- judgement's number, `parts` those of the score as JSON, or NULL where nothing is learned from it.
CREATE TABLE shown (
    agent   INTEGER NOT NULL,
    context BLOB    NOT NULL CHECK (length(context) = 16),
    num     INTEGER NOT NULL REFERENCES memories (num) ON DELETE CASCADE,
    given   INTEGER NOT NULL,
    used    INTEGER NOT NULL CHECK (used IN (0, 1)),
    parts   TEXT,
    PRIMARY KEY (agent, context, num)
) STRICT, WITHOUT ROWID;

CREATE INDEX shown_by_memory ON shown (num);

CREATE INDEX shown_by_age ON shown (agent, given);

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

-- One row per conversation. `said` is the number of its latest message, and no number is used twice; `revision`
-- moves with what is hidden, put back or removed. `opened` is the group that was opened last. The number of a
-- conversation that was purged is never given again, so that no cache takes one for the other.
CREATE TABLE conversations (
    conversation INTEGER PRIMARY KEY AUTOINCREMENT,
    agent        INTEGER NOT NULL REFERENCES agents (agent),
    session      TEXT    NOT NULL,
    said         INTEGER NOT NULL DEFAULT 0,
    revision     INTEGER NOT NULL DEFAULT 0,
    opened       TEXT
) STRICT;

CREATE UNIQUE INDEX conversations_by_session ON conversations (agent, session);

-- What was said. `num` is the conversation's number shifted left by 32 bits plus the message's own; `group_name`
-- is NULL where it belongs to no group; `parts` are lists of JSON, and `hidden` is that of its group.
CREATE TABLE messages (
    num          INTEGER PRIMARY KEY,
    agent        INTEGER NOT NULL,
    conversation INTEGER NOT NULL REFERENCES conversations (conversation) ON DELETE CASCADE,
    id           BLOB    NOT NULL CHECK (length(id) = 16),
    group_name   TEXT,
    role         TEXT    NOT NULL CHECK (role IN ('system', 'user', 'assistant', 'tool')),
    provider     TEXT    NOT NULL,
    form         TEXT    NOT NULL,
    created_at   INTEGER,
    hidden       INTEGER NOT NULL CHECK (hidden IN (0, 1)),
    parts        TEXT    NOT NULL,
    extra        TEXT    NOT NULL
) STRICT;

CREATE UNIQUE INDEX messages_by_id ON messages (agent, id);

CREATE INDEX messages_by_group ON messages (conversation, group_name);

-- The forward record of each message that a question can find: those of groups, but for what the system says.
-- `rules` is a checksum (CRC-32) of what made it: what is read of a message, the tokenizer's name and the language. A
-- record that is missing, or that other rules made, is made anew by who needs it.
CREATE TABLE message_lex (
    num         INTEGER PRIMARY KEY REFERENCES messages (num) ON DELETE CASCADE,
    agent       INTEGER NOT NULL,
    rules       INTEGER NOT NULL,
    length      INTEGER NOT NULL,
    hashes      BLOB    NOT NULL,
    frequencies BLOB    NOT NULL
) STRICT;

-- Texts that stand outside any window.
CREATE TABLE anchors (
    conversation INTEGER NOT NULL REFERENCES conversations (conversation) ON DELETE CASCADE,
    agent        INTEGER NOT NULL,
    name         TEXT    NOT NULL,
    text         TEXT    NOT NULL,
    PRIMARY KEY (conversation, name)
) STRICT, WITHOUT ROWID;

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
