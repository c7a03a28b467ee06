-- name: lock_stream
SELECT event_seq, chain_head FROM streams WHERE name = :id

-- name: add_stream
INSERT INTO streams (name, event_seq, chain_head, updated_at) VALUES (:id, 0, '', :at) ON CONFLICT (name) DO NOTHING

-- name: move_stream
UPDATE streams SET event_seq = :event_seq, chain_head = :chain_head, updated_at = :at
WHERE name = :id AND event_seq = :after

-- name: lock_item_chain
SELECT event_seq, chain_head FROM work_items WHERE id = :id

-- name: move_item_chain
-- An added event does not change the item: `updated_at` is the time of its holder's last action.
UPDATE work_items SET event_seq = :event_seq, chain_head = :chain_head WHERE id = :id AND event_seq = :after
