-- Append-only by the database itself: only the events of a run whose archive is written may leave.
CREATE TRIGGER events_never_change BEFORE UPDATE ON events
BEGIN
    SELECT RAISE(ABORT, 'events are append-only');
END;

CREATE TRIGGER events_never_leave BEFORE DELETE ON events
WHEN NOT EXISTS (SELECT 1 FROM runs WHERE id = OLD.stream AND archived_at IS NOT NULL)
BEGIN
    SELECT RAISE(ABORT, 'events are append-only');
END;
