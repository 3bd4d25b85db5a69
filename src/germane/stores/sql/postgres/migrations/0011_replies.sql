-- Answers to requests that may be sent again, as in SQLite. They are few, so that the table has no partitions; and it
-- stays on one server of a cluster.
CREATE TABLE replies (
    agent  bigint   NOT NULL,
    name   bytea    NOT NULL,
    at     bigint   NOT NULL,
    done   smallint NOT NULL DEFAULT 0 CHECK (done IN (0, 1)),
    mark   bytea,
    answer bytea,
    PRIMARY KEY (agent, name)
);

ALTER TABLE replies ENABLE ROW LEVEL SECURITY;

CREATE POLICY entered ON replies USING (agent = (SELECT entered()));

-- See `preparation.sql`.
SELECT set_config('search_path', concat_ws(', ', quote_ident(current_schema()), quote_ident(nspname), 'pg_temp'), true)
FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector';

-- As before, and take the answers away that may tell what is purged: those of the agent, and of all where others can
-- read its memories, as in `purge_memory`. What is asked meanwhile waits, for it could read what is about to go.
CREATE OR REPLACE FUNCTION note_erasure(asked bigint, purged text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    shared boolean := EXISTS (SELECT 1 FROM spaces WHERE spaces.space = asked) OR EXISTS (
        SELECT 1 FROM agents AS base JOIN agents AS users ON starts_with(users.name, 'user:')
            AND right(users.name, length(base.name) + 1) = ':' || base.name
        WHERE base.agent = asked
    );
BEGIN
    PERFORM require_entered(asked);
    INSERT INTO erasures (agent, what, noted) VALUES (asked, purged, pg_current_xact_id())
    ON CONFLICT (agent, what) DO UPDATE SET noted = excluded.noted WHERE erasures.noted <> excluded.noted;
    IF shared THEN
        LOCK TABLE replies IN SHARE ROW EXCLUSIVE MODE;
    END IF;
    UPDATE replies SET mark = NULL, answer = NULL WHERE mark IS NOT NULL AND (shared OR replies.agent = asked);
END
$$;
