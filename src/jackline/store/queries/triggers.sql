-- Triggers and their deliveries.

-- name: put_trigger
INSERT INTO triggers ({trigger}) VALUES ({:trigger})
ON CONFLICT (name) DO UPDATE SET definition = excluded.definition, next_at = excluded.next_at, failures = 0,
    paused_at = NULL, updated_at = excluded.updated_at

-- name: get_trigger
SELECT {trigger} FROM triggers WHERE name = :name

-- name: lock_trigger
SELECT {trigger} FROM triggers WHERE name = :name

-- name: all_triggers
SELECT {trigger} FROM triggers ORDER BY name

-- name: pause_trigger
UPDATE triggers SET paused_at = :paused_at, updated_at = :at WHERE name = :name

-- name: delete_trigger
DELETE FROM triggers WHERE name = :name

-- name: move_trigger
UPDATE triggers SET next_at = :next_at, failures = :failures WHERE name = :name

-- name: set_trigger_cursor
UPDATE triggers SET cursor = :cursor WHERE name = :name

-- name: add_trigger_delivery
INSERT INTO trigger_deliveries ({trigger_delivery}) VALUES ({:trigger_delivery}) ON CONFLICT DO NOTHING

-- name: get_trigger_delivery
SELECT {trigger_delivery} FROM trigger_deliveries WHERE trigger_name = :trigger_name AND delivery = :delivery

-- name: get_delivery_of_run
-- What was ignored has no run.
SELECT {trigger_delivery} FROM trigger_deliveries WHERE run_id = :run_id AND run_id <> ''

-- name: set_trigger_delivery
UPDATE trigger_deliveries SET state = :state, reason = :reason
WHERE trigger_name = :trigger_name AND delivery = :delivery AND state <> :state

-- name: add_repository_to_deliveries
-- Ids of work items and of runs have a `#`.
UPDATE trigger_deliveries SET delivery = :prefix || delivery
WHERE trigger_name = :trigger_name AND delivery NOT LIKE '%#%'
AND (delivery LIKE 'issue-%' OR delivery LIKE 'comment-%' OR delivery LIKE 'review-%')

-- name: newest_trigger_deliveries
SELECT {trigger_delivery} FROM trigger_deliveries WHERE trigger_name = :trigger_name
ORDER BY at DESC, delivery DESC LIMIT :limit

-- name: open_trigger_deliveries
SELECT {trigger_delivery} FROM trigger_deliveries WHERE state IN (:claimed, :started) ORDER BY at, trigger_name, delivery

-- name: list_ended_runs
SELECT id, state, task, token, finished_at FROM runs
WHERE finished_at IS NOT NULL AND finished_at >= :since AND (finished_at > :since OR id > :after)
ORDER BY finished_at, id LIMIT :limit
