-- The agent's own state: what it keeps in its queue, its notebook and its journal, beside the runs.
-- work_items has the columns of the system before and a few more; any SQLite tool reads it, and the events.
CREATE TABLE work_items (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL,
    status TEXT NOT NULL,
    owner_agent TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    notes TEXT NOT NULL,
    priority BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    max_attempts BIGINT NOT NULL,
    token BIGINT NOT NULL,
    lease_boot TEXT,
    lease_until BIGINT,
    question TEXT NOT NULL,
    answer TEXT NOT NULL,
    dead BIGINT NOT NULL,
    finished_at BIGINT,
    event_seq BIGINT NOT NULL,
    chain_head TEXT NOT NULL
);

CREATE INDEX work_items_next ON work_items (status, priority DESC, created_at, id);
CREATE INDEX work_items_next_of_kind ON work_items (status, kind, priority DESC, created_at, id);
CREATE INDEX work_items_newest ON work_items (created_at, id);
CREATE INDEX work_items_kind ON work_items (kind, created_at, id);
CREATE INDEX work_items_status ON work_items (status, created_at, id);
CREATE INDEX work_items_owner ON work_items (owner_agent, created_at, id) WHERE owner_agent IS NOT NULL;

-- Where a stream stands that belongs to no run, no item and no case.
CREATE TABLE streams (
    name TEXT NOT NULL PRIMARY KEY,
    event_seq BIGINT NOT NULL,
    chain_head TEXT NOT NULL,
    updated_at BIGINT NOT NULL
);

-- What people and agents follow: every event but a run's own talk and tool calls, which are read run by run. A partial
-- index, so that a durable call does not pay for it; a query has to say the same two conditions to get it.
CREATE INDEX events_timeline ON events (at, stream, seq)
WHERE NOT (kind >= 'agent.' AND kind < 'agent/') AND NOT (kind >= 'call.' AND kind < 'call/');

CREATE TABLE cases (
    id TEXT NOT NULL PRIMARY KEY,
    repository TEXT NOT NULL,
    path TEXT NOT NULL,
    user_name TEXT NOT NULL,
    run_id TEXT REFERENCES runs (id),
    status TEXT NOT NULL,
    request TEXT NOT NULL,
    problem TEXT NOT NULL,
    hypotheses BIGINT NOT NULL,
    evidence BIGINT NOT NULL,
    commands BIGINT NOT NULL,
    learnings BIGINT NOT NULL,
    closeout TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    closed_at BIGINT,
    event_seq BIGINT NOT NULL,
    chain_head TEXT NOT NULL
);

CREATE INDEX cases_repository ON cases (repository, created_at, id);
CREATE INDEX cases_newest ON cases (created_at, id);
CREATE INDEX cases_run ON cases (run_id) WHERE run_id IS NOT NULL;

CREATE TABLE case_entries (
    case_id TEXT NOT NULL REFERENCES cases (id),
    kind TEXT NOT NULL,
    number BIGINT NOT NULL,
    at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    text TEXT NOT NULL,
    status TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (case_id, kind, number)
) /* WITHOUT ROWID */;

CREATE INDEX case_entries_learnings ON case_entries (at, case_id, number) WHERE kind = 'learning';

-- One active case for each place: a run, or a repository and a user.
CREATE TABLE active_cases (
    place TEXT NOT NULL PRIMARY KEY,
    case_id TEXT NOT NULL REFERENCES cases (id),
    at BIGINT NOT NULL
);

-- What was spent on each day (UTC), written together with the run that spent it: a sum over all runs would grow.
CREATE TABLE spending (
    day TEXT NOT NULL,
    agent TEXT NOT NULL,
    usd_micros BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    PRIMARY KEY (day, agent)
);

CREATE INDEX runs_finished ON runs (finished_at, id) WHERE finished_at IS NOT NULL;

-- What a dashboard shows first; each holds no more than what it is about.
CREATE INDEX runs_waiting ON runs (state, reason, created_at, id) WHERE reason IS NOT NULL;
CREATE INDEX runs_ended ON runs (state, finished_at, id) WHERE finished_at IS NOT NULL;
CREATE INDEX work_items_dead ON work_items (finished_at, id) WHERE dead = 1;
