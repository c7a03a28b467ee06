-- A proof that could be altered would prove nothing.
CREATE TRIGGER receipts_never_change BEFORE UPDATE OR DELETE ON receipts
FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TRIGGER receipts_never_empty BEFORE TRUNCATE ON receipts
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
