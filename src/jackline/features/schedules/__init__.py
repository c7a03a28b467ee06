"""Schedules: runs that start at the times of a cron expression, each time once across all services of a home."""
