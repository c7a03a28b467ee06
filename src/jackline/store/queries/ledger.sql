-- name: lock_ledger
SELECT state, owner, token, event_seq, chain_head, calls, parent FROM runs WHERE id = :id

-- name: get_call
SELECT {call} FROM calls WHERE run_id = :run_id AND id = :id

-- name: count_of_key
-- Every query by key has `occurrence > 0`: without it the databases may not use the index.
SELECT occurrence FROM calls WHERE run_id = :run_id AND key = :key AND occurrence > 0 ORDER BY number DESC LIMIT 1

-- name: calls_of_key
-- A call that was denied without asking a person tells nothing about the effect, and must not crowd out the others.
SELECT {call} FROM calls WHERE run_id = :run_id AND key = :key AND occurrence > 0
    AND (state <> :denied OR answer <> '')
ORDER BY number DESC LIMIT :most

-- name: last_denial
SELECT {call} FROM calls WHERE run_id = :run_id AND key = :key AND occurrence > 0 AND state = :denied AND answer = ''
ORDER BY number DESC LIMIT 1

-- name: same_target
-- Of the calls of this attempt and session only those in doubt count, however many came later.
SELECT {call} FROM calls
WHERE run_id = :run_id AND target = :target AND target <> '' AND key <> :key
    AND (state = :in_doubt OR (state = :done AND (attempt < :attempt OR turn < :since)))
    AND call_class = :call_class
ORDER BY number LIMIT :most

-- name: effect_of_key
SELECT {call} FROM calls WHERE run_id = :run_id AND key = :key AND occurrence > 0
    AND call_class = :effect AND decision = :allow AND (state = :done OR state = :in_doubt OR state = :prepared)
ORDER BY number DESC LIMIT 1

-- name: effects_before
-- Once for each session, not for each call.
SELECT id, run_id, rule, key, target, external FROM calls
WHERE run_id = :run_id AND call_class = :effect AND decision = :allow
    AND (state = :done OR state = :in_doubt OR state = :prepared)
    AND (attempt < :attempt OR turn < :turn)
ORDER BY number

-- name: always_approved
SELECT {call} FROM calls
WHERE run_id = :run_id AND target = :target AND target <> '' AND rule = :rule AND answer = :answer AND state = :denied
ORDER BY number LIMIT 1

-- name: ancestors
-- The runs that this one was forked from, nearest first, each with the step of the fork.
WITH RECURSIVE ancestors (id, forked_at, distance) AS (
    SELECT parent, forked_at, 1 FROM runs WHERE id = :run_id AND parent IS NOT NULL
    UNION ALL
    SELECT runs.parent, runs.forked_at, distance + 1 FROM runs JOIN ancestors ON runs.id = ancestors.id
    WHERE runs.parent IS NOT NULL
)
SELECT id, forked_at FROM ancestors ORDER BY distance

-- name: step_of_call
SELECT step FROM calls WHERE run_id = :run_id AND id = :id

-- name: unsettled_of_key
SELECT {call} FROM calls WHERE run_id = :run_id AND key = :key AND occurrence > 0
    AND call_class = :call_class AND (state = :prepared OR state = :in_doubt)
ORDER BY number LIMIT 1

-- name: touched_target
SELECT {call} FROM calls
WHERE run_id = :run_id AND target = :target AND target <> '' AND key <> :key
    AND call_class = :call_class AND (state = :done OR state = :in_doubt OR state = :prepared)
ORDER BY number LIMIT :most

-- name: count_of_rule
-- A call that did not happen does not count against a rule's limit. A call may match several rules.
SELECT COUNT(*) FROM (
    SELECT 1 FROM calls
    WHERE run_id = :run_id AND decision = :allow AND state <> :void
        AND replace(' + ' || rule || ' + ', :part, '') <> ' + ' || rule || ' + ' LIMIT :most
) AS allowed

-- name: receipt_of_key
SELECT {receipt} FROM receipts WHERE run_id = :run_id AND key = :key

-- name: add_call
INSERT INTO calls ({call}, number) VALUES ({:call}, :number) ON CONFLICT (run_id, id) DO NOTHING

-- name: move_head
UPDATE runs SET calls = :calls, event_seq = :event_seq, chain_head = :chain_head, updated_at = :at
WHERE id = :id AND owner = :owner AND token = :token AND state = :running AND chain_head = :previous

-- name: settle_call
UPDATE calls SET state = :state, output = :output, output_ref = :output_ref, exit_code = :exit_code, reason = :reason,
    reason_code = :reason_code, finished_at = :finished_at, duration_ms = :duration_ms, external = :external, cut_off = cut_off + :cut_off
WHERE run_id = :run_id AND id = :id AND state = :before

-- name: judge_call
UPDATE calls SET state = :to, answer = :answer, finished_at = :at
WHERE run_id = :run_id AND id = :id AND state = :state

-- name: answer_asked
-- One answer is for every call that asked the same question.
UPDATE calls SET answer = :answer, finished_at = :at
WHERE run_id = :run_id AND key = :key AND occurrence > 0 AND state = :denied AND decision = :ask
    AND finished_at IS NULL

-- name: add_receipt
INSERT INTO receipts ({receipt}) VALUES ({:receipt}) ON CONFLICT (run_id, key) DO NOTHING

-- name: nth_newest_call
-- Ids are in the order of time.
SELECT id FROM calls WHERE run_id = :run_id ORDER BY id DESC LIMIT 1 OFFSET :others

-- name: open_calls
SELECT {call} FROM calls
WHERE run_id = :run_id AND id >= :since AND finished_at IS NULL AND (state = :prepared OR state = :in_doubt)
ORDER BY number

-- name: count_unanswered
-- An unknown call in doubt does not stop the run, unless the run is strict.
SELECT COUNT(*) FROM calls
WHERE run_id = :run_id AND finished_at IS NULL
    AND ((state = :in_doubt AND (call_class <> :unknown OR :strict = 1)) OR (state = :denied AND decision = :ask))

-- name: asked_calls
SELECT {call} FROM calls
WHERE run_id = :run_id AND id >= :since AND finished_at IS NULL AND state = :denied AND decision = :ask
ORDER BY number

-- name: forced_calls
-- Calls that have to be made again: a recovery abandoned them, or voided them because the same key may be sent again.
-- Not included: a call that a person skipped; a call that is part of another one, and is made again with it; a call that
-- a later call replaced, whatever the outcome (if that one was cut off, too, it is itself to be made again); and a call
-- during which the turn timed out. A call that failed in front of the agent is the agent's to judge. Nor one of a turn
-- that only reads: a reviewer's call is not the worker's.
SELECT {call} FROM calls
WHERE run_id = :run_id AND id >= :since AND parent_id IS NULL AND answer = '' AND reason_code <> :gave_up
    AND turn NOT IN (SELECT number FROM turns WHERE run_id = :run_id AND role <> :work)
    AND door <> :host
    AND ((state = :abandoned AND (replay = :exact OR replay = :idempotent OR replay = :relaunch))
        OR (state = :void AND call_class = :effect AND cut_off > 0 AND reason_code = :send_again))
    AND id NOT IN (
        SELECT original FROM calls
        WHERE run_id = :run_id AND id >= :since AND original IS NOT NULL AND decision = :allow
            AND state <> :denied AND state <> :prepared
    )
ORDER BY number

-- name: undone_calls
-- Without an answer a call in doubt becomes void by a probe; the agent knows what was found while it worked. What a
-- reviewer tried is not the worker's to make again, and the host makes its own effects again.
SELECT {call} FROM calls
WHERE run_id = :run_id AND state = :void AND (call_class = :effect OR answer <> '') AND door <> :host
    AND turn NOT IN (SELECT number FROM turns WHERE run_id = :run_id AND role <> :work)
    AND (finished_at >= :known_since OR (answer <> '' AND finished_at >= :answered_since))
    AND id NOT IN (
        SELECT original FROM calls WHERE run_id = :run_id AND original IS NOT NULL AND decision = :allow
    )
ORDER BY number

-- name: count_cut_off
SELECT CAST(COALESCE(SUM(cut_off), 0) AS BIGINT) FROM calls WHERE run_id = :run_id AND key = :key

-- name: newest_attempt_with_new_call
SELECT CAST(COALESCE(MAX(attempt), 0) AS BIGINT) FROM (
    SELECT MIN(attempt) AS attempt FROM calls WHERE run_id = :run_id GROUP BY tool, key) AS first_made

-- name: tally
SELECT COUNT(*),
    COUNT(CASE WHEN decision = :allow THEN 1 END),
    COUNT(CASE WHEN decision = :allow AND call_class = :effect THEN 1 END),
    COUNT(CASE WHEN state = :failed THEN 1 END),
    COUNT(CASE WHEN decision = :stored OR (decision = :allow AND original IN (
        SELECT id FROM calls WHERE run_id = :run_id AND (state = :void OR state = :abandoned OR state = :failed)
    )) THEN 1 END),
    COUNT(CASE WHEN state = :abandoned THEN 1 END),
    COUNT(CASE WHEN state = :denied AND decision <> :ask THEN 1 END),
    COUNT(CASE WHEN state = :denied AND decision = :ask THEN 1 END),
    COUNT(CASE WHEN state = :in_doubt THEN 1 END),
    (SELECT COUNT(*) FROM receipts WHERE run_id = :run_id),
    (SELECT steps FROM runs WHERE id = :run_id)
FROM calls WHERE run_id = :run_id

-- name: add_content
INSERT INTO contents (run_id, digest, content) VALUES (:run_id, :digest, :content)
ON CONFLICT (run_id, digest) DO NOTHING

-- name: get_content
SELECT content FROM contents WHERE run_id = :run_id AND digest = :digest

-- name: all_digests
SELECT digest FROM contents WHERE run_id = :run_id ORDER BY digest

-- name: all_calls
SELECT {call} FROM calls WHERE run_id = :run_id ORDER BY number

-- name: all_receipts
SELECT {receipt} FROM receipts WHERE run_id = :run_id ORDER BY at, call_id
