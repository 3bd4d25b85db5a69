-- A purge leaves a note of what has to be erased.
-- Serves version 1 and later.

-- Functions keep this path, as those of the first migration do.
SELECT set_config('search_path', concat_ws(', ', quote_ident(current_schema()), quote_ident(nspname), 'pg_temp'), true)
FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector';

-- What was purged and isn't erased yet: of whom (an agent that was removed has no other row any more), in which of
-- its tables, and the latest transaction that purged. The rows are gone; their bytes stay in the server's files
-- until those are rewritten, which takes this note away.
CREATE TABLE erasures (
    agent bigint NOT NULL,
    what  text COLLATE "C" NOT NULL CHECK (what IN ('memories', 'ledger', 'conversations', 'agent')),
    noted xid8 NOT NULL,
    PRIMARY KEY (agent, what)
);

ALTER TABLE erasures ENABLE ROW LEVEL SECURITY;

CREATE POLICY entered ON erasures USING (agent = (SELECT entered()));

-- Note that what this transaction purges has to be erased. The note is the owner's, so that no role needs a right.
CREATE FUNCTION note_erasure(asked bigint, purged text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM require_entered(asked);
    INSERT INTO erasures (agent, what, noted) VALUES (asked, purged, pg_current_xact_id())
    ON CONFLICT (agent, what) DO UPDATE SET noted = excluded.noted WHERE erasures.noted <> excluded.noted;
END
$$;

-- An older germane purges by this function too, so its purges are noted as well.
CREATE OR REPLACE FUNCTION purge_memory(asked bigint, gone bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    reader bigint;
    one bigint;
    shared boolean := EXISTS (SELECT FROM spaces WHERE spaces.space = asked);
BEGIN
    PERFORM require_entered(asked);
    PERFORM note_erasure(asked, 'memories');
    DELETE FROM memories WHERE memories.agent = asked AND memories.num = gone;
    FOR reader, one IN
        SELECT assembled.agent, assembled.number FROM assembled
        WHERE assembled.num = gone AND (shared OR assembled.agent = asked) AND assembled.reason IS NULL
        ORDER BY 1, 2
    LOOP
        UPDATE assemblies SET sha256 = NULL WHERE assemblies.agent = reader AND assemblies.number = one;
        IF reader <> asked THEN
            INSERT INTO erasures (agent, what, noted) VALUES (reader, 'ledger', pg_current_xact_id())
            ON CONFLICT (agent, what) DO UPDATE SET noted = excluded.noted WHERE erasures.noted <> excluded.noted;
        END IF;
    END LOOP;
    DELETE FROM assembled WHERE assembled.num = gone AND (shared OR assembled.agent = asked);
END
$$;
