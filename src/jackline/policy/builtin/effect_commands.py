"""Rules for commands with effects outside the workspace: their targets, keys and probes. Data only."""

from __future__ import annotations

from jackline.domain.states import Decision, Replay
from jackline.policy.builtin.rule_rows import CONTENT_KEY
from jackline.policy.builtin.rule_rows import build_effect_rules as effect

_FORCE = "push to your own branch without --force; only a person may overwrite or delete shared history"
_PERSON_ONLY = "only a person may do this: state what you need and end your turn"
_URL = r"https://\S+"
_PULL = (("url", r"https://\S+/(?:pull|merge_requests)/\d+"), ("pr", r"/(?:pull|merge_requests)/(\d+)"))
_ISSUE = (("url", r"https://\S+/issues/\d+\S*"), ("issue", r"/issues/(\d+)"))
_COMMENT = (("url", r"https://\S+#\S+"),)
_RELEASE = (("url", r"https://\S+/releases/\S+"),)
_COMMIT = (("commit", r"^[ +*=-]*[0-9a-f]{7,64}\.{2,3}([0-9a-f]{7,64})\s+\S+\s+->\s+\S"),)
_MESSAGE = (("message", r"(?i)\b(?:message-?id|queued as)\b\"?\s*[:=]?\s*\"?(<?[^<>\s\"]+>?)"),)
_BODY = ("file:-F", "file:--body-file", "file:--notes-file")
_MANIFEST = ("file:-f", "file:--filename", "file:-k", "file:--kustomize", "file:--values", "file:--patch-file")
# A deployment uses the working tree, committed or not.
_TREE = (*CONTENT_KEY, "git.tree")
_NOT_LOGGED_IN = (4,)  # documented by gh: it checks authentication before it sends anything

_DENIED = (
    *effect(
        "git push ? --force -f --force-with-lease --force-if-includes --mirror --delete -d --prune",
        "git.push.force", decision=Decision.DENY, hint=_FORCE, target="git:{1|git.remote}/{git.refs|2|git.upstream}",
    ),
    *effect(
        "git push ? refspec:forced", "git.push.force", decision=Decision.DENY, hint=_FORCE,
        target="git:{1|git.remote}/{git.refs|2|git.upstream}",
    ),
    # An agent under the gate must not open it.
    *effect("jackline answer|trust", "jackline.answer", decision=Decision.DENY, target="jackline:{1|}",
            hint=_PERSON_ONLY),
    *effect("jackline work answer", "jackline.answer", decision=Decision.DENY, target="jackline:work:{1|}",
            hint=_PERSON_ONLY),
)  # fmt: skip
_PUSH_KEY = ("1|git.remote", "git.url", "git.refs|2|git.upstream", "git.commit", "--tags", "--all", "-o",
    "--push-option", "--receive-pack", "--exec")  # fmt: skip
# Milder than `git.push.force`, which matches them first: `classify_command` chooses between them.
PUSH_LEASE, PUSH_DELETE = (
    rule
    for name in ("git.push.lease", "git.push.delete")
    for rule in effect(
        "git push", name, key=_PUSH_KEY, target="git:{1|git.remote}/{git.refs|2|git.upstream}",
        probe="builtin:git-push", external=_COMMIT,
    )
)  # fmt: skip
_GIT = (
    *effect(
        "git push ! --dry-run word:-n", "git.push", key=_PUSH_KEY,
        target="git:{1|git.remote}/{git.refs|2|git.upstream}", probe="builtin:git-push", external=_COMMIT,
    ),
    # A dry run still runs the program that it names for the other side.
    *effect("git push ? --no-dry-run --receive-pack --exec helper:any", "git.push.again", key=_TREE,
            target="git:{1|git.remote}/{2|git.upstream}"),
    *effect("git send-pack|http-push", key=_TREE, target="git:{1|git.remote}/{2|git.upstream}"),
    *effect("git maintenance start|stop|register|unregister", "schedule.change", target="schedule:git"),
    # Settings that make git run a program, now or later.
    *effect("git config * * ? setting:steers ! --get --get-all --get-regexp --unset --unset-all", "git.config",
            target="git:config"),
    *effect("git lfs install|uninstall", "git.config", target="git:config"),
    *effect("git send-email", target="mail:{--to}", key=(*CONTENT_KEY, "git.commit", "file:words"), external=_MESSAGE),
    *effect("git lfs|subtree push", target="git:{1|git.remote}/{2|git.upstream}", key=_TREE),
    *effect("git svn dcommit", key=_TREE, target="git:svn"),
    *effect("git p4 submit", key=_TREE, target="git:p4"),
    *effect("git imap-send", key=CONTENT_KEY, target="git:imap"),
    *effect(
        "git config ? --global --system ! --get --get-all --get-regexp -l --list", "git.config", target="git:config"),
    *effect("svn commit|ci|delete|mkdir|copy|move|import", "svn.commit", key=_TREE, target="svn:{1|}"),
    *effect("hg push", key=_TREE, target="hg:{1|}"),
    *effect("jj git push", key=_TREE, target="git:{--remote|}"),
    *effect("sl push", key=_TREE, target="sl:{1|}"),
)  # fmt: skip
_FORGES = (
    *effect(
        "gh pr create|new", "gh.pr.create", key=(*CONTENT_KEY, "git.branch", *_BODY),
        target="pr:{--repo|-R|}:{--head|-H|git.branch}", probe="builtin:gh-pr-create", external=_PULL,
        nothing_happened=_NOT_LOGGED_IN,
    ),
    *effect(
        "gh issue create|new", "gh.issue.create", key=(*CONTENT_KEY, *_BODY), target="issue:{--repo|-R|}:{--title|-t}",
        probe="builtin:gh-issue-create", external=_ISSUE, nothing_happened=_NOT_LOGGED_IN,
    ),
    *effect("gh pr merge", target="pr:{--repo|-R|}:{1|git.branch}", key=_TREE, external=_PULL),
    *effect("gh pr comment|review", target="pr:{--repo|-R|}:{1|git.branch}", key=(*CONTENT_KEY, *_BODY),
            external=_COMMENT),
    *effect("gh issue comment", target="issue:{--repo|-R|}:{1}", key=(*CONTENT_KEY, *_BODY), external=_COMMENT),
    *effect("gh pr|issue close|reopen|edit|lock|unlock|delete|transfer|pin|unpin|ready|develop|update-branch|revert",
            key=(*CONTENT_KEY, *_BODY), target="gh:{--repo|-R|}:{1|}"),
    *effect("gh release create|new", "gh.release.create", key=(*_TREE, *_BODY, "file:words"),
            target="release:{--repo|-R|}:{1}", external=_RELEASE),
    *effect("gh release edit|delete|upload|delete-asset", key=(*CONTENT_KEY, *_BODY, "file:words"),
            target="release:{--repo|-R|}:{1}"),
    *effect("gh repo create|delete|edit|archive|unarchive|fork|rename|sync|set-default|deploy-key", target="repo:{1|}",
            external=(("url", _URL),)),
    *effect("gh workflow run|enable|disable", target="workflow:{--repo|-R|}:{1|}", key=_TREE),
    *effect("gh run rerun|cancel|delete", target="run:{--repo|-R|}:{1|}"),
    *effect(
        "gh gist|label|secret|variable|cache|project|codespace|ssh-key|gpg-key|ruleset|org|auth|extension|"
        "alias|config",
            target="gh:{1|}:{2|}"),
    *effect("gh api ? method:sends", target="gh:{1}", key=(*CONTENT_KEY, "file:--input")),
    *effect("gh *", "gh.other", target="gh:{1|}"),
    *effect("glab mr create|new", "glab.mr.create", key=(*CONTENT_KEY, "git.branch"),
            target="mr:{--repo|-R|}:{--source-branch|-s|git.branch}", external=_PULL),
    *effect("glab mr|issue|release|ci|repo|label|variable|snippet|schedule|ssh-key|incident|auth *",
            target="glab:{1|}"),
    *effect("glab api ? method:sends", target="glab:{1}", key=CONTENT_KEY),
    *effect("git pull-request", key=_TREE, target="pr::{-h|--head|git.branch}", external=_PULL),
    *effect("git create|delete|fork|release|issue|api|sync|gist|pr", "hub.other", target="hub:{1|}", key=_TREE),
    *effect(
        "tea pr|pulls|issue|issues|release|repo create|close|merge|edit",
        target="tea:{1|}", external=(("url", _URL),)),
)  # fmt: skip
_WEB = (
    *effect("curl|wget|http ? method:sends", "http.send", target="http:{url}", probe="builtin:http",
            external=(("url", r"(?i)^location:\s*(\S+)"), *_MESSAGE),
            key=(*CONTENT_KEY, "file:-T", "file:--upload-file", "file:--body-file", "file:--post-file", "file:-K")),
    *effect("host|dig|nslookup|ping|ping6|traceroute ? content:sent", "net.send", target="net:{1|}"),
    *effect("nc|ncat|netcat|socat|telnet|websocat|grpcurl|wscat", "net.send", target="net:{1|}:{2|}"),
    *effect("mail|mutt|swaks|sendmail|msmtp|ssmtp|exim|smtp-cli|mailsend|sendEmail|mpack", "mail.send",
            target="mail:{1|--to|-t|}", key=CONTENT_KEY, external=_MESSAGE),
    *effect("ssh|mosh|pdsh|pssh|autossh|sshpass", "ssh.run", target="ssh:{1|}", key=CONTENT_KEY),
    *effect("scp|sftp|lftp|ftp|tftp|ncftpput|rclone|ssh-copy-id|croc", "copy.send", target="copy:{2|1|}",
            key=(*CONTENT_KEY, "file:words")),
    *effect("rsync", "copy.send", target="copy:{2|1|}", key=(*CONTENT_KEY, "file:words")),
    *effect("slack|slackcat|discord|telegram-send|ntfy|apprise|twilio|sendgrid|pushover|signal-cli", "message.send",
            target="message:{1|}", key=CONTENT_KEY, external=_MESSAGE),
)  # fmt: skip
_REGISTRIES = (
    *effect("npm|pnpm|yarn|bun publish", key=_TREE, target="package:{1|folder}"),
    *effect("yarn npm publish", "yarn.publish", key=_TREE, target="package:{1|folder}"),
    *effect(
        "npm|pnpm|yarn unpublish|deprecate|dist-tag|owner|access|token|login|logout|adduser|team|hook|"
        "profile|star|set|config",
            target="npm:{1|}"),
    *effect(
        "lerna|changeset|nx|semantic-release|release-it|np|standard-version|goreleaser|auto publish|release",
        key=_TREE,
            target="package:{folder}"),
    *effect("semantic-release|release-it|np|goreleaser", "package.release", key=_TREE, target="package:{folder}"),
    *effect("twine upload", key=(*_TREE, "file:words"), target="package:{folder}"),
    *effect("poetry|uv|flit|hatch|pdm|rye|maturin publish", key=_TREE, target="package:{folder}"),
    *effect("maturin upload", key=(*_TREE, "file:words"), target="package:{folder}"),
    *effect("cargo release|workspaces|dist", key=_TREE, target="package:{folder}"),
    *effect("buf push|registry|curl", key=_TREE, target="buf:{1|folder}"),
    *effect("elm publish|bump", key=_TREE, target="package:{folder}"),
    *effect("syft attest", key=_TREE, target="image:{1|}"),
    *effect("semgrep ci|publish|login", key=_TREE, target="semgrep:{folder}"),
    *effect("rake ? release", "package.task", key=_TREE, target="package:{folder}"),
    *effect("stack|cabal|opam|nimble|dub|conan|snapcraft upload|publish", "package.publish", key=_TREE,
            target="package:{folder}"),
    *effect("cargo publish|yank|owner|login|logout", key=_TREE, target="crate:{-p|--package|folder}"),
    *effect("gem push|yank|owner", key=(*CONTENT_KEY, "file:words"), target="gem:{1|}"),
    *effect(
        "mvn|gradle|sbt|lein|mill deploy|publish|release|release:perform|release:prepare|publishSigned|"
        "uploadArchives",
            key=_TREE, target="package:{folder}"),
    *effect("mvn|gradle|sbt ? deploy deploy:* publish* release:* uploadArchives jib:build holds::publish task:sends",
            "package.publish", key=_TREE, target="package:{folder}"),
    *effect("yarn workspace * publish", "yarn.publish", key=_TREE, target="package:{1|folder}"),
    *effect("deno|jsr publish", key=_TREE, target="package:{folder}"),
    *effect("python setup.py ? upload register", "setup.upload", key=_TREE, target="package:{folder}"),
    *effect("pytest ? --pastebin", "paste.send", key=_TREE, target="paste:pytest"),
    *effect("ctest ? Submit submit -D* --dashboard", "dashboard.send", key=_TREE, target="dashboard:{folder}"),
    *effect("dotnet nuget push|delete", key=(*CONTENT_KEY, "file:words"), target="nuget:{1|}"),
    *effect("nuget push|delete", key=(*CONTENT_KEY, "file:words"), target="nuget:{1|}"),
    *effect("mix hex.publish", key=_TREE, target="package:{folder}"),
    *effect("pod trunk", key=_TREE, target="pod:{2|}"),
    *effect("vsce|ovsx publish|unpublish", key=_TREE, target="extension:{folder}"),
    *effect("docker|skopeo|buildah|crane|oras push|copy", "image.push", target="image:{1|}",
            key=(*CONTENT_KEY, "git.commit"), external=(("digest", r"digest: (sha256:[0-9a-f]{64})"),)),
    *effect("docker build|buildx|compose ? --push holds:type=registry holds:push=true", "image.push",
            target="image:{-t|--tag|}", key=_TREE),
    *effect("docker-compose ? --push", "image.push", target="image:{folder}", key=_TREE),
    *effect("docker compose push", "image.push", target="image:{folder}", key=_TREE),
    *effect("docker-compose push", "image.push", target="image:{folder}", key=_TREE),
    *effect("docker image|manifest push", "image.push", target="image:{1|}"),
    *effect("docker login|logout|swarm|service|stack|secret|config|node|plugin", target="docker:{1|}:{2|}"),
    *effect("mkdocs gh-deploy", key=_TREE, target="git:gh-pages"),
    *effect("docker system|volume|image|container|network|builder|buildx prune", "docker.prune", target="docker:{1|}"),
    *effect("docker volume rm", "docker.prune", target="docker:{1|}"),
    *effect("docker compose down ? -v --volumes", "docker.prune", target="docker:{folder}"),
    *effect("docker-compose down ? -v --volumes", "docker.prune", target="docker:{folder}"),
    *effect("docker ? --host --context word:-H before:-c", "docker.elsewhere",
            target="docker:{--host|-H|--context|}:{1|}"),
    # The container may be somebody's database, and no file of the workspace tells. A stopped one can be started again.
    *effect("docker rm|kill|rename|update", "docker.change", target="docker:{1|}"),
    *effect("docker container rm|kill|rename|update", "docker.change", target="docker:{1|}"),
    *effect("terraform init ? -migrate-state -force-copy", "terraform.migrate", key=_TREE, target="terraform:{folder}"),
    *effect("npm|pnpm|yarn|bun run|run-script ? deploy publish release deploy:* publish:* release:*", "package.task",
            key=_TREE, target="package:{folder}"),
    *effect("yarn|npm deploy|release", "package.task", key=_TREE, target="package:{folder}"),
    *effect("make|just|task|rake|invoke|gulp|grunt|ninja ? deploy publish upload deploy-* publish-* upload-*",
            "package.task", key=_TREE, target="package:{folder}"),
    *effect("tox|nox|hatch|pdm|rye ? publish release deploy upload environment:sends", "package.task", key=_TREE,
            target="package:{folder}"),
    *effect("bun upgrade", "outside.install", target="system:bun", replay=Replay.IDEMPOTENT),
    *effect("helm push|registry", key=(*CONTENT_KEY, "file:words"), target="chart:{1|}"),
    *effect("huggingface-cli|hf upload|delete|repo", key=(*CONTENT_KEY, "file:words"), target="hub:{1|}"),
    *effect("ollama push|rm|cp|create", target="ollama:{1|}"),
)  # fmt: skip
_CLUSTERS = (
    *effect(
        "kubectl apply|create|replace|patch|delete|edit|set|scale|autoscale|expose|run|label|annotate|taint|"
        "drain|cordon|uncordon|cp|exec|attach|rollout|certificate|debug|port-forward|proxy|wait|auth|config",
            key=(*CONTENT_KEY, *_MANIFEST), target="kubernetes:{--context|}:{-n|--namespace|}:{-f|--filename|1|}"),
    *effect("kubectl", "kubectl.other", target="kubernetes:{1|}"),
    *effect("helm install|upgrade|uninstall|delete|rollback|test",
            key=(*_TREE, "file:-f", "file:--values", "file:words"), target="helm:{-n|--namespace|}:{1}"),
    *effect("helm *", "helm.other", target="helm:{1|}"),
    *effect("helmfile|skaffold|argocd|flux|kapp|tilt|velero|istioctl|kops|eksctl|k9s|kind|minikube", "cluster.change",
            key=(*_TREE, *_MANIFEST), target="cluster:{1|}"),
    *effect("terraform apply|destroy|import|taint|untaint|refresh|force-unlock|login|logout|state|workspace|run-all|"
        "test",
            key=(*_TREE, "file:words"), target="terraform:{folder}"),
    *effect("pulumi up|update|destroy|refresh|import|cancel|stack|state|watch|login", key=_TREE,
            target="pulumi:{--stack|-s|folder}"),
    *effect(
        "cdk|cdktf|sam|copilot|serverless|sls|sst|amplify|eb|cloudformation|chalice|zappa deploy|destroy|"
        "remove|bootstrap|rollback|sync|delete",
            key=_TREE, target="deploy:{folder}"),
    *effect(
        "ansible|ansible-playbook|ansible-pull|salt|salt-ssh|puppet|chef-client|knife|fab|cap|nomad|consul|"
        "vault|packer|vagrant|boundary|waypoint", "host.change",
            key=(*_TREE, "file:words"), target="host:{1|}"),
    *effect("aws s3 cp|mv|rm|sync|mb|rb|website", key=(*CONTENT_KEY, "file:words"), target="s3:{2|1|}"),
    *effect(
        "aws|gcloud|az|gsutil|bq|ibmcloud|oci|doctl|linode-cli|hcloud|scw|ovhcloud|aliyun|tccli|openstack|"
        "civo|exo|s3cmd|s5cmd|azcopy", "cloud.change",
            key=(*CONTENT_KEY, "file:--body", "file:--template-file", "file:--template-body"),
            target="{program}:{1|}:{2|}:{3|}"),
    *effect(
        "heroku|fly|vercel|now|netlify|wrangler|firebase|surge|railway|render|dokku|cf|gh-pages|supabase|"
        "convex|neonctl|planetscale|pscale|stripe|shopify|eas|expo|fastlane|appcenter|ntl|deployctl|modal|"
        "sentry-cli|datadog-ci|databricks|snowsql|dbt", "deploy.send",
            key=_TREE, target="deploy:{program}:{1|}:{folder}", external=(("url", _URL),)),
    *effect("jupyter nbconvert ? --execute", "jupyter.run", key=_TREE, target="notebook:{1|}"),
)  # fmt: skip
_DATABASES = (
    *effect(
        "psql|mysql|redis-cli|mongosh|cqlsh|clickhouse-client|clickhouse|sqlcmd|usql|pgcli|mycli|influx|"
        "cypher-shell|cockroach|duckdb-remote", "database.run",
            key=(*CONTENT_KEY, "file:-f", "file:--file"), target="database:{program}:{-h|--host|}:{-d|--dbname|-D|1|}"),
    *effect(
        "createdb|dropdb|createuser|dropuser|pg_restore|mysqladmin|mysqlimport|mongorestore|mongoimport|"
        "initdb", "database.change",
            key=(*CONTENT_KEY, "file:words"), target="database:{program}:{1|}"),
    *effect(
        "alembic|flyway|liquibase|dbmate|goose|migrate|knex|prisma|sqitch|sequelize upgrade|downgrade|"
        "migrate|up|down|update|rollback|db|deploy|db:migrate|stamp", "database.migrate",
            key=_TREE, target="database:{program}:{folder}"),
    *effect("kafka-console-producer|kcat|kafkacat|rabbitmqadmin|mosquitto_pub|nats|amqp-publish", "queue.send",
            key=CONTENT_KEY, target="queue:{program}:{1|}"),
)  # fmt: skip
_MACHINE = (
    *effect(
        "systemctl|service|launchctl|initctl|rc-service|sv|supervisorctl|pm2|loginctl",
        "service.change", target="service:{1|}:{2|}"),
    *effect("crontab|at|batch|atrm|systemd-run|anacron", "schedule.change", target="schedule:{program}",
            key=(*CONTENT_KEY, "file:words", "file:-f")),
    *effect("shutdown|reboot|halt|poweroff|init|telinit|systemd-halt", "machine.stop", decision=Decision.DENY,
            target="machine",
            hint="an agent must not shut down the machine"),
    *effect(
        "mkfs|mkfs.ext2|mkfs.ext3|mkfs.ext4|mkfs.xfs|mkfs.btrfs|mkfs.vfat|mke2fs|fdisk|parted|wipefs|sgdisk|"
        "mkswap|swapon|swapoff|losetup|cryptsetup|lvremove|vgremove|zpool|zfs", "disk.change", decision=Decision.DENY,
            target="disk:{1|}", hint="an agent must not change disks"),
    *effect(
        "mount|umount|sysctl|modprobe|insmod|rmmod|iptables|ip6tables|nft|ufw|firewall-cmd|ip|ifconfig|route|"
        "hostnamectl|hostname|timedatectl|date|localectl|setenforce|dmsetup|tc", "machine.change",
            target="machine:{program}"),
    *effect(
        "useradd|userdel|usermod|groupadd|groupdel|passwd|chpasswd|visudo|adduser|deluser|chsh|gpasswd",
        "users.change", target="users:{1|}"),
    *effect(
        "apt|apt-get|aptitude|dpkg|rpm|dnf|yum|zypper|pacman|apk|brew|port|snap|flatpak|nix-env|nix-channel|"
        "choco|winget|scoop|emerge|pkg|pkg_add|softwareupdate|update-alternatives|pipx|luarocks|cpan|cpanm|"
        "conda|mamba", "outside.install",
            target="system:{program}:{2|1|}", replay=Replay.IDEMPOTENT),
    *effect(
        "rustup|pyenv|nvm|asdf|mise|volta|fnm|sdk|opam|cabal|stack install|uninstall|update|upgrade|default|"
        "global|add|remove|toolchain|component|target|self", "outside.install",
            target="system:{program}:{1|}", replay=Replay.IDEMPOTENT),
    *effect("npm|pnpm|yarn|bun install|i|add|remove|rm|uninstall|update|upgrade ? -g --global --location",
            "outside.install", target="system:{program}:{1|}", replay=Replay.IDEMPOTENT),
    *effect("npm|pnpm|yarn|bun link|unlink", "outside.install", target="system:{program}:{1|}",
            replay=Replay.IDEMPOTENT),
    *effect("yarn global|config *", "outside.install", target="system:yarn:{1|}", replay=Replay.IDEMPOTENT),
    *effect("pip install|uninstall ? --user --break-system-packages -t --target --prefix --root", "outside.install",
            target="system:pip:{1|}", replay=Replay.IDEMPOTENT),
    *effect("uv pip install|uninstall ? --system --break-system-packages --target --prefix", "outside.install",
            target="system:pip:{1|}", replay=Replay.IDEMPOTENT),
    *effect("uv tool|self", "outside.install", target="system:uv:{2|1|}", replay=Replay.IDEMPOTENT),
    *effect("cargo|go|gem|make|ninja|cmake|dotnet install|uninstall", "outside.install",
            target="system:{program}:{1|}", replay=Replay.IDEMPOTENT),
    *effect("make|ninja|meson ? install uninstall", "outside.install", target="system:{program}",
            replay=Replay.IDEMPOTENT),
    *effect("cmake ? --install", "outside.install", target="system:cmake", replay=Replay.IDEMPOTENT),
    *effect("dotnet tool", "outside.install", target="system:dotnet:{2|}", replay=Replay.IDEMPOTENT),
    *effect(
        "gpg|gpg2 ? --send-keys --import --delete-keys --delete-secret-keys --gen-key --full-generate-key",
        "keys.change", target="keys:{1|}"),
    *effect("ssh-keygen|ssh-add", "keys.change", target="keys:{-f|1|}"),
    *effect("xdg-open|open|start|osascript|say|notify-send|xdotool", "desktop.open", target="desktop:{1|}"),
    *effect("wall|write|logger", "message.local", target="message:{1|}"),
    *effect("jackline run|resume|fork|cancel|init|db|uninstall|import|scaffold", "jackline.change",
            target="jackline:{1|}"),
)  # fmt: skip

# Matching order for one program: FIRST, reads, SECOND, locals, LAST.
FIRST = (*_DENIED, *_GIT)
SECOND = _REGISTRIES
LAST = (*_FORGES, *_WEB, *_CLUSTERS, *_DATABASES, *_MACHINE)
