-- What a role for applications may do; {role} stands for its name. It owns nothing and bypasses no policy. Names
-- are added by a function, and partitions are reached through their parents alone.
GRANT SELECT ON migrations, agents, erasures TO {role};

-- What holds for the whole store can be said where nothing is said yet, and not changed; a token can be left, and
-- is taken away by a function.
REVOKE ALL ON settings, commits FROM {role};
GRANT SELECT, INSERT ON settings TO {role};
GRANT INSERT (token) ON commits TO {role};

GRANT SELECT, INSERT, UPDATE, DELETE ON
    states, memories, texts, tags, places, lex, vectors, unembedded, changes, shown, outcomes, working_sets,
    held, moves, spaces, members, space_events, conversations, messages, message_lex, anchors, lives, life_events,
    assemblies, assembled, learning_runs, replies, memory_blocks, data_keys
TO {role};

GRANT USAGE ON SEQUENCE working_set_numbers, conversation_numbers TO {role};
