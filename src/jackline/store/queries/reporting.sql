-- Reads of dashboards and retros. Each reads one index and stops after a page; a condition with a literal instead of a
-- parameter is that of a partial index.

-- name: report_runs
SELECT {report_run} FROM runs JOIN repositories AS places ON places.id = runs.repository
WHERE state = :state ORDER BY runs.created_at, runs.id LIMIT :limit

-- name: report_waiting
SELECT {report_run} FROM runs JOIN repositories AS places ON places.id = runs.repository
WHERE state = :state AND reason = :reason ORDER BY runs.created_at, runs.id LIMIT :limit

-- name: report_failed
SELECT {report_run} FROM runs JOIN repositories AS places ON places.id = runs.repository
WHERE state = :state AND finished_at >= :since ORDER BY finished_at DESC, runs.id DESC LIMIT :limit

-- name: report_count
SELECT COUNT(*) FROM (SELECT 1 FROM runs WHERE state = :state LIMIT :most) AS counted

-- name: report_items
SELECT {report_item} FROM work_items WHERE status = :status ORDER BY created_at, id LIMIT :limit

-- name: report_dead
SELECT {report_item} FROM work_items WHERE dead = 1 ORDER BY finished_at DESC, id DESC LIMIT :limit

-- name: report_kinds
-- From one kind to the next in the index, and at most `most` of each, so that the cost does not grow.
WITH RECURSIVE kinds (kind) AS (
    SELECT MIN(kind) FROM work_items WHERE status = :status
    UNION ALL
    SELECT (SELECT MIN(kind) FROM work_items WHERE status = :status AND kind > kinds.kind)
    FROM kinds WHERE kinds.kind IS NOT NULL
)
SELECT kind, (
    SELECT COUNT(*) FROM (
        SELECT 1 FROM work_items WHERE status = :status AND work_items.kind = found.kind LIMIT :most
    ) AS counted
) FROM (SELECT kind FROM kinds WHERE kind IS NOT NULL LIMIT :limit) AS found

-- name: report_spending
SELECT day, agent, usd_micros, tokens FROM spending WHERE day >= :first AND day <= :last ORDER BY day, agent

-- name: report_newest_events
SELECT {report_event} FROM events
WHERE NOT (kind >= 'agent.' AND kind < 'agent/') AND NOT (kind >= 'call.' AND kind < 'call/')
ORDER BY at DESC, stream DESC, seq DESC LIMIT :limit

-- name: report_newest_learnings
SELECT {report_learning} FROM case_entries WHERE kind = 'learning'
ORDER BY at DESC, case_id DESC, number DESC LIMIT :limit

-- name: report_learnings
SELECT {report_learning} FROM case_entries
WHERE kind = 'learning' AND at < :until AND (at, case_id, number) > (:after_at, :after_case, :after_number)
ORDER BY at, case_id, number LIMIT :limit

-- name: report_finished
SELECT {report_run} FROM runs JOIN repositories AS places ON places.id = runs.repository
WHERE finished_at < :until AND (finished_at, runs.id) > (:after_at, :after_id)
ORDER BY finished_at, runs.id LIMIT :limit

-- name: report_alive
SELECT {report_run} FROM runs JOIN repositories AS places ON places.id = runs.repository
WHERE state = :state AND runs.created_at < :before AND (runs.created_at, runs.id) > (:after_at, :after_id)
ORDER BY runs.created_at, runs.id LIMIT :limit

-- name: report_outlived
-- The plus keeps SQLite from reading and sorting every earlier run.
SELECT {report_run} FROM runs JOIN repositories AS places ON places.id = runs.repository
WHERE finished_at >= :before AND +runs.created_at < :before AND (finished_at, runs.id) > (:after_at, :after_id)
ORDER BY finished_at, runs.id LIMIT :limit

-- name: report_moves
SELECT {report_move} FROM events
WHERE NOT (kind >= 'agent.' AND kind < 'agent/') AND NOT (kind >= 'call.' AND kind < 'call/')
    AND at < :until AND (at, stream, seq) > (:after_at, :after_stream, :after_seq)
    AND kind >= 'run.' AND kind < 'run/' AND kind NOT IN ('run.message', 'run.changed')
ORDER BY at, stream, seq LIMIT :limit

-- name: report_last_move
SELECT {report_move} FROM events
WHERE stream = :stream AND seq < :before AND at < :until AND kind >= 'run.' AND kind < 'run/'
    AND kind NOT IN ('run.message', 'run.changed')
ORDER BY seq DESC LIMIT 1

-- name: report_next_move
SELECT {report_move} FROM events
WHERE stream = :stream AND seq > :after AND kind >= 'run.' AND kind < 'run/'
    AND kind NOT IN ('run.message', 'run.changed')
ORDER BY seq LIMIT 1

-- name: report_turns
SELECT {report_turn} FROM turns WHERE run_id = :run_id ORDER BY number

-- name: report_checks
SELECT {report_check} FROM checks WHERE run_id = :run_id ORDER BY step

-- name: add_spending
INSERT INTO spending (day, agent, usd_micros, tokens) VALUES (:day, :agent, :usd_micros, :tokens)
ON CONFLICT (day, agent) DO UPDATE SET
    usd_micros = spending.usd_micros + excluded.usd_micros, tokens = spending.tokens + excluded.tokens

-- name: report_unattended
SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM services WHERE stopped_at IS NULL LIMIT 1) AS found),
    (SELECT COUNT(*) FROM (SELECT 1 FROM schedules LIMIT 1) AS found),
    (SELECT COUNT(*) FROM (SELECT 1 FROM triggers LIMIT 1) AS found),
    (SELECT COUNT(*) FROM (
        SELECT 1 FROM deliveries WHERE state = 'stuck'
        UNION ALL SELECT 1 FROM deliveries WHERE state = 'pending' AND attempts > 0 LIMIT 1) AS found)
