"""Flags and variables with which a harmless program runs other code, or sends more than its arguments show. Data only.

A call with one of them matches no rule of a harmless class. Build and test programs run code of the workspace anyway:
for them, only flags count that name another program.
"""

from __future__ import annotations

from jackline.policy.builtin.flag_tables import parse_table

# For every program that only reads. The notation is that of `having` and `lacking`.
READER_FLAGS = (
    *("--plugin", "--pager", "--editor", "--browser", "--viewer", "--exec", "--exec-path", "--command", "--shell"),
    *("--preprocessor", "--to-command", "--use-compress-program", "--compress-program", "--rsh", "--config-file"),
    *("--rcfile", "--init-file", "--load", "--diff-program"),
)
FLAGS = parse_table("""
git: --receive-pack --upload-pack helper:any
git archive, git push, git ls-remote, git fetch-pack, git send-pack: --exec
gh: --upload-pack --config-env
gh repo: -c --config --template
npm, pnpm, yarn, bun: --script-shell --node-options --viewer --browser --editor --git --shell --init-module \
--userconfig --globalconfig --node-gyp --config.* --pnpmfile --global-pnpmfile --use-yarnrc --preload --npmrc-auth-file
bun: -c --config -r --require
docker: --config
kubectl, helm: --kubeconfig --server word:-s --kube-apiserver --enable-exec --enable-alpha-plugins --enable-helm \
--helm-command --post-renderer
kustomize: --enable-exec --enable-alpha-plugins --enable-helm --helm-command
gcloud, gsutil, bq: --flags-file --bigqueryrc
openssl: -engine -keygen_engine -provider -provider-path -provparam -config -writerand -CAserial -sigopt:*
curl: --engine
gcc, g++, cc, c++, clang, clang++: -wrapper -fplugin* -iplugindir* -fpass-plugin* -specs* --specs -Xclang -B* @* \
-fuse-ld=* --ld-path -load -mllvm --config --config-user-dir --config-system-dir holds:plugin holds:,@ -Xassembler \
-T*.so -gcc-toolchain* --gcc-toolchain --gcc-install-dir -ccc-* -no-canonical-prefixes -fdiagnostics-format=sarif-file
ld: -plugin -plugin* --plugin @* -dll-search-prefix
as: @*
ar, ranlib, nm, objdump, objcopy, strip, size, strings, readelf: --plugin @*
ar: word:-M -M
patch: -e --ed
install: --strip-program
tar: -T --files-from --volno-file archive:remote
psql: -o --output -L --log-file
mysql: --pager --tee --plugin-dir --defaults-file --defaults-extra-file --init-command --login-path
rpm: --eval -E --define -D --pipe --rcfile --load --macros --predefine --specfile
apt, apt-cache: -o --option -c --config-file
dnf, yum: -c --config --setopt --installroot --enableplugin
man: -C --config-file
less: -k --lesskey-file --lesskey-src --lesskey-content
info: --restore --dribble
xmllint: --shell
ss: -D --diag
sdiff: -o --output
ptx: -G --traditional
systemctl, journalctl, loginctl: -H --host -M --machine --setup-keys --update-catalog
zip: -TT --unzip-command -T
rsync: -M --remote-option --config --early-input
pandoc: -d --defaults --data-dir holds:.lua
latexmk, pdflatex, xelatex, lualatex: -pdflatex* -latex* -lualatex* -xelatex* word:-r -usepretex* word:-e \
--shell-escape -shell-escape --enable-write18 -enable-write18 -bibtex=* -biber* -makeindex*
protoc: --plugin @*
javac, javadoc, jar, kotlinc, scalac: -processorpath --processor-path -processor -Xplugin* -J* @* -doclet -docletpath
swiftc: -load-plugin-executable -load-plugin-library -Xfrontend -tools-directory -ld-path=* -use-ld=* @*
kotlinc: -script word:-e -expression
ghc: -pgm* word:-F word:-e @* -fplugin* -plugin-package
rustc: holds:linker -Zcodegen-backend* codegen-backend=* @*
cargo: --config holds:linker=
go: -toolexec -exec -vettool holds:-extld holds:toolexec -overlay
bazel: --run_under --workspace_status_command --shell_executable --script_path --bes_backend --remote_executor \
--remote_cache --bazelrc
meson: --wrapper --gdb-path
gotestsum: --raw-command --post-run-command --watch
actionlint: -shellcheck* -pyflakes*
cypress: --record
semgrep: --upload
pre-commit: try-repo
gradle: word:-I --init-script --include-build
mvn: -Dexec* -Dmaven.ext.class.path* -gs --global-settings word:-s --settings -gt --global-toolchains word:-t \
--toolchains
dotnet: -t:* /t:* -target:* /target:* --target @*
dot: word:-l
ffprobe: word:-o -report
magick, convert: -script holds:.mgk
nbconvert, jupyter: --config --post
trivy: --server
terraform: -plugin-dir
""")

# Prefixes of `NAME=value`; a name that ends with `=` is complete. An effect with one of the first ones is keyed by its
# whole command: that list stays as it is, because keys are stored.
KEYED_VARIABLES = (
    "PATH=", "LD_", "DYLD_", "GIT_", "BASH_ENV=", "ENV=", "PAGER=", "EDITOR=", "VISUAL=", "PYTHONSTARTUP=",
    "NODE_OPTIONS=", "PERL5", "RUBYOPT=", "LESS", "MANPAGER=", "MANOPT=", "RIPGREP_CONFIG_PATH=", "SHELL=",
    "SHELLOPTS=", "BASHOPTS=", "BROWSER=", "SSH_ASKPASS=", "KUBECTL_EXTERNAL_DIFF=", "DOCKER_HOST=",
    "DOCKER_CONTEXT=", "DOCKER_CONFIG=", "TAR_OPTIONS=", "RSYNC_", "CURL_HOME=", "WGETRC=", "AWKPATH=",
    "AWKLIBPATH=", "BAT_", "ACK_", "ACKRC=", "ZIPOPT=", "UNZIP=", "GCONV_PATH=", "TF_CLI_ARGS",
)  # fmt: skip
VARIABLES = (
    *KEYED_VARIABLES, "KUBECTL_", "SYSTEM_WGETRC=", "GREP_OPTIONS=", "MALLOC_TRACE=", "HOSTALIASES=",
    "JQ_LIBRARY_PATH=", "GROFF_", "TAPE=", "FFREPORT=", "SSLKEYLOGFILE=", "BASH_XTRACEFD=", "BASH_FUNC_",
)  # fmt: skip
# Variables that count for these programs only.
PROGRAM_VARIABLES = parse_table("""
kubectl, helm, kustomize: KUBECONFIG= HELM_
aws: AWS_CONFIG_FILE= AWS_SHARED_CREDENTIALS_FILE= AWS_PAGER= AWS_DATA_PATH= AWS_WEB_IDENTITY_TOKEN_FILE= \
AWS_CONTAINER_ AWS_CLI_
gcloud, gsutil, bq: CLOUDSDK_PYTHON CLOUDSDK_CONFIG= CLOUDSDK_ROOT_DIR= CLOUDSDK_GSUTIL_PYTHON= BOTO_
az: AZURE_CONFIG_DIR= AZURE_EXTENSION_DIR=
gh: GH_PAGER= GH_BROWSER= GH_EDITOR= GH_CONFIG_DIR= GH_PATH=
glab: GLAB_PAGER= GLAB_CONFIG_DIR=
psql: PSQL PGSERVICEFILE= PGSYSCONFDIR= PGSSLKEY=
mysql: MYSQL_ LIBMYSQL_
openssl, curl, wget, git, ssh: OPENSSL_ SSL_
gcc, g++, cc, c++, clang, clang++, ld: GCC_EXEC_PREFIX= COMPILER_PATH= CCC_ DEPENDENCIES_OUTPUT= \
SUNPRO_DEPENDENCIES= COLLECT_
ccache: CCACHE_
npm, pnpm, yarn, bun, npx: NPM_CONFIG_ npm_config_ YARN_ PNPM_ BUN_CONFIG NODE_REPL_EXTERNAL_MODULE=
pip: PIP_
uv: UV_SYSTEM_PYTHON= UV_BREAK_SYSTEM_PACKAGES= UV_PYTHON= UV_CONFIG_FILE=
cargo, rustc, rustdoc: RUSTC RUSTDOC= CARGO_BUILD_ CARGO_TARGET_ CARGO_HOME= CARGO= RUSTFLAGS= RUSTDOCFLAGS= \
CARGO_ENCODED_RUSTFLAGS=
go: GOCACHEPROG= GOAUTH= CGO_CFLAGS= CGO_LDFLAGS= GOFLAGS= GOENV= GOROOT= GOTOOLDIR= CC= CXX= PKG_CONFIG= FC= AR=
cmake, ctest, meson, ninja, autoconf, automake, autoreconf, swift, python, pip, dune: CC= CXX= FC= AR= LD= \
CMAKE_C_COMPILER_LAUNCHER= CMAKE_CXX_COMPILER_LAUNCHER= MAKE= AUTOCONF= AUTOM4TE= M4= NINJA= CFLAGS= CXXFLAGS= \
LDFLAGS= CPPFLAGS=
java, javac, javadoc, jar, kotlinc, scalac, mvn, gradle, sbt: JAVA_TOOL_OPTIONS= JDK_JAVA_OPTIONS= _JAVA_OPTIONS= \
MAVEN_OPTS= MAVEN_ARGS= GRADLE_OPTS= JAVA_OPTS= SBT_OPTS= JAVA_HOME= JAVACMD= MAVEN_EXT_CLASS_PATH=
terraform: TF_CLI_CONFIG_FILE= TF_REATTACH_PROVIDERS= TERRAGRUNT_ TG_
pulumi: PULUMI_HOME=
make: MAKEFLAGS= GNUMAKEFLAGS= MAKEFILES= MFLAGS=
docker, docker-compose: BUILDX_CONFIG= DOCKER_CLI_PLUGIN COMPOSE_FILE= COMPOSE_PROJECT_NAME= BUILDKIT_HOST=
dotnet: DOTNET_STARTUP_HOOKS= MSBUILD_EXE_PATH= CORECLR_ DOTNET_ROOT=
convert, magick, identify: MAGICK_
pytest: PYTEST_ADDOPTS=
rpm, dnf, yum: RPM_CONFIGDIR=
man: MANPATH= MANROFFOPT= PREPROC=
latexmk, pdflatex, xelatex, lualatex: TEXMF LATEXMKRC= openout_any= shell_escape=
bazel: BAZEL_SH= BAZEL_
pre-commit: PRE_COMMIT_HOME=
""")
# The user's configuration folders: these programs read there what to run.
HOMES = ("HOME=", "XDG_CONFIG_HOME=")
KEYED_CONFIGURED = frozenset(
    {"git", "curl", "wget", "bat", "ack", "ag", "kubectl", "docker", "helm", "gh", "sqlite3", "psql"}
)
CONFIGURED = KEYED_CONFIGURED | frozenset(
    {"aws", "gcloud", "gsutil", "bq", "az", "glab", "npm", "pnpm", "yarn", "mysql", "man", "cargo", "pip", "rpm"}
    | {"terraform", "ccache", "redis-cli", "http"}
)
_HARMLESS_PROGRAMS = ("", "cat", "true", ":", "less", "more")
_HARMLESS_COMPILERS = (
    *("gcc", "g++", "cc", "c++", "clang", "clang++", "ccache gcc", "ccache g++", "ccache clang", "ccache clang++"),
    *("sccache", "ccache", "ar", "ld", "gfortran", "musl-gcc", "x86_64-w64-mingw32-gcc", "aarch64-linux-gnu-gcc"),
)
HARMLESS_WHOLE = frozenset(
    {
        *(f"{name}={value}" for name in (
            "GIT_PAGER", "PAGER", "GIT_EDITOR", "EDITOR", "GIT_SEQUENCE_EDITOR", "GH_PAGER", "AWS_PAGER", "PSQL_PAGER",
            "GLAB_PAGER", "VISUAL", "MANPAGER",
        ) for value in _HARMLESS_PROGRAMS),
        *(f"{name}={value}" for name in ("CC", "CXX", "AR", "LD", "FC", "RUSTC_WRAPPER") for value in (
            "", *_HARMLESS_COMPILERS)),
    }
)  # fmt: skip
# Prefixes of variables that are harmless although a prefix above covers them.
HARMLESS_VARIABLES = (
    "GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_TERMINAL_PROMPT=", "GIT_MERGE_AUTOEDIT=", "GIT_OPTIONAL_LOCKS=",
    "GIT_LFS_SKIP_SMUDGE=", "CARGO_TARGET_DIR=", "CARGO_BUILD_JOBS=", "PIP_DISABLE_PIP_VERSION_CHECK=",
    "PIP_NO_INPUT=", "PIP_NO_CACHE_DIR=", "PIP_INDEX_URL=", "PIP_EXTRA_INDEX_URL=", "PIP_DEFAULT_TIMEOUT=",
    "PIP_CACHE_DIR=", "PIP_REQUIRE_VIRTUALENV=", "PIP_QUIET=", "PIP_PROGRESS_BAR=", "PIP_NO_BUILD_ISOLATION=",
    "PIP_PREFER_BINARY=", "PIP_ROOT_USER_ACTION=", "PIP_CONSTRAINT=", "YARN_ENABLE_", "YARN_CACHE_FOLDER=",
    "NPM_CONFIG_LOGLEVEL=", "npm_config_loglevel=", "NPM_CONFIG_CACHE=", "npm_config_cache=", "NPM_CONFIG_REGISTRY=",
    "npm_config_registry=", "NPM_CONFIG_YES=", "npm_config_yes=", "NPM_CONFIG_FUND=", "NPM_CONFIG_AUDIT=",
    "NPM_CONFIG_UPDATE_NOTIFIER=", "PNPM_HOME=", "SSL_CERT_", "RUSTC_BOOTSTRAP=", "HELM_NAMESPACE=", "HELM_DEBUG=",
    "AWS_CLI_AUTO_PROMPT=", "COLLECT_COVERAGE=",
)  # fmt: skip
# Values with which these variables run other code; any other value is harmless.
RISKY_VALUES = {
    "GOFLAGS": ("exec", "vettool", "overlay", "extld", "modfile"),
    "JAVA_TOOL_OPTIONS": ("agent", "@", "classpath", "-cp", "OnError", "OnOutOf"),
    "PYTEST_ADDOPTS": ("=/", "=~", "=..", " /", " ~", " ..", ":/"),
    "MAKEFLAGS": ("eval", "=", "-f", "-I", "-C"),
}
RISKY_VALUES |= dict.fromkeys(
    ("JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "MAVEN_OPTS", "MAVEN_ARGS", "GRADLE_OPTS", "JAVA_OPTS", "SBT_OPTS"),
    RISKY_VALUES["JAVA_TOOL_OPTIONS"],
)
RISKY_VALUES |= dict.fromkeys(
    ("CFLAGS", "CXXFLAGS", "LDFLAGS", "CPPFLAGS", "CGO_CFLAGS", "CGO_LDFLAGS"),
    ("plugin", "wrapper", "specs=", "fuse-ld"),
)
RISKY_VALUES |= dict.fromkeys(("RUSTFLAGS", "RUSTDOCFLAGS", "CARGO_ENCODED_RUSTFLAGS"), ("linker", "codegen-backend"))
# They may name a file or a program where an agent writes nothing without approval.
PLACES = (
    "KUBECONFIG",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "JAVA_HOME",
    "CARGO_HOME",
    "GOROOT",
    "CC",
    "CXX",
)
TRUSTED_FOLDERS = ("~/", "$HOME/", "${HOME}/", "/usr/", "/opt/", "/etc/", "/Library/")
# Variables that name a file or folder to write.
OUTPUT_VARIABLES = (
    "TF_LOG_PATH=", "COVERAGE_FILE=", "NODE_V8_COVERAGE=", "LLVM_PROFILE_FILE=", "GCOV_PREFIX=",
    "GOCOVERDIR=", "PIP_LOG=", "PYTHONPYCACHEPREFIX=", "CARGO_TARGET_DIR=", "NPM_CONFIG_LOGS_DIR=",
    "npm_config_logs_dir=", "CCACHE_LOGFILE=", "SSLKEYLOGFILE=", "UV_PROJECT_ENVIRONMENT=", "CARGO_INSTALL_ROOT=",
    "GOBIN=", "TF_DATA_DIR=", "POETRY_VIRTUALENVS_PATH=", "RUFF_OUTPUT_FILE=", "MYPY_CACHE_DIR=", "NYC_OUTPUT_DIR=",
    "JEST_JUNIT_OUTPUT_DIR=", "JEST_JUNIT_OUTPUT_FILE=", "SQLITE_HISTORY=", "CLOUDSDK_CORE_LOG_DIR=",
)  # fmt: skip
