# shellcheck shell=bash
# Sourced by the scripts that are written in bash: folders, messages, builds.
# The caller has `set -euo pipefail` on.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

die() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# build PRESET [TARGET...]: configures once, compiles what has changed. Quiet;
# the log is shown when it fails.
build() {
    local preset=$1 log="$root/build/log/build-$1.log"
    shift
    mkdir -p "$root/build/log"
    (
        cd "$root"
        if [ ! -f "build/$preset/build.ninja" ]; then
            cmake --preset "$preset"
        fi
        cmake --build --preset "$preset" ${1:+--target "$@"}
    ) >"$log" 2>&1 || {
        cat "$log" >&2
        die "the $preset build failed; its output is above and in $log"
    }
}
