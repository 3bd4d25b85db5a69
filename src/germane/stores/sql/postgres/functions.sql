-- What PostgreSQL needs after its tables: functions, and the policies that say who sees what.

-- Lists of numbers and of texts, which come as JSON.
CREATE FUNCTION numbers_of(list text) RETURNS bigint[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ARRAY(SELECT value::bigint FROM json_array_elements_text(list::json));

CREATE FUNCTION texts_of(list text) RETURNS text[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ARRAY(SELECT value FROM json_array_elements_text(list::json));

-- The number of a name; NULL for one that isn't known.
CREATE FUNCTION number_of(wanted text) RETURNS bigint
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT AS $$
BEGIN
    RETURN (SELECT agents.agent FROM agents WHERE agents.name = wanted);
END
$$;

-- The agent entered in this transaction; NULL for none.
CREATE FUNCTION entered() RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE
RETURN nullif(current_setting('germane.agent', true), '')::bigint;

-- Begin a transaction about an agent, by its name; NULL enters none. It returns the agent's number, or NULL where
-- there is none yet, which `add_agent` then enters; or where `acting` is neither that agent nor a member of
-- that space, so that nothing is visible. `writing` makes others who write for the agent wait.
CREATE FUNCTION enter(wanted text, acting text DEFAULT NULL, writing boolean DEFAULT false) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    number bigint := number_of(wanted);
    refused boolean := acting <> wanted AND NOT EXISTS (
        SELECT 1 FROM members WHERE members.space = number AND members.agent = number_of(acting)
    );
BEGIN
    IF refused THEN
        number := NULL;
    ELSIF writing AND number IS NULL AND wanted IS NOT NULL THEN
        -- Whoever makes it known first is waited for, as for one that is known.
        PERFORM pg_advisory_xact_lock(hashtextextended(wanted, 0));
        number := number_of(wanted);
    END IF;
    PERFORM set_config('germane.agent', coalesce(number::text, ''), true),
            set_config('germane.wanted', CASE WHEN refused THEN '' ELSE coalesce(wanted, '') END, true);
    IF writing AND number IS NOT NULL THEN
        PERFORM FROM states WHERE states.agent = number FOR UPDATE;
    END IF;
    RETURN number;
END
$$;

-- Make a name known, and enter its agent where the transaction is about it. A name that is known uses up no
-- number.
CREATE FUNCTION add_agent(added text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    number bigint := number_of(added);
BEGIN
    IF number IS NULL THEN
        INSERT INTO agents (name) VALUES (added) ON CONFLICT (name) DO NOTHING RETURNING agents.agent INTO number;
        IF number IS NULL THEN
            -- Another transaction was first, and has been waited for.
            number := number_of(added);
        ELSE
            INSERT INTO states (agent) VALUES (number);
        END IF;
    END IF;
    -- It may have become known after this transaction had begun without it.
    IF added = current_setting('germane.wanted', true) AND number IS DISTINCT FROM entered() THEN
        PERFORM set_config('germane.agent', number::text, true);
        PERFORM FROM states WHERE states.agent = number FOR UPDATE;
    END IF;
    RETURN number;
END
$$;

-- What a function that runs as the owner begins with.
CREATE FUNCTION require_entered(asked bigint) RETURNS void
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
    IF asked IS DISTINCT FROM entered() THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('Agent %s was not entered in this transaction.', asked),
            HINT = 'Begin the transaction with enter(name).';
    END IF;
END
$$;

-- The forward records that have any of these keys, by num, packed into one row: their nums (int8), lengths and
-- numbers of terms (int4) in network order, and their hashes and frequencies as they are stored; before them, how
-- many memories and terms the agent has. To cut out the terms asked for would take longer than to send all. It runs as the owner, because a policy keeps an operator that isn't leakproof from
-- using an index, and that of arrays isn't. The keys alone say whose they are; the agent is asked for only where
-- the table is spread, to find the part, because the planner would read all the agent's rows in its key.
CREATE FUNCTION postings_of(asked bigint, wanted bigint[])
RETURNS TABLE (
    documents bigint, tokens bigint, nums bytea, lengths bytea, counts bytea, hashes bytea, frequencies bytea
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    spread boolean := coalesce(current_setting('germane.spread', true) = 'on', false);
BEGIN
    PERFORM require_entered(asked);
    RETURN QUERY
    SELECT states.memories, states.terms, found.nums, found.lengths, found.counts, found.hashes, found.frequencies
    FROM states CROSS JOIN (
        SELECT string_agg(int8send(lex.num), NULL ORDER BY lex.num) AS nums,
               string_agg(int4send(lex.length::integer), NULL ORDER BY lex.num) AS lengths,
               string_agg(int4send(length(lex.frequencies)), NULL ORDER BY lex.num) AS counts,
               string_agg(lex.hashes, NULL ORDER BY lex.num) AS hashes,
               string_agg(lex.frequencies, NULL ORDER BY lex.num) AS frequencies
        FROM lex WHERE lex.keys && wanted AND (lex.agent = asked OR NOT spread)
    ) AS found WHERE states.agent = asked;
END
$$;

-- Note that what this transaction purges has to be erased. The note is the owner's, so that no role needs a right.
CREATE FUNCTION note_erasure(asked bigint, purged text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM require_entered(asked);
    INSERT INTO erasures (agent, what, noted) VALUES (asked, purged, pg_current_xact_id())
    ON CONFLICT (agent, what) DO UPDATE SET noted = excluded.noted WHERE erasures.noted <> excluded.noted;
END
$$;

-- Remove the tokens that nobody can ask for any more. Who takes away another's token makes a write that stands look
-- lost, so no role may do more than this.
CREATE FUNCTION sweep_commits() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS $$
    DELETE FROM commits WHERE token IN (
        SELECT token FROM commits WHERE at < now() - interval '10 minutes' FOR UPDATE SKIP LOCKED
    );
$$;

-- Remove a memory, and what assemblies say of it. The hash of a text that it stood in goes too. Only who shares
-- a space, or reads an agent's own memories for one user, can have assembled a memory of another. The memory goes first, for then a transaction that is
-- about to record an assembly with it has either been waited for, or finds it gone. What has to be erased is noted
-- here, whichever version of germane purges.
CREATE FUNCTION purge_memory(asked bigint, gone bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    reader bigint;
    one bigint;
    shared boolean := EXISTS (SELECT 1 FROM spaces WHERE spaces.space = asked) OR EXISTS (
        SELECT 1 FROM agents AS base JOIN agents AS users ON starts_with(users.name, 'user:')
            AND right(users.name, length(base.name) + 1) = ':' || base.name
        WHERE base.agent = asked
    );
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

-- Keep a candidate of an assembly, and return its place; no row where its memory is gone.
CREATE FUNCTION keep_candidate(
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

-- The policies. Whoever isn't the owner sees the rows of the agent that was entered; see above.
DO $$
DECLARE
    one text;
BEGIN
    FOREACH one IN ARRAY ARRAY[
        'states', 'memories', 'texts', 'tags', 'places', 'lex', 'vectors', 'unembedded', 'changes', 'shown', 'outcomes',
        'working_sets', 'held', 'moves', 'conversations', 'messages', 'message_lex', 'anchors', 'lives', 'life_events',
        'assemblies', 'assembled', 'erasures'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', one);
        EXECUTE format('CREATE POLICY entered ON %I USING (agent = (SELECT entered()))', one);
    END LOOP;
    FOREACH one IN ARRAY ARRAY['spaces', 'members', 'space_events'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', one);
        EXECUTE format('CREATE POLICY entered ON %I USING (space = (SELECT entered()))', one);
    END LOOP;
END
$$;

ALTER TABLE agents ENABLE ROW LEVEL SECURITY;

CREATE POLICY listed ON agents FOR SELECT USING (true);

CREATE POLICY listed ON spaces FOR SELECT USING (true);

CREATE POLICY listed ON members FOR SELECT USING (true);
