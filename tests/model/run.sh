#!/bin/sh
# make check-model: each row of the list is verified whole by spin, or has to be
# refuted: a model that lets everything pass says nothing. run.sh NAME... runs
# these rows.
cd "$(dirname "$0")/../.." || exit 1
models=$PWD/tests/model
model=$models/places.pml
work=build/model
chosen=" $* "
passed=0 failed=0

if ! command -v spin >/dev/null; then
	echo "SKIP model: no spin here"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
fi

verify() { # DEFINITIONS...: "whole STATES", "refuted", or words of an error
	spin -a "$@" "$model" >spin.log 2>&1 || { echo "spin: $(tail -1 spin.log)"; return; }
	gcc -O1 -w -DSAFETY -DCOLLAPSE -DMEMLIM=1024 -o pan pan.c || { echo "gcc"; return; }
	timeout 120 ./pan -m1000000 >pan.log 2>&1 || { echo "pan: $(tail -1 pan.log)"; return; }
	if ! grep -q 'errors: 0' pan.log; then
		echo refuted
	elif grep -Eq 'max search depth too small|out of memory|Search not completed' pan.log; then
		echo "not all of it was searched"
	else
		echo "whole $(awk '/states, stored/ { print $1; exit }' pan.log)"
	fi
}

row() { # WANTED NAME DEFINITIONS...
	wanted=$1 name=$2
	shift 2
	case $chosen in *" $name "* | "  ") ;; *) return ;; esac
	got=$(verify "$@")
	case $got in
	$wanted*) passed=$((passed + 1)) ;;
	*)
		failed=$((failed + 1))
		cat pan.log
		printf 'FAILED\t%s\ttests/model/run.sh %s\t%s\n' "$name" "$name" "$got"
		;;
	esac
	echo "model: $name: $got"
}

rm -rf $work && mkdir -p $work && cd $work || exit 1

# Without deaths no wake-up is ever lost: nobody needs to look by himself.
row whole two_queues -DQUEUES=2 -DWINDOW=1 -DMAIL=2 -DDEATHS=0
row whole three_queues -DQUEUES=3 -DWINDOW=1 -DMAIL=1 -DDEATHS=0 -DDIRECT
row whole three_queues_two_places \
	-DQUEUES=3 -DWINDOW=2 -DMAIL=1 -DDEATHS=0 -DDIRECT
row whole killed_anywhere -DQUEUES=2 -DWINDOW=1 -DMAIL=1 -DDEATHS=1 -DNET
row whole killed_twice \
	-DQUEUES=2 -DWINDOW=1 -DMAIL=1 -DDEATHS=2 -DNET -DDIRECT
row refuted killed_and_nobody_looks_by_himself \
	-DQUEUES=2 -DWINDOW=1 -DMAIL=1 -DDEATHS=1
row refuted cell_before_in_use -DQUEUES=2 -DWINDOW=1 -DMAIL=1 -DDEATHS=1 -DNET \
	-DBROKEN_ORDER -DBROKEN_MEND
row refuted place_given_back_before_the_end \
	-DQUEUES=2 -DWINDOW=1 -DMAIL=1 -DDEATHS=0 -DBROKEN_DONE
row refuted forgotten_while_its_agents_live \
	-DQUEUES=2 -DWINDOW=1 -DMAIL=1 -DDEATHS=1 -DNET -DBROKEN_FORGET
row refuted asleep_without_a_look \
	-DQUEUES=2 -DWINDOW=1 -DMAIL=2 -DDEATHS=0 -DBROKEN_SLEEP

# The pick-up of drops. The old one, which kept a note by inode numbers, lost
# mail when it was killed at the wrong moment.
model=$models/door.pml
row whole drops_killed_anywhere -DMAIL=3 -DINODES=2 -DKILLS=2 -DCUTS=0
row whole drops_and_a_power_cut -DMAIL=2 -DINODES=2 -DKILLS=1 -DCUTS=1
row whole drops_noted_by_inode_and_nobody_killed \
	-DMAIL=2 -DINODES=3 -DKILLS=0 -DCUTS=0 -DBROKEN_NOTE
row refuted drops_noted_by_inode \
	-DMAIL=2 -DINODES=3 -DKILLS=1 -DCUTS=0 -DBROKEN_NOTE
row refuted drops_synced_before_the_link \
	-DMAIL=1 -DINODES=2 -DKILLS=0 -DCUTS=1 -DBROKEN_ORDER
row refuted drops_told_before_the_sync \
	-DMAIL=1 -DINODES=2 -DKILLS=0 -DCUTS=1 -DBROKEN_ACK

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
