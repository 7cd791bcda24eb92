#!/bin/sh
# make check-host: the package of `make deb` in the place of Postfix, in a bare
# Debian, as README says it, for the programs that send mail on a host: cron,
# mail, mutt, s-nail, PHP, git, swaks, logwatch, a program that mail is piped to,
# a list; to a smarthost that refuses addresses without a domain; then removal, after which all is as it was. Needs root, the network of
# apt, and a bare root in DEB_ROOT, or debootstrap; V=1 shows each step.
# shellcheck disable=SC2317 # steps are called by want
cd "$(dirname "$0")/.." || exit 1
test=host
shared=$PWD/tests/bare-root.sh
[ "${1-}" != --inside ] || shared=/packages/bare-root.sh
# shellcheck source=tests/bare-root.sh
. "$shared"

outside() {
	scratch=$(mktemp -d /var/tmp/host.XXXXXX) || exit 1
	trap 'rm -rf "$scratch"' EXIT
	root=$scratch/root
	deb=$(package) || exit 1
	prepare_root 'a host with its mail programs'
	cp etc/system-mta etc/man/qscheduler-log.5 tests/system/smtp_sink.py \
	    tests/system/queue_exporter.py tests/host/symfony.php "$root/packages"
	enter
	finish
}

# ---- inside: what stood there before --------------------------------------

members=2000

# Postfix, and all that calls sendmail. cron's and runit's own services are not
# started: there is no init in here.
programs() {
	printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
	chmod 755 /usr/sbin/policy-rc.d
	dependencies postfix cron bsd-mailx mutt s-nail php-cli php-symfony-mailer git-email libmailtools-perl swaks \
	    logwatch runit python3-aiosmtpd pflogsumm monitoring-plugins-standard
}
owner_is() { # FILE PACKAGE
	same "$(dpkg -S "$1" | cut -d : -f 1)" "$2"
}
stood_before() {
	want 'sendmail is of Postfix' owner_is /usr/sbin/sendmail postfix
	sha256sum /usr/sbin/sendmail /usr/bin/mailq >/packages/sums
	# Its first start makes its directories; when it is stopped, the message
	# stays in its maildrop.
	want 'a message that Postfix has not delivered' sh -c \
		'postfix start && postfix stop && echo left-text | timeout 60 sendmail bob'
	files >/packages/before
}

# ---- installed and started, as README says --------------------------------

# A server that keeps mail in the directory, until descriptor 4 is closed. Its
# port is in DIRECTORY.port.
sink() { # DIRECTORY OPTIONS OF smtp_sink.py...
	dir=$1
	mkdir "$dir"
	[ -p /packages/stop ] || mkfifo /packages/stop
	python3 /packages/smtp_sink.py "$@" \
	    </packages/stop >"$dir.port" 2>>"$log" 4>&- &
	exec 4>/packages/stop
	until_true test -s "$dir.port"
}
route() { # RULE
	echo "$1" >>/etc/qscheduler/routing
}
taken_into_place() {
	want 'the package, in the place of Postfix' sh -c \
		'exec >/packages/said 2>&1; . /packages/bare-root.sh
		apt install /packages/qscheduler.deb'
	want 'the message in the queue of Postfix is named' grep -F \
		'that wait in the queue of Postfix, /var/spool/postfix: 1.' /packages/said
	want 'Postfix is gone' refused test -e /usr/sbin/postfix
	want 'sendmail is ours' owner_is /usr/sbin/sendmail qscheduler
	want 'a server of SMTP for the list' sink /packages/sink
	route "list.test  smtp:127.0.0.1:$(cat /packages/sink.port)"
	want 'a smarthost that refuses addresses without a domain' \
		sink /packages/strict --strict
	route "strict.test  smtp:127.0.0.1:$(cat /packages/strict.port)"
	route 'away.test  pipe:vacation'
	echo "vacation alice /usr/sbin/sendmail -i -f <> -- bob" \
		>>/etc/qscheduler/programs
	list_members >/etc/members
	printf '%s\n' 'root: bob' 'members: :include:/etc/members' \
		'owner-members: alice' >>/etc/aliases
	want 'the configuration is right' qscheduler --check
	want 'the service, by runit' start_service
	ln -sf "$service/log/main/current" "$log.service"
	log=$log.service
}

# ---- programs that send ---------------------------------------------------

# What arrived with this text is from this user of this host, and has LF alone.
from() { # USER TO TEXT
	delivered "$2" "$3" || return
	file=$(grep -rl "$3" "/home/$2/Maildir/new" | head -n 1)
	if ! grep -q "^From: .*$1@host.example.test" "$file" ||
	    grep -q "$(printf '\r')" "$file"; then
		cat -A "$file"
		return 1
	fi
}
a_patch() {
	as alice 'cd && git init -q work && cd work &&
	    git config user.email alice@host.example.test &&
	    git config user.name Alice && echo x >f && git add f &&
	    git commit -q -m "git-text: a change"'
}
programs_send() {
	want 'mail (bsd-mailx)' as alice 'echo mailx-text | mail -s s bob'
	want 'it is there' from alice bob mailx-text
	want 's-nail' as alice 'echo snail-text | s-nail -s s bob'
	want 'it is there' from alice bob snail-text
	want 'mutt, with a blind copy' as alice \
		'echo mutt-text | mutt -s s -b root-copy@list.test -- bob'
	want 'it is there' from alice bob mutt-text
	want 'nobody sees the blind copy' refused \
		grep -rqs root-copy /home/bob/Maildir/new
	want 'PHP, mail()' as alice "php -r 'exit(mail(\"bob\", \"s\",
	    \"php-text\nsecond\n\", \"X-A: b\r\nX-C: d\") ? 0 : 1);'"
	want 'it is there' from alice bob php-text
	want 'a repository' a_patch
	want 'git send-email' as alice 'cd ~/work && git send-email --quiet \
	    --to=bob@host.example.test --confirm=never -1'
	want 'it is there' from alice bob git-text
	want 'logwatch' sh -c \
		'logwatch --service dpkg --range all \
		--output mail --mailto root --format text'
	want 'it is there' delivered bob '^Subject: Logwatch for host'
	want 'a program that mail is piped to answers' as bob \
		'echo answer-text | sendmail someone@away.test'
	want 'it is there' delivered bob '^answer-text'
	want 'swaks, which speaks SMTP to sendmail -bs' as alice \
		'swaks --pipe "sendmail -bs" --from alice --to bob --body swaks-text'
	want 'it is there' delivered bob '^swaks-text'
}

# ---- a smarthost that refuses addresses without a domain ------------------

# It took a message with this text.
taken() { # TEXT
	until_true grep -rqs --include='*.eml' "$1" /packages/strict || {
		tail -20 "$log"
		return 1
	}
}
# What it took for these recipients, a line "SENDER RECIPIENT" for each.
senders_of() { # REGULAR EXPRESSION
	python3 -c 'import glob, json, re, sys
for path in sorted(glob.glob("/packages/strict/*.env")):
    envelope = json.load(open(path))
    for to in envelope["to"]:
        if re.match(sys.argv[1], to):
            print(envelope["from"], to)' "$1" | sort
}
# Message and envelope as qmail-inject of notqmail hands them to qmail-queue, run
# with QMAILINJECT=r by a list.
verp() {
	printf '%s\n' 'From: list@host.example.test' 'To: all@host.example.test' \
	    'Subject: s' '' 'verp-text' >/packages/verp.eml &&
	    printf 'F%s\0Tann@strict.test\0Tbob@strict.test\0\0' \
		'list-@host.example.test-@[]' >/packages/verp.envelope &&
	    /usr/libexec/qscheduler/qmail-queue \
		</packages/verp.eml 1</packages/verp.envelope
}
verp_senders() {
	same "$(senders_of '(ann|bob)@')" \
	    'list-ann=strict.test@host.example.test ann@strict.test
list-bob=strict.test@host.example.test bob@strict.test'
}
blind_sender() {
	same "$(senders_of symfony-blind@)" \
	    'app@host.example.test symfony-blind@strict.test'
}
strict_smarthost() {
	want 'queue-inject, which changes nothing: it is refused' sh -c \
		'printf "From: root\nTo: control\n\nx\n" |
		queue-inject control@strict.test'
	want 'by the smarthost' until_true logged \
		'to=<control@strict.test>,.* status=bounced .*554 5.6.0 an address of From'
	want 'mutt, with a copy to a user of this host' as alice \
		'echo mutt-strict | mutt -s s -c bob -- x@strict.test'
	want 'it is taken' taken '^mutt-strict'
	want 'PHP, mail(), without a domain in From and Cc' as alice "php -r '
	    exit(mail(\"x@strict.test\", \"s\", \"php-strict\",
	    \"From: alice\r\nCc: bob\") ? 0 : 1);'"
	want 'it is taken' taken '^php-strict'
	want 'git send-email' as alice 'cd ~/work && git send-email --quiet \
	    --to=x@strict.test --confirm=never -1'
	want 'it is taken' taken '^Subject: .*git-text'
	want "Symfony's mailer, by sendmail -bs" as alice 'php /packages/symfony.php'
	want 'it is taken' taken '^symfony-text'
	want 'whole' taken '^the last line'
	want 'its blind copy as well' until_true blind_sender
	want 'nobody sees the blind copy' refused grep -rqs --include='*.eml' \
		symfony-blind@ /packages/strict
	want 'qmail-queue, with a sender for each recipient (VERP)' verp
	want 'each has it from its sender' until_true verp_senders
}

# ---- programs that read lists and logs ------------------------------------

# The log of the service as syslog would have it.
whole_log() {
	cat "$service"/log/main/@* "$service"/log/main/current 2>/dev/null |
	    sed 's/^[^ ]* //'
}
summary() {
	programs=$(sed -n "s/.*--syslog-name='\([^']*\)'.*/\1/p" /packages/qscheduler-log.5 |
	    sed 's/\\e/\\/g')
	whole_log >/packages/plain
	sed 's/^\([^:]*\): /Nov 22 09:00:00 host \1[77]: /' /packages/plain |
	    pflogsumm --syslog-name="$programs" >/packages/summary
}
sums_are_right() {
	summary || return
	for row in 'received /pickup: [0-9A-F]*: uid=' 'delivered status=sent' \
	    'bounced status=bounced'; do
		word=${row%% *}
		counted=$(grep -c -e "${row#* }" /packages/plain)
		got=$(sed -n "s/^ *\([0-9]*\)   $word.*/\1/p" /packages/summary | head -n 1)
		echo "$word: $got of $counted"
		[ "$got" = "$counted" ] || return
	done
}
waiting() {
	mailq | grep -c '^[0-9A-F]'
}
deletes_by_sender() {
	echo x | sendmail -f flood@host.example.test y@far.test &&
	    until_true mailq_shows y@far.test && before=$(waiting) &&
	    mailq | tail -n +2 | grep -v '^ *(' |
		awk 'BEGIN { RS = "" } $7 == "flood@host.example.test" { print $1 }' |
		tr -d '*!' | postsuper -d - &&
	    same "$(waiting)" "$((before - 1))" && refused mailq_shows y@far.test
}
existing_programs() {
	want 'check_mailq of the monitoring plugins: below its threshold' exits 0 \
		/usr/lib/nagios/plugins/check_mailq -M postfix -w 1000 -c 2000
	want 'and above it' exits 2 \
		/usr/lib/nagios/plugins/check_mailq -M postfix -w 0 -c 1
	want 'an exporter that reads postqueue -j' sh -c \
		'python3 /packages/queue_exporter.py | grep "^mailqueue_messages{queue=.deferred.} [1-9]"'
	want 'mailq through awk into postsuper -d -' deletes_by_sender
	want 'the sums of pflogsumm are those of the log' sums_are_right
}

# ---- cron, root, lists, mailq ---------------------------------------------

crontabs() {
	echo '* * * * * echo cron-text' | crontab -u bob - &&
	    echo '* * * * * echo root-cron-text' | crontab -u root - &&
	    printf '%s\n' MAILTO=x@strict.test '* * * * * echo cron-strict' |
		crontab -u alice - &&
	    cron
}
list_members() {
	seq -f 'm%04g@list.test' "$members"
}
# Of what the server took from this sender, the recipients.
got_from() { # SENDER
	python3 -c 'import glob, json, sys
for path in glob.glob("/packages/sink/*.env"):
    envelope = json.load(open(path))
    if envelope["from"] == sys.argv[1]:
        print("\n".join(envelope["to"]))' "$1" | sort >/packages/got
	list_members | cmp - /packages/got
}
blind_copies() {
	{
		echo 'To: the members <bob>'
		list_members | sed 's/.*/Bcc: &/'
		printf 'Subject: s\n\nlist-text\n'
	} | as alice '/usr/sbin/sendmail -f blind -t'
}
mailq_shows() { # TEXT
	mailq >/packages/mailq && grep -q "$1" /packages/mailq
}
cron_and_list() {
	want 'cron' crontabs
	want 'a message to a list of 2000 members, by an alias' \
		as alice 'echo to-members-text | mail -s s members'
	want "each has it once, from the list's owner" \
		until_true got_from owner-members@host.example.test
	want '2000 blind copies' blind_copies
	want 'each has it once' until_true got_from blind@host.example.test
	want 'no member is named in it' refused \
		grep -rq 'm0001@' /packages/sink --include='*.eml'
	want 'mail that waits' sh -c 'echo waits-text | sendmail x@far.test'
	want 'mailq shows it' until_true mailq_shows x@far.test
	existing_programs
	want 'newaliases' newaliases
	want 'a restart' sv -w 60 restart "$service"
	want 'it is ready' ready
	want 'mail after it' as alice 'echo later-text | sendmail bob'
	want 'it is there' from alice bob later-text
	patience=600
	want "cron's mail for a user" delivered bob '^cron-text'
	want "it is cron's" grep -rqs '^From: root@host.example.test (Cron Daemon)' /home/bob/Maildir/new
	want "cron's mail for root reaches root's alias" \
		delivered bob '^root-cron-text'
	want "cron's mail to a MAILTO, by the strict smarthost" taken '^cron-strict'
	patience=150
}

# ---- and back -------------------------------------------------------------

postfix_delivers() {
	postfix start && echo postfix-text | sendmail bob &&
	    until_true grep -qs postfix-text /var/mail/bob &&
	    until_true grep -qs left-text /var/mail/bob && postfix stop
}
removed() {
	crontab -u bob -r
	crontab -u root -r
	crontab -u alice -r
	kill "$(cat /run/crond.pid)"
	exec 4>&-
	want 'stops' sv -w 60 force-shutdown "$service"
	rm -r "$service" /etc/sv/qscheduler
	want 'Postfix again' apt install postfix
	want 'sendmail and mailq are what they were' \
		sha256sum --quiet -c /packages/sums
	want 'it delivers, and what it had left' postfix_delivers
	want 'purges' apt purge qscheduler
	want 'no program of ours is left' refused sh -c \
		'find / -xdev -path /packages -prune -o -name "*qscheduler*" \
		! -path "/var/*" -print | grep .'
	want 'mail that waits is left' grep -rqs waits-text "$base"
}
diverted() {
	want 'our faces beside Postfix, by dpkg-divert' sh -c \
		'mkdir -p /opt/q && ln -s /bin/echo /opt/q/sendmail &&
		ln -s /bin/echo /opt/q/mailq && ln -s /bin/echo /opt/q/newaliases &&
		sh /packages/system-mta install /opt/q'
	want 'sendmail is ours' same "$(sendmail -t)" -t
	want 'an upgrade of Postfix does not touch it' \
		apt install --reinstall postfix
	want 'sendmail is ours' same "$(sendmail -t)" -t
	want 'and back' sh /packages/system-mta remove /opt/q
	want 'sendmail is what it was' sha256sum --quiet -c /packages/sums
	want 'no diversion is left' refused sh -c \
		'dpkg-divert --list | grep qscheduler'
}
inside() {
	scratch=/packages
	if ! programs >/packages/out 2>&1; then
		tail -3 /packages/out
		skip 'a host with its mail programs' \
			'apt cannot fetch what it needs'
		finish
	fi
	useradd -m alice
	useradd -m bob
	touch "$log"
	stood_before
	taken_into_place
	programs_send
	strict_smarthost
	cron_and_list
	removed
	diverted
	finish
}

case ${1-} in
--inside) inside ;;
*) outside ;;
esac
