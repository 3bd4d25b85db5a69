-- What a filter admits, and its conditions, which take the place of {filter} in other queries.

-- name: admitted
-- Every memory that a filter admits.
SELECT num FROM memories WHERE num > :above AND num < :below AND {+}agent = :agent {filter};

-- name: admitted_among
-- Which of these memories a filter admits.
SELECT num FROM memories
WHERE num {numbers :nums} AND {+}agent = :agent {filter};

-- name: where_any_inactive
-- WHERE of a filter that admits no active memories. If it admits none at all, an index says so at once.
WHERE agent = (SELECT agent FROM memories WHERE agent = :agent AND status <> 'active' {filter} LIMIT 1)

-- name: where_statuses
-- A condition for {filter}.
AND status IN (:statuses)

-- name: where_kinds
-- A condition for {filter}.
AND kind IN (:kinds)

-- name: where_scopes
-- A condition for {filter}.
AND (scope, scope_value) IN (VALUES :scopes)

-- name: where_subject
-- A condition for {filter}.
AND subject = :subject

-- name: where_source
-- A condition for {filter}.
AND source = :source

-- name: where_session
-- A condition for {filter}.
AND session = :session

-- name: where_key
-- A condition for {filter}. Former versions have the key too.
AND key = :key AND superseded_by IS NULL

-- name: where_short_id
-- A condition for {filter}, of the four bytes that a short id is.
AND num IN (
    SELECT few.num FROM memories AS few
    WHERE few.agent = :agent AND {sqlite: substr(few.chain, 13)}{postgres: few.short_id} = :short_id
)

-- name: where_expires
-- A condition for {filter}.
AND expires_at <= :expires_by

-- name: where_valid_from
-- A condition for {filter}.
AND (valid_from IS NULL OR valid_from < :valid_end)

-- name: where_valid_until
-- A condition for {filter}.
AND (valid_until IS NULL OR valid_until > :valid_start)

-- name: where_unexpired
-- A condition for {filter}.
AND (expires_at IS NULL OR expires_at > :now)

-- name: where_without
-- A condition for {filter}.
AND (outcome IS NULL OR outcome NOT IN (:without))

-- name: where_since
-- A condition for {filter}.
AND created_at >= :since

-- name: where_until
-- A condition for {filter}.
AND created_at < :until

-- name: where_importance
-- A condition for {filter}.
AND importance >= :min_importance

-- name: where_pinned
-- A condition for {filter}. A truth value and a number are both accepted.
AND pinned = (:pinned::text)::boolean::integer

-- name: where_embedded (sqlite)
-- A condition for {filter}. The numbers of an agent's memories begin with the agent's own.
AND num NOT IN (
    SELECT unembedded.num FROM unembedded
    WHERE unembedded.agent = :agent AND unembedded.num BETWEEN :agent << 40 AND (:agent + 1) << 40
)

-- name: where_embedded (postgres)
-- A condition for {filter}.
AND NOT EXISTS (SELECT 1 FROM unembedded WHERE unembedded.agent = :agent AND unembedded.num = memories.num)

-- name: where_unembedded
-- A condition for {filter}. The numbers of an agent's memories begin with the agent's own.
AND num IN (
    SELECT unembedded.num FROM unembedded WHERE unembedded.agent = :agent
    {sqlite: AND unembedded.num BETWEEN :agent << 40 AND (:agent + 1) << 40}
)

-- name: where_tags (sqlite)
-- A condition for {filter}. The semicolon is the character after the colon.
AND num IN (
    SELECT tags.num FROM (SELECT column1 AS wanted FROM (VALUES :tags)) CROSS JOIN tags
    WHERE tags.agent = :agent AND tags.tag = wanted
    UNION ALL
    SELECT tags.num FROM (SELECT column1 AS wanted FROM (VALUES :tags)) CROSS JOIN tags
    WHERE tags.agent = :agent AND tags.tag > wanted || ':' AND tags.tag < wanted || ';'
)

-- name: where_tags (postgres)
-- A condition for {filter}. The semicolon is the character after the colon. The bounds are made before the
-- join, since a policy lets only a comparison of columns use the index.
AND num IN (
    SELECT tags.num FROM (VALUES :tags) AS asked (wanted) JOIN tags ON tags.tag = wanted WHERE tags.agent = :agent
    UNION ALL
    SELECT tags.num
    FROM (SELECT wanted || ':' AS low, wanted || ';' AS high FROM (VALUES :tags) AS asked (wanted) OFFSET 0) AS below
    JOIN tags ON tags.tag > low AND tags.tag < high
    WHERE tags.agent = :agent
)

-- name: where_tags_of_few (sqlite)
-- As `where_tags`, for {filter} where only a few memories are asked about: only their tags are read.
AND EXISTS (
    SELECT 1 FROM (SELECT column1 AS wanted FROM (VALUES :tags)) CROSS JOIN tags
    WHERE tags.num = memories.num AND tags.agent = :agent
      AND (tags.tag = wanted OR (tags.tag > wanted || ':' AND tags.tag < wanted || ';'))
)

-- name: where_tags_of_few (postgres)
-- As `where_tags`, for {filter} where only a few memories are asked about: only their tags are read.
AND EXISTS (
    SELECT 1 FROM tags JOIN (VALUES :tags) AS asked (wanted)
        ON (tags.tag = wanted OR (tags.tag > wanted || ':' AND tags.tag < wanted || ';'))
    WHERE tags.agent = :agent AND tags.num = memories.num
)

-- name: places
-- The different places of an agent's memories. Each is looked up after the one before, however many share it.
WITH RECURSIVE known (place) AS (
    SELECT min(place) FROM places WHERE agent = :agent
    UNION ALL
    SELECT (SELECT min(places.place) FROM places WHERE agent = :agent AND places.place > known.place)
    FROM known WHERE known.place IS NOT NULL
)
SELECT place FROM known WHERE place IS NOT NULL;

-- name: where_applies_to
-- A condition for {filter}.
AND ((scope, scope_value) IN (VALUES :applies_to)
    OR num IN (SELECT places.num FROM places WHERE places.agent = :agent AND places.place {texts :places}))

-- The fields of conditions, for {filter}: each is `held`, with a type and a value, of which {test} asks. PostgreSQL has
-- all values as text. In metadata, and in each text that it is compared with, \u0001 stands for itself and \u0002, and a
-- NUL for \u0001 twice: no text of PostgreSQL holds a NUL, SQLite's JSON ends there, and the order stays the same.

-- name: where_metadata (sqlite)
-- A metadata field. Each step of its path is a join.
EXISTS (
    SELECT 1 FROM (
        SELECT 'object' AS type, replace(replace(metadata, '\u0001', '\u0001\u0002'), '\u0000', '\u0001\u0001') AS value
        FROM texts WHERE texts.num = memories.num AND texts.agent = :agent
    ) AS held_0 {path}
    WHERE {test}
)

-- name: where_metadata (postgres)
-- A metadata field. Each step of its path is an operator; type json has numbers as they were written.
EXISTS (
    SELECT 1 FROM (
        SELECT CASE json_typeof(found) WHEN 'string' THEN 'text' WHEN 'boolean' THEN found #>> '{}'
            ELSE json_typeof(found) END AS type, found #>> '{}' AS value
        FROM (
            SELECT replace(replace(metadata, '\u0001', '\u0001\u0002'), '\u0000', '\u0001\u0001')::json {path} AS found
            FROM texts WHERE texts.agent = :agent AND texts.num = memories.num OFFSET 0
        ) AS field
    ) AS held
    WHERE held.type IS NOT NULL AND {test}
)

-- name: where_step (sqlite)
-- One step of a path: {step} is inside of {before}.
JOIN json_each(CASE {before}.type WHEN 'object' THEN {before}.value ELSE '{}' END) AS {step} ON {step}."key" = :key

-- name: where_step (postgres)
-- One step of a path.
-> :key::text

-- name: where_own_text
-- A memory's own text in the column {column}.
EXISTS (
    SELECT 1 FROM (
        SELECT 'text' AS type,
            {postgres: replace(}memories.{column}{postgres: , chr(1), chr(1) || chr(2))} AS value
    ) AS held
    WHERE held.value IS NOT NULL AND {test}
)

-- name: where_own_number
-- A memory's own number in the column {column}.
EXISTS (
    SELECT 1
    FROM (SELECT {sqlite: 'real'}{postgres: 'number'} AS type, memories.{column}::text AS value) AS held WHERE {test}
)

-- name: where_own_moment
-- A memory's own time in the column {column}.
EXISTS (SELECT 1 FROM (SELECT 'moment' AS type, memories.{column}::text AS value) AS held WHERE {test})

-- name: where_own_scope
-- A memory's scope in its text form.
EXISTS (
    SELECT 1 FROM (
        SELECT 'text' AS type, {postgres: replace(}scope || CASE scope_value WHEN '' THEN '' ELSE ':' || scope_value
            END{postgres: , chr(1), chr(1) || chr(2))} AS value
    ) AS held
    WHERE {test}
)

-- name: where_own_flag
-- Whether a memory is pinned.
EXISTS (
    SELECT 1 FROM (SELECT CASE pinned WHEN 1 THEN 'true' ELSE 'false' END AS type, pinned::text AS value) AS held
    WHERE {test}
)

-- name: where_own_tag
-- Each tag of a memory.
EXISTS (
    SELECT 1 FROM (
        SELECT 'text' AS type, {postgres: replace(}tags.tag{postgres: , chr(1), chr(1) || chr(2))} AS value
        FROM tags WHERE tags.agent = :agent AND tags.num = memories.num
    ) AS held
    WHERE {test}
)

-- name: where_type
-- A {test}: true, false or null.
held.type IN (:types)

-- name: where_text
-- A {test}: one of these texts.
(held.type = 'text' AND held.value IN (:texts))

-- name: where_tag
-- A {test}: one of these tags, or a tag below it. The semicolon is the character after the colon.
EXISTS (
    SELECT 1 FROM (SELECT column1 AS wanted FROM (VALUES :tags) {postgres: AS asked}) AS each_tag
    WHERE held.value = wanted OR (held.value > wanted || ':' AND held.value < wanted || ';')
)

-- name: where_ordered_text
-- A {test}: texts are ordered by code points.
(held.type = 'text' AND held.value {postgres: COLLATE "C"} {operator} :text)

-- name: where_prefix
-- A {test}: a text that begins with this one. SQLite's `substr` of texts ends at a NUL.
(held.type = 'text' AND {postgres: starts_with(held.value, :text)}
    {sqlite: substr(CAST(held.value AS BLOB), 1, length(CAST(:text AS BLOB))) = CAST(:text AS BLOB)})

-- name: where_number (sqlite)
-- A {test}: two whole numbers of 64 bits are compared exactly, others as floats.
(held.type IN ('integer', 'real') AND EXISTS (
    SELECT 1 FROM json_each(:numbers) AS wanted
    WHERE CASE WHEN typeof(held.value) = 'integer' AND typeof(wanted.value) = 'integer'
        THEN held.value {operator} wanted.value
        ELSE max(min(CAST(held.value AS REAL), 1.7976931348623157e308), -1.7976931348623157e308)
            {operator} CAST(wanted.value AS REAL) END
))

-- name: where_number (postgres)
-- A {test}: two whole numbers of 64 bits are compared exactly, others as floats.
CASE WHEN held.type = 'number' THEN EXISTS (
    SELECT 1 FROM json_array_elements_text(:numbers::json) AS wanted (value)
    WHERE CASE WHEN held.value !~ '[.eE]' AND wanted.value !~ '[.eE]'
            AND abs(held.value::numeric + 0.5) < 9223372036854775808
            AND abs(wanted.value::numeric + 0.5) < 9223372036854775808
        THEN held.value::numeric {operator} wanted.value::numeric
        ELSE greatest(least(held.value::numeric, 1.7976931348623157e308), -1.7976931348623157e308)::double precision
            {operator} wanted.value::double precision END
) ELSE false END

-- name: where_moment
-- A {test}: a moment, or a text that is a date by ISO 8601.
EXISTS (SELECT 1 FROM {each :moments} WHERE {moment} {operator} asked.value)

-- name: where_date (sqlite)
-- The {moment} of a value in microseconds since 1970, or NULL. SQLite checks a date by adding nothing to it.
CASE held.type WHEN 'moment' THEN held.value WHEN 'text' THEN (
    SELECT CASE WHEN (clock = '' AND zone = '' AND length(held.value) = 10 OR clock GLOB '[T ]*'
            AND time(hours, '+0 days') = hours AND (rest = '' OR rest GLOB '.[0-9]*' AND length(rest) < 8
            AND substr(rest, 2) NOT GLOB '*[^0-9]*'))
            AND date(day, '+0 days') = day AND day > '0001'
        THEN CAST(strftime('%s', day || ' ' || hours) AS INTEGER) * 1000000
            + CAST(substr(rest || '0000000', 2, 6) AS INTEGER)
            - CASE WHEN length(zone) = 6 THEN (substr(zone, 1, 1) || '60000000')
                * (substr(zone, 2, 2) * 60 + substr(zone, 5, 2)) ELSE 0 END
        END
    FROM (
        SELECT day, zone, clock, substr(clock, 10) AS rest,
            CASE length(clock) WHEN 0 THEN '00:00:00' WHEN 6 THEN substr(clock, 2) || ':00'
                ELSE substr(clock, 2, 8) END AS hours
        FROM (
            SELECT day, zone, substr(held.value, 11, length(held.value) - 10 - length(zone)) AS clock
            FROM (
                SELECT substr(held.value, 1, 10) AS day,
                    CASE WHEN substr(held.value, -1) = 'Z' THEN 'Z'
                        WHEN substr(held.value, -6) GLOB '[-+][01][0-9]:[0-5][0-9]' AND substr(held.value, -5) < '15'
                        THEN substr(held.value, -6) ELSE '' END AS zone
                WHERE held.value GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]*'
                    AND length(held.value) = length(CAST(held.value AS BLOB))
            )
        )
    )
) END

-- name: where_date (postgres)
-- The {moment} of a value in microseconds since 1970, or NULL. A cast of what is no date would raise.
CASE WHEN held.type = 'moment' THEN held.value::bigint
    WHEN held.type <> 'text' OR substr(held.value, 1, 4) = '0000' OR held.value !~ ('^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|'
        || '[12][0-9]|3[01])([T\u0020]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6}){0,1}){0,1}'
        || '(Z|[-+](0[0-9]|1[0-4]):[0-5][0-9]){0,1}){0,1}$') THEN NULL
    WHEN extract(month FROM make_date(substr(held.value, 1, 4)::integer, substr(held.value, 6, 2)::integer, 1)
        + substr(held.value, 9, 2)::integer - 1) <> substr(held.value, 6, 2)::integer THEN NULL
    WHEN held.value ~ '(Z|[-+][0-9]{2}:[0-9]{2})$' THEN (extract(epoch FROM held.value::timestamptz) * 1000000)::bigint
    ELSE (extract(epoch FROM held.value::timestamp) * 1000000)::bigint END

-- name: where_readable_late
-- A condition for {filter}: the memories whose records a search may leave unread, see `UnreadMemory`.
AND version = 1 AND superseded_by IS NULL AND status = 'active' AND valid_from IS NULL AND valid_until IS NULL
AND EXISTS (
    SELECT 1 FROM texts WHERE texts.agent = memories.agent AND texts.num = memories.num
      AND full_tokens <= :short AND {sqlite: instr}{postgres: strpos}(metadata, '"status"') = 0
)
