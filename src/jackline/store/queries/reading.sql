-- name: some_events
SELECT {event} FROM events WHERE stream = :stream AND seq > :after ORDER BY seq LIMIT :limit

-- name: all_turns
SELECT {turn} FROM turns WHERE run_id = :run_id ORDER BY number

-- name: all_attempts
SELECT {attempt} FROM attempts WHERE run_id = :run_id ORDER BY token

-- name: all_checks
SELECT {check} FROM checks WHERE run_id = :run_id ORDER BY step

-- name: all_sessions
SELECT agent, session FROM sessions WHERE run_id = :run_id ORDER BY agent

-- name: get_tmux_session
SELECT session, socket, host, started_at FROM tmux_sessions WHERE run_id = :run_id

-- name: all_health
SELECT {health} FROM agent_health ORDER BY agent

-- name: recovery_events
SELECT {event} FROM events WHERE stream = :stream AND kind IN (:claimed, :recovered) ORDER BY seq

-- name: last_event_of_kind
SELECT {event} FROM events WHERE stream = :stream AND kind = :kind ORDER BY seq DESC LIMIT 1

-- name: next_agent
SELECT MIN(agent) FROM runs WHERE agent > :after AND agent < :before

-- name: changes_of_run
SELECT {changes} FROM run_changes WHERE run_id = :run_id

-- name: all_checkpoints
SELECT {checkpoint} FROM checkpoints WHERE run_id = :run_id ORDER BY step, at, kind

-- name: newest_notices
SELECT {notice} FROM notices ORDER BY created_at DESC, id DESC LIMIT :limit

-- name: newest_notices_of_run
SELECT {notice} FROM notices WHERE run_id = :run_id ORDER BY created_at DESC, id DESC LIMIT :limit
