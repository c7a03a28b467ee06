"""Rules for commands that no rule matched before policy version 2. Data only."""

from __future__ import annotations

from jackline.domain.states import CallClass
from jackline.policy.builtin.rule_rows import CONTENT_KEY, parse_rows
from jackline.policy.builtin.rule_rows import build_effect_rules as effect

_TREE = (*CONTENT_KEY, "git.tree")
_MIGRATED = "database:{program}:{folder}"
NEWER_EFFECTS = (
    *effect(
        "manage.py|django-admin migrate|flush|loaddata|sqlflush|reset_db|syncdb|dbshell",
        "database.migrate", key=_TREE, target=_MIGRATED,
    ),
    *effect("rails|rake db:*", "database.migrate", key=_TREE, target=_MIGRATED),
    *effect("knex|sequelize|sequelize-cli|typeorm|typeorm-ts-node-commonjs|typeorm-ts-node-esm "
            "migrate:*|migration:*|seed:*|db:*|schema:*", "database.migrate", key=_TREE, target=_MIGRATED),
    *effect("sequelize-cli|node-pg-migrate|db-migrate up|down|redo|reset", "database.migrate", key=_TREE,
            target=_MIGRATED),
    *effect("drizzle-kit push|migrate|drop|push:*", "database.migrate", key=_TREE, target=_MIGRATED),
    *effect("diesel|sqlx|sea-orm-cli migration|migrate|database|setup", "database.migrate", key=_TREE,
            target=_MIGRATED),
    *effect("flask|quart db upgrade|downgrade|stamp", "database.migrate", key=_TREE, target=_MIGRATED),
    *effect("artisan migrate|migrate:*|db:*", "database.migrate", key=_TREE, target=_MIGRATED),
    *effect("mix ecto.*", "database.migrate", key=_TREE, target=_MIGRATED),
    *effect("dotnet ef database", "database.migrate", key=_TREE, target=_MIGRATED),
    *effect("atlas|tern|aerich|piccolo|yoyo schema|migrate|apply|upgrade|downgrade|rollback|migrations",
            "database.migrate", key=_TREE, target=_MIGRATED),
    *effect("slack-cli|slackcli|slack-notify|discord-cli|telegram-cli|teams-cli|matrix-commander", "message.send",
            target="message:{1|}", key=CONTENT_KEY),
    *effect("cargo xtask|make|task|hack ? publish release deploy upload", "package.task", key=_TREE,
            target="package:{folder}"),
    *effect("lerna version", key=_TREE, target="package:{folder}"),
    *effect("npm|pnpm|yarn|bun release|deploy:*|publish:*|release:*", "package.task", key=_TREE,
            target="package:{folder}"),
    # Another agent works without this gate.
    *effect(
        "claude|codex|gemini|qwen|opencode|kilo|aider|cursor-agent|copilot|amp|crush|droid|auggie|cline|openhands|plandex|"
        "codebuff|kiro-cli", "subagent.start", target="agent:{program}",
    ),
    *effect("goose run|session|web", "subagent.start", target="agent:goose"),
    *effect("cursor agent", "subagent.start", target="agent:cursor"),
    *effect("ollama run|launch", "subagent.start", target="agent:ollama/{1|}"),
)  # fmt: skip
_LOCALS = """
make|just|task ? goals:known ! -f --file --makefile --justfile --taskfile --eval -E --environment-overrides -d -t \
--working-directory --global
source|. ? activates:venv
flask db current|history|heads|show|branches|init|revision
alembic current|history|heads|show|branches|init|revision|check
prisma generate|format|validate|version
manage.py makemigrations|check|showmigrations|collectstatic|test|startapp
"""
_READS = """
claude|codex|gemini|qwen|opencode|kilo|aider|goose|cursor-agent|copilot|amp|crush|droid|ollama ? alone:--version \
    alone:--help alone:-V alone:-h
"""
NEWER_READS = tuple(parse_rows(_READS, CallClass.READ))
NEWER_LOCALS = tuple(parse_rows(_LOCALS, CallClass.LOCAL))
NEWER_RULES = frozenset((*NEWER_READS, *NEWER_EFFECTS, *NEWER_LOCALS))
