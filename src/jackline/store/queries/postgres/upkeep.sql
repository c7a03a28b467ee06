-- name: has_schema
-- From the catalogue, not by to_regclass(), which may answer from a cache that is older than the lock we waited for.
SELECT pg_class.relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = pg_class.relnamespace
WHERE pg_namespace.nspname = current_schema() AND pg_class.relname = 'schema_migrations'

-- name: size
SELECT CAST(COALESCE(SUM(pg_total_relation_size(pg_class.oid)), 0) AS BIGINT) FROM pg_class
JOIN pg_namespace ON pg_namespace.oid = pg_class.relnamespace
WHERE pg_namespace.nspname = current_schema() AND pg_class.relkind = 'r'
