-- :clock_boot and :clock_now are the lease clock, as in leases.sql. Queries named pick_* skip rows that another
-- transaction has locked (PostgreSQL; SQLite has one writer at a time anyway).

-- name: get_item
SELECT {item} FROM work_items WHERE id = :id

-- name: lock_item
SELECT {item} FROM work_items WHERE id = :id

-- name: add_item
INSERT INTO work_items ({item}) VALUES ({:item}) ON CONFLICT (id) DO NOTHING

-- name: change_item
-- An item that is not held has no lease.
UPDATE work_items SET status = :status, owner_agent = :owner_agent, updated_at = :updated_at, notes = :notes,
    attempts = :attempts, token = :token, question = :question, answer = :answer, dead = :dead,
    finished_at = :finished_at, event_seq = :event_seq, chain_head = :chain_head,
    lease_boot = CASE WHEN :held = 1 THEN lease_boot END, lease_until = CASE WHEN :held = 1 THEN lease_until END
WHERE id = :id AND event_seq = :after

-- name: move_item_lease
UPDATE work_items SET lease_boot = :clock_boot, lease_until = CAST(:clock_now AS BIGINT) + :lease_ms, updated_at = :at
WHERE id = :id AND token = :token

-- name: item_lease_over
SELECT CASE WHEN lease_boot = :clock_boot AND lease_until > :clock_now THEN 0 ELSE 1 END FROM work_items WHERE id = :id

-- name: first_expired
-- Reads only the items in flight, which are those that workers hold now. With :any = 1, of every kind.
SELECT id, kind, priority, created_at FROM work_items
WHERE status = :in_flight AND CASE WHEN lease_boot = :clock_boot AND lease_until > :clock_now THEN 0 ELSE 1 END = 1
    AND (:any = 1 OR kind = :kind)
ORDER BY priority DESC, created_at, id LIMIT 1

-- name: pick_expired
SELECT {item} FROM work_items
WHERE status = :in_flight AND CASE WHEN lease_boot = :clock_boot AND lease_until > :clock_now THEN 0 ELSE 1 END = 1
    AND (:any = 1 OR kind = :kind)
ORDER BY priority DESC, created_at, id LIMIT 1

-- name: first_pending
SELECT id, kind, priority, created_at FROM work_items WHERE status = :pending
ORDER BY priority DESC, created_at, id LIMIT 1

-- name: pick_pending
SELECT {item} FROM work_items WHERE status = :pending ORDER BY priority DESC, created_at, id LIMIT 1

-- name: first_pending_of_kind
SELECT id, kind, priority, created_at FROM work_items WHERE status = :pending AND kind = :kind
ORDER BY priority DESC, created_at, id LIMIT 1

-- name: pick_pending_of_kind
SELECT {item} FROM work_items WHERE status = :pending AND kind = :kind
ORDER BY priority DESC, created_at, id LIMIT 1

-- name: unfinished_items
SELECT {item} FROM (
    SELECT * FROM (
        SELECT {item} FROM work_items WHERE status = :pending ORDER BY created_at, id LIMIT :limit
    ) AS waiting
    UNION ALL
    SELECT * FROM (
        SELECT {item} FROM work_items
        WHERE status = :in_flight
            AND (updated_at < :older_than
                OR CASE WHEN lease_boot = :clock_boot AND lease_until > :clock_now THEN 0 ELSE 1 END = 1)
        ORDER BY created_at, id LIMIT :limit
    ) AS given_up
) AS unfinished
ORDER BY created_at, id LIMIT :limit

-- name: count_items
SELECT kind, COUNT(*) FROM work_items WHERE status = :status GROUP BY kind ORDER BY kind

-- name: questions_that_mention
SELECT {item} FROM work_items WHERE kind = :kind AND payload LIKE :text ORDER BY created_at, id
