# Shared by scripts/setup, test and demo. Everything said goes to stderr: stdout belongs to the programs.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
deps="$root/build/deps"
torch_version="$(cat "$root/packaging/torch-version")"
torch_root="${SHOAL_TORCH_ROOT:-$deps/torch-$torch_version}"

say() { printf 'shoal: %s\n' "$*" >&2; }
fail() {
  printf 'shoal: %s\n' "$1" >&2
  shift
  for hint in "$@"; do printf 'HINT: %s\n' "$hint" >&2; done
  exit 1
}

# need_root WHAT: to be asked before anything of as_root, whose own output may be going elsewhere.
need_root() {
  [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null || fail "$1 needs root" "run scripts/setup as root, or install sudo"
}

# as_root COMMAND...: with sudo only when we are not root. REQUIRES: need_root passed.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@" >&2
  else
    sudo "$@" >&2
  fi
}

# A line every 10 s with Ninja's own count of steps, until it is ended or the script is gone.
watch_build() {
  local preset="$1" log="$2" start=$SECONDS steps
  until timeout 10 tail --pid="$$" -f /dev/null >/dev/null 2>&1; do
    steps="$(grep -oE '^\[[0-9]+/[0-9]+\]' "$log" | tail -1 | tr -d '[]' || true)"
    say "building ($preset): ${steps:-0} steps after $((SECONDS - start)) s"
  done
}

# Configures and builds one preset, or only the targets named after it. The log of a failed step is shown whole.
build() {
  local preset="$1"
  shift
  local folder="$root/build/$preset" log="$root/build/$preset.log"
  mkdir -p "$root/build"
  local torch=()
  [ -n "${SHOAL_TORCH_ROOT:-}" ] && torch=("-DSHOAL_TORCH_ROOT=$SHOAL_TORCH_ROOT")
  if ! (cd "$root" && cmake --preset "$preset" "${torch[@]}") >"$log" 2>&1; then
    cat "$log" >&2
    fail "configuring the $preset build failed (the lines above name the cause)" \
      "scripts/setup again; if a cache is stale: rm -r '$folder'"
  fi
  local targets=() target
  for target in "$@"; do targets+=(--target "$target"); done
  say "building ($preset; the first time takes minutes)"
  watch_build "$preset" "$log" &
  local watcher=$! built=yes
  cmake --build "$folder" "${targets[@]}" >"$log" 2>&1 || built=no
  kill "$watcher"
  if [ "$built" = no ]; then
    grep -nE 'error|FAILED|fatal' "$log" | head -40 >&2 || true
    if grep -q 'No space left' "$log"; then
      fail "the disk is full" "free a few GB on $(df --output=target "$root" | tail -1)"
    fi
    if grep -qE 'Killed|cannot allocate memory' "$log"; then
      fail "the compiler ran out of memory" "CMAKE_BUILD_PARALLEL_LEVEL=1 scripts/setup"
    fi
    fail "the $preset build failed; whole log: $log" \
      "the first of the lines above names the file. If it is none that you changed, build anew: rm -r '$folder', then this again"
  fi
}
