-- name: last_iteration
SELECT {iteration} FROM iterations WHERE run_id = :run_id ORDER BY number DESC LIMIT 1

-- name: all_iterations
SELECT {iteration} FROM iterations WHERE run_id = :run_id ORDER BY number

-- name: all_verdicts
SELECT {verdict} FROM verdicts WHERE run_id = :run_id ORDER BY turn

-- name: all_findings
SELECT {finding} FROM findings WHERE run_id = :run_id ORDER BY number
