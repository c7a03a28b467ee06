-- name: notify_services
SELECT pg_notify('jackline_wake', current_schema())
