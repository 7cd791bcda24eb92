#!/bin/sh
# make check-deb: the package that `make deb` left in build/deb is judged by
# lintian, installed into a bare Debian in the place of another MTA, used,
# upgraded with mail coming in, removed and purged. Needs root, the network of
# apt, and a bare root in DEB_ROOT, or debootstrap, which makes one in
# build/deb-root-RELEASE. RELEASE is bookworm or trixie, by default that of this
# host.
# shellcheck disable=SC2317 # steps are called by want
# shellcheck disable=SC2086,SC2002 # lists of files
cd "$(dirname "$0")/.." || exit 1
test=deb
shared=$PWD/tests/bare-root.sh
[ "${1-}" != --inside ] || shared=/packages/bare-root.sh
# shellcheck source=tests/bare-root.sh
. "$shared"

# ---- outside: lintian, and a root to work in ------------------------------

# A package that is an MTA as well, and says what it was called with.
other_mta() { # DIR
	mkdir -p "$1/DEBIAN" "$1/usr/sbin" "$1/usr/lib"
	printf '%s\n' 'Package: other-mta' 'Version: 1' 'Architecture: all' \
		'Maintainer: nobody <root@localhost>' \
		'Provides: mail-transport-agent' \
		'Conflicts: mail-transport-agent' \
		'Replaces: mail-transport-agent' \
		'Description: another' >"$1/DEBIAN/control"
	printf '#!/bin/sh\necho other "$@"\n' >"$1/usr/sbin/sendmail"
	chmod 755 "$1/usr/sbin/sendmail"
	ln -s ../sbin/sendmail "$1/usr/lib/sendmail"
	dpkg-deb --build --root-owner-group "$1" "$root/packages/other.deb"
}
# The same programs with a higher number, and a changed configuration file.
next_version() { # DEB DIR
	dpkg-deb -R "$1" "$2" &&
	    sed -i 's/^Version: .*/&+next/' "$2/DEBIAN/control" &&
	    echo '# A line of the next version.' \
		>>"$2/etc/qscheduler/qscheduler.conf" &&
	    dpkg-deb --build --root-owner-group "$2" \
		"$root/packages/next.deb"
}
outside() {
	scratch=$(mktemp -d /var/tmp/deb.XXXXXX) || exit 1
	trap 'rm -rf "$scratch"' EXIT
	root=$scratch/root
	deb=$(package) || exit 1
	if command -v lintian >/dev/null; then
		want 'lintian' lintian --fail-on error,warning "$deb"
	else
		skip lintian 'not installed'
	fi
	prepare_root 'the package in use'
	want 'another MTA' other_mta "$scratch/other"
	want 'a next version' next_version "$deb" "$scratch/next"
	enter
	finish
}

# ---- inside ---------------------------------------------------------------

is_ours() { # NAME [PROGRAM]
	same "$(readlink -f "$1")" "/usr/bin/${2:-queue-inject}"
}
door_is() { # OWNER:GROUP MODE
	same "$(stat -c '%U:%G %a' /usr/libexec/qscheduler/queue-drop)" "$1"
}
# In the place of the override that is there.
override_door() { # OWNER GROUP MODE
	dpkg-statoverride --remove /usr/libexec/qscheduler/queue-drop &&
	    dpkg-statoverride --update --add "$@" \
		/usr/libexec/qscheduler/queue-drop
}
look_is() { # OWNER:GROUP MODE
	same "$(stat -c '%U:%G %a' /usr/libexec/qscheduler/queue-look)" "$1"
}
# One line of a file, whatever stands around it.
has() { # FILE LINE
	grep -qx "$2" "$1" || {
		cat "$1"
		return 1
	}
}
start() {
	mkfifo /packages/ready
	qscheduler -s --ready-fd 3 3>/packages/ready 2>>"$log" &
	pid=$!
	timeout 60 head -n 1 /packages/ready
	code=$?
	rm /packages/ready
	return "$code"
}
stop() {
	kill -TERM "$pid" && wait "$pid"
}

# Files as other mail transport agents have them in their queues.
mail_of_others() {
	for file in postfix/deferred/A/AB1 postfix/maildrop/C2 postfix/pid/master \
	    exim4/input/1x-H exim4/input/1x-D; do
		mkdir -p "/var/spool/${file%/*}" && echo x >"/var/spool/$file"
	done
	for file in qmail/queue/mess/1/11 qmail/queue/info/1/11 \
	    indimail/queue/queue1/mess/0/5 indimail/queue/queue2/mess/0/6 \
	    indimail/queue/queue2/mess/0/7; do
		mkdir -p "/var/${file%/*}" && echo x >"/var/$file"
	done
}
installed() {
	want 'the other MTA' apt install /packages/other.deb
	mail_of_others
	files >/packages/before
	want 'installs, in the place of the other MTA' sh -c \
		'exec >/packages/said 2>&1; . /packages/bare-root.sh
		apt install /packages/qscheduler.deb'
	want 'the other MTA is gone' refused dpkg -L other-mta
	for package in systemd systemd-sysv dbus; do
		want "without $package, as before" refused dpkg -s $package
	done
	for mail in 'that wait in the queue of Postfix, /var/spool/postfix: 2.' \
	    'that wait in the queue of Exim, /var/spool/exim4/input: 1.' \
	    'that wait in the queue of qmail, /var/qmail/queue: 1.' \
	    'that wait in the queue of indimail, /var/indimail/queue: 3.'; do
		want "what is said: $mail" grep -F "$mail" /packages/said
	done
	want 'what is said of .forward' grep forward_path /packages/said
	want 'man 5 aliases' test -e /usr/share/man/man5/aliases.5.gz
	for name in /usr/sbin/sendmail /usr/lib/sendmail /usr/bin/newaliases \
	    /usr/libexec/qscheduler/qmail-queue; do
		want "$name" is_ours $name
	done
	want /usr/bin/mailq is_ours /usr/bin/mailq qctl
	for user in qmailq qmails qmailr; do
		want "user $user" getent passwd $user
	done
	want 'the door' door_is 'root:qdrop 2711'
	want 'for readers' look_is 'root:qmail 2711'
	want '/etc/mailname' has /etc/mailname host.example.test
	want 'routing' has /etc/qscheduler/routing 'host.example.test  local'
	want '/etc/aliases' has /etc/aliases 'postmaster: root'
	want 'the configuration is right' qscheduler --check
	want 'mydomain' sh -c \
		'qscheduler --dump | grep "^mydomain = host.example.test "'
	want 'myhostname' sh -c \
		'qscheduler --dump | grep "^myhostname = host.example.test "'
	want 'conffiles' same "$(dpkg-query -W -f '${Conffiles}' qscheduler |
	    awk '{ print $1 }' | sort | xargs)" \
		'/etc/qscheduler/programs /etc/qscheduler/qscheduler.conf'
	want 'the service is enabled' test -L \
		/etc/systemd/system/multi-user.target.wants/qscheduler.service
	want 'the queues are where the unit has them' grep -q \
		'^RequiresMountsFor=/var/spool/qscheduler/queue$' \
		/lib/systemd/system/qscheduler.service
	want 'mailq' exits 69 mailq
	want 'newaliases' exits 0 newaliases
}
used() {
	want 'starts' start
	want 'sendmail -t of a user' as alice \
		"printf 'To: bob\nSubject: x\n\nfirst\n' | /usr/lib/sendmail -t"
	want 'it is delivered' delivered bob first
	want 'the sender is of this host' grep -rqs \
		'^From: .*alice@host.example.test' /home/bob/Maildir/new
	want 'root to a user' sh -c 'echo second | sendmail alice'
	want 'it is delivered' delivered alice second
	want 'qmail-queue' sh -c \
		"printf 'Subject: x\n\nthird\n' >/packages/m &&
		printf 'Fme@host.example.test\0Tbob@localhost\0\0' >/packages/e &&
		/usr/libexec/qscheduler/qmail-queue </packages/m 1</packages/e"
	want 'it is delivered' delivered bob third
	want 'mail for root' sh -c 'echo fourth | sendmail root'
	want 'what became of it' until_true logged \
		'to=<root@host.example.test>,.* status='
	want 'mail for another host' sh -c 'echo fifth | sendmail bob@far.test'
	want 'it waits for a rule' until_true logged \
		'to=<bob@far.test>,.* status=deferred'
}
upgraded() {
	echo '# Mine.' >>/etc/qscheduler/qscheduler.conf
	echo '# Mine.' >>/etc/qscheduler/routing
	want 'the same again' apt install --reinstall /packages/qscheduler.deb
	want 'the door' door_is 'root:qdrop 2711'
	want 'an override of the administrator' override_door root root 755
	want 'upgrades' sh -c 'exec >/packages/said 2>&1
		. /packages/bare-root.sh; apt install /packages/next.deb'
	want 'an instance that was started by hand is named' \
		grep "process $pid was started by hand" /packages/said
	want 'the override of the administrator holds' door_is 'root:root 755'
	dpkg-statoverride --remove /usr/libexec/qscheduler/queue-drop
	want 'the same again' apt install --reinstall /packages/next.deb
	want 'the door' door_is 'root:qdrop 2711'
	want 'the configuration is kept' has /etc/qscheduler/qscheduler.conf '# Mine.'
	want 'routing is kept' has /etc/qscheduler/routing '# Mine.'
	want 'mail after that' as bob 'echo sixth | sendmail alice'
	want 'it is delivered' delivered alice sixth
	want 'stops' stop
}

# Mail comes in all the time while the package is upgraded under runit.
faces='sendmail sendmail-t queue-inject qmail-queue'
fed=/packages/fed
submissions="$fed/sendmail $fed/sendmail-t $fed/queue-inject $fed/qmail-queue"
feed_all() {
	mkdir -m 1777 $fed
	sh /packages/feed.sh sendmail-t $fed bob &
	feeders=$!
	as alice "sh /packages/feed.sh sendmail $fed bob" &
	feeders="$feeders $!"
	as bob "sh /packages/feed.sh queue-inject $fed bob" &
	feeders="$feeders $!"
	as carol "sh /packages/feed.sh qmail-queue $fed bob" &
	feeders="$feeders $!"
}
lines() { # FILE
	if [ -e "$1" ]; then wc -l <"$1"; else echo 0; fi
}
more_than() { # FILE COUNT
	[ "$(lines "$1")" -gt "$2" ]
}
# So many submissions by each face, begun from now on.
feeds() { # COUNT
	for face in $faces; do
		until_true more_than "$fed/$face" \
		    "$(($(lines "$fed/$face") + $1))" || return
	done
}
none_refused() {
	cat "$fed"/*.errors
	refused grep -h -v ' 0$' $submissions
}
fed_mail_is_there() {
	grep -rhoE '^fed-[a-z-]+-[0-9]+$' /home/bob/Maildir/new | sort >/packages/there
	sed -n 's/ 0$//p' $submissions | sort | diff - /packages/there
}
supervisor() {
	cat "$service/supervise/pid"
}
upgraded_under_load() {
	useradd -m carol
	mkdir -p /etc/sv
	want 'the service, by runit' start_service
	feed_all
	want 'mail comes in by all faces' feeds 5
	before=$(supervisor)
	want 'unpacked' dpkg --unpack /packages/next.deb
	want 'mail comes in meanwhile' feeds 10
	want 'the service is down meanwhile' refused \
		test -e "/proc/$before"
	want 'configured' dpkg --force-confold --configure qscheduler
	want 'the service is up again' ready
	want 'mail comes in after that' feeds 10
	want 'once more, in one go' apt install --reinstall /packages/next.deb
	want 'the service is up again' ready
	want 'mail comes in after that' feeds 10
	touch $fed/stop
	# shellcheck disable=SC2086 # numbers of processes
	wait $feeders
	want 'no submission was refused' none_refused
	want 'each message is there, once' until_true fed_mail_is_there
	echo "two upgrades: $(cat $submissions | wc -l) submissions," \
	    "$(cat $submissions | grep -vc ' 0$') refused," \
	    "$(lines /packages/there) messages delivered"
}
removed() {
	: >"$log"
	before=$(supervisor)
	want 'another MTA takes the place' apt install /packages/other.deb
	want 'the service was stopped' refused test -e "/proc/$before"
	want 'the end of the service' sv -w 120 force-shutdown "$service"
	rm -r "$service" /etc/sv/qscheduler
	want 'sendmail is its own' same "$(/usr/sbin/sendmail me)" 'other me'
	want 'the configuration is kept' has /etc/qscheduler/routing '# Mine.'
	want 'purges' apt purge qscheduler
	want 'nothing else is left' refused kept_files
	want 'mail is left' grep -rqs fifth "$base"
	want "root's mail, too" grep -rqs fourth "$base"
	want 'and nothing but mail' same "$(mail_left | xargs grep -L fifth |
	    xargs -r grep -L fourth)" ''
	want 'installs again' apt install /packages/qscheduler.deb
	echo 'far.test  local' >>/etc/qscheduler/routing
	want 'starts' start
	kill -ALRM "$pid"
	want 'what was left is delivered' delivered bob fifth
	want 'all queues are open' refused logged 'ALERT'
	want 'stops' stop
	rm -f "$base"/queue*/hold/* "$base"/mailbox/new/*
	want 'purges' apt purge qscheduler
	want 'no queue is left' test ! -e /var/spool/qscheduler
	want 'no configuration is left' test ! -e /etc/qscheduler
	want 'no override is left' refused dpkg-statoverride --list \
		'/usr/libexec/qscheduler/*'
}
inside() {
	scratch=/packages
	if ! dependencies runit >/packages/out 2>&1; then
		tail -3 /packages/out
		skip 'the package in use' 'apt cannot fetch what it needs'
		finish
	fi
	useradd -m alice
	useradd -m bob
	installed
	used
	upgraded
	upgraded_under_load
	removed
	finish
}

case ${1-} in
--inside) inside ;;
*) outside ;;
esac
