"""Recognizes database commands that stay on this machine, and queries elsewhere that only read. Pure.

Only known flags count: another config file, output file or host could change what the command does.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jackline.named import NamedTuple
from jackline.policy import loopback
from jackline.policy.loopback import FlagTable, SplitWords, build_flag_table
from jackline.policy.sql_statements import is_reading_statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from jackline.policy.command_line import CommandLine
    from jackline.shell.model import ShellCommand, Word


class DatabaseClient(NamedTuple):
    """The flags by which a client takes the address and the statement."""

    table: FlagTable
    hosts: tuple[str, ...] = ("-h", "--host")
    ports: tuple[str, ...] = ("-p", "--port")
    texts: tuple[str, ...] = ()  # flags whose value is run
    files: tuple[str, ...] = ()  # flags whose value is a file that is run
    urls: tuple[str, ...] = ()  # flags whose value may be an address; operands may always be one


_PG_SWITCHES = "-w -W -e -q --no-password --password --echo --quiet --if-exists -i --interactive"
_PG_VALUED = "-h -p -U -O -T -E -l -D --host --port --username --owner --template --encoding --maintenance-db"
_CLIENTS: Mapping[str, DatabaseClient] = {
    "psql": DatabaseClient(
        table=build_flag_table(
            "-A -t -q -x -X -w -W -1 -e -b -a -n -E -H -l -0 -z --no-psqlrc --tuples-only --no-align --quiet --csv "
            "--html --expanded --single-transaction --echo-all --echo-queries --echo-errors --no-password --list",
            "-h -p -U -d -c -f -F -P -R -T -v --host --port --username --dbname --command --file --field-separator "
            "--pset --record-separator --set --variable",
        ),
        texts=("-c", "--command"),
        files=("-f", "--file"),
        urls=("-d", "--dbname"),
    ),
    "mysql": DatabaseClient(
        table=build_flag_table(
            "-N -B -t -s -r -A -v -E -C --batch --skip-column-names --table --silent --raw --vertical "
            "--no-auto-rehash --compress -p --password --column-names",
            "-h -u -P -D -e -S --host --user --port --database --execute --socket --protocol "
            "--default-character-set --password --connect-timeout",
        ),
        ports=("-P", "--port"),
        texts=("-e", "--execute"),
    ),
    "clickhouse-client": DatabaseClient(
        table=build_flag_table(
            "-n --multiquery -m --multiline -t --time --progress",
            "-h --host --port -u --user --password -q --query -d --database -f --format",
        ),
        ports=("--port",),
        texts=("-q", "--query"),
    ),
    "redis-cli": DatabaseClient(
        table=build_flag_table(
            "--raw --no-raw --json --no-auth-warning --scan -c -x -3 -2 --csv",
            "-h -p -n -a -u --user --pass -r -i --pattern -d",
        ),
        ports=("-p",),
        urls=("-u",),
    ),
    "mongosh": DatabaseClient(
        table=build_flag_table(
            "--quiet --norc --json --nodb", "--host --port --eval -u -p --username --password --authenticationDatabase"
        ),
        hosts=("--host",),
        ports=("--port",),
        texts=("--eval",),
    ),
    **dict.fromkeys(
        ("createdb", "dropdb", "createuser", "dropuser"),
        DatabaseClient(
            table=build_flag_table(f"{_PG_SWITCHES} -f --force -s -d -r --superuser --createdb", _PG_VALUED),
            urls=("--maintenance-db",),
        ),
    ),
    "pg_restore": DatabaseClient(
        table=build_flag_table(
            f"{_PG_SWITCHES} -c -C -O -x -1 -v -a -s --clean --create --no-owner --no-acl --no-privileges --verbose "
            "--single-transaction --data-only --schema-only --exit-on-error",
            "-h -p -U -d -F -j -n -t --host --port --username --dbname --format --jobs --schema --table --role",
        ),
        urls=("-d", "--dbname"),
    ),
}
_SCHEMES = "postgres(?:ql)?|mysql2?|mariadb|mongodb|rediss?|cockroachdb|clickhouse|sqlserver"
_URL = re.compile(
    rf"(?i)(?:jdbc:)?(?:{_SCHEMES})(?:\+(?!srv)\w+)?://(?:[^@/?#\s\\]*@)?(?P<host>\[::1\]|[^@/?#:,\s\\\[\]]*)"
    r"(?::(?P<port>\d{1,5}))?(?:/[^?#\s\\@]*)?(?:\?(?P<query>[^#\s\\]*))?"
)
_FILE_URL = re.compile(r"(?i)(?:jdbc:)?(?:sqlite3?(?:\+\w+)?:|file:)[^\s\\]*")
# Parameters of an address that name another host, or a file with more settings.
_MOVES = re.compile(r"(?i)(?:^|&)[^=&]*(?:host|service|file|options|proxy|socket|replicaset|%)[^=&]*=")
_PAIR = re.compile(r"(?i)\s*+(\w+)\s*+=\s*+([^\s'\\]+)")
# In the text of a client: commands of the client itself, and statements that write a file on the server's machine, load
# code into it or connect elsewhere.
_LEAVES_SQL = re.compile(
    r"(?im)\\(?!(?-i:d[A-Za-z]{0,3}[+S]{0,2}|l\+?|x|timing|conninfo|q|G)(?:\s|$))"
    r"|^[^\S\n]*+(?:system|source|tee|pager|edit|connect)\b"
    r"|\b(?:dblink\w*|lo_export|outfile|dumpfile|load_file|pg_read_\w+|pg_write_\w+|plpython\w*|plperlu|plsh"
    r"|(?:create|import|alter)\s++(?:server|foreign|subscription)|load\s*+'|(?:url|remote\w*|s3\w*|file|hdfs)\s*+\()"
)
_RUNS_PROGRAM = (re.compile(r"(?i)\bcopy\b"), re.compile(r"(?i)\bprogram\b"))  # both together
_LEAVES_MONGO = re.compile(
    r"(?i)\b(?:require|import|process|load|mongo|connect|fs|fetch|eval|function|globalthis|os|child_process|edit"
    r"|constructor|this)\b|[`\\]"
)
_LEAVES_REDIS = frozenset(
    {"config", "module", "migrate", "replicaof", "slaveof", "debug", "shutdown", "acl", "cluster", "failover", "save"}
    | {"bgsave", "sync", "psync", "monitor"}
)
_MOVING_VARIABLE = re.compile(
    r"(?:PGHOSTADDR|PGSERVICE|PGSERVICEFILE|PGSYSCONFDIR|PSQL\w*|MYSQL_HOME|MYSQL_\w*LOGIN\w*)="
)
_HOST_VARIABLE = re.compile(r"(?:PGHOST|MYSQL_HOST)=(.*)", re.DOTALL)
_PORT_VARIABLE = re.compile(r"(?:PGPORT|MYSQL_TCP_PORT)=(.*)", re.DOTALL)


def is_local_database(line: CommandLine, command: ShellCommand, closed_ports: frozenset[int]) -> bool:
    """Check that a client connects to this machine by a literal address or a socket, and that its text stays there."""
    found = _split_client(line, command)
    if found is None:
        return False
    client, split = found
    hosts = list(_find_hosts(client, split, command))
    if not hosts or not all(_is_local_place(host, closed_ports) for host in hosts):  # the default may be elsewhere
        return False
    ports = [*split.find_values(*client.ports), *_find_assigned(_PORT_VARIABLE, command)]
    if not all(word.exact and loopback.is_ordinary_port(word.text, closed_ports) for word in ports):
        return False
    return _stays_on_server(line.program, client, split, command)


def is_read_query(line: CommandLine, command: ShellCommand) -> bool:
    """Check for one statement that only reads, on whatever server."""
    if line.program not in {"psql", "mysql", "clickhouse-client"}:
        return False
    assigned = {word.text.partition("=")[0] for word in command.assignments}
    found = _split_client(line, command, lambda word: _is_other_variable(word, assigned))
    if found is None:
        return False
    client, split = found
    names = {name for name, _ in split.flags}
    if names & {*client.files, "-v", "--set", "--variable", "-P", "--pset"}:
        return False
    texts = split.find_values(*client.texts)
    if not texts:
        return line.program == "psql" and bool(names & {"-l", "--list"})
    return len(texts) == 1 and texts[0].exact and is_reading_statement(texts[0].text, line.program)


def _is_other_variable(word: Word, assigned: set[str]) -> bool:
    """Check for `$DATABASE_URL`, as the environment has it: the command itself does not set it."""
    found = re.fullmatch(r"\$(?:(\w+)|\{(\w+)\})", word.text)
    return found is not None and (found[1] or found[2]) not in assigned


def names_local_database(line: CommandLine, command: ShellCommand, closed_ports: frozenset[int]) -> bool:
    """Check that a migration's own words or variables name a database on this machine, and none elsewhere."""
    places = list(_find_addresses(line, command))
    return bool(places) and all(word.exact and _is_local_address(word.text, closed_ports) for word in places)


_ADDRESS_VARIABLE = re.compile(r"(?:\w+_)?(?:URL|URI|DSN|HOST|PGHOST|CONN\w*|JDBC\w*)|PGHOST|DATABASE|GOOSE_DBSTRING")
_ADDRESS_FLAG = re.compile(r"-{1,2}(?:url|database-url|database|dsn|host|connection|conn)=(.*)", re.DOTALL)


def _find_addresses(line: CommandLine, command: ShellCommand) -> Iterator[Word]:
    for word in command.assignments:
        name, _, value = word.text.partition("=")
        if "://" in value or _ADDRESS_VARIABLE.fullmatch(name.upper()):
            yield word._replace(text=value)
    for word in line.words:
        given = _ADDRESS_FLAG.fullmatch(word.text)
        if given is not None:
            yield word._replace(text=given[1])
        elif "://" in word.text or word.text.startswith("jdbc:"):
            yield word


def _is_local_address(text: str, closed_ports: frozenset[int]) -> bool:
    url = _URL.fullmatch(text)
    if url is None:
        return loopback.is_local_host(text) or _FILE_URL.fullmatch(text) is not None
    is_local = loopback.is_local_host(url["host"]) and not _MOVES.search(url["query"] or "")
    return is_local and loopback.is_ordinary_port(url["port"], closed_ports)


def _split_client(
    line: CommandLine, command: ShellCommand, is_trusted: Callable[[Word], bool] = lambda _: False
) -> tuple[DatabaseClient, SplitWords] | None:
    client = _CLIENTS.get(line.program)
    if client is None or any(_MOVING_VARIABLE.match(word.text) for word in command.assignments):
        return None
    words = line.words
    if line.program == "mysql":  # `-psecret`; a password never follows as its own word
        words = tuple(word._replace(text="-p") if re.match(r"-p.", word.text) else word for word in words)
    split = loopback.split_words(words, client.table, is_trusted)
    return None if split is None else (client, split)


def _find_hosts(client: DatabaseClient, split: SplitWords, command: ShellCommand) -> Iterator[Word]:
    yield from split.find_values(*client.hosts)
    yield from split.find_values("-S", "--socket")
    yield from _find_assigned(_HOST_VARIABLE, command)
    for word in (*split.find_values(*client.urls), *split.operands):
        if "://" in word.text or "=" in word.text:
            yield word


def _find_assigned(name: re.Pattern[str], command: ShellCommand) -> Iterator[Word]:
    for word in command.assignments:
        found = name.fullmatch(word.text)
        if found is not None:
            yield word._replace(text=found[1])


def _is_local_place(word: Word, closed_ports: frozenset[int]) -> bool:
    """Check for a loopback address, the folder of a socket, or an address or `host=` text that names only these."""
    text = word.text
    if not word.exact or text.startswith("/"):
        return word.exact and "," not in text
    if "://" in text or "=" not in text:
        return _is_local_address(text, closed_ports)
    pairs = _PAIR.findall(text)
    names = {name.lower(): value for name, value in pairs}
    is_whole = len(_PAIR.sub("", text).strip()) == 0 and len(names) == len(pairs)
    known = names.keys() <= {"host", "port", "dbname", "user", "password", "sslmode", "connect_timeout"}
    return is_whole and known and loopback.is_local_host(names.get("host", ""))


def _stays_on_server(program: str, client: DatabaseClient, split: SplitWords, command: ShellCommand) -> bool:
    """Check that the text neither leaves the server nor makes the client run something; a file's text is not known."""
    if program == "redis-cli":
        words = split.operands[:1] or split.find_values("--scan")
        return bool(words) and words[0].exact and words[0].text.lower() not in _LEAVES_REDIS
    settings = split.find_values("-v", "--set", "--variable") if program == "psql" else []
    if not all(word.text.startswith("ON_ERROR_STOP") for word in settings):
        return False
    if program == "mongosh" and any(word.text.endswith("js") for word in split.operands):  # a script
        return False
    leaves = _LEAVES_MONGO if program == "mongosh" else _LEAVES_SQL
    texts = (*(word.text for word in split.find_values(*client.texts)), command.stdin)
    return not any(leaves.search(text) or all(part.search(text) for part in _RUNS_PROGRAM) for text in texts)
