"""Flags of well-known programs that take a value, to distinguish a subcommand from a flag value. Data only."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_FLAGS: frozenset[str] = frozenset()


def parse_table(text: str) -> Mapping[str, frozenset[str]]:
    """Parse lines such as `git, hub: -C -c`; several names before the colon share the flags, and a name may repeat."""
    table: dict[str, frozenset[str]] = {}
    for names, _, given in (line.partition(":") for line in text.strip().splitlines()):
        for name in map(str.strip, names.split(",")):
            table[name] = table.get(name, NO_FLAGS) | frozenset(given.split())
    return table


# Other names of the same program.
ALIASES = {
    name: program
    for program, names in {
        "kubectl": "oc k microk8s.kubectl", "docker": "podman nerdctl", "terraform": "tofu terragrunt", "fly": "flyctl",
        "sed": "gsed", "awk": "gawk mawk nawk", "fd": "fdfind", "mysql": "mariadb", "mongosh": "mongo", "bat": "batcat",
        "http": "https xh xhs", "mail": "mailx s-nail", "mutt": "neomutt", "pytest": "py.test", "tar": "gtar bsdtar",
        "git": "hub", "find": "gfind", "make": "gmake", "mvn": "mvnw", "gradle": "gradlew", "redis-cli": "valkey-cli",
        "bazel": "bazelisk",
    }.items()
    for name in names.split()
}  # fmt: skip
# Wrappers whose own flags are not known: the command is somewhere after them.
_WRAPPERS = (
    "parallel strace ltrace unshare nsenter setarch perf valgrind gdb faketime proxychains proxychains4 torsocks "
    "firejail bwrap xvfb-run dbus-run-session ssh-agent direnv rbenv pyenv asdf chronic ts entr rlwrap pkexec gosu "
    "su-exec setpriv chrt taskset numactl cpulimit prlimit systemd-inhibit eatmydata fakeroot dtach screen tmux "
    "dumb-init tini catatonit microk8s k3s softlimit chpst setuidgid micromamba guix nix mise dotenv aws-vault chamber "
    "infisical envchain foreman nvm volta fnm corepack fish csh tcsh nu xonsh pwsh nix-shell sops"
)
WRAPPERS = frozenset(_WRAPPERS.split())
# Flags before the subcommand that take a value.
VALUED = parse_table("""
git: -C -c --git-dir --work-tree --namespace --config-env --attr-source --super-prefix
gh: -R --repo --hostname
glab: -R --repo -g --group
npm, pnpm, yarn, bun: --prefix -C --dir --cwd --registry --userconfig --cache --loglevel --workspace -w --filter -F
docker: -H --host --context -c --config -l --log-level --tlscacert --tlscert --tlskey --url --root
docker-compose: -f --file -p --project-name --env-file --profile --project-directory
kubectl: -n --namespace --context --kubeconfig --cluster --user -s --server --token --as --as-group -v
helm: -n --namespace --kube-context --kubeconfig --registry-config --repository-config --repository-cache
aws: --profile --region --output --endpoint-url --query --color --ca-bundle --cli-read-timeout --cli-connect-timeout
gcloud, gsutil, bq: --project --account --configuration --format --filter --region --zone --verbosity -h -o -u
az: --subscription --output -o --query
cargo: --config -C --color --manifest-path -Z
go: -C
make: -C -f -j -I -o -W
terraform: -chdir
pulumi: --cwd -C --stack -s --color
heroku, fly, vercel, netlify, wrangler, firebase: -a --app -c --config -t --token --cwd --scope --project -P -A --env -e
systemctl, loginctl: -t --type -p --property -n --lines -o --output -H --host -M --machine --state
poetry: -C --directory -P --project
uv: --directory --project --config-file --cache-dir --python --color
pip: --proxy --retries --timeout --log --cache-dir --python --cert
brew: --prefix
jackline: --home
cargo-make: --profile
bundle: --gemfile
mvn, gradle: -pl -P -f --file -p --project-dir -T --threads
redis-cli: -h -p -a -n -u -s -r -i --user --pass
http: -a --auth -A --auth-type -o --output -s --style -p --print --timeout --verify --cert --cert-key --proxy \
--session --session-read-only --max-redirects --pretty
""")
# Flags before the subcommand that take no value.
SWITCHES = parse_table("""
ip: -4 -6 -br -brief -j -json -p -pretty -s -stats -d -details -o -oneline -c -color
git: --no-pager -p --paginate -P --bare --no-replace-objects --literal-pathspecs --no-optional-locks --no-lazy-fetch \
--version --help
gh, glab: --help --version
jackline: --json --no-color
npm, pnpm, yarn, bun: -s --silent -q --quiet -d --json --offline --workspaces -ws -r --recursive --yes -y \
--frozen-lockfile
docker: -D --debug --tls --tlsverify
docker-compose: --verbose --ansi --compatibility --dry-run
kubectl: --insecure-skip-tls-verify --warnings-as-errors
helm: --debug
aws: --debug --no-verify-ssl --no-paginate --no-sign-request --no-cli-pager
gcloud, gsutil, bq: -q --quiet -m --log-http --user-output-enabled
az: --debug --verbose --only-show-errors
cargo: -q --quiet -v --verbose -vv --frozen --locked --offline
go: -v
terraform: -version -help
pulumi: --non-interactive --logtostderr
systemctl, loginctl: --user --system --no-pager -q --quiet --no-legend -a --all -l --full
mvn, gradle: -q -B -e -X -U -o -ntp --quiet --batch-mode --offline --no-transfer-progress --info --debug \
--stacktrace --no-daemon
poetry: -q --quiet -v --verbose -n --no-interaction --no-ansi
uv: -q --quiet -v --verbose --offline --no-cache -n --no-progress
pip: -q --quiet -v --verbose --isolated --no-input --disable-pip-version-check --require-virtualenv
""")
# Flags after the subcommand that take a value; used where operands are counted.
ARGUMENTS = parse_table("""
git push: -o --push-option --receive-pack --exec --repo --recurse-submodules
git clone: -b --branch -o --origin -u --upload-pack --depth --template --reference --separate-git-dir -c --config -j \
--jobs --filter --shallow-since --shallow-exclude
git init: -b --initial-branch --template --separate-git-dir --object-format
git worktree, git worktree add: -b -B --reason
gh pr create: -t --title -b --body -F --body-file -B --base -H --head -a --assignee -l --label -m --milestone -p \
--project -r --reviewer -T --template --recover
gh issue create: -t --title -b --body -F --body-file -a --assignee -l --label -m --milestone -p --project -T \
--template --recover
gh release create: -t --title -n --notes -F --notes-file --target --discussion-category --notes-start-tag
gh pr merge: -t --subject -b --body -F --body-file -A --author-email --match-head-commit
gh pr comment, gh issue comment, gh pr review, gh issue close, gh pr close: -b --body -F --body-file -c --comment -r \
--reason
ssh: -B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w
scp, sftp: -c -D -F -i -J -l -o -P -S -X -b -B -R
rsync: -e --rsh --exclude --include --filter -f --exclude-from --include-from --files-from --bwlimit --timeout \
--port --password-file --backup-dir --suffix --log-file --out-format --chmod --chown --compare-dest --copy-dest \
--link-dest --temp-dir -T --max-size --min-size --partial-dir
mail: -s -c -b -r -a -A -S -q -u -f -F
mutt: -s -c -b -a -i -e -F -H
sendmail, msmtp, ssmtp: -f -F -r -C -a -o -h --from --host --port --account --file
npm publish, pnpm publish, yarn publish: --tag --access --otp --registry
docker push: --platform
kubectl apply, kubectl delete, kubectl create, kubectl replace, kubectl patch: -f --filename -k --kustomize -l \
--selector -o --output -p --patch --type --field-manager
helm install, helm upgrade: -f --values --set --set-string --set-file --version --timeout --description
psql: -h -p -U -d -c -f -v -o -F -L -P -R -T --host --port --username --dbname --command --file --set
mysql: -h -u -P -D -e -S --host --user --port --database --execute --socket
mvn, gradle: -pl -P -f --file -p --project-dir -T --threads -D -x --exclude-task --tests -rf --resume-from
redis-cli: -h -p -s -a -n -r -i -u --user --pass
mongosh: --host --port --eval -u --username -p --password --file -f
curl: -A -b -c -C -d -D -e -E -F -h -H -K -m -o -P -Q -r -t -T -u -U -w -x -X -y -Y -z --request --data --data-raw \
--data-binary --data-urlencode --data-ascii --form --form-string --header --output --user --url --json --upload-file \
--max-time --connect-timeout --retry --retry-delay --proxy --cacert --cert --key --cookie --cookie-jar --user-agent \
--referer --write-out --config --resolve --output-dir --range --unix-socket
wget: -O -o -a -P -U -t -T -w -Q -e -i --method --body-data --body-file --post-data --post-file --header \
--output-document --user --password --user-agent --timeout --tries --directory-prefix
chmod, chown, chgrp: --reference
cp, mv, ln, install: -t --target-directory -S --suffix -m --mode -o --owner -g --group
touch: -t -d -r --date --reference
mkdir: -m --mode
truncate: -s --size -r --reference
head, tail: -n -c --lines --bytes
tar: -f --file -C --directory -I --use-compress-program -T -X --exclude --strip-components --transform
zip: -x -i -b -t -tt -n
unzip: -d -x -P
patch: -i --input -d --directory -o --output -r --reject-file -B --prefix -D --ifdef -F --fuzz -V -z --suffix
split: -a -b -C -l -n -t --suffix-length --bytes --line-bytes --lines --number --separator
csplit: -b -f -n --prefix --suffix-format --digits
mktemp: -p --suffix
strip, objcopy: -o -O -I -F -K -N -R -j --output-target --input-target
""")
