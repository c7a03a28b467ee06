-- Pull requests of runs, and the feedback on them.

-- name: get_pull_request
SELECT {pull_request} FROM pull_requests WHERE run_id = :run_id

-- name: put_pull_request
INSERT INTO pull_requests ({pull_request}) VALUES ({:pull_request}) ON CONFLICT (run_id) DO UPDATE SET {pull_request=}

-- name: all_feedback
SELECT {feedback} FROM feedback WHERE run_id = :run_id ORDER BY number

-- name: add_feedback
INSERT INTO feedback ({feedback})
SELECT :run_id, (SELECT COALESCE(MAX(number), 0) + 1 FROM feedback WHERE run_id = :run_id), :source, :origin, :author,
    :text, :at, :turn
WHERE NOT EXISTS (SELECT 1 FROM feedback WHERE run_id = :run_id AND origin = :origin)

-- name: give_feedback
UPDATE feedback SET turn = :turn WHERE run_id = :run_id AND turn IS NULL

-- name: waiting_pull_requests
-- Of the runs that wait for their pull requests, with what each waits for.
SELECT {pull_request} FROM pull_requests
WHERE run_id IN (SELECT id FROM runs WHERE state = :waiting AND reason = :ci)
ORDER BY repository, number

-- name: claim_look
-- Only if no other process has looked since.
UPDATE pull_requests SET next_at = :next_at WHERE run_id = :run_id AND next_at = :seen_next

-- name: end_look
UPDATE pull_requests SET next_at = :next_at, looked_at = :at, seen = :seen, quiet = :quiet, failures = :failures,
    told_at = :told_at
WHERE run_id = :run_id AND head = :head
