-- `{run}` stands for the columns of that record in their order, `{:run}` for their parameters; see store/rows.py.
-- PostgreSQL adds FOR UPDATE to every query whose name begins with lock_; SQLite has one writer at a time anyway.

-- name: get_run
SELECT {run} FROM runs WHERE id = :id

-- name: get_run_mark
-- One cheap row, for processes that wait for a change of the run.
SELECT state, reason, event_seq, token, wake_at FROM runs WHERE id = :id

-- name: get_spec
SELECT spec FROM specs WHERE run_id = :run_id

-- name: get_request
SELECT request FROM runs WHERE id = :id

-- name: lock_run
SELECT {run} FROM runs WHERE id = :id

-- name: add_repository
INSERT INTO repositories (id, path, next_number, created_at) VALUES (:id, :path, 1, :at)
ON CONFLICT (id) DO NOTHING

-- name: take_number
UPDATE repositories SET next_number = next_number + 1 WHERE id = :id RETURNING next_number - 1

-- name: add_run
INSERT INTO runs ({new_run}) VALUES ({:new_run}) ON CONFLICT (id) DO NOTHING

-- name: add_spec
INSERT INTO specs (run_id, spec) VALUES (:run_id, :spec)

-- name: change_spec
UPDATE specs SET spec = :spec WHERE run_id = :run_id

-- name: add_message
INSERT INTO messages ({message}) VALUES ({:message})

-- name: all_messages
SELECT {message} FROM messages WHERE run_id = :run_id ORDER BY number

-- name: set_goal
UPDATE runs SET goal = :goal WHERE id = :id

-- name: reset_windows
UPDATE runs SET windows = 0, rounds_from = review_round WHERE id = :id

-- name: give_messages
UPDATE messages SET turn = :turn WHERE run_id = :run_id AND turn IS NULL AND number <= :last

-- name: add_event
INSERT INTO events ({event}) VALUES ({:event})

-- name: move_chain
UPDATE runs SET event_seq = :event_seq, chain_head = :chain_head, updated_at = :at
WHERE id = :id AND event_seq = :after

-- name: request_cancel
UPDATE runs SET cancel_requested = 1, event_seq = :event_seq, chain_head = :chain_head, updated_at = :at
WHERE id = :id AND state = :state

-- name: cancel_idle_run
UPDATE runs SET state = :to, reason = NULL, wake_at = NULL, phase = NULL, cancel_requested = 1, detail = :detail,
    finished_at = :at, event_seq = :event_seq, chain_head = :chain_head, updated_at = :at
WHERE id = :id AND state = :state

-- name: queue_waiting_run
UPDATE runs SET state = :to, reason = NULL, wake_at = NULL, detail = '', windows = 0, rounds_from = review_round,
    event_seq = :event_seq, chain_head = :chain_head, updated_at = :at
WHERE id = :id AND state = :state

-- name: find_run
SELECT {listed} FROM runs JOIN repositories AS places ON places.id = runs.repository WHERE runs.id = :id

-- name: find_number
SELECT {listed} FROM runs JOIN repositories AS places ON places.id = runs.repository
WHERE runs.repository = :repository AND runs.number = :number

-- name: find_prefix
SELECT {listed} FROM runs JOIN repositories AS places ON places.id = runs.repository
WHERE runs.id >= :low AND runs.id < :high ORDER BY runs.id LIMIT :limit

-- name: find_suffix
SELECT {listed} FROM runs JOIN repositories AS places ON places.id = runs.repository
WHERE length(runs.id) > length(:end) AND substr(runs.id, length(runs.id) - length(:end) + 1) = :end
ORDER BY runs.id LIMIT :limit

-- name: working_runs
-- Runs that a process may be working on now, or that wait for their next try.
SELECT id FROM runs WHERE state = :running
UNION ALL
SELECT id FROM runs WHERE state = :waiting AND reason = :retry

-- name: all_repositories
SELECT id, path, created_at FROM repositories ORDER BY path

-- name: put_tmux_session
INSERT INTO tmux_sessions (run_id, session, socket, host, started_at)
VALUES (:run_id, :session, :socket, :host, :started_at)
ON CONFLICT (run_id) DO UPDATE SET
    session = excluded.session, socket = excluded.socket, host = excluded.host, started_at = excluded.started_at
