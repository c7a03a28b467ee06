-- The review rounds of a run: the current one, and the one after which a person last continued it. `tree` is the
-- content of the workspace that the run's proof and verdicts hold for.
ALTER TABLE runs ADD COLUMN review_round BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN rounds_from BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN tree TEXT NOT NULL DEFAULT '';

ALTER TABLE turns ADD COLUMN iteration BIGINT NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN review_round BIGINT NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN seat BIGINT NOT NULL DEFAULT 0;

-- Iterations that are over, and what was wrong at their end.
CREATE TABLE iterations (
    run_id TEXT NOT NULL REFERENCES runs (id),
    number BIGINT NOT NULL,
    tree TEXT NOT NULL,
    failure TEXT NOT NULL,
    digest TEXT NOT NULL,
    detail TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (run_id, number)
);

-- What a reviewer said about one tree.
CREATE TABLE verdicts (
    run_id TEXT NOT NULL REFERENCES runs (id),
    turn BIGINT NOT NULL,
    iteration BIGINT NOT NULL,
    review_round BIGINT NOT NULL,
    seat BIGINT NOT NULL,
    agent TEXT NOT NULL,
    tree TEXT NOT NULL,
    outcome TEXT NOT NULL,
    resolved BIGINT NOT NULL,
    summary TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (run_id, turn)
);

CREATE TABLE findings (
    run_id TEXT NOT NULL REFERENCES runs (id),
    number BIGINT NOT NULL,
    review_round BIGINT NOT NULL,
    seat BIGINT NOT NULL,
    agent TEXT NOT NULL,
    severity TEXT NOT NULL,
    file TEXT NOT NULL,
    line BIGINT NOT NULL,
    text TEXT NOT NULL,
    state TEXT NOT NULL,
    settled_round BIGINT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (run_id, number)
);

-- Sessions of reviewers, one for each round and seat. `sessions` has those of the agents that work.
CREATE TABLE review_sessions (
    run_id TEXT NOT NULL REFERENCES runs (id),
    agent TEXT NOT NULL,
    role TEXT NOT NULL,
    seat BIGINT NOT NULL,
    review_round BIGINT NOT NULL,
    session TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (run_id, agent, role, seat, review_round)
);

CREATE INDEX review_sessions_session ON review_sessions (session);

-- Worktrees that jackline made for runs.
CREATE TABLE worktrees (
    run_id TEXT NOT NULL PRIMARY KEY REFERENCES runs (id),
    repository TEXT NOT NULL,
    name TEXT NOT NULL,
    branch TEXT NOT NULL,
    base TEXT NOT NULL,
    base_branch TEXT NOT NULL,
    path TEXT NOT NULL,
    host TEXT NOT NULL,
    made_at BIGINT,
    set_up_at BIGINT,
    merged_at BIGINT,
    removed_at BIGINT
);

CREATE UNIQUE INDEX worktrees_name ON worktrees (repository, name) WHERE removed_at IS NULL;

-- The pull request of a run, as it was last seen.
CREATE TABLE pull_requests (
    run_id TEXT NOT NULL PRIMARY KEY REFERENCES runs (id),
    repository TEXT NOT NULL,
    number BIGINT NOT NULL,
    url TEXT NOT NULL,
    branch TEXT NOT NULL,
    base TEXT NOT NULL,
    head TEXT NOT NULL,
    commits TEXT NOT NULL,
    state TEXT NOT NULL,
    seen TEXT NOT NULL,
    published_at BIGINT NOT NULL,
    pushed_at BIGINT NOT NULL,
    looked_at BIGINT NOT NULL,
    next_at BIGINT NOT NULL,
    quiet BIGINT NOT NULL,
    failures BIGINT NOT NULL,
    told_at BIGINT
);

CREATE INDEX pull_requests_next ON pull_requests (next_at);

-- Texts from outside that the next turn of the worker gets, quoted: failing logs, comments. An origin is stored once.
CREATE TABLE feedback (
    run_id TEXT NOT NULL REFERENCES runs (id),
    number BIGINT NOT NULL,
    source TEXT NOT NULL,
    origin TEXT NOT NULL,
    author TEXT NOT NULL,
    text TEXT NOT NULL,
    at BIGINT NOT NULL,
    turn BIGINT,
    PRIMARY KEY (run_id, number)
);

CREATE UNIQUE INDEX feedback_origin ON feedback (run_id, origin);

-- Messages between the agents of a run, and a person; in the order of their numbers.
CREATE TABLE bridge_messages (
    run_id TEXT NOT NULL REFERENCES runs (id),
    number BIGINT NOT NULL,
    kind TEXT NOT NULL,
    sender TEXT NOT NULL,
    recipient TEXT NOT NULL,
    content TEXT NOT NULL,
    signal TEXT NOT NULL,
    iteration BIGINT NOT NULL,
    at BIGINT NOT NULL,
    dedupe_key TEXT NOT NULL,
    PRIMARY KEY (run_id, number)
);

CREATE UNIQUE INDEX bridge_messages_key ON bridge_messages (run_id, sender, dedupe_key) WHERE dedupe_key <> '';

-- How far each reader is, in numbers of messages. A message is given again until it is acknowledged; the prompt of
-- `turn` has those up to `prompted`.
CREATE TABLE bridge_reads (
    run_id TEXT NOT NULL REFERENCES runs (id),
    reader TEXT NOT NULL,
    joined_at BIGINT NOT NULL,
    acknowledged BIGINT NOT NULL,
    given BIGINT NOT NULL,
    prompted BIGINT NOT NULL,
    turn BIGINT NOT NULL,
    PRIMARY KEY (run_id, reader)
);

-- The terminal sessions in which runs were started.
CREATE TABLE tmux_sessions (
    run_id TEXT NOT NULL PRIMARY KEY REFERENCES runs (id),
    session TEXT NOT NULL,
    socket TEXT NOT NULL,
    host TEXT NOT NULL,
    started_at BIGINT NOT NULL
);
