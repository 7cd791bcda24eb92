#!/bin/sh
# feed.sh FACE DIRECTORY USER: submits a message to USER each 100 ms through a
# face of queue-inject, as the user who runs it, until DIRECTORY/stop exists.
# DIRECTORY/FACE gets a line for each: the text of the message and the exit code.
face=$1 dir=$2 to=$3

submit() { # TEXT
	case $face in
	sendmail) printf 'Subject: x\n\n%s\n' "$1" | /usr/sbin/sendmail "$to" ;;
	sendmail-t) printf 'To: %s\n\n%s\n' "$to" "$1" | /usr/lib/sendmail -t ;;
	queue-inject) printf 'To: %s\n\n%s\n' "$to" "$1" | queue-inject "$to" ;;
	qmail-queue)
		printf 'To: %s\n\n%s\n' "$to" "$1" >"$dir/content"
		printf 'Fme@localhost\0T%s@localhost\0\0' "$to" >"$dir/envelope"
		/usr/libexec/qscheduler/qmail-queue \
			<"$dir/content" 1<"$dir/envelope"
		;;
	esac
}

n=0
until [ -e "$dir/stop" ]; do
	n=$((n + 1))
	submit "fed-$face-$n" 2>>"$dir/$face.errors"
	echo "fed-$face-$n $?" >>"$dir/$face"
	sleep 0.1
done
