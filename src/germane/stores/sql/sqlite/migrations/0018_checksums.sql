-- CRC-32, by which reading recognises damage; NULL for what was stored before there were checksums. Those of `texts` and
-- `messages` are of the columns that stay as they are, see `tables.py` and `conversation_records.py`; the others are of
-- the vector.
ALTER TABLE texts ADD COLUMN checksum INTEGER;

ALTER TABLE messages ADD COLUMN checksum INTEGER;

ALTER TABLE vectors ADD COLUMN checksum INTEGER;

ALTER TABLE message_lex ADD COLUMN checksum INTEGER;
