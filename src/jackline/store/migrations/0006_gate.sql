-- `external` is JSON: what a rule found in a call's output, by name. `cut_off` counts how often a recovery found the call
-- without an outcome; what a probe or a person says of it later leaves the count as it is.
ALTER TABLE calls ADD COLUMN duration_ms BIGINT;
ALTER TABLE calls ADD COLUMN
    external TEXT NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN cut_off BIGINT NOT NULL DEFAULT 0;

-- The step of the parent after which a fork goes its own way.
ALTER TABLE runs ADD COLUMN forked_at BIGINT;

-- Large inputs and outputs of calls, by the digest that the call's reference names.
CREATE TABLE contents (
    run_id TEXT NOT NULL REFERENCES runs (id),
    digest TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (run_id, digest)
);
