# shellcheck shell=sh disable=SC2154 # $out is a directory of the caller
# The parts of a check, and the second look at the tests that failed. Sourced by
# tests/check.sh, and by tests/check/test.sh with parts that are made up.
#
# A runner names each test that failed in a line of its output, with tabs:
#
#   FAILED<tab>TEST<tab>COMMAND<tab>REASON
#
# COMMAND is a line of shell that runs the test alone from the top directory.
# The line of results of the runner ("2 passed, 1 failed") counts the tests that
# it names. A runner that fails in another way has no test that could be run
# again: it is a build, a lint, or a runner that has crashed, which has no line
# of results. A part has one runner, since the line of a second one would hide
# that the first one has crashed. Only make check-unit starts several: each
# target that make could not make has a line of results.
#
# With CI=true the named tests are run again, each alone and twice, after all
# parts have ended. A test that passes twice is UNSTABLE and counts as passed.
# Nothing is run again if a sanitizer has reported, if a part has failed without
# naming its tests, or if more than AGAIN_TESTS commands have to be run again.
# Tests that name the same command are run by one run of the command.

AGAIN_TESTS=5
: "${AGAIN_SECONDS:=2400}" # for all tests that are run again
tab=$(printf '\t')

plain() { # FILE: without the colours of Criterion
	sed 's/\x1b\[[0-9;]*m//g' "$1"
}

# Prints passed, failed and skipped tests of a part's output, in the forms of
# Criterion ("[====] Synthesis: Tested: 5 | Passing: 5 | Failing: 0", crashes are
# among the failing ones), of our programs ("5 passed, 0 failed", "NAME: 5 passed,
# 0 failed"), and of SKIP lines. The fourth number is that of the lines of results
# that count a test that failed. A line of a log that has such words is no result.
count() { # FILE
	plain "$1" | awk '
	function add(line,  bads) {
		bads = bad
		n = split(line, word, /[ ,|]+/)
		for (i = 2; i <= n; i++) {
			if (word[i] == "passed") ok += word[i - 1]
			if (word[i] == "failed") bad += word[i - 1]
			if (word[i] == "skipped") left += word[i - 1]
			if (word[i - 1] == "Passing:") ok += word[i]
			if (word[i - 1] == "Failing:") bad += word[i]
		}
		if (bad > bads) lines++
	}
	/^\[====\] Synthesis: Tested: [0-9]+ \| Passing: / { add($0) }
	/^([a-z-]+: )*[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$/ { add($0) }
	/^SKIP |\[SKIP\]/ { left++ }
	END { print ok + 0, bad + 0, left + 0, lines + 0 }'
}

# Prints how many targets make could not make, the outermost make only.
not_made() { # FILE
	plain "$1" | awk '
	/^make(\[[0-9]+\])?: \*\*\* \[/ { name = $1; n[name]++ }
	END { print n["make:"] + 0 }'
}

# Prints the first line of a sanitizer's report. Criterion counts a test that
# leaks as passed.
report_of() { # FILE
	grep -a -m 1 -E '(ERROR|WARNING): [A-Za-z]+Sanitizer|: runtime error: |ERROR: libFuzzer: deadly' "$1"
}

# Prints the failures of a part, a line for each: the named tests, compiler
# errors and reports of sanitizers; without any the lines that say FAILED, or
# the last line.
reasons() { # FILE
	plain "$1" | awk -F '\t' '
	function keep(line) { if (!(line in seen)) { seen[line] = 1; print line; n++ } }
	/[^ ]/ && !/^make/ { last = $0 }
	/^FAILED\t/ { keep($2 ": " $4); next }
	/(ERROR|WARNING): [A-Za-z]*Sanitizer/ || /: runtime error: / { keep($0); next }
	/^[^ ]+:[0-9]+(:[0-9]+)?: (fatal )?error: / { keep($0); next }
	/ FAILED: / || /: FAILED$/ || /^FAILED / || /^\[WARN\] / { other[++others] = $0 }
	END {
		if (n == 0) for (i = 1; i <= others; i++) keep(other[i])
		if (n == 0) print last
	}'
}

# Seconds of processor time between two outputs of times: the second line of
# each has those of the processes that the shell has waited for.
used() { # FILE
	awk -F'[ms \t]+' 'NR % 2 == 0 { was = now; now = ($1 + $3) * 60 + $2 + $4 }
	    END { printf "%d\n", now - was }' "$1"
}

# Nothing is run again.
final() { # WHY
	printf 'check: no test is run again: %s\n' "$1" >>"$out/final"
}

# Decides whether a part that failed can be looked at again.
judge() { # NAME, TESTS THAT ITS RESULTS COUNT AS FAILED, LINES OF RESULTS WITH THEM
	plain "$out/$1" | grep -a "^FAILED$tab" | cut -f 2- |
	    sed "s/^/$1$tab/" >"$out/.named"
	if report=$(report_of "$out/$1"); then
		final "$1: $report"
	elif [ ! -s "$out/.named" ]; then
		final "$1 failed and names no test"
	elif [ "$(wc -l <"$out/.named")" != "$2" ]; then
		final "$1 names $(wc -l <"$out/.named") tests that failed, and counts $2"
	elif [ "$(not_made "$out/$1")" -gt "$3" ]; then
		final "$1: make failed where no result counts a test"
	elif awk -F '\t' 'NF < 4 || $2 == "" || $3 == "" { bad = 1 }
	    END { exit !bad }' "$out/.named"; then
		final "$1 names a test without the command that runs it"
	fi
	cat "$out/.named" >>"$out/failed"
}

# Runs a part. Its output goes to $out/NAME, its results to $out/sums. The time
# of the processor is that of the part, since a lane runs one part at a time.
part() { # NAME COMMAND...
	name=$1
	shift
	start=$(date +%s)
	times >"$out/.times-$name"
	if "$@" >"$out/$name" 2>&1; then word=ok; else word=FAILED; fi
	if report_of "$out/$name" >/dev/null; then word=FAILED; fi
	# shellcheck disable=SC2046 # four numbers
	set -- $(count "$out/$name")
	times >>"$out/.times-$name"
	took="$(($(date +%s) - start)) s, $(used "$out/.times-$name") s of processor"
	if [ $word = FAILED ]; then
		cat "$out/$name"
		reasons "$out/$name" | sed "s|^|check: $name: FAILED: |" | tee -a "$out/failures"
		(
			flock 9
			judge "$name" "$2" "$4"
		) 9>"$out/.lock"
		[ "$2" -gt 0 ] || set -- "$1" 1 "$3"
	fi
	grep -a -E '^SKIP |\[SKIP\]|: skipped ' "$out/$name" | sed 's/^/    /'
	echo "check: $name: $word: $1 passed, $2 failed, $3 skipped ($took)"
	echo "$1 $2 $3" >>"$out/sums"
}

# Runs one test, and succeeds if the test has run and passed.
passes() { # FILE COMMAND
	left=$((end - $(date +%s)))
	[ $left -gt 0 ] || {
		echo "no time is left" >"$1"
		return 1
	}
	timeout -k 10 $left sh -c "$2" >"$1" 2>&1 </dev/null || return 1
	! report_of "$1" >/dev/null || return 1
	# shellcheck disable=SC2046 # four numbers
	set -- $(count "$1")
	[ "$1" -gt 0 ] && [ "$2" -eq 0 ]
}

# The commands of the tests that failed, each once.
commands() {
	cut -f 3 "$out/failed" | awk '!seen[$0]++'
}

# Prints the tests of a command that failed, as lines of $out/failed.
tests_of() { # COMMAND
	printf '%s\n' "$1" | awk -F '\t' '
	NR == FNR { command = $0; next } $3 == command' - "$out/failed"
}

# Runs the tests that failed again, each command alone and twice.
again() {
	end=$(($(date +%s) + AGAIN_SECONDS))
	number=0
	commands >"$out/.commands"
	while IFS= read -r command; do
		number=$((number + 1))
		file=$out/again-$number
		tests_of "$command" >"$file-tests"
		printf 'check: again, alone: %s: %s\n' \
			"$(cut -f 1,2 "$file-tests" | sed "s/$tab/: /" | paste -s -d ,)" "$command"
		if passes "$file-1" "$command" && passes "$file-2" "$command"; then
			while IFS=$tab read -r part test command reason; do
				printf 'UNSTABLE %s: %s: %s\n' "$part" "$test" "$reason" >>"$out/unstable"
				echo "1 -1 0" >>"$out/sums"
			done <"$file-tests"
			continue
		fi
		cat "$file-1" "$file-2" 2>/dev/null
		while IFS=$tab read -r part test command reason; do
			printf 'check: %s: FAILED AGAIN: %s\n' "$part" "$test" | tee -a "$out/failures"
		done <"$file-tests"
	done <"$out/.commands"
}

# Ends the check, after all parts have ended: runs again what may be, then says
# what failed, and the sum. The exit status is that of the check.
finish() {
	if [ "${CI-}" = true ] && [ -s "$out/failed" ]; then
		[ "$(commands | wc -l)" -le $AGAIN_TESTS ] ||
			final "more than $AGAIN_TESTS tests failed"
		[ -e "$out/final" ] || again
	fi
	for file in failures unstable; do
		[ ! -e "$out/$file" ] || cat "$out/$file"
	done
	[ "${CI-}" != true ] || [ ! -e "$out/final" ] || cat "$out/final"
	awk '{ ok += $1; bad += $2; left += $3 }
	    END { printf "%d passed, %d failed, %d skipped\n", ok, bad, left
		exit ok == 0 || bad > 0 }' "$out/sums"
}
