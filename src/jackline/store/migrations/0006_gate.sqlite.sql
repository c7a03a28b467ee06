-- The chain covers a content by its digest: it may be neither altered nor taken away.
CREATE TRIGGER contents_never_change BEFORE UPDATE ON contents
BEGIN
    SELECT RAISE(ABORT, 'contents are append-only');
END;

CREATE TRIGGER contents_never_leave BEFORE DELETE ON contents
BEGIN
    SELECT RAISE(ABORT, 'contents are append-only');
END;
