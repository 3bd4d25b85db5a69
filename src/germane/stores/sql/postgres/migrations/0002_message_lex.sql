-- Messages have forward records, as memories do; those of messages that are there are made when they are needed.
-- Serves version 1 and later.

-- The forward record of each message that a question can find: those of groups, but for what the system says.
-- `rules` is a checksum (CRC-32) of what made it: what is read of a message, the tokenizer's name and the language. A
-- record that is missing, or that other rules made, is made anew by who needs it.
CREATE TABLE message_lex (
    num         bigint NOT NULL,
    agent       bigint NOT NULL,
    rules       bigint NOT NULL,
    length      bigint NOT NULL,
    hashes      bytea  NOT NULL,
    frequencies bytea  NOT NULL,
    PRIMARY KEY (agent, num)
) {partitioned};

-- A table that is spread has to be so before it can have a key to another.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
        IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'messages'::regclass) THEN
            PERFORM create_distributed_table('message_lex', 'agent', colocate_with => 'states');
        END IF;
    END IF;
END
$$;

ALTER TABLE message_lex ADD FOREIGN KEY (agent, num) REFERENCES messages (agent, num) ON DELETE CASCADE;

ALTER TABLE message_lex ENABLE ROW LEVEL SECURITY;

CREATE POLICY entered ON message_lex USING (agent = (SELECT entered()));

-- Whoever may write messages may write these, so that no role has to be granted anything anew.
DO $$
DECLARE
    one record;
BEGIN
    FOR one IN
        SELECT grantee, string_agg(privilege_type, ', ') AS rights
        FROM pg_class CROSS JOIN aclexplode(relacl)
        WHERE oid = 'messages'::regclass AND grantee <> relowner
            AND privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
        GROUP BY grantee
    LOOP
        EXECUTE format(
            'GRANT %s ON message_lex TO %s', one.rights,
            CASE one.grantee WHEN 0 THEN 'PUBLIC' ELSE one.grantee::regrole::text END
        );
    END LOOP;
END
$$;
