-- What comes before the tables are given to a Citus cluster, in the same transaction. It may run again. The policies
-- stay for whoever isn't the owner, and show nothing on the other servers, which don't know who was entered.

-- A cluster takes no policy with a query in it.
DO $$
DECLARE
    one record;
BEGIN
    FOR one IN
        SELECT tablename, policyname, regexp_replace(qual, '\( SELECT entered\(\) AS entered\)', 'entered()') AS said
        FROM pg_policies WHERE schemaname = current_schema() AND qual LIKE '%( SELECT entered() AS entered)%'
    LOOP
        EXECUTE format('ALTER POLICY %I ON %I USING (%s)', one.policyname, one.tablename, one.said);
    END LOOP;
END
$$;

-- See there: it has to find the server.
ALTER FUNCTION postings_of SET germane.spread = on;

-- A plan for any agent would be one for all servers.
DO $$
DECLARE
    one regprocedure;
BEGIN
    FOR one IN
        SELECT pg_proc.oid FROM pg_proc JOIN pg_language ON pg_language.oid = prolang
        WHERE pronamespace = current_schema()::regnamespace AND lanname = 'plpgsql'
            AND proname IN ('enter', 'add_agent', 'postings_of', 'purge_memory', 'keep_candidate', 'candidates_of')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET plan_cache_mode = force_custom_plan', one);
    END LOOP;
END
$$;

-- What statements, policies and columns use has to be known to the other servers. They learn of a function that is
-- made while the extension is there, so it is made once more. An owner that is gone has the number 0: NULL asks all.
DO $$
DECLARE
    one oid;
BEGIN
    FOR one IN
        SELECT oid FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
            AND proname IN ('entered', 'lex_keys', 'numbers_of', 'texts_of', 'keep_candidate')
    LOOP
        EXECUTE replace(pg_get_functiondef(one), ':= number_of(owner_name)', ':= coalesce(number_of(owner_name), 0)');
    END LOOP;
END
$$;
