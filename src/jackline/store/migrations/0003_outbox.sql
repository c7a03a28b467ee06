CREATE TABLE notices (
    id TEXT NOT NULL PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES runs (id),
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    chain_head TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    delivered_at BIGINT
);

CREATE INDEX notices_newest ON notices (created_at, id);
CREATE INDEX notices_run ON notices (run_id, created_at, id);
