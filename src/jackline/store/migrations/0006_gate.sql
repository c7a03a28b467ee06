-- `external` is JSON: what a rule found in a call's output, by name.
ALTER TABLE calls ADD COLUMN duration_ms BIGINT;
ALTER TABLE calls ADD COLUMN external TEXT NOT NULL DEFAULT '';

-- The step of the parent after which a fork goes its own way.
ALTER TABLE runs ADD COLUMN forked_at BIGINT;

-- Large inputs and outputs of calls, by the digest that the call's reference names.
CREATE TABLE contents (
    run_id TEXT NOT NULL REFERENCES runs (id),
    digest TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (run_id, digest)
);
