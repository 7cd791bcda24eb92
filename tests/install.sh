#!/bin/sh
# make install: what it installs, and that it writes nowhere else.
cd "$(dirname "$0")/.." || exit 1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

want() { # NAME COMMAND...
	name=$1
	shift
	if "$@" >"$scratch/out" 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "install: $name: FAILED"
		cat "$scratch/out"
		printf 'FAILED\t%s\ttests/install.sh\t%s\n' "$name" \
			"$(tail -n 1 "$scratch/out" | tr '\t' ' ')"
	fi
}

below_prefix() {
	! find "$scratch/root" -type f -o -type l | grep -v "^$scratch/root/opt/q/"
}
links_lead_somewhere() {
	! find "$scratch/root" -xtype l | grep .
}
nothing_left() {
	! find "$scratch/root" -type f -o -type l | grep .
}
# Of a page, to other pages of ours.
links_of() {
	grep -oE '\]\([^)#:]+' "$1" | cut -c 3-
}
pages_link_somewhere() (
	cd "$scratch/root/opt/q/share/doc/qscheduler" || exit 1
	[ "$(links_of README.md | grep -c '^docs/')" -gt 0 ] || exit 1
	for page in README.md docs/*.md; do
		for link in $(links_of "$page"); do
			case $link in tests/*|../tests/*) continue ;; esac
			[ -e "${page%/*}/$link" ] || [ -e "$link" ] || {
				echo "$page: $link"
				exit 1
			}
		done
	done
)
refused() {
	! "$@"
}
# Parameters that the page names in the place of those of main.cf and of control
# files.
parameters_exist() (
	cd "$scratch/root/opt/q/share" || exit 1
	sed -n 's/^#* *\([a-zA-Z0-9_]*\) =.*/\1/p' qscheduler/qscheduler.conf.sample |
	    sort -u >"$scratch/parameters"
	awk -F'|' '/^\| (main.cf|`.var.qmail)/ { on = 1 } !/^\|/ { on = 0 }
	    on { print $3 }' doc/qscheduler/docs/MIGRATION.md |
	    grep -oE '`[a-z0-9]+(_[a-zA-Z0-9]+)+' | tr -d '`' |
	    sed -E 's/^(smtp|local)_(tls_security_level|process_limit|fallback_relay)$/default_\2/' |
	    sort -u >"$scratch/named"
	[ "$(wc -l <"$scratch/named")" -gt 20 ] || exit 1
	! comm -23 "$scratch/named" "$scratch/parameters" | grep .
)
no_marks_left() {
	! grep -rE '@[a-z]+dir@' "$scratch/root/opt/q"
}

# README names each page, and says how the pages are read in the tree.
pages_in_place() {
	# shellcheck disable=SC2016 # the names stand in such quotes
	for page in $(sed -n 's/^Manual pages: //p' README.md |
	    grep -oE '`[a-z.-]+\([1-8]\)`' | tr '(' . | tr -d '`)'); do
		if ! [ -e "etc/man/$page" ] && ! { [ -e "build/man/$page" ] &&
		    grep -q "man -l build/man/$page" README.md; }; then
			echo "$page: not in the tree, and README does not say where it is"
			return 1
		fi
	done
}
want installs make install DESTDIR="$scratch/root" prefix=/opt/q \
	qdrop_group=irc qmail_group=mail
want 'pages that README names are in the tree' pages_in_place
want 'stays below DESTDIR and prefix' below_prefix
want 'links lead somewhere' links_lead_somewhere
want 'paths are filled in' no_marks_left
want 'links of the pages lead somewhere' pages_link_somewhere
want 'parameters of the migration page exist' parameters_exist
for f in sbin/qscheduler sbin/setqload bin/qctl bin/qtop bin/qsim bin/queue-inject \
    libexec/qscheduler/queue-send libexec/qscheduler/sendmail \
    libexec/qscheduler/mailq libexec/qscheduler/postqueue \
    libexec/qscheduler/postsuper libexec/qscheduler/qread libexec/qscheduler/newaliases \
    libexec/qscheduler/queue-drop share/man/man8/queue-drop.8 \
    libexec/qscheduler/queue-look share/man/man8/queue-look.8 \
    share/doc/qscheduler/docs/DOOR.md \
    share/man/man8/qscheduler.8 share/man/man5/qscheduler.conf.5 \
    share/qscheduler/qscheduler.conf.sample \
    share/qscheduler/workloads/newsletter.scn share/man/man1/qsim.1 \
    share/qscheduler/daemontools/run share/qscheduler/s6/run \
    share/qscheduler/runit/run share/qscheduler/runit/finish \
    share/qscheduler/runit/log/run share/qscheduler/s6/notification-fd \
    share/qscheduler/make-users share/qscheduler/runit/log/config \
    lib/systemd/system/qscheduler.service; do
	want "has $f" test -e "$scratch/root/opt/q/$f"
done
# Users that this machine has: those of the sample are made by make-users.
{
	cat "$scratch/root/opt/q/share/qscheduler/qscheduler.conf.sample"
	printf '%s\n' 'qmailq_user = uucp' 'qmails_user = news' \
		'qmailr_user = proxy' 'qmail_group = mail' 'qdrop_group = irc' \
		"queue_base = $scratch/queue"
} >"$scratch/sample.conf"
want 'the sample is a valid configuration' \
	"$scratch/root/opt/q/sbin/qscheduler" --check "$scratch/sample.conf"
if [ "$(id -u)" = 0 ]; then
	want 'the door is set-group-id' test "$(stat -c '%U:%G %a' \
		"$scratch/root/opt/q/libexec/qscheduler/queue-drop")" = \
		'root:irc 2711'
	want 'queue-look is set-group-id' test "$(stat -c '%U:%G %a' \
		"$scratch/root/opt/q/libexec/qscheduler/queue-look")" = \
		'root:mail 2711'
else
	want 'the door is not set-group-id' test \
		! -g "$scratch/root/opt/q/libexec/qscheduler/queue-drop"
fi
# An installation that is in use is replaced: each program in one step, and the
# door has its mode at each moment.
cat >"$scratch/install" <<END
#!/bin/sh
install "\$@" || exit
stat -c '%U:%G %a' "$scratch/root/opt/q/libexec/qscheduler/queue-drop" >>"$scratch/modes"
for target; do :; done
case "\$* " in
*'-m 755 '*/share/*|*'-m 755 '*'.new ') ;;
*'-m 755 '*) echo "\$target" >>"$scratch/in-place" ;;
esac
END
chmod 755 "$scratch/install"
want 'installs once more' make install DESTDIR="$scratch/root" prefix=/opt/q \
	qdrop_group=irc qmail_group=mail INSTALL="$scratch/install"
want 'the door keeps its mode meanwhile' test "$(sort -u "$scratch/modes")" = \
	"$(stat -c '%U:%G %a' "$scratch/root/opt/q/libexec/qscheduler/queue-drop")"
want 'each program is replaced in one step' refused cat "$scratch/in-place"
want 'nothing else is left of it' refused sh -c \
	"find '$scratch/root' -name '*.new' | grep ."

# Users and groups, in a copy of /etc that has none of ours.
with_etc() { # COMMAND
	unshare --mount sh -c "mount --bind '$scratch/etc' /etc && $1"
}
has_user() { # NAME GROUP
	with_etc "test \"\$(id -gn $1)\" = $2 && test \$(id -u $1) -lt 1000"
}
accounts() {
	(cd "$scratch/etc" && sha256sum passwd group shadow gshadow)
}
if [ "$(id -u)" = 0 ] && unshare --mount true; then
	cp -a /etc "$scratch/etc"
	for f in passwd group shadow gshadow; do
		sed -i '/^q\(mail\|drop\)/d' "$scratch/etc/$f"
	done
	want 'the door without its group' with_etc \
		"make install DESTDIR=$scratch/second prefix=/opt/q >$scratch/said 2>&1"
	want 'what to do is said' grep -q "run 'make install-users'" "$scratch/said"
	want 'makes users' with_etc 'make -s install-users'
	for user in qmailq:qmail qmails:qmail qmailr:qmailr qmaill:qmaill; do
		want "user and group $user" has_user "${user%:*}" "${user#*:}"
	done
	want 'the group of the door has no members' \
		grep -q '^qdrop:[^:]*:[0-9]*:$' "$scratch/etc/group"
	accounts >"$scratch/accounts"
	want 'makes users, once more' with_etc etc/make-users
	want 'nothing is changed' test "$(accounts)" = "$(cat "$scratch/accounts")"
	want 'other names' with_etc \
		'qmailr_user=mailout make -s install-users qdrop_group=maildoor'
	want 'the user of the other name' has_user mailout mailout
	want 'the group of the other name' grep -q '^maildoor:' "$scratch/etc/group"
	want 'users as of qmail' with_etc 'usermod -g qmail qmailr &&
		etc/make-users 2>&1 | grep "useradd --system --user-group qschedr"'
else
	want 'only root makes users' sh -c 'etc/make-users; test $? = 77'
fi

# What the package's scripts do with an instance, by whatever it is run. The
# supervisor is a program that sleeps.
# shellcheck source=debian/service.sh
. debian/service.sh
supervisor=$scratch/supervisor stopped=$scratch/stopped
cp "$(command -v sleep)" "$supervisor"
printf '#!/bin/sh\nexec %s 1000\n' "$supervisor" >"$scratch/run"
runs() {
	[ -n "$(supervisors)" ]
}
until_true() { # COMMAND...
	n=0
	until "$@"; do
		n=$((n + 1))
		[ $n -lt 300 ] || return 1
		sleep 0.1
	done
}
for manager in runsv supervise s6-supervise; do
	if ! command -v $manager >/dev/null; then
		echo "SKIP an instance by $manager: not installed"
		continue
	fi
	mkdir "$scratch/$manager"
	cp "$scratch/run" "$scratch/$manager/run"
	chmod 755 "$scratch/$manager/run"
	(cd "$scratch" && exec $manager "$scratch/$manager") >"$scratch/managed" 2>&1 &
	by=$!
	want "an instance by $manager" until_true runs
	want "it is stopped" stop_instances
	want "it is down" refused runs
	want "it is started" start_instances
	want "it is up" until_true runs
	printf dx >"$scratch/$manager/supervise/control"
	wait $by
	want "its service ends" refused runs
done
"$supervisor" 1000 &
by=$!
want 'an instance that was started by hand' sh -c ". debian/service.sh
	supervisor=$supervisor
	stop_instances 2>&1 | grep 'process $by was started by hand'"
want 'it runs on' runs
kill $by
wait $by

# The names of the system, in a root with dpkg's list of diversions.
mkdir -p "$scratch/root/var/lib/dpkg" "$scratch/root/usr/sbin"
echo old >"$scratch/root/usr/sbin/sendmail"
cp "$scratch/root/usr/sbin/sendmail" "$scratch/old"
mkdir -p "$scratch/root/usr/share/man/man1"
echo page >"$scratch/root/usr/share/man/man1/mailq.1.gz"
mta() { # TARGET
	make "$1" DESTDIR="$scratch/root" prefix=/opt/q
}
leads_to() { # NAME FACE
	[ "$(readlink "$scratch/root$1")" = "/opt/q/libexec/qscheduler/$2" ]
}
page_is() { # NAME PAGE
	[ "$(readlink "$scratch/root/usr/share/man/man1/$1.1")" = \
		"/opt/q/share/man/$2" ] && [ -e "$scratch/root/opt/q/share/man/$2" ]
}
# The package and install-mta give a name the same page.
page_of_package() { # NAME PAGE
	grep -qx "usr/share/man/$2 usr/share/man/man1/$1.1" debian/links
}
nothing_there() {
	! [ -e "$1" ] && ! [ -L "$1" ]
}
if command -v dpkg-divert >/dev/null; then
	want 'install-mta' mta install-mta
	want 'install-mta, once more' mta install-mta
	want 'sendmail is ours' leads_to /usr/sbin/sendmail sendmail
	want '/usr/lib/sendmail is ours' leads_to /usr/lib/sendmail sendmail
	want 'mailq is ours' leads_to /usr/bin/mailq mailq
	want 'newaliases is ours' leads_to /usr/bin/newaliases newaliases
	for page in sendmail:man1/qscheduler-sendmail.1 \
	    newaliases:man1/qscheduler-sendmail.1 mailq:man8/qctl.8; do
		want "the manual of ${page%:*}" page_is "${page%:*}" "${page#*:}"
		want "the same in the package: ${page%:*}" \
			page_of_package "${page%:*}" "${page#*:}"
	done
	want 'man 5 aliases' test "$(readlink \
		"$scratch/root/usr/share/man/man5/aliases.5")" = \
		/opt/q/share/man/man5/qscheduler-aliases.5
	want 'the same in the package' grep -qx \
		'usr/share/man/man5/qscheduler-aliases.5 usr/share/man/man5/aliases.5' \
		debian/links
	want 'the old manual is put aside' \
		nothing_there "$scratch/root/usr/share/man/man1/mailq.1.gz"
	want 'the old sendmail is put aside' cmp "$scratch/old" \
		"$scratch/root/usr/sbin/sendmail.before-qscheduler"
	want 'uninstall-mta' mta uninstall-mta
	want 'the old sendmail is back' cmp "$scratch/old" \
		"$scratch/root/usr/sbin/sendmail"
	want 'the old manual is back' \
		grep -q page "$scratch/root/usr/share/man/man1/mailq.1.gz"
	want 'our manual is gone' \
		nothing_there "$scratch/root/usr/share/man/man1/mailq.1"
	: >"$scratch/root/usr/bin/mailq.before-qscheduler"
	: >"$scratch/root/usr/bin/mailq"
	want 'a name that cannot be put aside' refused mta install-mta
	want 'nothing is changed then' cmp "$scratch/old" \
		"$scratch/root/usr/sbin/sendmail"
	rm "$scratch/root/usr/bin/mailq" \
		"$scratch/root/usr/bin/mailq.before-qscheduler"
	: >"$scratch/root/usr/share/man/man1/sendmail.1.before-qscheduler"
	: >"$scratch/root/usr/share/man/man1/sendmail.1"
	want 'a manual that cannot be put aside' refused mta install-mta
	want 'nothing is changed then, either' cmp "$scratch/old" \
		"$scratch/root/usr/sbin/sendmail"
	rm "$scratch/root/usr/share/man/man1/sendmail.1" \
		"$scratch/root/usr/share/man/man1/sendmail.1.before-qscheduler"
	want 'install-mta, before uninstall' mta install-mta
else
	echo 'SKIP install-mta: no dpkg-divert'
fi
want uninstalls make uninstall DESTDIR="$scratch/root" prefix=/opt/q
want 'the old sendmail is back, by uninstall' \
	cmp "$scratch/old" "$scratch/root/usr/sbin/sendmail"
rm -rf "$scratch/root/var" "$scratch/root/usr/sbin/sendmail" \
	"$scratch/root/usr/share/man/man1/mailq.1.gz"
want 'leaves nothing' nothing_left
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
