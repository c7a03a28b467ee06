-- What a service and the commands around it read and write: notices, deliveries, the queue, schedules, triggers.

-- name: add_subject_notice
INSERT INTO subject_notices ({subject_notice}) VALUES ({:subject_notice}) ON CONFLICT (id) DO NOTHING

-- name: newest_subject_notices
SELECT {subject_notice} FROM subject_notices ORDER BY created_at DESC, id DESC LIMIT :limit

-- Services.

-- name: add_service
INSERT INTO services ({service}) VALUES ({:service})

-- name: renew_service
UPDATE services SET seen_at = :at WHERE id = :id

-- name: stop_service
UPDATE services SET seen_at = :at, stopped_at = :at WHERE id = :id AND stopped_at IS NULL

-- name: open_services
SELECT {service} FROM services WHERE stopped_at IS NULL AND reported_at IS NULL ORDER BY id

-- name: unended_services
SELECT {service} FROM services WHERE stopped_at IS NULL AND reported_at IS NULL ORDER BY started_at DESC, id DESC LIMIT :limit

-- name: report_service
UPDATE services SET reported_at = :at WHERE id = :id AND stopped_at IS NULL AND reported_at IS NULL

-- name: forget_services
DELETE FROM services WHERE seen_at < :before AND (stopped_at IS NOT NULL OR reported_at IS NOT NULL)

-- name: running_run_ids
SELECT id FROM runs WHERE state = :running ORDER BY id

-- name: start_failures
SELECT {start_failure} FROM start_failures
WHERE EXISTS (SELECT 1 FROM runs WHERE runs.id = run_id AND runs.token = attempt AND runs.finished_at IS NULL)
ORDER BY since, run_id

-- name: start_failure
SELECT {start_failure} FROM start_failures WHERE run_id = :run_id

-- name: put_start_failure
INSERT INTO start_failures ({start_failure}) VALUES ({:start_failure}) ON CONFLICT (run_id) DO UPDATE SET {start_failure=}

-- name: waiting_for_service
SELECT
    (SELECT COUNT(*) FROM queue JOIN runs ON runs.id = queue.run_id WHERE runs.state = :queued AND queue.held_at IS NULL),
    (SELECT COUNT(*) FROM schedules WHERE paused_at IS NULL),
    (SELECT COUNT(*) FROM triggers WHERE paused_at IS NULL)
