-- Answers from a phone: codes that are used once, and where the reading of a channel's reply topic stands.

-- name: add_reply_code
INSERT INTO reply_codes ({reply_code}) VALUES ({:reply_code})

-- name: lock_reply_code
SELECT {reply_code} FROM reply_codes WHERE code = :code

-- name: use_reply_code
UPDATE reply_codes SET used_at = :at, verdict = :verdict WHERE code = :code AND used_at IS NULL

-- name: drop_reply_codes
DELETE FROM reply_codes WHERE expires_at < :before

-- name: get_reply_channel
SELECT since, cursor, wrong_codes, closed_at FROM channel_state WHERE channel = :channel

-- name: lock_reply_channel
SELECT since, cursor, wrong_codes, closed_at FROM channel_state WHERE channel = :channel

-- name: move_reply_channel
UPDATE channel_state SET cursor = :cursor, wrong_codes = :wrong_codes, closed_at = :closed_at WHERE channel = :channel
