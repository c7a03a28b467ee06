-- Runs that a service may start. A queued run without a row here belongs to the process that created it.
CREATE TABLE queue (
    run_id TEXT NOT NULL PRIMARY KEY REFERENCES runs (id),
    priority BIGINT NOT NULL,
    not_before BIGINT NOT NULL,
    batch TEXT NOT NULL,
    batch_slots BIGINT NOT NULL,
    held_at BIGINT,
    added_at BIGINT NOT NULL,
    position BIGINT NOT NULL
);

CREATE INDEX queue_batch ON queue (batch) WHERE batch <> '';

-- A key belongs to the run that took it until that run has ended.
CREATE TABLE dedupe_keys (
    key TEXT NOT NULL PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES runs (id)
);

CREATE TABLE dependencies (
    run_id TEXT NOT NULL REFERENCES runs (id),
    depends_on TEXT NOT NULL REFERENCES runs (id),
    PRIMARY KEY (run_id, depends_on)
);

CREATE INDEX dependencies_on ON dependencies (depends_on, run_id);

-- How many limits of a provider the run has waited for since a person last continued it.
ALTER TABLE runs ADD COLUMN windows BIGINT NOT NULL DEFAULT 0;

CREATE INDEX runs_wake ON runs (wake_at, id) WHERE wake_at IS NOT NULL;
CREATE INDEX runs_answered ON runs (updated_at, id)
    WHERE token > 0 AND reason IS NULL AND owner IS NULL AND finished_at IS NULL;

-- The run that was let through first after a limit of its agent had reset.
CREATE TABLE limit_probes (
    agent TEXT NOT NULL PRIMARY KEY,
    reset_at BIGINT NOT NULL,
    run_id TEXT NOT NULL,
    taken_at BIGINT NOT NULL
);

-- Service processes; one that disappears without setting stopped_at is reported once.
CREATE TABLE services (
    id TEXT NOT NULL PRIMARY KEY,
    host TEXT NOT NULL,
    boot TEXT NOT NULL,
    pid BIGINT NOT NULL,
    slots BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    stopped_at BIGINT,
    reported_at BIGINT
);

CREATE INDEX services_open ON services (host, id) WHERE stopped_at IS NULL;

-- Runs that a service could not start. It counts while the run has no newer attempt; a new reason is a notice.
CREATE TABLE start_failures (
    run_id TEXT NOT NULL PRIMARY KEY REFERENCES runs (id),
    attempt BIGINT NOT NULL,
    reason TEXT NOT NULL,
    failures BIGINT NOT NULL,
    since BIGINT NOT NULL,
    next_at BIGINT NOT NULL
);

-- Notices that are not about a run: subject is work:ID, schedule:NAME, trigger:NAME, service:ID, budget:DAY or home.
CREATE TABLE subject_notices (
    id TEXT NOT NULL PRIMARY KEY,
    subject TEXT NOT NULL,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    delivered_at BIGINT,
    labels TEXT NOT NULL,
    priority TEXT NOT NULL
);

CREATE INDEX subject_notices_newest ON subject_notices (created_at, id);
CREATE INDEX subject_notices_open ON subject_notices (created_at, id) WHERE delivered_at IS NULL;
CREATE INDEX notices_open ON notices (created_at, id) WHERE delivered_at IS NULL;

-- One row for each notice, of either table, and channel; claimed before it is sent.
CREATE TABLE deliveries (
    notice_id TEXT NOT NULL,
    channel TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    next_at BIGINT NOT NULL,
    owner TEXT NOT NULL,
    claimed_until BIGINT NOT NULL,
    error TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    sent_at BIGINT,
    PRIMARY KEY (notice_id, channel)
);

CREATE INDEX deliveries_due ON deliveries (next_at, notice_id, channel) WHERE state = 'pending';
CREATE INDEX deliveries_stuck ON deliveries (notice_id, channel) WHERE state = 'stuck';

-- An address that is requested when the run starts and ends; secret, hence not part of its spec.
CREATE TABLE pings (
    run_id TEXT NOT NULL PRIMARY KEY REFERENCES runs (id),
    url TEXT NOT NULL
);

-- What a channel remembers: since when it exists, where its stream of replies was read, wrong codes.
CREATE TABLE channel_state (
    channel TEXT NOT NULL PRIMARY KEY,
    since BIGINT NOT NULL,
    cursor TEXT NOT NULL,
    wrong_codes BIGINT NOT NULL,
    closed_at BIGINT
);

CREATE TABLE reply_codes (
    code TEXT NOT NULL PRIMARY KEY,
    channel TEXT NOT NULL,
    notice_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    item_id TEXT NOT NULL,
    input_digest TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at BIGINT,
    verdict TEXT NOT NULL
);

CREATE INDEX reply_codes_notice ON reply_codes (notice_id, channel);

-- A due time is recorded in the transaction that moves checked_until; its run is created afterwards, by any service.
CREATE TABLE schedules (
    name TEXT NOT NULL PRIMARY KEY,
    definition TEXT NOT NULL,
    checked_until BIGINT NOT NULL,
    paused_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE TABLE schedule_fires (
    schedule TEXT NOT NULL,
    due_at BIGINT NOT NULL,
    state TEXT NOT NULL,
    run_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    owner TEXT NOT NULL,
    claimed_until BIGINT NOT NULL,
    PRIMARY KEY (schedule, due_at)
);

CREATE INDEX schedule_fires_run ON schedule_fires (run_id) WHERE run_id <> '';
CREATE INDEX schedule_fires_open ON schedule_fires (due_at, schedule) WHERE state IN ('claimed', 'started', 'overdue');

CREATE TABLE triggers (
    name TEXT NOT NULL PRIMARY KEY,
    definition TEXT NOT NULL,
    cursor TEXT NOT NULL,
    next_at BIGINT NOT NULL,
    failures BIGINT NOT NULL,
    paused_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE TABLE trigger_deliveries (
    trigger_name TEXT NOT NULL,
    delivery TEXT NOT NULL,
    state TEXT NOT NULL,
    run_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (trigger_name, delivery)
);

CREATE INDEX trigger_deliveries_newest ON trigger_deliveries (trigger_name, at, delivery);
CREATE INDEX trigger_deliveries_run ON trigger_deliveries (run_id) WHERE run_id <> '';
CREATE INDEX trigger_deliveries_open ON trigger_deliveries (at) WHERE state IN ('claimed', 'started');
