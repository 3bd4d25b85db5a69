-- What follows the schema, in the same transaction: {partitions} partitions of each table that is distributed by
-- agent, where it was created as partitioned; and how the tables are stored, which only those can say that hold
-- rows. It may run again.
DO $$
DECLARE
    one regclass;
    part text;
    key record;
BEGIN
    FOR one IN
        SELECT pg_class.oid FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace AND relkind = 'p' ORDER BY pg_class.oid
    LOOP
        FOR number IN 0..{partitions} - 1 LOOP
            part := format('%s_%s', one::text, number);
            IF to_regclass(part) IS NULL THEN
                EXECUTE format(
                    'CREATE TABLE %s PARTITION OF %s FOR VALUES WITH (MODULUS {partitions}, REMAINDER %s)', part, one, number
                );
                -- Nothing is read or written past its parent, whose policies it doesn't have.
                EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', part);
            END IF;
        END LOOP;
    END LOOP;
    -- Rows of one agent lie in partitions of one number, so a key is between those: one between their parents looks
    -- for the partition at each row, which takes several times as long as to insert it.
    FOR key IN
        SELECT conname, conrelid::regclass AS child, confrelid::regclass AS parent, pg_get_constraintdef(oid) AS words
        FROM pg_constraint JOIN pg_partitioned_table ON partrelid = confrelid
        WHERE contype = 'f' AND conparentid = 0 AND connamespace = current_schema()::regnamespace
    LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', key.child, key.conname);
        FOR number IN 0..{partitions} - 1 LOOP
            EXECUTE format(
                'ALTER TABLE %s_%s ADD CONSTRAINT %I %s', key.child, number, key.conname,
                replace(key.words, format('REFERENCES %s(', key.parent), format('REFERENCES %s_%s(', key.parent, number))
            );
        END LOOP;
    END LOOP;
    IF (SELECT relkind = 'p' FROM pg_class WHERE oid = 'lex'::regclass) THEN
        -- See there: it has to find the part, which needs a plan for each agent.
        ALTER FUNCTION postings_of SET germane.spread = on;
        ALTER FUNCTION postings_of SET plan_cache_mode = force_custom_plan;
    END IF;
    -- Counters change in place where the page has room. Vectors stay beside the rest of their row.
    -- A table without partitions holds its rows itself.
    FOR one, part IN
        SELECT pg_class.oid, how FROM pg_class LEFT JOIN pg_inherits ON inhrelid = pg_class.oid
            JOIN (VALUES
                ('states'::regclass, 'fillfactor = 70'), ('memories'::regclass, 'fillfactor = 90'),
                ('vectors'::regclass, 'toast_tuple_target = 8160')
            ) AS kept (parent, how) ON parent = coalesce(inhparent, pg_class.oid)
        WHERE relkind = 'r' ORDER BY pg_class.oid
    LOOP
        EXECUTE format('ALTER TABLE %s SET (%s)', one, part);
    END LOOP;
END
$$;
