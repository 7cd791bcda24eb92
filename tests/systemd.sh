#!/bin/sh
# make check-systemd: the package that `make deb` left in build/deb is installed
# into a bare Debian that systemd has booted as process 1, and is used, broken,
# reloaded, killed and booted again. Needs root, cgroup v2, the network of apt, and
# a bare root in DEB_ROOT, or debootstrap (RELEASE=bookworm, trixie).
#
# systemd runs in namespaces of its own, in a cgroup of its own: what
# systemd-nspawn would do, without asking the systemd of the host, which may not
# be there.
# shellcheck disable=SC2317 # steps are called by want
cd "$(dirname "$0")/.." || exit 1
test=systemd
shared=$PWD/tests/bare-root.sh
case ${1-} in --inside-*) shared=/packages/bare-root.sh ;; esac
# shellcheck source=tests/bare-root.sh
. "$shared"

# ---- outside: boot, and steps in the booted system --------------------------

# The directory where cgroup v2 is mounted.
cgroup2() {
	awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts
}
boot() {
	cat >"$scratch/boot" <<-END
	set -e
	echo \$\$ >"$cgroup/cgroup.procs"
	exec unshare --mount --pid --ipc --uts --cgroup --fork --kill-child \
	    sh "$scratch/boot-inside"
	END
	cat >"$scratch/boot-inside" <<-END
	set -e
	mount --make-rprivate /
	hostname host
	mount --bind "$root" "$root"
	cd "$root"
	mount -t proc proc proc
	# systemd raises limits of the kernel at boot: those of the host stay.
	mount --bind proc/sys proc/sys
	mount -o remount,bind,ro proc/sys
	mount -t sysfs -o ro sysfs sys
	mount -t tmpfs -o mode=755 tmpfs dev
	for d in null zero full random urandom tty; do
		cp -a /dev/\$d dev/
	done
	mkdir dev/shm dev/mqueue dev/pts
	ln -s pts/ptmx dev/ptmx
	mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts dev/pts
	mount -t tmpfs -o mode=1777 tmpfs dev/shm
	mount -t mqueue mqueue dev/mqueue
	mount -t tmpfs -o mode=755 tmpfs run
	mount -t cgroup2 cgroup2 sys/fs/cgroup
	# Not chroot: systemd makes mount namespaces for units, from the root of
	# its own.
	pivot_root . .
	umount -l .
	cd /
	exec env -i container=lxc PATH=/usr/sbin:/usr/bin:/sbin:/bin \
	    /lib/systemd/systemd --system --unit=multi-user.target
	END
	sh "$scratch/boot" </dev/null >"$scratch/console" 2>&1 &
	booted=$!
	until_true is_booted || {
		cat "$scratch/console"
		return 1
	}
}
# The process that is process 1 in there.
init() {
	head -n 1 "$cgroup/init.scope/cgroup.procs" 2>/dev/null | grep .
}
in_system() { # COMMAND...
	pid=$(init) && nsenter -t "$pid" -m -p -i -u -C -r -w \
	    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin SYSTEMD_PAGER= \
	    DEBIAN_FRONTEND=noninteractive V="${V-}" \
	    http_proxy="${http_proxy-}" "$@"
}
is_booted() {
	case $(in_system systemctl is-system-running 2>/dev/null) in
	running | degraded) return 0 ;;
	esac
	return 1
}
halt() {
	# "systemctl poweroff" asks by the bus, which is not there.
	in_system systemctl --no-block --job-mode=replace-irreversibly \
	    start poweroff.target
	patience=300 until_true has_halted || return 1
	wait "$booted" || :	# process 1 ends by the signal of reboot(2)
}
has_halted() {
	! kill -0 "$booted" 2>/dev/null || [ ! -d "/proc/$booted" ] ||
	    grep -q '^State:.*Z' "/proc/$booted/status"
}
end_of_system() {
	[ -z "${cgroup-}" ] || {
		[ ! -e "$cgroup/cgroup.kill" ] || echo 1 >"$cgroup/cgroup.kill"
		until_true no_processes
		find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null
	}
	rm -rf "$scratch"
}
no_processes() {
	[ "$(awk '$1 == "populated" { print $2 }' "$cgroup/cgroup.events")" = 0 ]
}
# The steps of one boot; adds their numbers.
steps() { # first|second
	in_system /bin/sh /packages/test "--inside-$1" >"$scratch/inside" 2>&1
	sed '$d' "$scratch/inside"
	# shellcheck disable=SC2046 # three numbers
	set -- $(tail -n 1 "$scratch/inside" | tr -cd '0-9 ')
	[ $# = 3 ] || {
		cat "$scratch/inside"
		set -- 0 1 0
	}
	passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}
cannot() { # REASON
	skip 'the package under systemd' "$1"
	finish
}
with_systemd() {
	[ -x "$root/lib/systemd/systemd" ] ||
	    chroot "$root" env DEBIAN_FRONTEND=noninteractive sh -c \
		'apt-get -q -y update && apt-get -q -y install --no-install-recommends systemd'
}
outside() {
	scratch=$(mktemp -d /var/tmp/systemd.XXXXXX) || exit 1
	trap end_of_system EXIT
	trap 'exit 1' HUP INT TERM
	root=$scratch/root
	deb=$(package) || {
		echo "systemd: there is no package: make deb"
		exit 1
	}
	if [ -z "${DEB_ROOT-}" ] && [ -n "${RELEASE-}" ]; then
		DEB_ROOT=build/deb-root-$RELEASE
		[ -d "$DEB_ROOT" ] || debootstrap --variant=minbase "$RELEASE" \
		    "$DEB_ROOT" >"$scratch/out" 2>&1 || rm -rf "$DEB_ROOT"
	fi
	prepare_root 'the package under systemd'
	[ -n "$(cgroup2)" ] || cannot 'no cgroup v2 is mounted'
	cgroup=$(cgroup2)/qsched-check-systemd.$$
	mkdir "$cgroup" || cannot "no cgroup can be made below $(cgroup2)"
	with_systemd >"$scratch/out" 2>&1 ||
	    cannot "apt cannot fetch systemd: $(tail -n 1 "$scratch/out")"
	echo host >"$root/etc/hostname"
	rm -f "$root/etc/systemd/system/getty.target.wants/"*
	ln -sf /dev/null "$root/etc/systemd/system/console-getty.service"
	boot || cannot "systemd does not boot: $(tail -n 1 "$scratch/console")"
	steps first
	want 'halts with queued mail' halt
	has_halted || finish
	want 'boots again' boot
	steps second
	want 'halts' halt
	finish
}

# ---- inside ---------------------------------------------------------------

unit=/etc/systemd/system/qscheduler.service.d
shown() { # PROPERTY
	systemctl show -P "$1" qscheduler
}
is() { # PROPERTY VALUE
	[ "$(shown "$1")" = "$2" ]
}
status_has() {
	shown StatusText | grep -E "$1" || {
		shown StatusText
		return 1
	}
}
drop_in() { # LINE OF [Service]...
	mkdir -p $unit
	printf '%s\n' '[Service]' "$@" >$unit/test.conf
	systemctl daemon-reload
}
no_drop_in() {
	rm -rf $unit
	systemctl daemon-reload
}
in_journal() { # PATTERN WORDS OF journalctl...
	pattern=$1
	shift
	journalctl -q -b -t qscheduler -o cat "$@" | grep -E "$pattern"
}
# Shows the lines of SUBJECT when PATTERN does not come.
journal_has() { # SUBJECT PATTERN
	until_true in_journal "$2" || {
		in_journal "$1"
		return 1
	}
}
mail_to() { # USER TEXT
	printf 'Subject: x\n\n%s\n' "$2" | sendmail "$1"
}
arrived_in() { # HOME TEXT
	grep -rqs "$2" "$1/Maildir/new"
}
receives() { # HOME USER TEXT
	mail_to "$2" "$3" && until_true arrived_in "$1" "$3"
}

bounds() {
	want 'the processes of the unit are bounded' is TasksMax 8192
}
journal() {
	want 'no warning is an error' refused in_journal 'error: ' -p 4..4
	want 'ready has priority info' in_journal 'ready: ' -p 6..6
	echo '* nowhere' >>/etc/qscheduler/routing
	systemctl reload qscheduler 2>/dev/null
	want 'an error has priority err' in_journal 'error: reload: ' -p 3..3
	want 'no line keeps its prefix' refused in_journal '^<[0-7]>'
}
reloads() {
	want 'a reload of a wrong file fails' refused systemctl reload qscheduler
	want 'the unit stays active' systemctl is-active qscheduler
	want 'the status names file and line' status_has \
	    'old configuration in force: /etc/qscheduler/routing:[0-9]+: '
	want 'a restart runs on the configuration in force' \
	    systemctl restart qscheduler
	want 'the status still names it' status_has \
	    'old configuration in force: /etc/qscheduler/routing:[0-9]+: '
	want 'an alert has priority alert' in_journal 'ALERT: ' -p 1..1
	sed -i '/nowhere/d' /etc/qscheduler/routing
	want 'a reload of a right file' systemctl reload qscheduler
	want 'the status is plain' refused status_has 'old configuration'
}
checks() {
	echo 'queue_base = /nowhere/queue' >/packages/conf
	want 'a queue_base that cannot be made is told by --check' refused \
	    qscheduler --check /packages/conf
}
recipients() {
	for home in /srv/dave /var/lib/erin; do
		useradd -m -d $home "${home##*/}"
		want "a home in $home" receives $home "${home##*/}" "to-$home"
	done
	install -d -m 1777 /srv/shared
	printf '%s\n' '#!/bin/sh' 'touch /srv/shared/written || exit 75' \
	    'mkdir -p /srv/shared/list && chmod 2755 /srv/shared/list || exit 75' \
	    'ulimit -n 512 && nice -n 1 true || exit 75' \
	    'sudo -n touch /srv/shared/by-root || exit 75' >/usr/local/bin/writes
	printf '%s\n' '#!/bin/sh' 'touch /usr/local/closed || exit 75' \
	    >/usr/local/bin/closed
	printf '%s\n' '#!/bin/sh' 'echo $$ >/srv/shared/sleeps' 'exec sleep 90' \
	    >/usr/local/bin/sleeps
	chmod 755 /usr/local/bin/*
	mkdir -p /etc/sudoers.d
	echo 'ALL ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/test
	printf '%s\n' 'writes: "|/usr/local/bin/writes"' \
	    'closed: "|/usr/local/bin/closed"' \
	    'sleeps: "|/usr/local/bin/sleeps"' >>/etc/aliases
	want 'the aliases are right' systemctl reload qscheduler
	mail_to writes x
	want 'a program writes below /srv, raises a limit, and may use sudo' \
	    until_true in_journal 'bin/writes>.*status=sent'
	want 'sudo made its file' test -e /srv/shared/by-root
	mail_to closed x
	want 'a closed path is told with its remedy' journal_has closed \
	    'bin/closed>.*status=deferred.*Read-only file system.*ReadWritePaths = '
}
mode_and_limit() {
	echo 'queue_mode = dynamic' >>/etc/qscheduler/qscheduler.conf
	want 'a restart takes the mode' systemctl restart qscheduler
	want 'the mode is dynamic' sh -c 'setqload --list | grep dynamic'
	drop_in 'ExecStart=' 'ExecStart=!/nowhere/qscheduler'
	systemctl restart qscheduler
	want 'a unit that cannot start becomes failed' until_true \
	    is ActiveState failed
	want 'systemctl --failed lists it' sh -c \
	    'systemctl --failed --plain | grep -q qscheduler'
	no_drop_in
	systemctl reset-failed qscheduler
	want 'starts again' systemctl start qscheduler
}
modes_of_package() {
	want 'the door keeps its mode in an upgrade' sh -c \
	    'dpkg-statoverride --list /usr/libexec/qscheduler/queue-drop'
}
long_program() {
	mail_to sleeps x
	want 'a program runs' until_true test -s /srv/shared/sleeps
	began=$(date +%s)
	systemctl --no-block restart qscheduler
	until_true is SubState stop-sigterm
	want 'submission goes on during the stop' mail_to alice meanwhile
	patience=300
	want 'the restart ends' until_true is SubState running
	patience=
	took=$(($(date +%s) - began))
	want "a restart beside a program of 90 s takes ${took} s, less than 20" \
	    test "$took" -lt 20
	want 'mail of meanwhile' until_true arrived_in /home/alice meanwhile
	sed -i '/^sleeps/d' /etc/aliases
	systemctl reload qscheduler
}
# Kills a process in the cgroup of the unit, whose parent is systemd, and marks
# the cgroup by two attributes, as systemd-oomd does. The kernel kills nothing
# here: no memory is used up.
killed_for_memory() {
	group=/sys/fs/cgroup$(shown ControlGroup)
	# shellcheck disable=SC2016 # is for the shell in the unit
	setsid sh -c '(echo $$ >/dev/null; exec sleep 1000) & echo $!' \
	    >/packages/victim </dev/null
	victim=$(cat /packages/victim)
	echo "$victim" >"$group/cgroup.procs"
	ooms=$((${ooms:-0} + 1))
	setfattr -n user.oomd_ooms -v $ooms "$group"
	setfattr -n user.oomd_kill -v 1 "$group"
	kill -KILL "$victim"
}
heard_of_oom() { # TIMES
	[ "$(journalctl -q -b -u qscheduler -o cat | grep -ci 'oomd killed')" -ge "$1" ]
}
memory() {
	drop_in OOMPolicy=stop
	systemctl restart qscheduler
	before=$(shown NRestarts)
	killed_for_memory
	want 'control: with OOMPolicy=stop the unit stops' until_true \
	    restarted "$before"
	no_drop_in
	systemctl restart qscheduler
	ooms=0
	before=$(shown MainPID)
	killed_for_memory
	want 'systemd has seen the kill' until_true heard_of_oom 2
	want 'a reload' systemctl reload qscheduler
	want 'the unit goes on' is MainPID "$before"
	want 'and delivers' receives /home/alice alice after-oom
	pid=$(pgrep_name queue-send | head -n 1)
	kill -KILL "$pid"
	want 'a queue-send that is killed comes back alone' until_true in_journal \
	    "queue-send.*signal 9|queue-send.*$pid"
	want 'the supervisor is the same' is MainPID "$before"
	want 'and its queue delivers' receives /home/alice alice after-kill
}
pgrep_name() {
	for p in /proc/[0-9]*; do
		[ "$(cat "$p/comm" 2>/dev/null)" != "$1" ] || echo "${p#/proc/}"
	done
}
restarted() { # FROM
	[ "$(shown NRestarts)" -gt "$1" ] && is SubState running
}
watchdog() {
	drop_in WatchdogSec=3 TimeoutAbortSec=2
	systemctl restart qscheduler
	before=$(shown NRestarts)
	kill -STOP "$(shown MainPID)"
	want 'the watchdog restarts a supervisor that is stopped' until_true \
	    restarted "$before"
	want 'and mail is delivered' receives /home/alice alice after-watchdog
	no_drop_in
	want 'restarts' systemctl restart qscheduler
}
# The start has looked at the spool, or was refused.
settled() {
	mailq | grep -q -e far.test -e damaged || is ActiveState failed
}
# Nothing was touched, and the log has the command that mends the spool.
names_the_repair() {
	in_journal 'ALERT: queue [0-9]+ is disabled: run "qctl check --repair'
}
not_damaged() {
	! mailq | grep damaged
}
copied() {
	mail_to bob@far.test copied
	until_true in_journal 'to=<bob@far.test>,.* status=deferred'
	systemctl stop qscheduler
	cp -a $base /packages/queue && rm -rf $base && cp -a /packages/queue $base
	systemctl start qscheduler
	until_true settled
	want 'a spool that was copied is told with the command that mends it' \
	    names_the_repair
	want 'no mail of it is put into corrupt/' same \
	    "$(find "$base"/queue*/corrupt -type f)" ''
	systemctl stop qscheduler
	qctl check --repair >/packages/out 2>&1
	systemctl reset-failed qscheduler
	want 'starts after a repair' systemctl start qscheduler
	want 'no message is damaged then' not_damaged
}
inside_first() {
	scratch=/packages
	if ! apt update >/packages/out 2>&1 ||
	    ! apt install attr sudo >/packages/out 2>&1; then
		tail -3 /packages/out
		skip 'the package under systemd' 'apt cannot fetch what it needs'
		finish
	fi
	useradd -m alice
	useradd -m bob
	want 'installs' apt install /packages/qscheduler.deb
	[ "$failed" = 0 ] || finish
	want 'is started' until_true is ActiveState active
	want 'the status' status_has '^[0-9]+ queues? open'
	want 'delivers' receives /home/alice alice first
	bounds
	journal
	reloads
	checks
	recipients
	mode_and_limit
	modes_of_package
	long_program
	memory
	watchdog
	copied
	mail_to bob@far.test over-the-reboot
	want 'mail waits' until_true in_journal 'to=<bob@far.test>,.* status=deferred'
	finish
}
inside_second() {
	scratch=/packages
	want 'is started by the boot' until_true is ActiveState active
	want 'its status' status_has '^[0-9]+ queues? open'
	echo 'far.test  local' >>/etc/qscheduler/routing
	want 'a reload' systemctl reload qscheduler
	want 'what waits' qctl retry ALL
	want 'the mail is delivered' until_true arrived_in /home/bob over-the-reboot
	want 'stops' systemctl stop qscheduler
	want 'no error of the stop' is Result success
	finish
}

case ${1-} in
--inside-first) inside_first ;;
--inside-second) inside_second ;;
*) outside ;;
esac
