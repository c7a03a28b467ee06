-- Messages between the agents of a run, and how far each reader is.

-- name: add_bridge_message
INSERT INTO bridge_messages ({bridge_message}) VALUES ({:bridge_message})

-- name: last_bridge_message
SELECT COALESCE(MAX(number), 0) FROM bridge_messages WHERE run_id = :run_id

-- name: get_keyed_bridge_message
SELECT {bridge_message} FROM bridge_messages
WHERE run_id = :run_id AND sender = :sender AND dedupe_key = :dedupe_key AND dedupe_key <> ''

-- name: some_bridge_messages
SELECT {bridge_message} FROM bridge_messages WHERE run_id = :run_id AND number > :after ORDER BY number LIMIT :limit

-- name: unread_bridge_messages
SELECT {bridge_message} FROM bridge_messages
WHERE run_id = :run_id AND number > :after AND sender <> :reader AND recipient IN (:reader, 'all')
ORDER BY number LIMIT :limit

-- name: count_unread_bridge_messages
SELECT COUNT(*) FROM bridge_messages
WHERE run_id = :run_id AND number > :after AND sender <> :reader AND recipient IN (:reader, 'all')

-- name: add_bridge_reader
INSERT INTO bridge_reads ({bridge_reader}) VALUES ({:bridge_reader}) ON CONFLICT DO NOTHING

-- name: all_bridge_readers
SELECT {bridge_reader} FROM bridge_reads WHERE run_id = :run_id ORDER BY joined_at, reader

-- name: get_bridge_reader
SELECT {bridge_reader} FROM bridge_reads WHERE run_id = :run_id AND reader = :reader

-- name: lock_bridge_reader
SELECT {bridge_reader} FROM bridge_reads WHERE run_id = :run_id AND reader = :reader

-- name: move_bridge_reader
UPDATE bridge_reads SET acknowledged = :acknowledged, given = :given, prompted = :prompted, turn = :turn
WHERE run_id = :run_id AND reader = :reader

-- name: get_turn_progress
SELECT CASE
    WHEN stdout_bytes > 0 OR stderr_bytes > 0 OR exit_code IS NOT NULL
        OR EXISTS (SELECT 1 FROM calls WHERE calls.run_id = turns.run_id AND calls.turn = turns.number)
    THEN 1 ELSE 0 END
FROM turns WHERE run_id = :run_id AND number = :turn

-- name: newest_turn_role
SELECT role, seat FROM turns WHERE run_id = :run_id ORDER BY number DESC LIMIT 1
