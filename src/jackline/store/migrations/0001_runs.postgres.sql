-- Append-only by the database itself: only the events of a run whose archive is written may leave.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% are append-only', TG_TABLE_NAME;
END
$$;

CREATE FUNCTION refuse_unless_archived() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM runs WHERE id = OLD.stream AND archived_at IS NOT NULL) THEN
        RAISE EXCEPTION '% are append-only', TG_TABLE_NAME;
    END IF;
    RETURN OLD;
END
$$;

CREATE TRIGGER events_never_change BEFORE UPDATE ON events
FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TRIGGER events_never_leave BEFORE DELETE ON events
FOR EACH ROW EXECUTE FUNCTION refuse_unless_archived();

CREATE TRIGGER events_never_empty BEFORE TRUNCATE ON events
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
