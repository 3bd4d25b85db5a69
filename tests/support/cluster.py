"""A database that says it were the coordinator of a Citus cluster, and refuses what a cluster refuses.

No package carries the extension, so this does none of its work: all rows stay in this one server. What is
here are the rules for tables that were read in the sources of Citus, and a note of each request. So it
proves that nothing is sent that those rules refuse, and that a store goes on with tables made ready for one.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg

from germane.stores import EmbeddingIdentity, PostgresStore
from germane.testing.contract import OpenStore
from support.postgres_schema import SPREAD

__all__ = ["opener_of", "pretend"]

_RULES = """
CREATE TABLE pg_dist_partition (logicalrelid regclass PRIMARY KEY, partkey text, method text NOT NULL);
CREATE TABLE pg_dist_node (groupid integer NOT NULL);

CREATE FUNCTION refuse_what_no_cluster_takes(given regclass, by text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    parts smallint := (SELECT attnum FROM pg_attribute WHERE attrelid = given AND attname = by);
BEGIN
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = given) THEN
        RAISE EXCEPTION 'table % is already distributed', given;
    ELSIF (SELECT relkind <> 'r' FROM pg_class WHERE oid = given) THEN
        RAISE EXCEPTION '% is no plain table', given;
    ELSIF EXISTS (SELECT FROM pg_policy WHERE polrelid = given AND polqual::text LIKE '%SUBLINK%') THEN
        RAISE EXCEPTION 'cannot create policy: subqueries are not supported in policies on %', given;
    ELSIF by IS NOT NULL AND parts IS NULL THEN
        RAISE EXCEPTION '% has no column %', given, by;
    ELSIF EXISTS (
        SELECT FROM pg_attribute WHERE attrelid = given AND attidentity <> '' AND atttypid <> 'int8'::regtype
    ) THEN
        RAISE EXCEPTION 'an identity column of % is no bigint', given;
    ELSIF by IS NOT NULL AND EXISTS (
        SELECT FROM pg_index WHERE indrelid = given AND indisunique AND NOT parts = ANY (indkey)
    ) THEN
        RAISE EXCEPTION 'a unique index of % does not include %', given, by;
    END IF;
END
$$;

CREATE FUNCTION create_distributed_table(given regclass, by text, colocate_with text DEFAULT 'default')
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM refuse_what_no_cluster_takes(given, by);
    IF colocate_with <> 'default' AND NOT EXISTS (
        SELECT FROM pg_dist_partition WHERE logicalrelid = colocate_with::regclass AND method = 'hash'
    ) THEN
        RAISE EXCEPTION '% is not distributed', colocate_with;
    END IF;
    INSERT INTO pg_dist_partition VALUES (given, by, 'hash');
    PERFORM refuse_keys();
END
$$;

CREATE FUNCTION create_reference_table(given regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM refuse_what_no_cluster_takes(given, NULL);
    INSERT INTO pg_dist_partition VALUES (given, NULL, 'everywhere');
    PERFORM refuse_keys();
END
$$;

CREATE FUNCTION citus_add_local_table_to_metadata(given regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM refuse_what_no_cluster_takes(given, NULL);
    INSERT INTO pg_dist_partition VALUES (given, NULL, 'local');
END
$$;

CREATE FUNCTION citus_total_relation_size(given regclass) RETURNS bigint LANGUAGE sql RETURN 4096;

-- What a cluster asks of foreign keys when it is given a table, and when one is added.
CREATE FUNCTION refuse_keys() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    key record;
BEGIN
    FOR key IN
        SELECT conname, confdeltype, child.method AS from_method, parent.method AS to_method,
               array_position(conkey, mine.attnum) AS mine,
               array_position(confkey, theirs.attnum) AS theirs
        FROM pg_constraint
            LEFT JOIN pg_dist_partition AS child ON child.logicalrelid = conrelid
            LEFT JOIN pg_dist_partition AS parent ON parent.logicalrelid = confrelid
            LEFT JOIN pg_attribute AS mine ON mine.attrelid = conrelid AND mine.attname = child.partkey
            LEFT JOIN pg_attribute AS theirs
                ON theirs.attrelid = confrelid AND theirs.attname = parent.partkey
        WHERE contype = 'f' AND (child.method IS NOT NULL OR parent.method IS NOT NULL)
    LOOP
        IF key.from_method IS NULL OR key.to_method IS NULL THEN
            RAISE EXCEPTION 'the key % is between a table of the cluster and one that is none', key.conname;
        ELSIF key.from_method <> 'hash' AND key.to_method = 'hash' THEN
            RAISE EXCEPTION 'the key % leads from everywhere to one server', key.conname;
        ELSIF key.from_method = 'hash' AND key.mine IS NOT NULL AND key.confdeltype IN ('n', 'd') THEN
            RAISE EXCEPTION 'the key % sets what parts its table to NULL', key.conname;
        ELSIF key.from_method = 'hash' AND key.to_method = 'hash' AND key.mine IS DISTINCT FROM key.theirs
        THEN
            RAISE EXCEPTION 'the key % is not about the column that parts both tables', key.conname;
        END IF;
    END LOOP;
END
$$;

CREATE FUNCTION refuse_keys_that_are_added() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM refuse_keys();
END
$$;
"""

_EXTENSION = """
INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
VALUES (4294960000, 'citus', 10, 'pg_catalog'::regnamespace, false, %s)
"""


def pretend(url: str, *, version: str = "13.0-1", knows_its_coordinator: bool = True) -> None:
    """Let a database say so; the address is a superuser's."""
    with psycopg.connect(url) as connection:
        connection.execute(_RULES.encode())
        connection.execute(_EXTENSION.encode(), (version,))
        if knows_its_coordinator:
            connection.execute(b"INSERT INTO pg_dist_node VALUES (0), (1), (2)")
        added = (
            b"ON ddl_command_end WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION refuse_keys_that_are_added()"
        )
        connection.execute(b"CREATE EVENT TRIGGER keys " + added)


def opener_of(url: str) -> Iterator[OpenStore]:
    """What opens the store there for one test, and empties it behind that one."""

    def opened(embedding: EmbeddingIdentity | None) -> PostgresStore:
        return PostgresStore(url, embedding=embedding)

    yield opened
    # A cluster truncates no table that others refer to from everywhere.
    with psycopg.connect(url) as raw:
        raw.execute(b"SET LOCAL citus.multi_shard_modify_mode = 'sequential'")
        for table in reversed([each for each, _ in SPREAD if each not in ("migrations", "settings")]):
            raw.execute(f"DELETE FROM {table}".encode())
        raw.execute(b"DELETE FROM settings WHERE name <> 'serves'")
