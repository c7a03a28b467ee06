-- Why a call was settled, as a word of a closed set, where that decides what happens next; `reason` explains it to people.
-- Older versions wrote the two below as the beginning of the reason, and compared it.
ALTER TABLE calls ADD COLUMN reason_code TEXT NOT NULL DEFAULT '';
UPDATE calls SET reason_code = 'gave_up' WHERE reason LIKE 'gave up%';
UPDATE calls SET reason_code = 'send_again' WHERE reason LIKE 'idempotent%';
