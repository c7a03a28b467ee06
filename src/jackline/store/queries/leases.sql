-- :clock_boot and :clock_now are the lease clock: parameters on SQLite, the database's own clock on PostgreSQL.

-- name: lease_over
SELECT CASE WHEN lease_boot = :clock_boot AND lease_until > :clock_now THEN 0 ELSE 1 END FROM runs WHERE id = :id

-- name: take_lease
UPDATE runs SET state = :to, reason = NULL, wake_at = NULL, phase = :phase, failure = NULL, detail = '',
    token = :token, cancel_requested = :cancel_requested, owner = :owner, windows = :windows,
    rounds_from = :rounds_from,
    lease_boot = :clock_boot, lease_until = CAST(:clock_now AS BIGINT) + :lease_ms,
    event_seq = :event_seq, chain_head = :chain_head, updated_at = :at,
    started_at = COALESCE(started_at, :at), finished_at = NULL, archived_at = NULL
WHERE id = :id AND token = :before AND state = :state

-- name: end_attempts
UPDATE attempts SET ended_at = :at, outcome = :outcome WHERE run_id = :run_id AND ended_at IS NULL

-- name: end_steps
UPDATE steps SET ended_at = :at, outcome = :outcome WHERE run_id = :run_id AND ended_at IS NULL

-- name: add_attempt
INSERT INTO attempts ({attempt}) VALUES ({:attempt})

-- name: renew_lease
UPDATE runs SET lease_boot = :clock_boot, lease_until = CAST(:clock_now AS BIGINT) + :lease_ms, wall_ms = wall_ms + :wall_ms
WHERE id = :id AND owner = :owner AND token = :token AND state = :running
RETURNING cancel_requested

-- name: get_cancel_requested
SELECT cancel_requested FROM runs WHERE id = :id

-- name: set_warden
UPDATE attempts SET warden_pid = :pid, warden_started = :started WHERE run_id = :run_id AND token = :token

-- name: advance_run
UPDATE runs SET phase = :phase, goal = :goal, failure = :failure, detail = :detail, proof = :proof,
    step = :step, turn = :turn, iteration = :iteration, retries = :retries, agent = :agent,
    review_round = :review_round, rounds_from = :rounds_from, tree = :tree,
    iterations = :iterations, steps = :steps, tokens_input = :tokens_input, tokens_output = :tokens_output,
    tokens_cached = :tokens_cached, usd_micros = :usd_micros, usd_estimated = :usd_estimated,
    event_seq = :event_seq, chain_head = :chain_head, updated_at = :at
WHERE id = :id AND owner = :owner AND token = :token AND state = :running

-- name: park_or_finish_run
UPDATE runs SET state = :to, reason = :reason, wake_at = :wake_at,
    phase = :phase, goal = :goal, failure = :failure, detail = :detail, proof = :proof,
    step = :step, turn = :turn, iteration = :iteration, retries = :retries, agent = :agent, windows = :windows,
    review_round = :review_round, rounds_from = :rounds_from, tree = :tree,
    iterations = :iterations, steps = :steps, tokens_input = :tokens_input, tokens_output = :tokens_output,
    tokens_cached = :tokens_cached, usd_micros = :usd_micros, usd_estimated = :usd_estimated,
    owner = NULL, lease_boot = NULL, lease_until = NULL, finished_at = :finished_at,
    event_seq = :event_seq, chain_head = :chain_head, updated_at = :at
WHERE id = :id AND owner = :owner AND token = :token AND state = :running

-- name: add_step
INSERT INTO steps (run_id, step, attempt, kind, started_at) VALUES (:run_id, :step, :attempt, :kind, :at)

-- name: put_turn
INSERT INTO turns ({turn}) VALUES ({:turn}) ON CONFLICT (run_id, number) DO UPDATE SET {turn=}

-- name: put_check
INSERT INTO checks ({check}) VALUES ({:check}) ON CONFLICT (run_id, step) DO UPDATE SET {check=}

-- name: put_session
INSERT INTO sessions (run_id, agent, session, updated_at) VALUES (:run_id, :agent, :session, :at)
ON CONFLICT (run_id, agent) DO UPDATE SET session = excluded.session, updated_at = excluded.updated_at

-- name: put_review_session
INSERT INTO review_sessions (run_id, agent, role, seat, review_round, session, updated_at)
VALUES (:run_id, :agent, :role, :seat, :review_round, :session, :at)
ON CONFLICT (run_id, agent, role, seat, review_round) DO UPDATE SET session = excluded.session, updated_at = excluded.updated_at

-- name: put_iteration
INSERT INTO iterations ({iteration}) VALUES ({:iteration}) ON CONFLICT (run_id, number) DO UPDATE SET {iteration=}

-- name: put_verdict
INSERT INTO verdicts ({verdict}) VALUES ({:verdict}) ON CONFLICT (run_id, turn) DO UPDATE SET {verdict=}

-- name: put_finding
INSERT INTO findings ({finding}) VALUES ({:finding}) ON CONFLICT (run_id, number) DO UPDATE SET {finding=}

-- A session belongs to the run that took it until that run has ended.
-- name: take_session
INSERT INTO session_owners (agent, session, run_id) VALUES (:agent, :session, :run_id)
ON CONFLICT (agent, session) DO UPDATE SET run_id = excluded.run_id
WHERE session_owners.run_id = excluded.run_id OR EXISTS (
    SELECT 1 FROM runs WHERE runs.id = session_owners.run_id AND runs.finished_at IS NOT NULL)

-- name: owner_of_session
SELECT run_id FROM session_owners WHERE agent = :agent AND session = :session

-- name: put_health
INSERT INTO agent_health ({health}) VALUES ({:health}) ON CONFLICT (agent) DO UPDATE SET {health=}

-- name: put_checkpoint
INSERT INTO checkpoints ({checkpoint}) VALUES ({:checkpoint})
ON CONFLICT (run_id, step, kind) DO UPDATE SET {checkpoint=}

-- name: add_notice
INSERT INTO notices ({notice}) VALUES ({:notice})

-- name: put_changes
INSERT INTO run_changes (run_id, {changes}, at) VALUES (:run_id, {:changes}, :at)
ON CONFLICT (run_id) DO UPDATE SET {changes=}, at = excluded.at

-- name: lock_instance
SELECT value FROM instance WHERE name = 'secret'

-- name: get_day_spending
SELECT (SELECT CAST(COALESCE(SUM(usd_micros), 0) AS BIGINT) FROM spending WHERE day = :day),
    (SELECT CAST(COALESCE(SUM(usd_micros), 0) AS BIGINT) FROM spending_reservations
        WHERE day = :day AND run_id <> :run_id)

-- name: list_reserving
SELECT run_id FROM spending_reservations WHERE day = :day AND run_id <> :run_id ORDER BY run_id LIMIT 5

-- name: put_reservation
INSERT INTO spending_reservations (run_id, day, usd_micros) VALUES (:run_id, :day, :usd_micros)
ON CONFLICT (run_id) DO UPDATE SET day = excluded.day, usd_micros = excluded.usd_micros

-- name: drop_reservation
DELETE FROM spending_reservations WHERE run_id = :run_id RETURNING day
