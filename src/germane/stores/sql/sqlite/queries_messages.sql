-- What is stored of the words of messages, so that nobody has to read them again to rank by them.

-- name: insert_message_lex
-- Store the forward record of a message, or the one of these rules in place of another.
INSERT INTO message_lex (num, agent, rules, length, hashes, frequencies) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (num) DO UPDATE SET
    rules = excluded.rules, length = excluded.length, hashes = excluded.hashes, frequencies = excluded.frequencies;

-- name: message_lex
-- The forward records of a conversation's messages after a number, but for those that other rules made or that
-- can't be read.
SELECT num, length, hashes, frequencies FROM message_lex
WHERE num > :above AND num < :below AND +agent = :agent AND rules = :rules
    AND length(hashes) = 4 * length(frequencies) ORDER BY num;

-- name: carried_message_lex
-- The agent's rows.
SELECT num, agent, rules, length, hashes, frequencies
FROM message_lex WHERE agent = :agent
ORDER BY num;
