#!/bin/sh
# usage: bench/peers/setup.sh [PYTHON] [peer ...]
# One virtual environment per peer under venvs/, with the versions that versions-PEER.txt pins. PYTHON: 3.11 or later (the
# published figures: 3.12); without it the first one found. Without peers: those that `python -m bench` runs by itself.
set -u
cd "$(dirname "$0")" || exit 1

is_new_enough() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

PYTHON=""
if [ $# -gt 0 ] && [ ! -f "requirements-$1.txt" ]; then
    PYTHON=$1
    shift
    is_new_enough "$PYTHON" || { echo "$PYTHON is no Python of 3.11 or later that can make a virtual environment." >&2; exit 1; }
else
    for candidate in python3.12 python3.13 python3.11 python3 ../../.venv/bin/python; do
        if is_new_enough "$candidate"; then
            PYTHON=$candidate
            break
        fi
    done
    [ -n "$PYTHON" ] || { echo "No Python of 3.11 or later was found. Name one: $0 /path/to/python3" >&2; exit 1; }
fi

failed=0
mkdir -p venvs
for peer in ${*:-limits langgraph autogen}; do
    if [ ! -f "requirements-$peer.txt" ]; then
        echo "There is no peer '$peer'; there are: $(ls requirements-*.txt | sed 's/requirements-//; s/\.txt//' | tr '\n' ' ')" >&2
        exit 1
    fi
    [ -x "venvs/$peer/bin/python" ] || "$PYTHON" -m venv "venvs/$peer" || exit 1
    if "venvs/$peer/bin/python" -m pip install --quiet --disable-pip-version-check \
        -r "requirements-$peer.txt" -c "versions-$peer.txt" >"venvs/$peer.log" 2>&1; then
        echo "$peer: ready"
    else
        echo "$peer: failed, see $(pwd)/venvs/$peer.log" >&2
        rm -rf "venvs/$peer"
        failed=1
    fi
done
exit $failed
