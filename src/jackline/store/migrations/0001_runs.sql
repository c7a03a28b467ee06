-- Portable on purpose: TEXT ids, BIGINT milliseconds since the epoch, TEXT JSON. PostgreSQL reads every TEXT as
-- TEXT COLLATE "C", so that both backends sort and compare by bytes. SQLite reads /* WITHOUT ROWID */ as a clause: in
-- the tables that every call writes to it saves a page per commit.
CREATE TABLE schema_migrations (
    version BIGINT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    applied_at BIGINT NOT NULL
);

CREATE TABLE instance (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE repositories (
    id TEXT NOT NULL PRIMARY KEY,
    path TEXT NOT NULL,
    next_number BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);

-- Every write of a worker changes a row of this table, so the row stays small: the spec has a table of its own.
CREATE TABLE runs (
    id TEXT NOT NULL PRIMARY KEY,
    number BIGINT NOT NULL,
    repository TEXT NOT NULL REFERENCES repositories (id),
    lineage TEXT NOT NULL,
    parent TEXT REFERENCES runs (id),
    agent TEXT NOT NULL,
    task TEXT NOT NULL,
    prompt TEXT NOT NULL,
    request TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    wake_at BIGINT,
    phase TEXT,
    goal TEXT NOT NULL,
    failure TEXT,
    detail TEXT NOT NULL,
    proof TEXT NOT NULL,
    token BIGINT NOT NULL,
    step BIGINT NOT NULL,
    turn BIGINT NOT NULL,
    iteration BIGINT NOT NULL,
    retries BIGINT NOT NULL,
    cancel_requested BIGINT NOT NULL,
    wall_ms BIGINT NOT NULL,
    iterations BIGINT NOT NULL,
    steps BIGINT NOT NULL,
    calls BIGINT NOT NULL,
    tokens_input BIGINT NOT NULL,
    tokens_output BIGINT NOT NULL,
    tokens_cached BIGINT NOT NULL,
    usd_micros BIGINT NOT NULL,
    owner TEXT,
    lease_boot TEXT,
    lease_until BIGINT,
    event_seq BIGINT NOT NULL,
    chain_head TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    started_at BIGINT,
    finished_at BIGINT,
    archived_at BIGINT,
    archived_seq BIGINT NOT NULL DEFAULT 0,
    archived_head TEXT NOT NULL DEFAULT '',
    UNIQUE (repository, number)
);

-- A list is read newest first from one of these, whatever it is narrowed by; several states are merged.
CREATE INDEX runs_newest ON runs (created_at, id);
CREATE INDEX runs_agent ON runs (agent, created_at, id);
CREATE INDEX runs_task ON runs (task, created_at, id);
CREATE INDEX runs_repository ON runs (repository, created_at, id);
CREATE INDEX runs_state ON runs (state, created_at, id);
CREATE INDEX runs_agent_state ON runs (agent, state, created_at, id);
CREATE INDEX runs_task_state ON runs (task, state, created_at, id);
CREATE INDEX runs_repository_state ON runs (repository, state, created_at, id);

CREATE TABLE specs (
    run_id TEXT NOT NULL PRIMARY KEY REFERENCES runs (id),
    spec TEXT NOT NULL
);

CREATE TABLE events (
    stream TEXT NOT NULL,
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    data TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (stream, seq)
) /* WITHOUT ROWID */;

CREATE TABLE attempts (
    run_id TEXT NOT NULL REFERENCES runs (id),
    token BIGINT NOT NULL,
    owner TEXT NOT NULL,
    host TEXT NOT NULL,
    boot TEXT NOT NULL,
    pid BIGINT NOT NULL,
    warden_pid BIGINT,
    warden_started BIGINT,
    started_at BIGINT NOT NULL,
    ended_at BIGINT,
    outcome TEXT,
    PRIMARY KEY (run_id, token)
);

CREATE TABLE steps (
    run_id TEXT NOT NULL REFERENCES runs (id),
    step BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    kind TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at BIGINT,
    outcome TEXT,
    PRIMARY KEY (run_id, step)
);

CREATE TABLE turns (
    run_id TEXT NOT NULL REFERENCES runs (id),
    number BIGINT NOT NULL,
    step BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    role TEXT NOT NULL,
    agent TEXT NOT NULL,
    session TEXT,
    prompt TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at BIGINT,
    exit_code BIGINT,
    failure TEXT,
    detail TEXT NOT NULL,
    last_message TEXT NOT NULL,
    stdout_bytes BIGINT NOT NULL,
    stderr_bytes BIGINT NOT NULL,
    raw_lines BIGINT NOT NULL,
    wall_ms BIGINT NOT NULL,
    iterations BIGINT NOT NULL,
    steps BIGINT NOT NULL,
    calls BIGINT NOT NULL,
    tokens_input BIGINT NOT NULL,
    tokens_output BIGINT NOT NULL,
    tokens_cached BIGINT NOT NULL,
    usd_micros BIGINT NOT NULL,
    PRIMARY KEY (run_id, number)
);

CREATE TABLE checks (
    run_id TEXT NOT NULL REFERENCES runs (id),
    step BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    command TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at BIGINT,
    exit_code BIGINT,
    output TEXT NOT NULL,
    tree TEXT NOT NULL,
    PRIMARY KEY (run_id, step)
);

CREATE TABLE sessions (
    run_id TEXT NOT NULL REFERENCES runs (id),
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (run_id, agent)
);

CREATE INDEX sessions_session ON sessions (session);

CREATE TABLE checkpoints (
    run_id TEXT NOT NULL REFERENCES runs (id),
    step BIGINT NOT NULL,
    kind TEXT NOT NULL,
    life TEXT NOT NULL,
    cursor TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (run_id, step, kind)
);
