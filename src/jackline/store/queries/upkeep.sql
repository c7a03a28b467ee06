-- name: instance_value
SELECT value FROM instance WHERE name = :name

-- name: add_instance_value
INSERT INTO instance (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING

-- name: lock_instance_value
SELECT value FROM instance WHERE name = :name

-- name: set_instance_value
UPDATE instance SET value = :value WHERE name = :name

-- name: applied_migrations
SELECT version, name, checksum FROM schema_migrations ORDER BY version

-- name: add_migration
INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (:version, :name, :checksum, :at)

-- name: count_rows
SELECT 'runs', COUNT(*) FROM runs
UNION ALL SELECT 'calls', COUNT(*) FROM calls
UNION ALL SELECT 'receipts', COUNT(*) FROM receipts
UNION ALL SELECT 'contents', COUNT(*) FROM contents
UNION ALL SELECT 'events', COUNT(*) FROM events
UNION ALL SELECT 'notices', COUNT(*) FROM notices
UNION ALL SELECT 'work_items', COUNT(*) FROM work_items
UNION ALL SELECT 'cases', COUNT(*) FROM cases

-- name: chains
SELECT id, event_seq, chain_head, archived_seq, archived_head FROM runs WHERE id > :after ORDER BY id LIMIT :limit

-- name: chain
SELECT id, event_seq, chain_head, archived_seq, archived_head FROM runs WHERE id = :run_id

-- name: event_before
SELECT seq FROM events WHERE stream = :stream AND seq < :first ORDER BY seq LIMIT 1

-- name: notice_heads
SELECT id, chain_head FROM notices WHERE run_id = :run_id ORDER BY created_at, id

-- name: item_chains
SELECT id, event_seq, chain_head FROM work_items WHERE id > :after ORDER BY id LIMIT :limit

-- name: case_chains
SELECT id, event_seq, chain_head FROM cases WHERE id > :after ORDER BY id LIMIT :limit

-- name: other_chains
SELECT name, event_seq, chain_head FROM streams WHERE name > :after ORDER BY name LIMIT :limit

-- name: stray_events
SELECT stream FROM (SELECT DISTINCT stream FROM events) AS known
WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = known.stream)
    AND NOT EXISTS (SELECT 1 FROM streams WHERE streams.name = known.stream)
    AND NOT (known.stream >= 'work:' AND known.stream < 'work;'
        AND EXISTS (SELECT 1 FROM work_items WHERE work_items.id = substr(known.stream, 6)))
    AND NOT (known.stream >= 'case:' AND known.stream < 'case;'
        AND EXISTS (SELECT 1 FROM cases WHERE cases.id = substr(known.stream, 6)))
ORDER BY stream LIMIT 20

-- name: effects_without_receipt
SELECT calls.id, calls.run_id FROM calls
WHERE call_class = :effect AND state = :done AND decision <> :stored AND NOT EXISTS (
    SELECT 1 FROM receipts WHERE receipts.run_id = calls.run_id AND receipts.key = calls.key
) LIMIT 20

-- name: inconsistent_leases
SELECT id, state FROM runs
WHERE (state = :running) <> (owner IS NOT NULL AND lease_until IS NOT NULL) LIMIT 20

-- name: inconsistent_attempts
SELECT attempts.run_id, COUNT(*) FROM attempts JOIN runs ON runs.id = attempts.run_id
WHERE attempts.ended_at IS NULL AND NOT (runs.state = :running AND attempts.token = runs.token)
GROUP BY attempts.run_id LIMIT 20

-- name: inconsistent_ends
SELECT id, state FROM runs
WHERE (state = :succeeded OR state = :failed OR state = :cancelled) <> (finished_at IS NOT NULL) LIMIT 20

-- name: archivable_runs
SELECT id FROM runs
WHERE (state = :succeeded OR state = :failed OR state = :cancelled) AND finished_at < :before
    AND event_seq > archived_seq
ORDER BY finished_at, id LIMIT :limit

-- name: mark_archived
UPDATE runs SET archived_at = :at, archived_seq = event_seq, archived_head = chain_head
WHERE id = :id AND state = :state AND chain_head = :head

-- name: drop_events
DELETE FROM events WHERE stream = :stream

-- name: calls_with_contents
SELECT {call} FROM calls WHERE run_id = :run_id AND (input_ref IS NOT NULL OR output_ref IS NOT NULL) ORDER BY number
