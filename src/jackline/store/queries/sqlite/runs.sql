-- name: add_event
-- Fails as the shared one does. But where a trigger watches, SQLite copies every page that a plain INSERT is about to
-- change, to undo that one statement; here the whole transaction is undone anyway.
INSERT OR FAIL INTO events ({event}) VALUES ({:event})
