#!/bin/sh
# run.sh PROGRAM...: run the programs of tests/tsan. Names each program that
# fails, as tests/check/parts.sh wants.
passed=0 failed=0
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT

for program in "$@"; do
	if "$program" >"$out" 2>&1; then
		passed=$((passed + 1)) status=0
	else
		status=$? failed=$((failed + 1))
	fi
	grep -v '[0-9] passed, [0-9]* failed$' "$out"
	[ $status -eq 0 ] || printf 'FAILED\t%s\ttests/tsan/run.sh %s\texit %d\n' \
		"${program##*/}" "$program" $status
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
