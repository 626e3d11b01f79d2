# tools/setup.sh: what tools/test, tools/demo, tools/lint and .ci/run share. Sourced by bash; it changes to the
# repository's root, and keeps the caller's directory in $start_dir.

start_dir=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
venv=$root/build/venv
jobs=${JOBS:-$(nproc)}
mkdir -p build

build_packages=(g++ cmake ninja-build libtbb-dev libsleef-dev libhwy-dev libopenblas-dev libdnnl2 nlohmann-json3-dev
                libgtest-dev gemmi-dev libdivide-dev python3-dev python3-venv)
lint_packages=(clang-format-16)
tidy_packages=(clang-tidy-16)
tsan_packages=(dpkg-dev)

say() { printf '== %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# need_apt PACKAGE...: installs the Debian packages that are missing.
need_apt() {
  local missing=() package
  if ! command -v dpkg-query >/dev/null; then
    say "not a Debian system; taking for granted the equivalents of: $*"
    return
  fi
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  if [[ $(id -u) -ne 0 ]]; then
    printf 'Some Debian packages are missing. Run this, then start again:\n\n  sudo apt-get install %s\n\n' \
      "${missing[*]}" >&2
    exit 1
  fi
  say "installing Debian packages: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null
}

# system_python: Debian's interpreter where there is one, since python3-dev and python3-venv belong to it.
system_python() {
  if [[ -n ${PYTHON:-} ]]; then echo "$PYTHON"
  elif [[ -x /usr/bin/python3 ]]; then echo /usr/bin/python3
  else command -v python3
  fi
}

# need_venv: makes build/venv with tools/requirements.txt; only again when that list or the interpreter changed.
need_venv() {
  local python stamp
  python=$(system_python)
  stamp=$({ "$python" -V; cat tools/requirements.txt; } | sha256sum)
  exec 9>build/venv.lock
  flock 9
  if [[ $(cat "$venv/.stamp" 2>/dev/null) != "$stamp" ]]; then
    say "installing Python packages into build/venv: $(grep -v '^#' tools/requirements.txt | tr '\n' ' ')"
    [[ -x $venv/bin/python ]] && "$venv/bin/python" -c '' 2>/dev/null || "$python" -m venv --clear "$venv"
    "$venv/bin/python" -m pip install -q --disable-pip-version-check -r tools/requirements.txt
    echo "$stamp" >"$venv/.stamp"
  fi
  exec 9>&-
}

# build PRESET [TARGET...] [-- CMAKE-OPTION...]: configures and builds; two runs at once wait for each other.
build() {
  local preset=$1 targets=() options=()
  shift
  while [[ $# -gt 0 && $1 != -- ]]; do targets+=(--target "$1"); shift; done
  [[ $# -eq 0 ]] || { shift; options=("$@"); }
  say "building: $preset"
  exec 8>"build/$preset.lock"
  flock 8
  cmake --preset "$preset" "${options[@]}" --log-level=WARNING >"build/$preset.configure.log" 2>&1 ||
    { cat "build/$preset.configure.log"; die "configuring $preset failed"; }
  cmake --build --preset "$preset" -j "$jobs" "${targets[@]}"
  exec 8>&-
}
