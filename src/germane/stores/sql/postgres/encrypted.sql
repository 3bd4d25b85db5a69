-- What an encrypted store has other than schema.sql says: the server sees no vectors and no terms, so it can't compare
-- them. It runs once, in the transaction that makes the tables.
ALTER TABLE vectors ALTER COLUMN vector TYPE bytea USING NULL;

DROP INDEX lex_by_key;

ALTER TABLE lex DROP COLUMN keys;
