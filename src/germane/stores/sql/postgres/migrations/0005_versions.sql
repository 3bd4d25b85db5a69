-- A recorded assembly names its candidates by the memory and the version.

-- Functions keep this path, as those of the first migration do.
SELECT set_config('search_path', concat_ws(', ', quote_ident(current_schema()), quote_ident(nspname), 'pg_temp'), true)
FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector';

DROP FUNCTION IF EXISTS keep_candidate(
    bigint, bigint, bigint, text, bytea, text, double precision, text, text, text, bigint, bigint, bigint
);

-- Keep a candidate of an assembly, and return its place; no row where its memory is gone.
CREATE OR REPLACE FUNCTION keep_candidate(
    asked bigint, assembly bigint, place bigint, owner_name text, memory bytea, numbered bigint, section text,
    score double precision, parts text, level text, reason text, tokens bigint, short_by bigint, pinned bigint
) RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_variable
DECLARE
    owner bigint := number_of(owner_name);
    found bigint;
BEGIN
    PERFORM require_entered(asked);
    -- Locked, so that it can't be purged before this is committed: see there.
    SELECT memories.num INTO found FROM memories
    WHERE memories.agent = owner AND memories.version = numbered
        AND (memories.id = memory OR (memories.chain = memory AND memories.version > 1))
    FOR KEY SHARE;
    IF found IS NOT NULL THEN
        INSERT INTO assembled (
            agent, number, place, num, section, score, parts, level, reason, tokens, short_by, pinned
        ) VALUES (asked, assembly, place, found, section, score, parts, level, reason, tokens, short_by, pinned);
        RETURN NEXT place;
    END IF;
END
$$;

DROP FUNCTION IF EXISTS candidates_of(bigint, bigint, bytea);

-- The candidates of an assembly that are still stored, each looked up among its owner's memories.
CREATE FUNCTION candidates_of(asked bigint, assembly bigint, key bytea)
RETURNS TABLE (
    place bigint, id bytea, version bigint, kind text, owner_name text, section text, score double precision,
    parts text, level text, reason text, tokens bigint, short_by bigint, pinned smallint, used smallint
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
    one bigint;
BEGIN
    PERFORM require_entered(asked);
    FOR one IN
        SELECT DISTINCT assembled.owner FROM assembled WHERE assembled.agent = asked AND assembled.number = assembly
    LOOP
        RETURN QUERY
        WITH kept AS (
            SELECT assembled.*, shown.used
            FROM assembled LEFT JOIN shown
                ON shown.agent = assembled.agent AND shown.context = key AND shown.num = assembled.num
            WHERE assembled.agent = asked AND assembled.number = assembly AND assembled.owner = one
        ), stored AS (
            SELECT memories.num, memories.chain, memories.version, memories.kind FROM memories
            WHERE memories.agent = one AND memories.num = ANY (ARRAY(SELECT kept.num FROM kept))
        )
        SELECT kept.place, stored.chain, stored.version, stored.kind, agents.name, kept.section, kept.score,
               kept.parts, kept.level, kept.reason, kept.tokens, kept.short_by, kept.pinned, kept.used
        FROM kept JOIN stored USING (num) JOIN agents ON agents.agent = one;
    END LOOP;
END
$$;
