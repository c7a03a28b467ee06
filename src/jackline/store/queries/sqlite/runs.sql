-- name: add_event
-- Fails as the shared query does. If a table has a trigger, SQLite copies every page that a plain INSERT is about to
-- change, to be able to undo that statement; here the whole transaction is rolled back anyway.
INSERT OR FAIL INTO events ({event}) VALUES ({:event})
