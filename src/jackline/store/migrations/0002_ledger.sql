-- `number` is the call's place among the calls of its run. An open call has no finished_at: prepared, in doubt, or
-- asked and not yet answered. `occurrence` counts the calls of one key; it is 0 where a call repeats freely.
-- By run first: a run's calls lie together, and are found without an index that each call would have to be written to.
CREATE TABLE calls (
    id TEXT NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs (id),
    attempt BIGINT NOT NULL,
    turn BIGINT NOT NULL,
    step BIGINT NOT NULL,
    occurrence BIGINT NOT NULL,
    tool TEXT NOT NULL,
    call_class TEXT NOT NULL,
    replay TEXT NOT NULL,
    decision TEXT NOT NULL,
    rule TEXT NOT NULL,
    door TEXT NOT NULL,
    key TEXT NOT NULL,
    target TEXT NOT NULL,
    input TEXT NOT NULL,
    state TEXT NOT NULL,
    prepared_at BIGINT NOT NULL,
    agent_call TEXT NOT NULL,
    reason TEXT NOT NULL,
    answer TEXT NOT NULL,
    original TEXT,
    output TEXT NOT NULL,
    exit_code BIGINT,
    finished_at BIGINT,
    number BIGINT NOT NULL,
    parent_id TEXT,
    input_ref TEXT,
    output_ref TEXT,
    PRIMARY KEY (run_id, id)
) /* WITHOUT ROWID */;

-- None for the open calls: it would be written twice for each call, and is asked for once a turn, of one run.
CREATE INDEX calls_key ON calls (run_id, key, number) WHERE occurrence > 0;
CREATE INDEX calls_target ON calls (run_id, target, number) WHERE target <> '';

CREATE TABLE receipts (
    call_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    key TEXT NOT NULL,
    target TEXT NOT NULL,
    rule TEXT NOT NULL,
    output TEXT NOT NULL,
    external_id TEXT NOT NULL,
    origin TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (run_id, key),
    FOREIGN KEY (run_id, call_id) REFERENCES calls (run_id, id)
) /* WITHOUT ROWID */;
