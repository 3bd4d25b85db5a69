-- Messages have forward records, as memories do; those of messages that are there are made when they are needed.

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
