#!/bin/sh
# Print the path of a Prometheus server for the tests: that of PATH, or Debian's package, unpacked without root.
set -eu
cd "$(dirname "$0")/.."

fail() {
    printf '%s\n' "kafka-rebalance: $1" >&2
    exit 1
}

if command -v prometheus; then
    exit 0
fi
unpacked=sandbox/prometheus/usr/bin/prometheus
if [ ! -x "$unpacked" ]; then
    advice="install it, and put it on PATH (Debian: apt-get install prometheus)"
    command -v apt-get >/dev/null 2>&1 && command -v dpkg >/dev/null 2>&1 || fail "the tests need Prometheus; $advice"
    rm -rf sandbox/prometheus sandbox/prometheus.new
    mkdir -p sandbox/prometheus.new/apt/lists/partial
    (
        cd sandbox/prometheus.new
        # Without lists of packages, as in a fresh container, apt can keep some of its own here.
        apt-get -q download prometheus || {
            set -- -q -o "Dir::State::lists=$PWD/apt/lists" -o "Dir::Cache=$PWD/apt"
            apt-get "$@" update && apt-get "$@" download prometheus
        }
        dpkg -x prometheus_*.deb .
    ) >sandbox/prometheus.log 2>&1 || fail "apt could not fetch Prometheus for the tests: $(tail -n 1 sandbox/prometheus.log); $advice"
    rm -rf sandbox/prometheus.log sandbox/prometheus.new/apt sandbox/prometheus.new/*.deb
    mv sandbox/prometheus.new sandbox/prometheus
fi
printf '%s\n' "$PWD/$unpacked"
