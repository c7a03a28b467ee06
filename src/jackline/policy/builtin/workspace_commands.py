"""Rules for programs that only read, or only change files of the workspace. Data only."""

from __future__ import annotations

from jackline.domain.states import CallClass
from jackline.policy.builtin.rule_rows import parse_rows

_PLAIN_READS = """
ls|dir|vdir|cat|tac|head|tail|nl|wc|cut|paste|tr|rev|fold|fmt|expand|unexpand|comm|join|cmp|diff|diff3|sdiff|od|hexdump
strings|stat|readlink|realpath|basename|dirname|pwd|du|df|id|whoami|groups|users|who|w|uname|arch|nproc|uptime|free
grep|egrep|fgrep|zgrep|zcat|bzcat|xzcat|look|jq|gron|column|seq|factor|bc|expr|numfmt|tsort|ptx
md5sum|sha1sum|sha224sum|sha256sum|sha384sum|sha512sum|b2sum|cksum|sum|shasum|md5|base32|basenc|getconf|locale|tty|cal
echo|printf|true|false|:|test|[|[[|sleep|which|whereis|type|printenv|ps|pgrep|pidof|pstree|lsof|vmstat|iostat|mpstat
lscpu|lsblk|lsusb|lspci|lsmod|lsb_release|getent|netstat|readelf|size
cd|pushd|popd|dirs|unset|set|shopt|read|shift|return|exit|break|continue|\
wait
jobs ! -x
let|umask|ulimit|getopts|times|tokei|apropos|whatis|tldr|exa|eza|lsd
uniq|xxd|json.tool|getfacl|getfattr|namei|pathchk|logname|hostid|ffprobe|pdfinfo|zipinfo
"""
_CONDITIONAL_READS = """
export|declare|typeset|local|readonly ! PATH=* LD_* DYLD_* GIT_* BASH_ENV=* ENV=* PAGER=* EDITOR=* SHELL=* DOCKER_HOST=*
host|dig|nslookup|ping|ping6|traceroute ! content:sent
rg ! --pre --hostname-bin
tree ! -o --output
sort ! -o --output --compress-program
date ? clock:looks
shuf|info ! -o --output
scc ! -o --output --format-multi
cloc ! --out --report-file --extract-with --write-lang-def --config --script-lang --sdir --exclude-list-file
ack|ag ! --pager --ackrc --output
nm|objdump ! --plugin
identify ? remote:none
find ! -delete -fprint -fprint0 -fprintf -fls -ok -okdir
awk ? script:plain
sed ? script:plain ! -i --in-place
fd ! -x -X --exec --exec-batch
ss ! -K --kill
man ! -P --pager -H --html
bat ! --pager
xmllint ! --output
file ! -C --compile
hostname|domainname ? alone:hostname alone:domainname alone:-f alone:-i alone:-I alone:-s alone:-d alone:--fqdn \
alone:--ip-address alone:--short
env
base64 ! -o --output
yq|dasel ! -i --inplace -s --split-exp
less|more ! -o -O --log-file --LOG-FILE +*
openssl version|x509|dgst|ciphers ! -out -signkey -CAcreateserial
tar ? -t --list -tf -tvf -tzf -tzvf -tjf tf tvf tzf tzvf tjf tjvf tJf ! -x -c -r -u -A --extract --create --append \
--update --delete --to-command --checkpoint-action -I --use-compress-program -F --info-script --new-volume-script \
--rsh-command --rmt-command --index-file
unzip ? -l -v -t -Z -p -z ! -d
curl ? method:reads ! -o -O -D -c --output --remote-name --remote-name-all --dump-header --cookie-jar --output-dir \
--trace --trace-ascii --stderr --hsts --alt-svc --etag-save --libcurl -J
wget ? --spider ! -o -O -P -a -i -B --append-output --input-file --base --save-cookies --warc-file --rejected-log \
--hsts-file --config --post-data --post-file --method --body-data --body-file --output-file -e --execute \
--use-askpass
http ? method:reads ! -o --output -d --download --session
command ? -v -V
python|node|ruby|perl|php|java|javac|go|rustc|cargo|npm|npx|yarn|pnpm|bun|deno|pip|uv|poetry|gcc|clang|make|cmake|\
docker|kubectl|helm|terraform|tofu|gh|aws|gcloud|az|psql|mysql|redis-cli|tsc|pytest|ruff|mypy|dotnet|swift|mvn|\
gradle|bundle|gem|composer ? alone:--version alone:-version alone:-V alone:--help alone:version
"""
_GIT_READS = """
git push ? --dry-run word:-n ! --no-dry-run
git ls-remote ! --upload-pack --exec helper:any
git status|blame|annotate|grep|ls-files|ls-tree|rev-parse|rev-list|describe|shortlog|cat-file|name-rev ! \
-O --open-files-in-pager --output --upload-pack --exec --textconv --filters --ext-diff
git log|diff|show|whatchanged|diff-tree|diff-index|diff-files|range-diff ! --output --ext-diff -o --output-directory \
--textconv
git merge-base|merge-tree|for-each-ref|show-ref|show-branch|count-objects|check-ignore|check-attr|check-ref-format|\
check-mailmap|cherry|var
git version|help|fsck|verify-commit|verify-tag|verify-pack|get-tar-commit-id|stripspace|patch-id|column ! -w --web
git worktree list
git stash|notes list|show ! --ext-diff --textconv --output
git reflog show|list|exists ! --ext-diff --textconv --output
git reflog ? alone:reflog
git remote ? alone:remote
git remote ? -v --verbose ! add remove rm rename set-url set-branches set-head update prune
git remote show|get-url
git branch ? alone:branch -l --list -a --all -r --remotes -v -vv --show-current --contains --no-contains --merged \
--no-merged --points-at --sort --format ! -d -D --delete -m -M --move -c -C --copy -u --set-upstream-to \
--unset-upstream -f --force --edit-description -t --track
git tag ? alone:tag -l --list --contains --points-at --merged --sort -n ! -d --delete -a -s -m -F -f --force
git config ? --get --get-all --get-regexp --get-urlmatch -l --list --show-origin ! --add --unset --unset-all \
--replace-all --rename-section --remove-section -e --edit
git config get|list
git submodule status|summary
git bisect log
git lfs ls-files|status|env|version
git bundle verify|list-heads
git sparse-checkout list
"""
_OTHER_READS = """
gh pr|issue|release|repo|run|workflow|gist|label|secret|variable|cache|ruleset|project|codespace|extension|alias|\
config|ssh-key|gpg-key|org list ! -w --web
gh pr|issue|release|repo|run|workflow|gist|ruleset|project view ! -w --web
gh pr diff|checks|status ! -w --web
gh issue|auth status
gh run watch
gh search|status|version|help|completion ! -w --web
gh api ? method:reads
glab mr|issue|release|repo|ci|pipeline|label|variable list|view|show|diff|status ! -w --web
glab api ? method:reads
npm ls|list|view|info|outdated|why|explain|search|root|prefix|bin|audit|show|v|ll|query ! --fix fix
pnpm ls|list|view|info|outdated|why|audit|licenses|root|bin ! --fix
yarn list|info|why|outdated|audit|licenses
bun outdated|why|info|audit
npm config|pkg get|list|ls
npm whoami|ping|help|fund
npm audit signatures
pip list|show|freeze|check|index|debug|inspect|help|search
uv pip list|show|freeze|check|tree
uv tree
poetry show|check|about
cargo tree|metadata|search|locate-project|pkgid|version|info|audit|outdated|verify-project|help
cargo read-manifest
go list|version|env|doc|vet|help ! -w -u -toolexec -vettool
go mod graph|why|verify
rustup show
rustup toolchain list
gem list|search|info|environment|outdated|contents|which
bundle list|show|outdated|info|check
composer show|outdated|validate|info|licenses
dotnet list ? alone:--info alone:--list-sdks package reference
docker ps|images|logs|inspect|version|info|top|stats|port|diff|history|events|search|ls
docker container|image|volume|network|context|system|node|service|stack|secret|config|buildx|manifest ls|list|\
inspect|ps|df|show|history|logs
docker compose ps|logs|config|images|top|port|version|ls|events
docker-compose ps|logs|config|images|top|port|version|events
kubectl get|describe|logs|top|explain|version|api-resources|api-versions|cluster-info|diff|events|options
kubectl config view|get-contexts|current-context|get-clusters|get-users
kubectl auth can-i|whoami
kubectl rollout status|history
helm list|ls|status|get|history|show|search|template|lint|version|env|verify ! --post-renderer
terraform show|validate|output|version|graph|metadata
terraform state list|show|pull
terraform workspace list|show
pulumi preview|whoami|version|about
pulumi stack ls|output|history
aws * describe-*|list-*|get-*|head-*|batch-get-*|lookup-*|search-*|filter-*|estimate-*|scan|query|ls|wait|help|\
validate-template ! --outfile
aws s3 ls|presign
aws sts *
aws configure list|get|list-profiles
aws help
gcloud * list|describe|get-iam-policy|get-value|read ? nouns:1
gcloud * * list|describe|get-iam-policy|get-value|read|get-server-config ? nouns:2
gcloud * * * list|describe|get-iam-policy ? nouns:3
gcloud info|version|help
gsutil ls|cat|stat|du|version|hash
bq ls|show|head
az * list|show|list-*
az * * list|show|list-* ! create delete update set add remove
az * * * list|show ! create delete update set add remove
az version|help
heroku ps|logs|config|releases|info|status|regions|version|whoami|auth:whoami|config:get|apps:info|pg:info|\
releases:info ! --set
fly apps list
fly status|logs|info|version|doctor
vercel ls|list|inspect|logs|whoami
netlify status|sites:list|env:list|logs
wrangler whoami|tail
firebase projects:list|apps:list|functions:log|functions:list
systemctl status|is-active|is-enabled|is-failed|list-units|list-unit-files|list-timers|list-sockets|list-jobs|\
list-dependencies|show|cat|show-environment
journalctl ! --rotate --vacuum-size --vacuum-time --vacuum-files --flush --sync --relinquish-var
crontab ? alone:-l
atq
launchctl list|print
brew list|info|search|outdated|deps|doctor|config|leaves|desc|uses
apt|apt-cache list|search|show|policy|depends|rdepends|showpkg|madison
dpkg ? -l -L -s -S -p --list --listfiles --status --search --get-selections ! -i -r -P --install --remove --purge \
--configure --unpack
rpm ? -q* --query ! word:-i -i* -U* -e* -F* --install --upgrade --erase --import
dnf|yum list|search|info|repoquery|provides
dnf|yum history list|info
snap list|info|find
pacman ? -Q -Qi -Ql -Qs -Ss -Si
ip ? alone:addr alone:a alone:address alone:route alone:r alone:link alone:l alone:neigh
ip addr|address|a|route|link|neigh|rule|l|r show|list|ls|get
ifconfig ? alone:ifconfig alone:-a
sysctl ? alone:-a
psql ? -l -lqt -lt -Atl --list -V
redis-cli ping|info|get|mget|keys|scan|exists|ttl|type|hget|hgetall|lrange|smembers|zrange|dbsize|strlen|llen|scard
kill ? -l -L --list
ollama list|ps|show
jackline list|show|logs|inbox|receipts|verify|agents|config|policy|completion
jackline work get|list|pending
jackline events tail|since|search
jackline case status|list|handoff
jackline case hypothesis list
jackline case learning review
"""

READS = tuple(
    rule
    for text in (_PLAIN_READS, _CONDITIONAL_READS, _GIT_READS, _OTHER_READS)
    for rule in parse_rows(text, CallClass.READ)
)


_FILES = """
touch|mkdir|rmdir|rm|unlink|shred|truncate|cp|mv|ln|install|tee|chmod|chown|chgrp|mktemp|mkfifo|patch|apply_patch|dd|\
csplit
split ! --filter
tar ! --to-command --checkpoint-action -I --use-compress-program --rmt-command --rsh-command -F --info-script \
--new-volume-script
zip ! -T -TT --unzip-command
unzip|gzip|gunzip|bzip2|bunzip2|xz|unxz|zstd|unzstd|lz4|7z|ar|ranlib|strip|objcopy|base64|dos2unix|unix2dos|iconv
sort ! --compress-program
find ! -ok -okdir
tree|yq|dasel|xmllint
curl ? method:reads
wget ? method:reads ! -e --execute --use-askpass --config
http ? method:reads
rsync ? remote:none ! -e --rsh --rsync-path --daemon
sed|sqlite3 ? script:plain
git format-patch|archive|bundle ! --exec helper:any
pdftotext|dot
convert|magick ? remote:none
pandoc ! --filter -F --lua-filter -L --pdf-engine --extract-media
"""
_GIT_LOCALS = """
git add|commit|checkout|switch|restore|reset|merge|cherry-pick|revert|stash|branch|tag|mv|rm|worktree|am|gc|\
prune|notes|clean
git apply ! --unsafe-paths
git init ! --template
git log|diff|show ! --ext-diff --textconv
git read-tree|write-tree|update-index|update-ref|commit-tree|hash-object|mktree|pack-refs|repack|\
replace|rerere|maintenance|symbolic-ref|merge-file|unpack-objects|reflog|sparse-checkout|describe|stage|\
checkout-index|prune-packed|cherry|mktag|index-pack
git rebase ! -x --exec
git fetch|pull ! --upload-pack helper:any
git clone ! -u --upload-pack -c --config --template helper:any
git submodule add|init|update|sync|deinit|absorbgitdirs|set-branch|set-url ! helper:any
git remote add|remove|rm|rename|set-url|set-branches|set-head|update|prune ! helper:any
git config ! --global --system --file -f -e --edit edit --blob --rename-section rename-section
git bisect start|good|bad|reset|skip|new|old|terms|replay
git lfs track|untrack|fetch|pull|checkout|prune|migrate
git subtree add|merge|pull|split
gh repo clone
gh pr checkout
gh run|release download
glab mr checkout
"""
_BUILD = """
pytest|py.test|nox|unittest|coverage|ruff|black|isort|autopep8|yapf|flake8|pylint|mypy|pyright|basedpyright|\
bandit|pyflakes|pycodestyle|pydocstyle|vulture|radon|import-linter|lint-imports|pre-commit|compileall|py_compile|\
venv|virtualenv|sphinx-build|pip-compile|pip-audit|codespell|djlint|doctest|pyupgrade|build
tox ! exec
mkdocs build|serve|new|get-deps
pip install|download|wheel|uninstall|cache ! --user --break-system-packages -t --target --prefix --root
uv sync|lock|add|remove|venv|init|build|export|cache|python
uv pip install|uninstall|sync|compile ! --system --break-system-packages --target --prefix
poetry install|add|remove|lock|update|build|init|new|export|env
pipenv install|uninstall|lock|sync|update|clean
pdm|rye|hatch install|add|remove|lock|sync|update|build|init|test|fmt|lint|env
conda|mamba install|create|update|remove ! -n --name -p --prefix
npm|pnpm|yarn|bun install|i|ci|add|remove|rm|uninstall|un|test|t|tst|update|up|upgrade|dedupe|prune|rebuild|\
pack|cache|import|build|audit|lint ! -g --global --location
npm|pnpm|yarn|bun init ? alone:init
yarn ? alone:yarn
npm|pnpm|yarn|bun run test|build|lint|typecheck|type-check|format|fmt|check|compile|clean|coverage|unit|e2e|test:*|\
build:*|lint:*|format:*|check:* ! holds:deploy holds:publish holds:release
tsc|eslint|prettier|jest|vitest|mocha|ava|nyc|c8|webpack|vite|rollup|esbuild|swc|babel|parcel|biome|stylelint|tslint|\
standard|xo|knip|depcheck|playwright|karma|tap|tsd|typedoc|postcss|tailwindcss|sass|oxlint|dprint|tsup|\
rimraf|mkdirp|ncu|swc|svelte-check|vue-tsc|astro|sassc|next ! deploy publish login push upload
cypress run|open|verify|info|install|cache
cargo build|check|test|clippy|fmt|doc|clean|bench|fix|update|add|remove|rm|new|init|fetch|vendor|generate-lockfile|\
nextest|expand|package|b|c|t|deny|machete|udeps|rustc|rustdoc ! --config
cargo llvm-cov|hack|miri ! --config publish run
go build|test|vet|fmt|generate|get|clean|work ! -toolexec -exec -vettool
go mod tidy|download|init|edit|vendor
rustc ! linker=* -Clinker*
rustfmt|gofmt|goimports|golangci-lint|staticcheck|gofumpt|govulncheck|gotestsum
gcc|g++|cc|c++|clang|clang++ ! -wrapper -fplugin* -fpass-plugin* -specs* --specs -Xclang -B* @*
ld|as|clang-format|clang-tidy|cppcheck|cpplint|flex|bison|yacc|nasm|swiftc|\
swiftlint|swift-format|swiftformat|kotlinc|ktlint|detekt|javac|javadoc|jar|scalac|scalafmt|ghc|hlint|ormolu|ocamlc|\
valac|fpc|dmd|ldc2|protoc|thrift|flatc|lcov|gcov|gprof|strip
ccache ? alone:-s alone:--show-stats alone:-z alone:--zero-stats alone:-c alone:--cleanup alone:-C alone:--clear \
alone:-p alone:--show-config
buf build|lint|format|generate|breaking|dep|mod|export|convert|ls-files|config
dune build|test|runtest|clean|fmt|promote|init|describe
elm make|init|install|diff
nim c|compile|cpp|js|check|doc
zig build|test|fmt|cc|c++|ast-check|build-exe|build-lib|build-obj|translate-c|init
crystal build|spec|tool|init|docs
cmake ! word:-P word:-E --build --install
cmake ? --build ! --target word:-t install deploy publish upload
ctest ! -S -SP --script --script-new-process -T -M --test-action --test-model
ninja|autoconf|automake|autoreconf|aclocal|libtoolize ! install
meson setup|compile|test|configure|introspect|init|wrap|rewrite|format|dist ! install deploy publish upload
meson subprojects download|update|purge
meson ? alone:build alone:builddir
bazel build|test|query|clean|fetch|coverage|info ! --run_under
swift build|test|package ! plugin
dotnet build|test|restore|clean|format|new|add|remove|pack
mvn compile|test|package|verify|clean|validate|test-compile|install|dependency:* ? only:compile|test|package|verify|\
clean|validate|test-compile|install|integration-test|site|dependency:*|surefire:test|failsafe:*|spotless:*|\
checkstyle:*|spotbugs:*|pmd:*|jacoco:*|fmt:*|formatter:*|versions:display-* ! deploy release:perform
gradle build|test|check|assemble*|clean|compile*|jar|classes|testClasses|tasks|dependencies|projects|lint* ? \
only:build|test*|check|assemble*|clean|compile*|jar|classes|tasks|dependencies|projects|lint*|spotless*|ktlint*|\
detekt*|jacoco*|javadoc|integrationTest|connected* ! publish deploy
sbt compile|test|clean|package ? only:compile|test|clean|package|test:compile|Test/compile|update|scalafmt*
mix compile|test|format|deps.get|credo|dialyzer
rebar3 compile|eunit|ct|dialyzer
rubocop|rspec|minitest|standardrb|brakeman|sorbet|srb|yard|reek|erb_lint|haml-lint
bundle install|update|add|remove|lock|clean
gem build
composer install|update|require|remove|dump-autoload|dumpautoload|init
phpunit|phpstan|psalm|php-cs-fixer|phpcs|phpcbf|pest|pint|rector
shellcheck|shfmt|hadolint|yamllint|markdownlint|markdownlint-cli2|actionlint|tflint|checkov|ansible-lint|sqlfluff|\
vale|typos|taplo|jsonlint|ajv|editorconfig-checker|commitlint|gitleaks|grype|proselint|write-good|\
lychee|dprint
semgrep ! ci login publish install-semgrep-pro
trivy fs|filesystem|image|config|repo|repository|rootfs|sbom
syft ! attest login cataloger
deno test|fmt|lint|check|cache|doc|info
docker build|pull|tag|rmi|start|stop|restart|pause|save|load|import|cp|unpause|wait|commit|export
docker image|builder|buildx|network rm|create|build|pull|tag|bake ! --push
docker volume create
docker container start|stop|restart|pause|unpause|wait|cp|commit|export
docker compose up|down|build|pull|stop|start|restart|rm|create|kill|pause|unpause
docker-compose up|down|build|pull|stop|start|restart|rm|create|kill|pause|unpause
terraform plan|fmt|init|get|providers
helm dependency|package|create|pull|repo|lint
kubectl kustomize
kustomize build|edit
aws s3api|glacier|apigateway|iot-data|mediastore-data|codeartifact|ebs|workmailmessageflow|appconfig|appconfigdata|\
kinesis-video-media|kinesis-video-archived-media|medialive|lex-runtime|polly \
get-object|get-object-torrent|get-job-output|get-export|get-sdk|get-thing-shadow|get-package-version-asset|\
get-snapshot-block|get-raw-message-content|get-configuration|get-latest-configuration|get-media|get-clip|\
describe-input-device-thumbnail
pulumi config|new|logs
ansible-lint
jupyter nbconvert ! --execute --to-command
jackline work enqueue|next|claim|renew|resolve|release|annotate|replay|wait-human ! --home
jackline events append ! --home
jackline case start|reopen|switch|files ! --home
jackline case hypothesis|evidence|command|learning add ! --home
jackline case hypothesis resolve ! --home
jackline case learning amend ! --home
jackline dashboard ! --home
typst|latexmk|pdflatex|xelatex|lualatex|bibtex|biber|makeindex ! -shell-escape --shell-escape -e
"""

LOCALS = tuple(rule for text in (_FILES, _GIT_LOCALS, _BUILD) for rule in parse_rows(text, CallClass.LOCAL))
# Before the reads, whose pattern `get-*` would match it.
FIRST_LOCALS = tuple(rule for rule in LOCALS if rule.command[0] == "aws")
