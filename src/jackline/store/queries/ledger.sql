-- name: lock_ledger
SELECT state, owner, token, event_seq, chain_head, calls, parent FROM runs WHERE id = :id

-- name: get_call
SELECT {call} FROM calls WHERE run_id = :run_id AND id = :id

-- name: seen_of_key
-- `occurrence > 0` stands in every query by key: without it the databases may not use the index.
SELECT occurrence FROM calls WHERE run_id = :run_id AND key = :key AND occurrence > 0 ORDER BY number DESC LIMIT 1

-- name: telling_of_key
-- What was denied without a person's word says nothing about the effect, and must not crowd out what does.
SELECT {call} FROM calls WHERE run_id = :run_id AND key = :key AND occurrence > 0
    AND (state <> :denied OR answer <> '')
ORDER BY number DESC LIMIT :most

-- name: last_denial
SELECT {call} FROM calls WHERE run_id = :run_id AND key = :key AND occurrence > 0 AND state = :denied AND answer = ''
ORDER BY number DESC LIMIT 1

-- name: same_target
-- What an earlier attempt did to the target is what matters, however much came after it.
SELECT {call} FROM calls
WHERE run_id = :run_id AND target = :target AND target <> '' AND key <> :key AND attempt < :attempt
    AND call_class = :call_class AND (state = :done OR state = :in_doubt)
ORDER BY number LIMIT :most

-- name: count_of_rule
-- What is known not to have happened does not count against a rule's limit.
SELECT COUNT(*) FROM (
    SELECT 1 FROM calls
    WHERE run_id = :run_id AND rule = :rule AND decision = :allow AND state <> :void LIMIT :most
) AS allowed

-- name: receipt_of_key
SELECT {receipt} FROM receipts WHERE run_id = :run_id AND key = :key

-- name: receipt_of_ancestor
WITH RECURSIVE ancestors (id, distance) AS (
    SELECT parent, 1 FROM runs WHERE id = :run_id AND parent IS NOT NULL
    UNION ALL
    SELECT runs.parent, distance + 1 FROM runs JOIN ancestors ON runs.id = ancestors.id
    WHERE runs.parent IS NOT NULL
)
SELECT {receipt} FROM receipts JOIN ancestors ON ancestors.id = receipts.run_id
WHERE key = :key ORDER BY distance LIMIT 1

-- name: add_call
INSERT INTO calls ({call}, number) VALUES ({:call}, :number) ON CONFLICT (run_id, id) DO NOTHING

-- name: move_head
UPDATE runs SET calls = :calls, event_seq = :event_seq, chain_head = :chain_head, updated_at = :at
WHERE id = :id AND owner = :owner AND token = :token AND state = :running AND event_seq = :after

-- name: settle_call
UPDATE calls SET state = :state, output = :output, exit_code = :exit_code, reason = :reason,
    finished_at = :finished_at
WHERE run_id = :run_id AND id = :id AND state = :before

-- name: judge_call
UPDATE calls SET state = :to, answer = :answer, finished_at = :at
WHERE run_id = :run_id AND id = :id AND state = :state

-- name: answer_asked
-- The same question, asked twice, is answered once.
UPDATE calls SET answer = :answer, finished_at = :at
WHERE run_id = :run_id AND key = :key AND occurrence > 0 AND state = :denied AND decision = :ask
    AND finished_at IS NULL

-- name: add_receipt
INSERT INTO receipts ({receipt}) VALUES ({:receipt}) ON CONFLICT (run_id, key) DO NOTHING

-- name: open_calls
SELECT {call} FROM calls
WHERE run_id = :run_id AND finished_at IS NULL AND (state = :prepared OR state = :in_doubt) ORDER BY number

-- name: count_unanswered
SELECT COUNT(*) FROM calls
WHERE run_id = :run_id AND finished_at IS NULL
    AND ((state = :in_doubt AND call_class = :effect) OR (state = :denied AND decision = :ask))

-- name: all_calls
SELECT {call} FROM calls WHERE run_id = :run_id ORDER BY number

-- name: all_receipts
SELECT {receipt} FROM receipts WHERE run_id = :run_id ORDER BY at, call_id
