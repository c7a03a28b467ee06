-- name: add_worktree
INSERT INTO worktrees ({worktree}) VALUES ({:worktree}) ON CONFLICT DO NOTHING

-- name: get_worktree
SELECT {worktree} FROM worktrees WHERE run_id = :run_id

-- name: worktree_owner
SELECT run_id FROM worktrees WHERE repository = :repository AND name = :name AND removed_at IS NULL

-- name: list_worktrees
SELECT {worktree} FROM worktrees WHERE removed_at IS NULL ORDER BY run_id

-- name: set_worktree_made
UPDATE worktrees SET made_at = :at, set_up_at = NULL, host = :host WHERE run_id = :run_id

-- name: set_worktree_set_up
UPDATE worktrees SET set_up_at = :at WHERE run_id = :run_id

-- name: set_worktree_merged
UPDATE worktrees SET merged_at = :at WHERE run_id = :run_id

-- name: set_worktree_removed
UPDATE worktrees SET removed_at = :at WHERE run_id = :run_id

-- name: repository_path
SELECT places.path FROM runs JOIN repositories AS places ON places.id = runs.repository WHERE runs.id = :run_id
