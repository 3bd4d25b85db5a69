-- The keys of an encrypted store, see `encryption.py`.

-- name: data_key
-- The encrypted key of an agent's data.
SELECT wrapped FROM data_keys WHERE agent = :agent;

-- name: data_keys
-- Those of all agents.
SELECT agent, wrapped FROM data_keys ORDER BY agent;

-- name: add_data_key
-- Store the key of an agent that has none.
INSERT INTO data_keys (agent, wrapped) VALUES (:agent, :wrapped);

-- name: change_data_key
-- Store the key of an agent, encrypted by another key of the store.
UPDATE data_keys SET wrapped = :wrapped WHERE agent = :agent;

-- name: remove_data_key
-- Remove the key of an agent, of which nothing can be read any more.
DELETE FROM data_keys WHERE agent = :agent;
