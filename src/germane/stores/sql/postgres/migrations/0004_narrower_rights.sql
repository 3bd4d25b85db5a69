-- A role for applications changes no setting, and takes away no token of another's.
-- Serves version 4 and later.

-- Functions keep this path, as those of the first migration do.
SELECT set_config('search_path', concat_ws(', ', quote_ident(current_schema()), quote_ident(nspname), 'pg_temp'), true)
FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector';

-- Remove the tokens that nobody can ask for any more. Who takes away another's token makes a write that stands look
-- lost, so no role may do more than this.
CREATE FUNCTION sweep_commits() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS $$
    DELETE FROM commits WHERE token IN (
        SELECT token FROM commits WHERE at < now() - interval '10 minutes' FOR UPDATE SKIP LOCKED
    );
$$;

-- What roles were granted before is taken back but for what `grants.sql` gives now.
DO $$
DECLARE
    one record;
BEGIN
    FOR one IN
        SELECT DISTINCT relname, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END AS role
        FROM pg_class CROSS JOIN aclexplode(relacl)
        WHERE oid IN ('settings'::regclass, 'commits'::regclass) AND grantee <> relowner
    LOOP
        EXECUTE format('REVOKE ALL ON %I FROM %s', one.relname, one.role);
        IF one.relname = 'settings' THEN
            EXECUTE format('GRANT SELECT, INSERT ON settings TO %s', one.role);
        ELSE
            EXECUTE format('GRANT INSERT (token) ON commits TO %s', one.role);
        END IF;
    END LOOP;
END
$$;
