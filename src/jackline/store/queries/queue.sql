-- The queue: runs that a service starts. A row stays when its run has started: a batch counts its runs by it.

-- name: add_queue_entry
INSERT INTO queue ({queue_entry}) VALUES ({:queue_entry})

-- name: add_dependency
INSERT INTO dependencies (run_id, depends_on) VALUES (:run_id, :depends_on) ON CONFLICT (run_id, depends_on) DO NOTHING

-- name: dedupe_owner
SELECT dedupe_keys.run_id FROM dedupe_keys JOIN runs ON runs.id = dedupe_keys.run_id
WHERE dedupe_keys.key = :key AND runs.finished_at IS NULL

-- A key belongs to the run that took it until that run has ended.
-- name: take_dedupe_key
INSERT INTO dedupe_keys (key, run_id) VALUES (:key, :run_id)
ON CONFLICT (key) DO UPDATE SET run_id = excluded.run_id
WHERE EXISTS (SELECT 1 FROM runs WHERE runs.id = dedupe_keys.run_id AND runs.finished_at IS NOT NULL)

-- name: queue_entry
SELECT {queue_entry} FROM queue WHERE run_id = :run_id

-- name: lock_queue_entry
SELECT {queue_entry} FROM queue WHERE run_id = :run_id

-- name: lock_batch
-- One row that everyone locks who counts the runs of the batch.
SELECT run_id FROM queue WHERE batch = :batch ORDER BY run_id LIMIT 1

-- name: batch_runs
SELECT run_id FROM queue WHERE batch = :batch ORDER BY added_at, position, run_id

-- name: newest_batch
SELECT queue.batch FROM queue JOIN runs ON runs.id = queue.run_id
WHERE queue.batch <> '' AND runs.repository = :repository ORDER BY queue.added_at DESC, queue.run_id DESC LIMIT 1

-- name: batch_places
-- A run of a batch has a place while it is being worked on, or continues without a person.
SELECT COUNT(*) FROM queue JOIN runs ON runs.id = queue.run_id
WHERE queue.batch = :batch AND (
    runs.state = :running
    OR (runs.state = :queued AND runs.token > 0)
    OR (runs.state = :waiting AND runs.reason IN (:retry, :limited, :budget) AND runs.wake_at IS NOT NULL))

-- name: startable_runs
-- Without the runs of full batches; see batch_places. Joined, because a subquery would be computed for each row.
SELECT {queue_entry} FROM runs JOIN queue ON queue.run_id = runs.id
LEFT JOIN (
    SELECT members.batch AS name, COUNT(*) AS places FROM queue AS members JOIN runs AS busy ON busy.id = members.run_id
    WHERE members.batch <> '' AND (
        busy.state = :running
        OR (busy.state = :queued AND busy.token > 0)
        OR (busy.state = :waiting AND busy.reason IN (:retry, :limited, :budget) AND busy.wake_at IS NOT NULL))
    GROUP BY members.batch
) AS taken ON taken.name = queue.batch
WHERE runs.state = :queued AND runs.token = 0 AND queue.held_at IS NULL AND queue.not_before <= :at
    AND NOT EXISTS (
        SELECT 1 FROM dependencies JOIN runs AS earlier ON earlier.id = dependencies.depends_on
        WHERE dependencies.run_id = runs.id AND earlier.state <> :succeeded)
    AND (queue.batch_slots = 0 OR queue.batch_slots > COALESCE(taken.places, 0))
ORDER BY queue.priority DESC, queue.added_at, queue.position, queue.run_id LIMIT :limit

-- name: queued_ids
-- In the order in which they start, if nothing else delays them.
SELECT runs.id FROM runs JOIN queue ON queue.run_id = runs.id WHERE runs.state = :queued AND runs.token = 0
ORDER BY queue.priority DESC, queue.added_at, queue.position, queue.run_id LIMIT :limit

-- name: unreachable_runs
-- Runs that wait for one that failed or was cancelled.
SELECT DISTINCT runs.id FROM runs
JOIN dependencies ON dependencies.run_id = runs.id
JOIN runs AS earlier ON earlier.id = dependencies.depends_on
WHERE runs.state = :queued AND runs.token = 0 AND earlier.state IN (:failed, :cancelled)
ORDER BY runs.id

-- name: failed_dependency
SELECT earlier.id, earlier.state FROM dependencies JOIN runs AS earlier ON earlier.id = dependencies.depends_on
WHERE dependencies.run_id = :run_id AND earlier.state IN (:failed, :cancelled) ORDER BY earlier.id LIMIT 1

-- name: open_dependencies
SELECT earlier.id FROM dependencies JOIN runs AS earlier ON earlier.id = dependencies.depends_on
WHERE dependencies.run_id = :run_id AND earlier.state <> :succeeded ORDER BY earlier.id

-- name: hold_queue_entry
UPDATE queue SET held_at = :at WHERE run_id = :run_id
