-- Agents keep the logs of their conversations.

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

-- Texts that stand outside any window.
CREATE TABLE anchors (
    conversation INTEGER NOT NULL REFERENCES conversations (conversation) ON DELETE CASCADE,
    agent        INTEGER NOT NULL,
    name         TEXT    NOT NULL,
    text         TEXT    NOT NULL,
    PRIMARY KEY (conversation, name)
) STRICT, WITHOUT ROWID;
