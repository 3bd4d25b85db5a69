-- 256 messages of a conversation as an index reads them, beside the record of the last of them; see `message_columns`.
ALTER TABLE message_lex ADD COLUMN packed bytea;

CREATE INDEX message_lex_packed ON message_lex (agent, num) WHERE packed IS NOT NULL;

CREATE INDEX messages_kept ON messages (agent, num) WHERE hidden = 0 AND (group_name IS NULL OR role = 'system');
