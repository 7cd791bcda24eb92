# shellcheck shell=sh
# An instance that runit, daemontools or s6 runs: its programs are not replaced
# while it runs, since processes of two builds do not understand each other.
# Submission goes on meanwhile. systemd's unit is stopped and started by
# debhelper's parts of these scripts. Part of preinst, postinst and prerm.
supervisor=/usr/libexec/qscheduler/qscheduler
stopped=/run/qscheduler.stopped

runs_supervisor() { # PID
	case $(readlink "/proc/$1/exe") in
	"$supervisor" | "$supervisor (deleted)")
		[ "$(stat -c %d:%i "/proc/$1/root/")" = "$(stat -c %d:%i /)" ] ;;
	*) return 1 ;;
	esac 2>/dev/null
}
parent_of() { # PID
	sed -n 's/^PPid:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null || :
}
# The supervisors of all instances, without the processes that they fork.
supervisors() {
	for pid in /proc/[0-9]*; do
		pid=${pid#/proc/}
		if runs_supervisor "$pid" &&
		    ! runs_supervisor "$(parent_of "$pid")"; then
			echo "$pid"
		fi
	done
}
# Whether a process belongs to the unit of systemd, which debhelper handles.
runs_unit() { # PID
	grep -q '/qscheduler\.service$' "/proc/$1/cgroup" 2>/dev/null
}
# runsv, supervise and s6-supervise read commands from a named pipe in their
# working directory: d stops the service, u starts it. The pipe is opened for
# reading too: the open of a pipe without a reader would wait for ever.
stop_instance() { # PID
	parent=$(parent_of "$1")
	case $(cat "/proc/$parent/comm" 2>/dev/null) in
	runsv | supervise | s6-supervise) ;;
	*)
		! runs_unit "$1" || return 0
		echo "qscheduler: process $1 was started by hand, or by a service" \
		    "manager that is not known here. Stop it now, and start it" \
		    "when the package is configured: processes of two builds do" \
		    "not understand each other." >&2
		return 0
		;;
	esac
	service=$(readlink "/proc/$parent/cwd") || return 0
	echo "qscheduler: stopping the service $service"
	echo "$service" >>"$stopped"
	printf d 1<>"$service/supervise/control" || return 0
	tries=0
	while [ -e "/proc/$1" ] && [ $tries -lt 120 ]; do
		sleep 1
		tries=$((tries + 1))
	done
	[ ! -e "/proc/$1" ] || echo "qscheduler: process $1 has not ended after" \
	    "120 seconds: restart $service by hand" >&2
}
stop_instances() {
	for pid in $(supervisors); do
		stop_instance "$pid"
	done
}
start_instances() {
	[ -e "$stopped" ] || return 0
	while read -r service; do
		[ -p "$service/supervise/control" ] || continue
		echo "qscheduler: starting the service $service"
		printf u 1<>"$service/supervise/control"
	done <"$stopped"
	rm -f "$stopped"
}
