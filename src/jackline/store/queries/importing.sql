-- name: last_data_of_stream
SELECT data FROM events WHERE stream = :stream ORDER BY seq DESC LIMIT 1
