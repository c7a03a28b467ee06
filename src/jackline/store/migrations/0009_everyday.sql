-- Messages of people to the agent of a run. `turn` is the turn whose prompt has the message; NULL until then.
CREATE TABLE messages (
    run_id TEXT NOT NULL REFERENCES runs (id),
    number BIGINT NOT NULL,
    text TEXT NOT NULL,
    at BIGINT NOT NULL,
    turn BIGINT,
    PRIMARY KEY (run_id, number)
);

-- The part of usd_micros that was estimated from tokens and prices, because the agent reported no cost.
ALTER TABLE runs ADD COLUMN usd_estimated BIGINT NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN usd_estimated BIGINT NOT NULL DEFAULT 0;

-- What the current turn of a run may spend of its day's budget; deleted when the turn is charged.
CREATE TABLE spending_reservations (
    run_id TEXT NOT NULL PRIMARY KEY REFERENCES runs (id),
    day TEXT NOT NULL,
    usd_micros BIGINT NOT NULL
);
