-- What a run changed in its repository, as git told it when its last turn ended; `commits` is a JSON list.
CREATE TABLE run_changes (
    run_id TEXT NOT NULL PRIMARY KEY REFERENCES runs (id),
    commits TEXT NOT NULL,
    files_changed BIGINT NOT NULL,
    insertions BIGINT NOT NULL,
    deletions BIGINT NOT NULL,
    at BIGINT NOT NULL
);
