-- What copies one agent from store to store, table by table, whatever either is kept in.
-- Each pair names the same columns in the same order; what is put in had no row before.

-- name: carried_state
-- The counters and settings of an agent.
SELECT seq, memories, terms, language, learning, judged, moved, attested, lived FROM states
WHERE agent = %(agent)s;

-- name: carry_state
-- Give an agent, which has nothing so far, the counters and settings of another store's.
UPDATE states SET seq = %(seq)s, memories = %(memories)s,
    terms = %(terms)s, language = %(language)s,
    learning = %(learning)s, judged = %(judged)s, moved = %(moved)s, attested = %(attested)s, lived = %(lived)s
WHERE agent = %(agent)s;

-- name: carried_conversations
-- The conversations of an agent.
SELECT conversation, session, said, revision, opened
FROM conversations WHERE agent = %(agent)s ORDER BY conversation;

-- name: carried_working_sets
-- The agent's rows.
SELECT working_set, agent, name, max_tokens, moved
FROM working_sets WHERE agent = %(agent)s
ORDER BY working_set;

-- name: carried_memories
-- The agent's rows.
SELECT num, agent, id, kind, status, scope, scope_value, subject, importance, confidence, outcome, trust,
       source, pinned, created_at, updated_at, chain, version, content_hash, seen_count, access_count,
       accessed_at, supersedes, superseded_by, stage
FROM memories WHERE agent = %(agent)s
ORDER BY num;

-- name: carried_texts
-- The agent's rows.
SELECT num, agent, content, micro, micro_tokens, summary, summary_tokens, full_text, full_tokens, counter, tags,
       metadata
FROM texts WHERE agent = %(agent)s
ORDER BY num;

-- name: carried_tags
-- The agent's rows.
SELECT agent, tag, num
FROM tags WHERE agent = %(agent)s
ORDER BY tag, num;

-- name: carried_places
-- The agent's rows.
SELECT agent, place, num
FROM places WHERE agent = %(agent)s
ORDER BY place, num;

-- name: carried_lex
-- The agent's rows.
SELECT num, agent, length, hashes, frequencies
FROM lex WHERE agent = %(agent)s
ORDER BY num;

-- name: carried_vectors
-- The agent's rows.
SELECT num, agent, vector
FROM vectors WHERE agent = %(agent)s
ORDER BY num;

-- name: carried_unembedded
-- The agent's rows.
SELECT num, agent
FROM unembedded WHERE agent = %(agent)s
ORDER BY num;

-- name: carried_changes
-- The agent's rows.
SELECT agent, seq, num, what
FROM changes WHERE agent = %(agent)s
ORDER BY seq;

-- name: carried_shown
-- The agent's rows.
SELECT agent, context, num, given, used, parts
FROM shown WHERE agent = %(agent)s
ORDER BY context, num;

-- name: carry_shown
-- Put them in.
INSERT INTO shown (agent, context, num, given, used, parts)
VALUES (%s, %s, %s, %s, %s, %s);

-- name: carried_outcomes
-- The agent's rows.
SELECT agent, context, num, given, worth, weight, at
FROM outcomes WHERE agent = %(agent)s
ORDER BY context, num;

-- name: carry_outcomes
-- Put them in.
INSERT INTO outcomes (agent, context, num, given, worth, weight, at)
VALUES (%s, %s, %s, %s, %s, %s, %s);

-- name: carried_held
-- The agent's rows.
SELECT working_set, num, agent, place, entered_at, touched_at, touches, pinned, recalled
FROM held WHERE agent = %(agent)s
ORDER BY place, num;

-- name: carry_held
-- Put them in.
INSERT INTO held (working_set, num, agent, place, entered_at, touched_at, touches, pinned, recalled)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s);

-- name: carried_moves
-- The agent's rows.
SELECT agent, number, working_set, what, id, former, by, at
FROM moves WHERE agent = %(agent)s
    AND working_set IN (SELECT working_sets.working_set FROM working_sets WHERE working_sets.agent = %(agent)s)
ORDER BY number;

-- name: carried_lives
-- The agent's rows.
SELECT num, agent, confirmations, successes, failures, triggers, false_alarms, renewed_at
FROM lives WHERE agent = %(agent)s
ORDER BY num;

-- name: carry_lives
-- Put them in.
INSERT INTO lives (num, agent, confirmations, successes, failures, triggers, false_alarms, renewed_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s);

-- name: carried_life_events
-- The agent's rows.
SELECT life_events.agent, number, life_events.num, sign, stage_before, stage_after, cause, by, others.num, at
FROM life_events LEFT JOIN memories AS others ON others.agent = life_events.agent AND others.num = life_events.other
WHERE life_events.agent = %(agent)s
ORDER BY number;

-- name: carry_life_events
-- Put them in.
INSERT INTO life_events (agent, number, num, sign, stage_before, stage_after, cause, by, other, at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s);

-- name: carried_messages
-- The agent's rows.
SELECT num, agent, conversation, id, group_name, role, provider, form, created_at, hidden, parts, extra
FROM messages WHERE agent = %(agent)s
ORDER BY num;

-- name: carried_anchors
-- The agent's rows.
SELECT conversation, agent, name, text
FROM anchors WHERE agent = %(agent)s
ORDER BY conversation, name;

-- name: carry_anchors
-- Put them in.
INSERT INTO anchors (conversation, agent, name, text)
VALUES (%s, %s, %s, %s);

-- name: carried_spaces
-- The agent's rows.
SELECT space, admits, created_at, joined, happened
FROM spaces WHERE space = %(space)s
ORDER BY space;

-- name: carry_spaces
-- Put them in.
INSERT INTO spaces (space, admits, created_at, joined, happened)
VALUES (%s, %s, %s, %s, %s);

-- name: carried_members
-- The agent's rows.
SELECT space, agent, rights, role, joined_at, place
FROM members WHERE space = %(space)s
ORDER BY place;

-- name: carry_members
-- Put them in.
INSERT INTO members (space, agent, rights, role, joined_at, place)
VALUES (%s, %s, %s, %s, %s, %s);

-- name: carried_space_events
-- The agent's rows.
SELECT space, number, what, by, num, id, former, member, held_in, at
FROM space_events WHERE space = %(space)s
ORDER BY number;

-- name: carry_space_events
-- Put them in.
INSERT INTO space_events (space, number, what, by, num, id, former, member, held_in, at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s);

-- name: carried_assemblies
-- The agent's rows.
SELECT agent, number, id, at, context, sha256, tokens, candidates, asked
FROM assemblies WHERE agent = %(agent)s
ORDER BY number;

-- name: carry_assemblies
-- Put them in.
INSERT INTO assemblies (agent, number, id, at, context, sha256, tokens, candidates, asked)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s);

-- name: carried_assembled
-- The agent's rows.
SELECT agent, number, place, num, section, score, parts, level, reason, tokens, short_by, pinned
FROM assembled WHERE agent = %(agent)s
ORDER BY number, place;

-- name: carry_assembled
-- Put them in.
INSERT INTO assembled (agent, number, place, num, section, score, parts, level, reason, tokens, short_by,
    pinned)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s);
