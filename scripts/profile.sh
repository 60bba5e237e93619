#!/bin/sh
# `tilewright profile` from a checkout: scripts/profile.sh ncu|nsys|sanitizer|emu [options] -- COMMAND
for program in "$(dirname "$0")/../.venv/bin/tilewright" tilewright; do
    if command -v "$program" >/dev/null; then
        exec "$program" profile "$@"
    fi
done
echo "profile.sh: tilewright is not installed: run make setup or uv sync" >&2
exit 1
