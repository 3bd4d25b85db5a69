-- What PostgreSQL needs before its tables, in the same transaction; `functions.sql` comes after them, and then
-- `partitions.sql` and `grants.sql`. It needs PostgreSQL 15 or later, a database in UTF8, and the extension `vector`.
--
-- All text compares by its bytes, as it does in SQLite. `agents`, `spaces`, `members`, `settings` and `migrations` are
-- small, and the same for everyone. A table that is distributed by agent ends in a mark for how it is partitioned, if
-- at all. Storage parameters stand in `partitions.sql`, for a partitioned table has none.
--
-- Who sees what. A transaction sees and writes the rows of one agent: the function `enter`, with which it
-- begins, looks its name up and sets `germane.agent` to its number until the transaction ends; with no setting
-- nothing is visible. Who acts for another agent can enter that one if it is a space of which the acting agent
-- is a member. This is decided there once, and each policy compares with a number. The directories, that is
-- `agents`, `spaces` and `members`, can be read by all: a space is found by its name before anyone is in it.
-- Written are those of a space by who entered it. All this guards against a statement that forgot its filter,
-- and against text that became SQL; whoever may run any SQL can call `enter` too.
--
-- The policies are not forced upon the owner of the tables. Migrations, reindexing, copies and the list of all
-- agents are about every agent, and a switch that the owner sets itself would bar nobody. So applications
-- should run as a role of their own, with the rights in `grants.sql`.
--
-- A few statements are functions. `add_agent` enters what it adds; `postings_of` would not get to use its index
-- under a policy; the others have to do with memories of two agents, and look for each agent's rows by its
-- number. What runs as the owner (SECURITY DEFINER) asks `entered` by itself.

CREATE EXTENSION IF NOT EXISTS vector;

-- Functions keep this path, so that no temporary table can stand in for one of theirs.
SELECT set_config('search_path', concat_ws(', ', quote_ident(current_schema()), quote_ident(nspname), 'pg_temp'), true)
FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector';

-- What each transaction that writes leaves, so that it can be asked for when the answer to its commit was lost; it
-- stays for some minutes. Numbers of transactions wouldn't do: after a crash the server may give one again.
CREATE TABLE commits (
    token uuid PRIMARY KEY,
    at    timestamptz NOT NULL DEFAULT now()
);

-- What was purged and isn't erased yet: of whom (an agent that was removed has no other row any more), in which of
-- its tables, and the latest transaction that purged. The rows are gone; their bytes stay in the server's files
-- until those are rewritten, which takes this note away.
CREATE TABLE erasures (
    agent bigint NOT NULL,
    what  text COLLATE "C" NOT NULL CHECK (what IN ('memories', 'ledger', 'conversations', 'agent')),
    noted xid8 NOT NULL,
    PRIMARY KEY (agent, what)
);

-- A term's key in the index of all agents' words: the agent's number shifted left by 32 bits plus the term's
-- hash, for each of the hashes (uint32, little endian).
CREATE FUNCTION lex_keys(agent bigint, hashes bytea) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    -- A loop, which takes a third of the time that a query takes.
    found bigint[] := '{}';
BEGIN
    FOR at IN 0..length(hashes) / 4 - 1 LOOP
        found[at + 1] := (agent << 32) + (get_byte(hashes, 4 * at + 3)::bigint << 24)
            + (get_byte(hashes, 4 * at + 2) << 16) + (get_byte(hashes, 4 * at + 1) << 8) + get_byte(hashes, 4 * at);
    END LOOP;
    RETURN found;
END
$$;

CREATE SEQUENCE working_set_numbers;

-- A message's num has 31 bits for its conversation.
CREATE SEQUENCE conversation_numbers MAXVALUE 2147483647;
