"""Rules for programs that only change files of the workspace. Their paths are checked separately. Data only."""

from __future__ import annotations

from jackline.domain.builtin.table import rows
from jackline.domain.states import CallClass

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
pytest|py.test|tox|nox|unittest|coverage|ruff|black|isort|autopep8|yapf|flake8|pylint|mypy|pyright|basedpyright|\
bandit|pyflakes|pycodestyle|pydocstyle|vulture|radon|import-linter|lint-imports|pre-commit|compileall|py_compile|\
venv|virtualenv|sphinx-build|mkdocs|pip-compile|pip-audit|codespell|djlint|doctest|pyupgrade|build
pip install|download|wheel|uninstall|cache ! --user --break-system-packages -t --target --prefix --root
uv sync|lock|add|remove|venv|init|build|export|cache|python
uv pip install|uninstall|sync|compile ! --system --break-system-packages --target --prefix
poetry install|add|remove|lock|update|build|init|new|export|env
pipenv install|uninstall|lock|sync|update|clean
pdm|rye|hatch install|add|remove|lock|sync|update|build|init|test|fmt|lint|env
conda|mamba install|create|update|remove ! -n --name -p --prefix
npm|pnpm|yarn|bun install|i|ci|add|remove|rm|uninstall|un|test|t|tst|update|up|upgrade|dedupe|prune|rebuild|init|\
pack|cache|import|build|audit|lint ! -g --global --location
yarn ? alone:yarn
npm|pnpm|yarn|bun run ? test build lint typecheck type-check format fmt check compile clean coverage unit e2e test:* \
build:* lint:* format:* check:* ! holds:deploy holds:publish holds:release
tsc|eslint|prettier|jest|vitest|mocha|ava|nyc|c8|webpack|vite|rollup|esbuild|swc|babel|parcel|biome|stylelint|tslint|\
standard|xo|knip|depcheck|playwright|cypress|karma|tap|tsd|typedoc|postcss|tailwindcss|sass|oxlint|dprint|tsup|\
rimraf|mkdirp|ncu|swc|svelte-check|vue-tsc|astro|sassc|next ! deploy publish login
cargo build|check|test|clippy|fmt|doc|clean|bench|fix|update|add|remove|rm|new|init|fetch|vendor|generate-lockfile|\
nextest|expand|package|b|c|t|llvm-cov|deny|machete|udeps|hack|miri|rustc|rustdoc ! --config
go build|test|vet|fmt|generate|get|clean|work ! -toolexec -exec -vettool
go mod tidy|download|init|edit|vendor
rustc ! linker=* -Clinker*
rustfmt|gofmt|goimports|golangci-lint|staticcheck|gofumpt|govulncheck|gotestsum
gcc|g++|cc|c++|clang|clang++ ! -wrapper -fplugin* -fpass-plugin* -specs* --specs -Xclang -B* @*
ld|as|clang-format|clang-tidy|cppcheck|cpplint|ccache|flex|bison|yacc|nasm|swiftc|\
swiftlint|swift-format|swiftformat|kotlinc|ktlint|detekt|javac|javadoc|jar|scalac|scalafmt|ghc|hlint|ormolu|ocamlc|\
dune|elm|nim|zig|valac|fpc|dmd|ldc2|crystal|protoc|buf|thrift|flatc|lcov|gcov|gprof|strip
cmake ! word:-P word:-E --build --install
cmake ? --build ! --target word:-t install
ctest ! -S -SP --script --script-new-process -T -M --test-action --test-model
ninja|meson|autoconf|automake|autoreconf|aclocal|libtoolize|bear|bazelisk ! install
bazel build|test|query|clean|fetch|coverage|info ! --run_under
swift build|test|package
dotnet build|test|restore|clean|format|new|add|remove|pack
mvn compile|test|package|verify|clean|validate|test-compile|install ! deploy release:perform -Dexec
gradle build|test|check|assemble|clean|compileJava|compileKotlin|jar|classes ! publish deploy
sbt compile|test|clean|package
mix compile|test|format|deps.get|credo|dialyzer
rebar3 compile|eunit|ct|dialyzer
rubocop|rspec|minitest|standardrb|brakeman|sorbet|srb|yard|reek|erb_lint|haml-lint
bundle install|update|add|remove|lock|clean
gem build
composer install|update|require|remove|dump-autoload|dumpautoload|init
phpunit|phpstan|psalm|php-cs-fixer|phpcs|phpcbf|pest|pint|rector
shellcheck|shfmt|hadolint|yamllint|markdownlint|markdownlint-cli2|actionlint|tflint|checkov|ansible-lint|sqlfluff|\
vale|typos|taplo|jsonlint|ajv|editorconfig-checker|commitlint|semgrep|gitleaks|trivy|grype|syft|proselint|write-good|\
lychee|dprint
deno test|fmt|lint|check|cache|doc|info
docker build|pull|tag|rmi|rm|stop|start|restart|kill|create|save|load|import|cp|pause|unpause|wait|rename|commit|export
docker image|container|volume|network|builder|buildx|system rm|create|build|pull|tag|bake|stop|start ! --push
docker compose up|down|build|pull|stop|start|restart|rm|create|kill|pause|unpause
docker-compose up|down|build|pull|stop|start|restart|rm|create|kill|pause|unpause
terraform plan|fmt|init|get|providers|test
helm dependency|package|create|pull|repo|lint
kubectl kustomize
kustomize build|edit
aws s3api get-object
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

LOCALS = tuple(rule for text in (_FILES, _GIT_LOCALS, _BUILD) for rule in rows(text, CallClass.LOCAL))
# Before the reads, whose pattern `get-*` would match it.
FIRST = tuple(rule for rule in LOCALS if rule.command[:3] == ("aws", "s3api", "get-object"))
