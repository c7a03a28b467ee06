"""The warden: a small process of its own that starts agents and ends whole process trees; it decides nothing.

The supervisor starts one for each attempt: `python -I -S __main__.py CONTROL_FD LOCK_FD DEADLINE_MS`.
For each agent it forks a *guard*, which is the agent's parent and a subreaper too. So the orphans of two
agents never mix, and whichever of warden and guard is killed by force, the other is there to end the tree.
Everything dies when the supervisor's end of the socket closes, or when the deadline on the boot clock has
come, which only the supervisor's `renew` moves. A frozen supervisor does not renew.

It must stay alone and light: nothing of jackline, no threads, no `typing` (a third of the start-up time).
Hence the relative imports: this package is loaded by its path. `wire`, `proc` and `tree` also serve jackline.

On macOS there is no subreaper and no /proc: only the agent's own process group can be ended there, and a
descendant that made a group of its own survives.
"""
