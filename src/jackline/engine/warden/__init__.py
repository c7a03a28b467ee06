"""The warden: a small separate process that starts agents and kills whole process trees; it decides nothing.

The supervisor starts one for each attempt: `python -I -S __main__.py CONTROL_FD LOCK_FD DEADLINE_MS`.
For each agent it forks a *guard*, which is the agent's parent and also a subreaper. So the orphans of two agents never
mix, and if either the warden or the guard is killed by force, the other one kills the tree. Everything is killed when
the supervisor's end of the socket closes, or at the deadline on the boot clock, which only the supervisor's `renew`
extends. A frozen supervisor does not renew.

It must stay independent and small: no import of jackline, no threads, and nothing of the standard library that loads
`enum`, `re` or `typing` (half of its memory, and of the time to start). So it uses the C modules below `signal` and
`socket`, and relative imports: this package is loaded by its path. jackline also imports `messages` and `process_tree`.

On macOS there is no subreaper and no /proc: only the agent's own process group can be killed there, and a descendant
in another group survives.
"""
