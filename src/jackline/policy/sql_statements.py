"""Checks that the text of a database client is one statement that only reads. Pure, and linear in the text's length.

A word list decides, not a grammar: what is not known to be harmless does not count as a read.
"""

from __future__ import annotations

import re

_LONGEST = 20_000
# A string, a quoted name, a word, a mark that other dialects read differently, a number or operator.
_TOKEN = re.compile(
    r"(?P<string>'(?:[^']|'')*+')|(?P<quoted>\"(?:[^\"]|\"\")*+\"|`[^`]*+`)|(?P<word>[^\W\d][\w$]*+)"
    r"|(?P<risk>--|/\*|#|\$|\\|:=|['\"`;{}@])|(?P<other>\d[\w.]*+|[^\s])"
)
_FIRST = frozenset({"SELECT", "SHOW", "EXPLAIN"})
_FIRST_OF = {"mysql": frozenset({"DESCRIBE", "DESC"}), "clickhouse-client": frozenset({"DESCRIBE", "DESC", "EXISTS"})}
_BANNED_TEXT = """
ANALYZE ANALYSE INTO OUTFILE DUMPFILE FOR UPDATE SHARE LOCK DELETE INSERT MERGE CALL DO COPY EXECUTE
PREPARE SET PROCEDURE CREATE DROP ALTER TRUNCATE GRANT REVOKE RESET LOAD IMPORT EXPORT PROGRAM HANDLER KILL
VACUUM REFRESH NOTIFY LISTEN ATTACH DETACH OPTIMIZE RENAME BEGIN COMMIT ROLLBACK DECLARE
"""
_BANNED = frozenset(_BANNED_TEXT.split())
_BANNED_IN_SHOW = frozenset({"INTO", "OUTFILE"})  # it shows definitions, which may have any other name
_BEFORE_PARENTHESIS_TEXT = """
IN AND OR NOT FROM SELECT WHERE ON AS EXISTS ANY ALL SOME OVER FILTER USING BY HAVING UNION EXCEPT INTERSECT WHEN
THEN ELSE CASE BETWEEN LIKE ILIKE DISTINCT JOIN LIMIT OFFSET GROUP EXPLAIN ARRAY LATERAL INTERVAL IS WITHIN ORDER
NUMERIC DECIMAL VARCHAR CHAR TIMESTAMP TIME BIT ROW VALUES
"""
_BEFORE_PARENTHESIS = frozenset(_BEFORE_PARENTHESIS_TEXT.split())
_HARMLESS_FUNCTIONS_TEXT = """
ABS ACOS AGE ANY_VALUE ARRAY_AGG ARRAY_LENGTH ARRAY_TO_STRING ASCII AVG BIT_LENGTH BOOL_AND BOOL_OR BTRIM CARDINALITY
CAST CEIL CEILING CHAR_LENGTH CHARACTER_LENGTH COALESCE CONCAT CONCAT_WS CONVERT COUNT COUNTIF CUME_DIST CURDATE
CURRENT_DATABASE CURRENT_SCHEMA CURRENT_SCHEMAS CURRENT_USER CURTIME DATABASE DATE DATE_ADD DATE_DIFF DATE_FORMAT
DATE_PART DATE_SUB DATE_TRUNC DATEDIFF DAY DAYOFWEEK DENSE_RANK EXP EXTRACT FIRST_VALUE FLOOR FORMAT FORMAT_TYPE
FROM_UNIXTIME GENERATE_SERIES GREATEST GROUP_CONCAT HAS_TABLE_PRIVILEGE HEX HOUR IF IFNULL INITCAP ISNULL
JSON_AGG JSON_ARRAY_LENGTH JSON_BUILD_OBJECT JSON_EXTRACT JSON_UNQUOTE JSONB_AGG JSONB_ARRAY_ELEMENTS
JSONB_ARRAY_LENGTH JSONB_BUILD_OBJECT JSONB_EACH JSONB_OBJECT_KEYS JSONB_PRETTY JSONB_TYPEOF LAG LAST_DAY LAST_VALUE
LEAD LEAST LEFT LEN LENGTH LN LOG LOWER LPAD LTRIM MAKE_DATE MAX MD5 MEDIAN MIN MINUTE MOD MODE MONTH NOW NTH_VALUE
NTILE NULLIF NVL OBJ_DESCRIPTION COL_DESCRIPTION OCTET_LENGTH PERCENT_RANK PERCENTILE_CONT PERCENTILE_DISC
PG_COLUMN_SIZE PG_DATABASE_SIZE PG_GET_CONSTRAINTDEF PG_GET_EXPR PG_GET_FUNCTIONDEF PG_GET_INDEXDEF PG_GET_VIEWDEF
PG_INDEXES_SIZE PG_IS_IN_RECOVERY PG_RELATION_SIZE PG_SIZE_PRETTY PG_TABLE_SIZE PG_TOTAL_RELATION_SIZE PG_TYPEOF
POSITION POWER QUARTER RADIANS RANDOM RANK REGEXP_MATCH REGEXP_MATCHES REGEXP_REPLACE REPEAT REPLACE REVERSE RIGHT
ROUND ROW_NUMBER ROW_TO_JSON RPAD RTRIM SECOND SIGN SPLIT_PART SQRT STDDEV STRING_AGG STRPOS STR_TO_DATE SUBSTR
SUBSTRING SUM TIMESTAMPDIFF TO_CHAR TO_DATE TO_JSON TO_JSONB TO_NUMBER TO_TIMESTAMP TRANSLATE TRIM TRUNC TRUNCATE
UNIX_TIMESTAMP UNIQ UNNEST UPPER USER VARIANCE VERSION WEEK YEAR TODAY YESTERDAY TODATE TODATETIME TOSTRING
TOSTARTOFDAY TOSTARTOFHOUR TOYYYYMM FORMATREADABLESIZE COUNTDISTINCT
"""
_HARMLESS_FUNCTIONS = frozenset(_HARMLESS_FUNCTIONS_TEXT.split())
# Commands of the client program `mysql`, which it may read at the start of any line.
_CLIENT_LINE = re.compile(
    r"(?im)^[^\S\n]*+(?:system|source|tee|notee|pager|nopager|edit|connect|delimiter|use|charset|prompt|rehash|go|ego)\b"
)
# `\dt+ public.*`, `\l`, `\sf name`: they show definitions.
_DESCRIBES = re.compile(
    r"\s*+\\(?:d[A-Za-z]{0,3}[+S]{0,2}|l\+?|conninfo|encoding|z|s[fv]\+?)(?:[^\S\n]+[\w.*\"?]+)?\s*+"
)


def is_reading_statement(text: str, client: str) -> bool:
    """Check for one statement that begins with SELECT, SHOW or EXPLAIN and calls only harmless functions."""
    if len(text) > _LONGEST:
        return False
    if client == "psql" and _DESCRIBES.fullmatch(text):
        return True
    statement = text.rstrip()
    if client == "mysql":
        statement = statement.removesuffix("\\G").rstrip()
        if _CLIENT_LINE.search(statement):
            return False
    return _is_plain_query(statement.removesuffix(";"), _FIRST | _FIRST_OF.get(client, frozenset()))


def _is_plain_query(statement: str, first: frozenset[str]) -> bool:
    if "\\" in statement:  # inside a string, dialects differ about the end of the string
        return False
    banned, before, kind, is_qualified = _BANNED, "", "", False  # `before` is the previous token
    for found in _TOKEN.finditer(statement):
        piece = found[0].upper() if found.lastgroup == "word" else found[0]
        if not before:
            if piece not in first:
                return False
            banned = _BANNED_IN_SHOW if piece == "SHOW" else _BANNED
        if found.lastgroup == "risk" or (piece == "(" and (is_qualified or not _may_precede_call(before, kind))):
            return False
        # A name such as TRUNCATE is banned unless it is a function, which the parenthesis after it decides.
        if kind == "word" and before in banned and piece != "(":
            return False
        is_qualified = before == "." and found.lastgroup != "other"
        before, kind = piece, found.lastgroup or ""
    return bool(before) and not (kind == "word" and before in banned)


def _may_precede_call(before: str, kind: str) -> bool:
    """Check for a harmless function or a keyword. A quoted name before a parenthesis is a function with any name."""
    if kind == "word":
        return before in _BEFORE_PARENTHESIS or before in _HARMLESS_FUNCTIONS
    return kind == "other" and before != "."
