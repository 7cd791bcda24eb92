#!/bin/sh
# The second look at tests that failed (parts.sh), with parts that are made up.
cd "$(dirname "$0")/../.." || exit 1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

# fake NAME FAILS [REPORTS]: one test of this name. Its runs whose numbers are
# in the list FAILS fail; those in REPORTS print a report of a sanitizer.
cat >"$scratch/fake" <<'END'
#!/bin/sh
name=$1 fails=$2 reports=${3-}
runs=${0%/*}/case/runs
printf "%s\n" "$name" >>"$runs"
run=$(grep -cFx -e "$name" "$runs")
[ "$run" = 1 ] || cat >/dev/null # what is left of a list of tests
case " $reports " in *" $run "*)
	echo '==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x1' ;;
esac
case " $fails " in *" $run "*)
	quoted=$(printf %s "$name" | sed "s/'/'\\\\''/g")
	printf 'FAILED\t%s\t%s\tin run %s\n' "$name" "$0 '$quoted' '$fails' '$reports'" "$run"
	echo "0 passed, 1 failed"
	exit 1 ;;
esac
echo "1 passed, 0 failed"
END
chmod +x "$scratch/fake"
fake=$scratch/fake

# A check in a directory of its own. The parts are lines of shell.
check() { # CI PARTS
	out=$scratch/case
	rm -rf "$out"
	mkdir "$out"
	(
		export CI="$1"
		. tests/check/parts.sh
		part good "$fake" good ''
		eval "$2"
		finish
	) >"$scratch/said" 2>&1
	status=$?
}
want() { # WHAT COMMAND...
	what=$1
	shift
	if "$@" >"$scratch/why" 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'again: %s: FAILED: %s\n' "$what" "$*"
		sed 's/^/    /' "$scratch/why" "$scratch/said"
	fi
}
# Exit status, last line, and how often the test ran.
ends() { # STATUS SUM TEST RUNS
	set -- "$@" "$(tail -n 1 "$scratch/said")" \
		"$(grep -cFx -e "$3" "$scratch/case/runs")"
	[ "$status" = "$1" ] && [ "$5" = "$2, 0 skipped" ] && [ "$6" = "$4" ]
}
says() { # LINE
	grep -qFx -e "$1" "$scratch/said"
}
silent_of() { # WORDS
	! grep -F -e "$1" "$scratch/said"
}

check true "part p $fake t ''"
want 'no test fails' ends 0 '2 passed, 0 failed' t 1

check true "part p $fake t '1 2 3'"
want 'a test fails always' ends 1 '1 passed, 1 failed' t 2
want 'and is named' says 'check: p: FAILED AGAIN: t'

check true "part p $fake t 1"
want 'a test fails once' ends 0 '2 passed, 0 failed' t 3
want 'and is named with the first failure' says 'UNSTABLE p: t: in run 1'

check true "part p $fake t '1 2'"
want 'a test fails twice, and would pass then' ends 1 '1 passed, 1 failed' t 2
want 'and is not unstable' silent_of UNSTABLE

check true "part p $fake t '1 3'"
want 'a test fails, passes, and fails' ends 1 '1 passed, 1 failed' t 3

for ci in '' false; do
	check "$ci" "part p $fake t 1"
	want "CI='$ci' runs nothing again" ends 1 '1 passed, 1 failed' t 1
done

check true "part p $fake t 1; part q $fake u 1"
want 'two unstable tests' ends 0 '3 passed, 0 failed' u 3
check true "part p $fake t 1; part q $fake u '1 2'"
want 'an unstable test beside one that fails' ends 1 '2 passed, 1 failed' t 3

check true "part p $fake t '' 1"
want 'a report of a test that passes' ends 1 '2 passed, 1 failed' t 1
check true "part p $fake t 1 1"
want 'a report of a test that fails' ends 1 '1 passed, 1 failed' t 1
check true "part p $fake t 1 2"
want 'a report when it is run again' ends 1 '1 passed, 1 failed' t 2
check true "part p $fake t 1 3"
want 'a report when it is run a third time' ends 1 '1 passed, 1 failed' t 3
check true "part p $fake t '' 1; part q $fake u 1"
want 'a report, and another test' ends 1 '2 passed, 2 failed' u 1

for report in '==1==ERROR: LeakSanitizer: detected memory leaks' \
    'WARNING: ThreadSanitizer: data race (pid=1)' \
    'a.c:1:2: runtime error: signed integer overflow' \
    '==1== ERROR: libFuzzer: deadly signal'; do
	check true "part p echo '$report' '9 passed, 0 failed'"
	want "$report" test "$status" = 1
done

check true "part build false; part p $fake t 1"
want 'a part that names no test' ends 1 '1 passed, 2 failed' t 1
want 'and says so' says \
	'check: no test is run again: build failed and names no test'
crash() {
	"$fake" t 1 | grep FAILED
	false
}
check true 'part p crash'
want 'a runner that crashes behind a test' ends 1 '1 passed, 1 failed' t 1
miscount() {
	"$fake" t 1
	echo '0 passed, 1 failed'
	false
}
check true 'part p miscount'
want 'a runner that counts a failure without a name' \
	ends 1 '1 passed, 2 failed' t 1
no_command() {
	printf 'FAILED\tt\n0 passed, 1 failed\n'
	false
}
check true 'part p no_command'
want 'a test without its command' test "$status" = 1
nothing() {
	printf 'FAILED\tt\techo 0 passed, 0 failed\twhy\n0 passed, 1 failed\n'
	false
}
check true 'part p nothing'
want 'a command that runs no test' test "$status" = 1
hangs() {
	printf 'FAILED\tt\tsleep 1000; echo 1 passed, 0 failed\twhy\n0 passed, 1 failed\n'
	false
}
check true 'AGAIN_SECONDS=1; part p hangs'
want 'a command that hangs' test "$status" = 1

many() {
	for i in $1; do "$fake" "t$i" 1; done
	false
}
check true "part p many '1 2 3 4 5'"
want 'five unstable tests' ends 0 '6 passed, 0 failed' t5 3
check true "part p many '1 2 3 4 5 6'"
want 'six tests that fail' ends 1 '1 passed, 6 failed' t6 1

# shellcheck disable=SC2016 # nothing is expanded
strange='a  b'\''s "c" $(touch x) `touch x` \n ; | & * [a-z] %s <>ä'
strange_part() {
	"$fake" "$strange" 1
}
check true 'part p strange_part'
want 'strange characters' ends 0 '2 passed, 0 failed' "$strange" 3
want 'and all of them are named' says "UNSTABLE p: $strange: in run 1"
want 'and none is a command' test ! -e x

# What Criterion says becomes tests with commands (tests/unit/run.sh).
cat >"$scratch/criterion" <<'END'
#!/bin/sh
printf '\033[0;34m[----]\033[0m t.c:6: Assertion Failed\n[----]   no: 3\n'
printf '[FAIL] s::bad: (0.00s)\n[----] t.c:8: Unexpected signal caught\n'
printf '[FAIL] s::crash: CRASH!\n[FAIL] s::slow: Timed out. (1.02s)\n'
echo '[====] Synthesis: Tested: 4 | Passing: 1 | Failing: 3 | Crashing: 1'
exit 1
END
printf '#!/bin/sh\nkill -SEGV $$\n' >"$scratch/crashes"
chmod +x "$scratch/criterion" "$scratch/crashes"
check true "part p tests/unit/run.sh $scratch/criterion 9"
named() { # TEST NAME REASON
	printf '%s\t%s\t%s\t%s\n' p "criterion: $1" \
		"$scratch/criterion --filter $1 --timeout 9" "$2" |
		grep -qFx -f - "$scratch/case/failed"
}
want 'an assertion' named s/bad 't.c:6: Assertion Failed no: 3'
want 'a crash' named s/crash 't.c:8: Unexpected signal caught'
want 'a test that hangs' named s/slow 'Timed out. (1.02s)'
want 'as many as Criterion counts' says 'check: p: FAILED: criterion: s/slow: Timed out. (1.02s)'
want 'and they can be run again' silent_of 'no test is run again'
check true "part p tests/unit/run.sh $scratch/crashes 9"
want 'a program that crashes' says \
	'check: p: FAILED: crashes: exit 139 without a test that failed'
want 'and can be run again' says 'check: p: FAILED AGAIN: crashes'

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
