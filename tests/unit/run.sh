#!/bin/sh
# run.sh PROGRAM: run a unit program, its tests eight at once. Names each test
# that failed, as tests/check/parts.sh wants, with its assertions; or the
# program, if it fails without a test.
program=$1
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT

"$program" -j8 >"$out" 2>&1
status=$?
cat "$out"
[ $status -ne 0 ] || exit 0
sed 's/\x1b\[[0-9;]*m//g' "$out" | awk -v program="$program" -v status=$status '
	BEGIN { unit = program; sub(/.*\//, "", unit) }
	/^\[----\] / { sub(/^\[----\] +/, ""); if ($0 != "") words = words " " $0; next }
	/^\[FAIL\] / {
		test = $2
		sub(/:$/, "", test)
		if (words == "") { words = $0; sub(/^\[FAIL\] [^ ]+/, "", words) }
		gsub(/\t/, " ", words)
		sub(/::/, "/", test)
		printf "FAILED\t%s: %s\t%s --filter %s\t%s\n",
		    unit, test, program, test, substr(words, 2)
		named++
	}
	/^\[/ { words = "" }
	END {
		if (named > 0) exit
		# Criterion ends so after a warning, or has crashed itself.
		printf "FAILED\t%s\t%s -j8\texit %d without a test that failed\n",
		    unit, program, status
		print "0 passed, 1 failed"
	}'
exit $status
