#!/bin/sh
# Make .venv with the locked dependencies and this project, and fetch Kafka's jars and a Prometheus. Does only what is
# not done yet.
set -eu
cd "$(dirname "$0")/.."

fail() {
    printf '%s\n' "kafka-rebalance: $1" >&2
    exit 1
}

# The first Python that is new enough; PYTHON names one to use instead.
find_python() {
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if "$candidate" -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return
        fi
    done
}

python=$(find_python)
[ -n "$python" ] || fail "needs Python 3.11 to 3.14 with venv; install one (Debian: apt-get install python3-venv), or name it: make PYTHON=/path/to/python3.12"
command -v java >/dev/null 2>&1 || fail "needs Java 17 or newer; install a JDK (Debian: apt-get install openjdk-17-jdk-headless)"
java_version=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
[ "${java_version:-0}" -ge 17 ] || fail "needs Java 17 or newer, found ${java_version:-an unknown version}; install a newer JDK and put its java on PATH"
command -v mvn >/dev/null 2>&1 || fail "needs Maven; install it (Debian: apt-get install maven)"

stamp() { cksum requirements.lock pyproject.toml sandbox/pom.xml tools/setup.sh; "$python" --version; }
if [ -f .venv/.ready ] && [ "$(cat .venv/.ready)" = "$(stamp)" ] && [ -d sandbox/libs ]; then
    exit 0
fi

echo "setup: Kafka's jars from Maven (in the background)"
rm -rf sandbox/libs sandbox/libs.new sandbox/kafka.jsa
mvn -q -B -ntp -f sandbox/pom.xml dependency:copy-dependencies -DoutputDirectory=libs.new >.maven.log 2>&1 &
maven=$!
planner=
trap 'kill $maven $planner 2>/dev/null || :' EXIT
trap 'exit 130' INT TERM HUP

echo "setup: .venv with the locked dependencies ($("$python" --version))"
minor='import sys; print(sys.version_info[:2])'
if [ "$(.venv/bin/python -c "$minor" 2>/dev/null || :)" != "$("$python" -c "$minor")" ]; then
    "$python" -m venv --clear .venv
fi
version=$(sed -n 's/^uv==\([^ ]*\).*/\1/p' requirements.lock)
.venv/bin/python -m pip install -q --disable-pip-version-check "uv==$version"
.venv/bin/uv pip sync -q --python .venv/bin/python --require-hashes requirements.lock
.venv/bin/uv pip install -q --python .venv/bin/python --no-deps --no-build-isolation -e .
echo "setup: compiling the loops of planner and assignors"
.venv/bin/kafka-rebalance compile &
planner=$!

wait $maven || fail "Maven could not resolve Kafka's jars: $(tail -n 3 .maven.log)"
maven=
rm -f .maven.log
mv sandbox/libs.new sandbox/libs
echo "setup: archiving Kafka's classes"
.venv/bin/python -m sandbox.archive || echo "setup: no archive of Kafka's classes: the sandbox starts more slowly"
wait $planner || fail "the planner's loops could not be compiled"
planner=
tools/prometheus.sh >/dev/null || :  # only tests need it: they ask again, and fail if it is not there
stamp >.venv/.ready
echo "setup: done"
