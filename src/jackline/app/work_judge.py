"""A program of its own (`python -IS work_judge.py`): compares what stdin says with a schema; whoever waits may end it.

A regular expression cannot be interrupted inside a process, and may take longer than anybody lives.
"""

from __future__ import annotations

import json
import os.path
import sys

if __name__ == "__main__":
    # At the end: nothing here may hide a library.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from jackline.domain import json_schema

    schema, value = json.load(sys.stdin)
    json.dump(json_schema.judge(schema, value), sys.stdout)
