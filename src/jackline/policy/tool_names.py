"""The names that agent CLIs give to shells and their fields. Data only: it is imported to print a call, too."""

from __future__ import annotations

SHELL_TOOLS = frozenset(
    {
        "Bash", "bash", "shell", "shell_command", "local_shell", "exec_command", "run_shell_command",
        "execute_command", "run_command", "run_terminal_cmd", "background_process", "Monitor", "monitor",
    }
)  # fmt: skip
COMMAND_FIELDS = ("command", "cmd", "script")
FOLDER_FIELDS = ("workdir", "cwd", "working_directory", "directory", "dir_path")
