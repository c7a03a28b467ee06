-- Runs that continue without a person: those whose time has come, and those that were answered.

-- name: due_runs
SELECT id, agent, reason, wake_at, token FROM runs
WHERE wake_at <= :at AND state = :waiting AND reason IN (:limited, :retry, :approval, :budget, :dependency)
ORDER BY wake_at, id LIMIT :limit

-- name: answered_runs
-- Only an answer queues a run that has begun; the other conditions are those of the index.
SELECT id, agent, reason, wake_at, token FROM runs
WHERE state = :queued AND token > 0 AND reason IS NULL AND owner IS NULL AND finished_at IS NULL
ORDER BY updated_at, id LIMIT :limit

-- name: next_wake
SELECT wake_at FROM runs
WHERE wake_at > :after AND state = :waiting AND reason IN (:limited, :retry, :approval, :budget, :dependency)
ORDER BY wake_at LIMIT 1

-- name: all_probes
SELECT limit_probes.agent, reset_at, run_id, taken_at, CASE WHEN runs.state = :running THEN 1 ELSE 0 END,
    CASE WHEN runs.state <> :running AND runs.updated_at > taken_at THEN 1 ELSE 0 END
FROM limit_probes JOIN runs ON runs.id = limit_probes.run_id

-- name: take_probe
-- Only if the limit is still the one that was seen, and no other run was let through since.
INSERT INTO limit_probes (agent, reset_at, run_id, taken_at)
SELECT agent, until, :run_id, :at FROM agent_health WHERE agent = :agent AND until = :reset_at AND failure <> ''
ON CONFLICT (agent) DO UPDATE SET reset_at = excluded.reset_at, run_id = excluded.run_id, taken_at = excluded.taken_at
WHERE limit_probes.run_id = :seen_run AND limit_probes.taken_at = :seen_at
