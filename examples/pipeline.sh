#!/bin/sh
# Runs pipeline.toml twice: with the scripted model on localhost, and from the record of its calls with no model at all.
# Both must come to the same, byte for byte, but for the seconds that they took.
#
#     examples/pipeline.sh [FOLDER]       keeps everything in FOLDER, runs/pipeline where none is named
set -eu
cd "$(dirname "$0")/.."
BIN="${BIN:-.venv/bin}"
mkdir -p "${1:-runs/pipeline}"
FOLDER="$(cd "${1:-runs/pipeline}" && pwd)"
SERVER=""
unset OPENAI_API_KEY || true
trap 'if [ -n "$SERVER" ]; then kill "$SERVER"; fi' EXIT
trap 'exit 130' INT TERM

start_model() {
    "$BIN/python" -m envharness_core.testing.model_server --port 0 --brain envharness_core.testing.toy24_model:brain \
        > "$FOLDER/model.txt" &
    SERVER=$!
    until [ -s "$FOLDER/model.txt" ]; do
        kill -0 "$SERVER"
        sleep 0.1
    done
}

stop_model() {
    kill "$SERVER"
    wait "$SERVER" || true
    SERVER=""
}

pipeline() { # NAME SETTING...: campaign, evaluation and comparison, then what they came to as text
    OUT="$FOLDER/$1"
    shift
    set -- --set "settings.llm.cassette.file=$FOLDER/calls.sqlite3" "$@"
    "$BIN/envharness" run examples/pipeline.toml --run-dir "$OUT/campaign" "$@"
    "$BIN/envharness" eval examples/pipeline.toml --from "$OUT/campaign" --run-dir "$OUT/evaluation" "$@"
    mkdir -p "$OUT/told"
    "$BIN/envharness" report "$OUT/campaign" --json | timeless > "$OUT/told/report.json"
    "$BIN/envharness" compare "$OUT/evaluation" --json | timeless > "$OUT/told/compare.json"
    for run in campaign evaluation; do
        "$BIN/envharness" export "$OUT/$run" | timeless | sort > "$OUT/told/$run.jsonl"
    done
    cp "$OUT"/evaluation/bank-*.jsonl "$OUT/told"
}

timeless() {
    sed -E 's/("[a-z_]*seconds": ?)[-+.0-9e]+/\10/g'
}

start_model
pipeline first --set "settings.llm.api_base=$(head -n 1 "$FOLDER/model.txt")"
stop_model
pipeline again --set settings.llm.cassette.mode=replay
diff -r "$FOLDER/first/told" "$FOLDER/again/told"
echo "The pipeline comes to the same, byte for byte, from the record of its calls."
