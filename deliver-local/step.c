#include "deliver-local/child.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "config/conf.h"

#define SWEEP_ONE_IN 16 /* deliveries look for old files in tmp */
#define LOCK_LIMIT                                                \
	(30 * USEC_PER_SEC) /* where deliveries may take any time \
			     */

/* ---- privileges ---- */

bool
child_is_system(const struct child_plan *plan, uid_t uid)
{
	const struct daemon_users *users = &plan->users;

	return uid == 0 || uid == users->qmailq || uid == users->qmails ||
	    uid == users->qmailr;
}

/* A child ends with its parent, since the next agent does again what the child
 * would still do. A child that runs a program gets SIGTERM, to end the program
 * first. The kernel forgets both settings when ids change, so this comes after.
 */
void
child_bind(const struct child_plan *plan)
{
	if (plan->parent == 0)
		return;
	/* The memory that was copied holds mail of others. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)prctl(PR_SET_PDEATHSIG, plan->runs_program ? SIGTERM : SIGKILL);
	if (getppid() != plan->parent)
		_exit(EXIT_TEMPORARY);
}

void
child_name_account(struct child_plan *plan)
{
	const char *name = plan->maildir_user, *why;
	struct mailbox mailbox = { 0 };

	plan->asks[0] = '\0';
	if (plan->private || plan->delivery->kind != AGENT_LOCAL)
		return;
	if (name[0] == '\0' &&
	    mailbox_parse(plan->recipient, &mailbox, &why) == 0)
		name = mailbox.user;
	if (strlen(name) < sizeof(plan->asks))
		memcpy(plan->asks, name, strlen(name) + 1);
}

int
child_find_account(const struct child_plan *plan, const char *name,
    struct account *ret_account)
{
	if (plan->asks[0] == '\0' || strcmp(plan->asks, name) != 0)
		return account_find(name, ret_account);
	if (plan->account != NULL)
		*ret_account = *plan->account;
	return plan->asked;
}

/* From here on the kernel says what may be done; in a private instance it did
 * so from the start. */
bool
child_become(const struct child_plan *plan, const struct account *account,
    struct verdict *v)
{
	const bool again = plan->stay != NULL && plan->stay->again;
	int r = 0;

	if (!plan->private && !again)
		r = account_become(account);
	else if (!plan->private && plan->stay->uid != account->uid)
		r = -EPERM;
	if (r < 0) {
		verdict_error(v, r, "become the recipient");
		return false;
	}
	if (plan->stay != NULL)
		plan->stay->uid = account->uid;
	if (!again)
		child_bind(plan);
	return true;
}

bool
child_become_owner(const struct child_plan *plan, struct verdict *v)
{
	const struct daemon_users *users = &plan->users;
	int r =
	    plan->private ? 0 : account_become_ids(users->qmails, users->qmail);

	if (r < 0) {
		verdict_error(v, r, "become the owner of the queue");
		return false;
	}
	child_bind(plan);
	return true;
}

/* The user that the configuration names for this transport. */
bool
child_service_user(const struct child_plan *plan, const char *name,
    struct account *ret_account, struct verdict *v)
{
	int r;

	if (plan->private) {
		account_own(ret_account);
		return true;
	}
	r = child_find_account(plan, name, ret_account);
	if (r < 0) {
		verdict_error(v, r, "look up the user of the transport");
		return false;
	}
	if (r == 0 || child_is_system(plan, ret_account->uid)) {
		verdict_set(v, AGENT_DEFERRED, "4.3.5",
		    r == 0 ? "user %s of this transport does not exist"
			   : "user %s of this transport must not get mail",
		    name);
		return false;
	}
	return true;
}

/* ---- the message ---- */

bool
child_no_loop(const struct message *m, struct verdict *v)
{
	int r = message_find_loop(m);

	if (r < 0)
		verdict_error(v, r, "read the message");
	else if (r != MESSAGE_NO_LOOP)
		verdict_set(v, AGENT_FAILED, "5.4.6",
		    "mail forwarding loop for %s", m->recipient);
	return r == MESSAGE_NO_LOOP;
}

int
child_beat(void *arg)
{
	static const unsigned char octet = VERDICT_PROGRESS;
	struct pulse *p = arg;
	usec_t now = clock_mono();

	if (now - p->last > p->limit)
		return -ETIMEDOUT;
	p->last = now;
	if (now - p->told > p->limit / PULSE_PARTS &&
	    write(CHILD_RESULT_FD, &octet, 1) == 1)
		p->told = now;
	return 0;
}

struct pulse
child_pulse(const struct child_plan *plan)
{
	return (struct pulse){ .limit = plan->maildir_time_limit,
		.last = plan->started_at,
		.told = plan->started_at };
}

usec_t
child_lock_limit(const struct child_plan *plan)
{
	return plan->maildir_time_limit > 0 ? plan->maildir_time_limit / 2
					    : LOCK_LIMIT;
}

static struct put
put_of(const struct child_plan *plan, const char *path, uint64_t size_limit,
    struct pulse *pulse)
{
	*pulse = child_pulse(plan);
	return (struct put){ .sys = &spool_sys_real,
		.progress = plan->maildir_time_limit > 0 ? child_beat : NULL,
		.arg = pulse,
		.path = path,
		.room = { .reserve = plan->reserve, .size_limit = size_limit },
		.host = plan->host,
		.delivery = plan->number,
		.pid = plan->self,
		.lock_limit = child_lock_limit(plan) };
}

/* Only where there are unnamed files is new/ all that the next one needs. */
static void
note_path(struct stay *stay, const char *path, bool unnamed)
{
	const size_t size = strlen(path) + 1;

	if (stay == NULL)
		return;
	stay->path[0] = '\0';
	if (unnamed && size <= sizeof(stay->path))
		memcpy(stay->path, path, size);
}

/* A full mailbox concerns its recipient, a full file system all of them
 * (RFC 3463: X.2.2, X.3.1). */
static void
put_failed(struct verdict *v, int error, const char *kind, const struct put *p)
{
	struct buf what = { 0 };

	if (p->room.text[0] != '\0') {
		verdict_set(v, AGENT_DEFERRED,
		    error == -EFBIG ? "4.2.2" : "4.3.1", "%s %s: %s", kind,
		    p->path, p->room.text);
		return;
	}
	(void)buf_printf(&what, "%s %s: %s", kind, p->path, p->step);
	verdict_error(v, error, buf_str(&what));
	buf_done(&what);
}

void
child_put_maildir(const struct child_plan *plan, const char *path,
    uint64_t size_limit, struct message *m, struct verdict *v)
{
	struct pulse pulse;
	struct put md = put_of(plan, path, size_limit, &pulse);
	int r;

	md.whole = plan->stay != NULL && plan->stay->again &&
	    strcmp(plan->stay->path, path) == 0;
	md.sweep = plan->number % SWEEP_ONE_IN == 0;
	r = maildir_deliver(&md, m);
	if (r < 0) {
		put_failed(v, r, "maildir", &md);
		return;
	}
	verdict_set(v, AGENT_SENT, "2.0.0", "delivered to maildir");
	note_path(plan->stay, path, md.unnamed);
}

void
child_put_mbox(const struct child_plan *plan, const char *path, bool own,
    gid_t spool_group, struct message *m, struct verdict *v)
{
	struct pulse pulse;
	struct put b = put_of(plan, path, plan->mailbox_size_limit, &pulse);
	int r;

	b.own = own;
	b.spool_group = spool_group;
	r = mbox_deliver(&b, m);
	if (r < 0)
		put_failed(v, r, "mailbox", &b);
	else
		verdict_set(
		    v, AGENT_SENT, "2.0.0", "delivered to mailbox %s", path);
}
