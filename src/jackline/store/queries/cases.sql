-- name: add_case
INSERT INTO cases ({case}) VALUES ({:case}) ON CONFLICT (id) DO NOTHING

-- name: get_case
SELECT {case} FROM cases WHERE id = :id

-- name: lock_case
SELECT {case} FROM cases WHERE id = :id

-- name: find_case_prefix
SELECT {case} FROM cases WHERE id >= :low AND id < :high ORDER BY id LIMIT :limit

-- The conditions after the first filter on the way through the index, newest first.
-- name: newest_cases
SELECT {case} FROM cases WHERE (created_at, id) < (:before_at, :before_id)
AND (:status = '' OR status = :status)
ORDER BY created_at DESC, id DESC LIMIT :limit

-- name: newest_cases_of_repository
SELECT {case} FROM cases WHERE repository = :repository AND (created_at, id) < (:before_at, :before_id)
AND (:status = '' OR status = :status)
ORDER BY created_at DESC, id DESC LIMIT :limit

-- name: newest_cases_of_run
SELECT {case} FROM cases WHERE run_id = :run_id AND (created_at, id) < (:before_at, :before_id)
AND (:status = '' OR status = :status) AND (:repository = '' OR repository = :repository)
ORDER BY created_at DESC, id DESC LIMIT :limit

-- The case is locked meanwhile, so its numbers are unique.
-- name: move_case
UPDATE cases SET hypotheses = hypotheses + :hypothesis, evidence = evidence + :evidence,
    commands = commands + :command, learnings = learnings + :learning,
    updated_at = :at, event_seq = :event_seq, chain_head = :chain_head
WHERE id = :id AND event_seq = :after

-- name: set_case_status
UPDATE cases SET status = :status, closeout = :closeout, closed_at = :closed_at,
    updated_at = :at, event_seq = :event_seq, chain_head = :chain_head
WHERE id = :id AND event_seq = :after

-- name: relocate_case
UPDATE cases SET repository = :repository, path = :path WHERE id = :id

-- name: lock_active_case
SELECT case_id FROM active_cases WHERE place = :place

-- name: get_active_case
SELECT {case} FROM cases WHERE id = (SELECT case_id FROM active_cases WHERE place = :place)

-- Changes nothing if another case became active in the place since it was read.
-- name: set_active_case
INSERT INTO active_cases (place, case_id, at) VALUES (:place, :case_id, :at)
ON CONFLICT (place) DO UPDATE SET case_id = excluded.case_id, at = excluded.at WHERE active_cases.case_id = :seen

-- name: clear_active_case
DELETE FROM active_cases WHERE case_id = :case_id

-- name: add_entry
INSERT INTO case_entries ({entry}) VALUES ({:entry})

-- name: change_entry
UPDATE case_entries SET status = :status, data = :data, updated_at = :at
WHERE case_id = :case_id AND kind = :kind AND number = :number

-- name: get_entry
SELECT {entry} FROM case_entries WHERE case_id = :case_id AND kind = :kind AND number = :number

-- name: all_entries
SELECT {entry} FROM case_entries WHERE case_id = :case_id ORDER BY kind, number

-- name: some_entries
SELECT {entry} FROM case_entries WHERE case_id = :case_id AND kind = :kind AND number > :after ORDER BY number

-- name: page_of_entries
SELECT {entry} FROM case_entries WHERE case_id = :case_id AND (kind, number) > (:kind, :after)
ORDER BY kind, number LIMIT :limit
