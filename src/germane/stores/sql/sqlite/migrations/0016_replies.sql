-- Answers to requests that may be sent again. `name` is a hash of the request's key, and `mark` one of the request,
-- which that key seals; `answer` is NULL where it is too long. A purge sets both to NULL: they may tell what it was.
CREATE TABLE replies (
    agent  INTEGER NOT NULL,
    name   BLOB    NOT NULL,
    at     INTEGER NOT NULL,
    done   INTEGER NOT NULL DEFAULT 0 CHECK (done IN (0, 1)),
    mark   BLOB,
    answer BLOB,
    PRIMARY KEY (agent, name)
) STRICT;
