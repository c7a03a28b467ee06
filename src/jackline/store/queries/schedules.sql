-- Schedules and their fires.

-- name: list_schedules
SELECT {schedule} FROM schedules ORDER BY name

-- name: get_schedule
SELECT {schedule} FROM schedules WHERE name = :name

-- name: lock_schedule
SELECT {schedule} FROM schedules WHERE name = :name

-- name: put_schedule
INSERT INTO schedules ({schedule}) VALUES ({:schedule})
ON CONFLICT (name) DO UPDATE SET definition = excluded.definition, checked_until = excluded.checked_until,
paused_at = excluded.paused_at, updated_at = excluded.updated_at

-- name: remove_schedule
DELETE FROM schedules WHERE name = :name

-- name: move_checked_until
-- Never back, whatever the clock says.
UPDATE schedules SET checked_until = :at WHERE name = :name AND checked_until < :at

-- name: pause_schedule
UPDATE schedules SET paused_at = :at, updated_at = :at WHERE name = :name AND paused_at IS NULL

-- name: resume_schedule
UPDATE schedules SET paused_at = NULL, checked_until = :at, updated_at = :at WHERE name = :name

-- name: add_fire
INSERT INTO schedule_fires ({fire}) VALUES ({:fire}) ON CONFLICT (schedule, due_at) DO NOTHING

-- name: get_fire_of_run
SELECT {fire} FROM schedule_fires WHERE run_id = :run_id

-- name: get_fire
SELECT {fire} FROM schedule_fires WHERE schedule = :schedule AND due_at = :due_at

-- name: lock_fire
SELECT {fire} FROM schedule_fires WHERE schedule = :schedule AND due_at = :due_at

-- name: list_next_fires
-- The first fire of each schedule that has no run yet; no other one can be taken.
SELECT {fire} FROM schedule_fires WHERE state = 'claimed' AND (schedule, due_at) IN (
    SELECT schedule, MIN(due_at) FROM schedule_fires WHERE state = 'claimed' GROUP BY schedule
)
ORDER BY due_at, schedule

-- name: list_started_fires
SELECT {fire} FROM schedule_fires WHERE state IN ('started', 'overdue') ORDER BY due_at, schedule

-- name: count_waiting_fires
SELECT COUNT(*) FROM schedule_fires WHERE schedule = :schedule AND state = 'claimed'

-- name: take_fire
-- A claim that lies further ahead than any claim lasts was made before the clock was set back.
UPDATE schedule_fires SET owner = :owner, claimed_until = :until, updated_at = :at
WHERE schedule = :schedule AND due_at = :due_at AND state = 'claimed'
AND (owner = '' OR claimed_until <= :at OR claimed_until > :longest)
AND NOT EXISTS (
    SELECT 1 FROM schedule_fires AS other
    WHERE other.schedule = :schedule AND other.due_at <> :due_at AND other.state = 'claimed'
    AND (other.due_at < :due_at
        OR (other.owner <> '' AND other.claimed_until > :at AND other.claimed_until <= :longest))
)

-- name: extend_fire
UPDATE schedule_fires SET claimed_until = :until, updated_at = :at
WHERE schedule = :schedule AND due_at = :due_at AND state = 'claimed' AND owner = :owner

-- name: set_fire
UPDATE schedule_fires SET state = :state, reason = :reason, updated_at = :at, owner = '', claimed_until = 0
WHERE schedule = :schedule AND due_at = :due_at AND state = :before

-- name: start_fire
UPDATE schedule_fires SET state = 'started', reason = '', updated_at = :at, owner = '', claimed_until = 0
WHERE schedule = :schedule AND due_at = :due_at AND state NOT IN ('started', 'overdue', 'ended')

-- name: list_fires
SELECT {fire} FROM schedule_fires WHERE schedule = :schedule ORDER BY due_at DESC LIMIT :limit

-- name: list_fired_runs
-- The runs of a schedule's other open fires, and their states.
SELECT runs.id, runs.state FROM schedule_fires JOIN runs ON runs.id = schedule_fires.run_id
WHERE schedule_fires.schedule = :schedule AND schedule_fires.run_id <> :run_id
AND schedule_fires.state IN ('claimed', 'started', 'overdue')
ORDER BY schedule_fires.due_at

-- name: remove_old_fires
DELETE FROM schedule_fires WHERE schedule = :schedule AND state NOT IN ('claimed', 'started', 'overdue')
AND due_at < (
    SELECT due_at FROM schedule_fires WHERE schedule = :schedule ORDER BY due_at DESC LIMIT 1 OFFSET :kept
)

-- name: get_run_state
SELECT state, detail FROM runs WHERE id = :id
