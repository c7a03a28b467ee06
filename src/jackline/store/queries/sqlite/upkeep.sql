-- name: has_schema
SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'

-- name: size
SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()
