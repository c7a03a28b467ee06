-- The chain covers a content by its digest: it may be neither altered nor taken away.
CREATE TRIGGER contents_never_change BEFORE UPDATE OR DELETE ON contents
FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TRIGGER contents_never_empty BEFORE TRUNCATE ON contents
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
