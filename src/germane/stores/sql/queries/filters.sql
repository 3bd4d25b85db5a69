-- What a filter admits, and its conditions, which take the place of {filter} in other queries.

-- name: admitted
-- Every memory that a filter admits.
SELECT num FROM memories WHERE num > :above AND num < :below AND {+}agent = :agent {filter};

-- name: admitted_among
-- Which of these memories a filter admits.
SELECT num FROM memories
WHERE num {numbers :nums} AND {+}agent = :agent {filter};

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

-- name: where_metadata (sqlite)
-- A condition for {filter}. In JSON a truth value is no number, and a whole number may be written as a fraction.
AND NOT EXISTS (
    SELECT 1 FROM json_each(:metadata) AS wanted
    WHERE NOT EXISTS (
        SELECT 1 FROM texts, json_each(texts.metadata) AS held
        WHERE texts.num = memories.num AND memories.agent = :agent AND held."key" = wanted."key"
          AND held.value IS wanted.value
          AND CASE held.type WHEN 'real' THEN 'integer' ELSE held.type END
            = CASE wanted.type WHEN 'real' THEN 'integer' ELSE wanted.type END
    )
)

-- name: where_metadata (postgres)
-- A condition for {filter}. No jsonb holds a NUL: for both sides it is a character that no text has.
AND EXISTS (
    SELECT 1 FROM texts
    WHERE texts.agent = :agent AND texts.num = memories.num
      AND replace(texts.metadata, '\u0000', '\ufdd0')::jsonb @> replace(:metadata::text, '\u0000', '\ufdd0')::jsonb
)

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
