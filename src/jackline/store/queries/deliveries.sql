-- Delivery of notices: one row for each notice and channel that was set up before it, claimed before it is sent.

-- name: add_channel
INSERT INTO channel_state (channel, since, cursor, wrong_codes, closed_at) VALUES (:channel, :since, '', 0, NULL)
ON CONFLICT (channel) DO NOTHING

-- name: set_channel_start
UPDATE channel_state SET since = :since WHERE channel = :channel

-- name: list_channel_starts
SELECT channel, since FROM channel_state

-- name: unplanned_notices
SELECT id, created_at, kind, 'run:' || run_id, title, body, '', '' FROM notices
WHERE delivered_at IS NULL AND created_at >= :since
    AND NOT EXISTS (SELECT 1 FROM deliveries WHERE notice_id = notices.id)
UNION ALL
SELECT id, created_at, kind, subject, title, body, labels, priority FROM subject_notices
WHERE delivered_at IS NULL AND created_at >= :since
    AND NOT EXISTS (SELECT 1 FROM deliveries WHERE notice_id = subject_notices.id)
ORDER BY 2, 1 LIMIT :limit

-- name: get_open_notice
SELECT id, created_at, kind, 'run:' || run_id, title, body, '', '' FROM notices WHERE id = :id
UNION ALL
SELECT id, created_at, kind, subject, title, body, labels, priority FROM subject_notices WHERE id = :id

-- name: add_delivery
INSERT INTO deliveries ({delivery}) VALUES ({:delivery}) ON CONFLICT (notice_id, channel) DO NOTHING

-- name: due_deliveries
SELECT {delivery} FROM deliveries
WHERE state = 'pending' AND channel = :channel AND (next_at <= :due OR next_at > :impossible)
    AND (claimed_until <= :at OR claimed_until > :impossible)
ORDER BY next_at, notice_id LIMIT :limit

-- name: claim_delivery
UPDATE deliveries SET owner = :owner, claimed_until = :until, attempts = attempts + 1
WHERE notice_id = :notice_id AND channel = :channel AND state = 'pending' AND attempts = :attempts
    AND (claimed_until <= :at OR claimed_until > :impossible)

-- name: close_delivery
UPDATE deliveries SET state = :state, sent_at = :sent_at, error = :error, claimed_until = 0
WHERE notice_id = :notice_id AND channel = :channel AND state IN ('pending', 'stuck')

-- name: postpone_delivery
UPDATE deliveries SET state = :state, next_at = :next_at, error = :error, claimed_until = 0
WHERE notice_id = :notice_id AND channel = :channel AND state = 'pending' AND attempts = :attempts AND owner = :owner

-- name: release_deliveries
UPDATE deliveries SET claimed_until = 0, error = :error WHERE state = 'pending' AND owner = :owner AND claimed_until > 0

-- name: claimed_channels
SELECT DISTINCT channel FROM deliveries WHERE state = 'pending' AND owner = :owner AND claimed_until > 0

-- name: retry_deliveries
UPDATE deliveries SET state = 'pending', next_at = :at, attempts = 0, created_at = :at, claimed_until = 0
WHERE state IN ('pending', 'stuck') AND (notice_id = :notice_id OR :notice_id = '')

-- name: has_retried_delivery
SELECT 1 FROM deliveries
WHERE state = 'pending' AND channel = :channel AND attempts = 0 AND next_at = created_at AND created_at >= :since LIMIT 1

-- name: unfinished_channels
SELECT channel FROM deliveries WHERE state = 'pending' UNION SELECT channel FROM deliveries WHERE state = 'stuck'

-- name: unfinished_of_channel
SELECT notice_id FROM deliveries WHERE state = 'pending' AND channel = :channel
UNION SELECT notice_id FROM deliveries WHERE state = 'stuck' AND channel = :channel

-- name: next_delivery_at
SELECT MIN(next_at) FROM deliveries WHERE state = 'pending' AND channel = :channel

-- name: finish_notice
UPDATE notices SET delivered_at = :at
WHERE id = :id AND delivered_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM deliveries WHERE notice_id = :id AND state IN ('pending', 'stuck'))

-- name: finish_subject_notice
UPDATE subject_notices SET delivered_at = :at
WHERE id = :id AND delivered_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM deliveries WHERE notice_id = :id AND state IN ('pending', 'stuck'))

-- name: has_delivery_work
SELECT EXISTS (SELECT 1 FROM deliveries WHERE state = 'pending')
    OR EXISTS (
        SELECT 1 FROM notices WHERE delivered_at IS NULL AND created_at >= :since
            AND NOT EXISTS (SELECT 1 FROM deliveries WHERE notice_id = notices.id)
    )
    OR EXISTS (
        SELECT 1 FROM subject_notices WHERE delivered_at IS NULL AND created_at >= :since
            AND NOT EXISTS (SELECT 1 FROM deliveries WHERE notice_id = subject_notices.id)
    )

-- name: newest_outbox
SELECT id, created_at, kind, 'run:' || run_id, title, body, '', '', delivered_at FROM notices
WHERE run_id = :run_id OR :run_id = ''
UNION ALL
SELECT id, created_at, kind, subject, title, body, labels, priority, delivered_at FROM subject_notices
WHERE :run_id = ''
ORDER BY 2 DESC, 1 DESC LIMIT :limit

-- name: stuck_outbox
-- A first attempt has not failed while its claim lasts.
SELECT id, created_at, kind, 'run:' || run_id, title, body, '', '', delivered_at FROM notices
WHERE (run_id = :run_id OR :run_id = '') AND id IN (
    SELECT notice_id FROM deliveries WHERE state = 'stuck'
    UNION SELECT notice_id FROM deliveries WHERE state = 'pending' AND attempts > 0
        AND NOT (attempts = 1 AND claimed_until > :at AND claimed_until <= :impossible AND error = '')
)
UNION ALL
SELECT id, created_at, kind, subject, title, body, labels, priority, delivered_at FROM subject_notices
WHERE :run_id = '' AND id IN (
    SELECT notice_id FROM deliveries WHERE state = 'stuck'
    UNION SELECT notice_id FROM deliveries WHERE state = 'pending' AND attempts > 0
        AND NOT (attempts = 1 AND claimed_until > :at AND claimed_until <= :impossible AND error = '')
)
ORDER BY 2 DESC, 1 DESC LIMIT :limit

-- name: deliveries_of_notice
SELECT {delivery} FROM deliveries WHERE notice_id = :id ORDER BY channel

-- name: notice_ids
SELECT DISTINCT notice_id FROM deliveries WHERE notice_id >= :start AND notice_id <= :end ORDER BY notice_id LIMIT 5

-- name: add_ping
INSERT INTO pings (run_id, url) VALUES (:run_id, :url)

-- name: get_ping
SELECT url FROM pings WHERE run_id = :run_id

-- name: add_ping_delivery
-- Nothing without an address.
INSERT INTO deliveries
    (notice_id, channel, state, attempts, next_at, owner, claimed_until, error, created_at, sent_at)
SELECT :id, :channel, 'pending', 0, :at, '', 0, '', :at, NULL FROM pings WHERE run_id = :run_id
ON CONFLICT (notice_id, channel) DO NOTHING

-- name: stuck_pings
SELECT {delivery} FROM deliveries
WHERE channel = :channel AND (state = 'stuck' OR (state = 'pending' AND attempts > 0
    AND NOT (attempts = 1 AND claimed_until > :at AND claimed_until <= :impossible AND error = '')))
ORDER BY created_at DESC, notice_id LIMIT :limit

-- name: has_open_ping
SELECT 1 FROM deliveries WHERE state = 'pending' AND channel = :channel LIMIT 1
