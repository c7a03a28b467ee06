-- What was spent before days were counted: on the day on which the run was last written to.
INSERT INTO spending (day, agent, usd_micros, tokens)
SELECT strftime('%Y-%m-%d', updated_at / 1000, 'unixepoch'), agent, SUM(usd_micros), SUM(tokens_input + tokens_output)
FROM runs WHERE usd_micros <> 0 OR tokens_input <> 0 OR tokens_output <> 0
GROUP BY 1, 2;

-- REPLACE INTO takes a row away without a word to the triggers that guard against deletion: nothing comes in its place.
-- FAIL and not ABORT: see the query add_event.
CREATE TRIGGER events_never_replaced BEFORE INSERT ON events
WHEN EXISTS (SELECT 1 FROM events WHERE stream = NEW.stream AND seq = NEW.seq)
BEGIN
    SELECT RAISE(FAIL, 'events are append-only');
END;

-- Of these a second one is no mistake, and is passed over.
CREATE TRIGGER receipts_never_replaced BEFORE INSERT ON receipts
WHEN EXISTS (SELECT 1 FROM receipts WHERE run_id = NEW.run_id AND key = NEW.key)
BEGIN
    SELECT RAISE(IGNORE);
END;

CREATE TRIGGER contents_never_replaced BEFORE INSERT ON contents
WHEN EXISTS (SELECT 1 FROM contents WHERE run_id = NEW.run_id AND digest = NEW.digest)
BEGIN
    SELECT RAISE(IGNORE);
END;
