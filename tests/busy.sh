#!/bin/sh
# busy.sh COMMAND...: run a command while the machine is busy: two loops on
# each core, and one process that writes and syncs all the time. Exits as the
# command does; what made the load has ended by then.
#
#   tests/busy.sh ./bootstrap check
#   tests/busy.sh build/gcc/unit/queue-send -j4
loops=$((2 * $(nproc)))
dir=$(mktemp -d) || exit 1
pids=""

# shellcheck disable=SC2317 # the trap calls it
stop() {
	for pid in $pids; do kill "$pid" 2>/dev/null; done
	for pid in $pids; do wait "$pid" 2>/dev/null; done
	rm -rf "$dir"
}
trap stop EXIT
trap 'exit 143' TERM INT HUP

i=0
while [ "$i" -lt "$loops" ]; do
	sh -c 'while :; do :; done' &
	pids="$pids $!"
	i=$((i + 1))
done
sh -c 'while :; do
	dd if=/dev/zero of="$1/file" bs=64k count=16 conv=fsync status=none
done' sh "$dir" &
pids="$pids $!"

"$@"
