#!/bin/sh
# make check: its parts, the output of each in build/check/, one line of result
# each; what failed is shown whole. Ends with a line for each test that failed,
# and the sum.
#
# Two lanes of parts run beside each other: those that build other variants, and
# those that use the plain one and mostly wait. A variant belongs to one lane,
# since make reads what the other one would be writing.
cd "$(dirname "$0")/.." || exit 1
out=build/check
rm -rf "$out"
mkdir -p "$out"
began=$(date +%s)

# The tests that a part's output counts, in the ways of Criterion
# ("Tested: 5 | Passing: 5 | Failing: 0"), of our programs ("5 passed, 0
# failed"), and of what says SKIP for each that cannot run here.
count() { # FILE
	sed 's/\x1b\[[0-9;]*m//g' "$1" | awk '
	/Tested: [0-9]+ \| Passing/ {
		for (i = 1; i < NF; i++) {
			if ($i == "Passing:") ok += $(i + 1)
			if ($i == "Failing:") bad += $(i + 1)
			if ($i == "Crashing:") bad += $(i + 1)
		} }
	/[0-9]+ passed, [0-9]+ failed/ {
		for (i = 2; i <= NF; i++) {
			if ($i ~ /^passed/) ok += $(i - 1)
			if ($i ~ /^failed/) bad += $(i - 1)
			if ($i ~ /^skipped/) left += $(i - 1)
		} }
	/^SKIP |\[SKIP\]/ { left++ }
	END { print ok + 0, bad + 0, left + 0 }'
}

# What failed in a part, a line for each: of Criterion the test, place and
# words of its assertions; else the lines that say FAILED, or the last one.
reasons() { # FILE
	sed 's/\x1b\[[0-9;]*m//g' "$1" | awk '
	function keep(line) { if (!(line in seen)) { seen[line] = 1; print line; n++ } }
	/[^ ]/ && !/^make/ { last = $0 }
	/^\[----\] / { sub(/^\[----\] +/, ""); if ($0 != "") words = words " " $0; next }
	/^\[FAIL\] / { keep($2 words) }
	/^\[WARN\] / { keep($0) } # Criterion ends with 1
	/^\[/ { words = "" }
	/ FAILED: / || /: FAILED$/ || /^FAILED [a-z]/ || /ERROR: [A-Za-z]*Sanitizer/ { keep($0) }
	/^[^ ]+:[0-9]+(:[0-9]+)?: (fatal )?error: / { keep($0) }
	END { if (n == 0) print last }'
}

# With the processor time of the part, in which its lane has no other one.
part() { # NAME COMMAND...
	name=$1
	shift
	start=$(date +%s)
	times >"$out/.times-$name"
	if "$@" >"$out/$name" 2>&1; then word=ok; else word=FAILED; fi
	# Criterion counts a test that leaks as passed.
	if grep -q 'ERROR: LeakSanitizer' "$out/$name"; then word=FAILED; fi
	# shellcheck disable=SC2046 # three numbers
	set -- $(count "$out/$name")
	times >>"$out/.times-$name"
	took="$(($(date +%s) - start)) s, $(used "$out/.times-$name") s of processor"
	if [ $word = FAILED ]; then
		[ "$2" -gt 0 ] || set -- "$1" 1 "$3"
		cat "$out/$name"
		reasons "$out/$name" | sed "s|^|check: $name: FAILED: |" | tee -a "$out/failures"
	fi
	grep -E '^SKIP |\[SKIP\]|: skipped ' "$out/$name" | sed 's/^/    /'
	echo "check: $name: $word: $1 passed, $2 failed, $3 skipped ($took)"
	echo "$1 $2 $3" >>"$out/sums"
}

# Seconds of processor time between two outputs of times: the second line of
# each has those of the processes that the shell has waited for.
used() { # FILE
	awk -F'[ms \t]+' 'NR % 2 == 0 { was = now; now = ($1 + $3) * 60 + $2 + $4 }
	    END { printf "%d\n", now - was }' "$1"
}

other_variants() {
	part unit-clang make -j2 -k -Otarget CC=clang check-unit
	part unit-gcc-sanitized make -j2 -k -Otarget SAN=address,undefined check-unit
	part unit-clang-sanitized make -j2 -k -Otarget CC=clang SAN=address,undefined check-unit
	part threads make -j2 check-tsan
	part fuzz make -j2 fuzz-check J=4
	part report make -j2 check-report
	part system-sanitized make -j2 SAN=address,undefined check-system T="-j 2 --as-root test_road"
}

plain_variant() {
	part system make check-system
	part steps make -j2 check-steps
	part peers make -s check-peers
	part model make check-model
	part disk make -j2 check-disk
	part install tests/install.sh
	part storm make storm S=40 SEED=20261122 STORM_OPTIONS="--relaxed --controls"
}

part build-gcc make -j2 all
part build-clang make -j2 CC=clang all
part lint tests/lint/lint.sh
part unit-gcc make -j2 -k -Otarget check-unit
other_variants &
plain_variant
wait

echo "check: $(($(date +%s) - began)) s in all; the output of each part is in $out"
[ ! -e "$out/failures" ] || cat "$out/failures"
awk '{ ok += $1; bad += $2; left += $3 }
    END { printf "%d passed, %d failed, %d skipped\n", ok, bad, left
	exit ok == 0 || bad > 0 }' "$out/sums"
