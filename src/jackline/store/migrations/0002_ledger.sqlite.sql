-- A proof that could be altered would prove nothing.
CREATE TRIGGER receipts_never_change BEFORE UPDATE ON receipts
BEGIN
    SELECT RAISE(ABORT, 'receipts are append-only');
END;

CREATE TRIGGER receipts_never_leave BEFORE DELETE ON receipts
BEGIN
    SELECT RAISE(ABORT, 'receipts are append-only');
END;
