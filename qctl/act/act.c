/* The process that acts on the messages of one queue. */
#include "qctl/act/actor.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/text.h"
#include "log/log.h"
#include "qctl/read/message.h"
#include "spool/hold_rule.h"
#include "spool/prepared.h"
#include "spool/reason.h"

#define LOCK_NAME "queue-send"
#define NAMED_MAX 20 /* refused messages of a queue */

/* ---- the user of the queue ---- */

/* Files that are made belong to the user of the queue, who could not write to
 * those of root. */
static int
become_owner(const struct spool *sp)
{
	const uid_t uid = sp->owner[SPOOL_LOCK];

	if (geteuid() != 0 || uid == 0)
		return 0;
	if (setgroups(1, &sp->group) < 0 ||
	    setresgid(sp->group, sp->group, sp->group) < 0 ||
	    setresuid(uid, uid, uid) < 0)
		return -errno;
	return 0;
}

static bool
owns_queue(const struct spool *sp)
{
	return geteuid() == 0 || geteuid() == sp->owner[SPOOL_LOCK];
}

/* ---- requeue --failed ---- */

/* On hold first, where nothing is done with it; what dies in between leaves it
 * there. */
static int
requeue_failed(struct actor *a)
{
	size_t i;
	int r;

	/* To a file of another user queue-send could add no reason. */
	if (!owns_queue(&a->sp))
		return -EPERM;
	for (i = 0; i < a->count; i++)
		if (a->works[i].target->dir == SPOOL_HOLD)
			a->works[i].error = 0;
	r = actor_do(a, ACT_HOLD);
	if (r < 0)
		return r;
	actor_await(a, ACT_HOLD);
	r = become_owner(&a->sp);
	if (r < 0)
		return r;
	for (i = 0; i < a->count; i++) {
		struct work *k = &a->works[i];

		worker_step(a->w);
		if (k->error != 0)
			continue;
		k->error = k->waits ? -EINPROGRESS : 0;
		if (!k->waits)
			k->error = requeue_forget(&a->sp, &k->target->id);
		if (k->error == 0)
			k->error = 1; /* to be released */
	}
	return actor_do(a, ACT_RELEASE);
}

/* ---- the lock of a queue that does not run ---- */

/* Of a file that cannot be read, rules may be in force again later. */
static bool
has_rules(const char *base)
{
	struct hold_rules rules = { 0 };
	const bool any = hold_rules_read(&spool_sys_real, base, &rules) < 0 ||
	    rules.count > 0;

	hold_rules_done(&rules);
	return any;
}

static int
go_offline(struct actor *a)
{
	int r = become_owner(&a->sp);

	if (r < 0)
		return r;
	a->lock = spool_lock(&a->sp, LOCK_NAME, false);
	if (a->lock == -EAGAIN)
		return -EBUSY; /* queue-send runs, and has no socket */
	a->offline = true;
	a->ruled = has_rules(a->t->base);
	return a->lock < 0 ? a->lock : 0;
}

/* There is no queue-send to do that. */
static void
log_offline(const struct actor *a, uid_t uid)
{
	log_open("qctl", LOG_TARGET_SYSLOG, LOG_FORMAT_TEXT, LOG_INFO_L);
	log_info("queue %u: operator uid=%u: %s %llu message%s, %llu not (%s)",
	    a->sp.queue, (unsigned)uid, act_name(a->t->options.act),
	    (unsigned long long)a->tally.done, text_plural(a->tally.done),
	    (unsigned long long)a->tally.refused, buf_str(&a->t->selection));
}

/* ---- all of a queue ---- */

static int
fill_works(struct actor *a)
{
	const struct task *t = a->t;
	size_t i;

	a->works = calloc(t->ntargets + 1, sizeof(*a->works));
	if (a->works == NULL)
		return -ENOMEM;
	for (i = 0; i < t->ntargets; i++)
		if (t->targets[i].queue == a->w->queue)
			a->works[a->count++] =
			    (struct work){ .target = &t->targets[i],
				    .error = 1 };
	for (i = 0; i < a->count; i++)
		a->works[i].due_wall = pace_due(t, i, a->count);
	return 0;
}

struct error_text {
	int error;
	const char *text;
};

static const struct error_text of_message[] = {
	{ -EINVAL, "is not where this can be done" },
	{ -EAGAIN,
	    "is about to move, or an order about it waits for the disk: try "
	    "again" },
	{ -ESRCH, "the rule is not in force any more" },
	{ -ERANGE, "would be due after maximal_backoff_time" },
	{ -EBADMSG,
	    "is too damaged to be delivered: `qctl show --content' "
	    "prints what can be read of it" },
	{ -EPERM,
	    "its owner or mode is not that of a queue file: `qctl show "
	    "--content' prints it" },
	{ -EXDEV, "the other queue is on another file system" },
	{ -ESHUTDOWN, "the other queue is closed" },
	{ -ESTALE, "the directory of the other queue is gone" },
	{ -EINPROGRESS,
	    "is being delivered now; it will be held when that attempt ends: "
	    "run the command again then" },
	{ -EBUSY,
	    "the mail of this queue goes to other queues, or it stops: try "
	    "again" },
	{ -EMEDIUMTYPE,
	    "the other queue has another layout, or a directory is missing" },
};

static const struct error_text of_queue[] = {
	{ -EBUSY, "queue-send has it and cannot be asked: nothing is done" },
	{ -ETIMEDOUT,
	    "it was asked, and has not answered: the order may still be "
	    "carried out when its disk answers" },
	{ -EUSERS,
	    "too many operators are connected: nothing is done, try again" },
	{ -ETIME,
	    "queue-send gave this connection's place to another operator: "
	    "run the command again" },
	{ -EPIPE, "queue-send ended the connection: run the command again" },
};

static const char *
text_in(const struct error_text *texts, size_t count, int error)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (texts[i].error == error)
			return texts[i].text;
	return spool_error(error);
}

/* A message that waited has begun to be delivered, or is gone: it does not wait
 * any more. */
static void
pass_over_begun(struct actor *a)
{
	size_t i;

	for (i = 0; i < a->count; i++)
		if (a->works[i].error == -ENOENT ||
		    a->works[i].error == -EINVAL)
			a->works[i].error = -ENODATA;
}

/* A message that is not in this queue any more: the command looks for it
 * (seek.c). */
static bool
has_gone(const struct work *k)
{
	return k->error == -ENOENT;
}

/* Did a damaged file that was undeleted go back to corrupt/? */
static bool
is_damaged(const struct actor *a, const struct work *k)
{
	struct stat st;

	return a->t->options.act == ACT_UNDELETE && k->error == 0 &&
	    a->sp.dir[SPOOL_CORRUPT] >= 0 &&
	    spool_stat(&a->sp, SPOOL_CORRUPT, k->target->id.inode, &st) == 0;
}

static void
count(struct actor *a, const struct work *k)
{
	a->tally.later += k->error == 0 && k->later;
	a->tally.done += k->error == 0 && !k->later;
	a->tally.gone += k->error == -ENODATA;
	a->tally.refused +=
	    k->error < 0 && k->error != -ENODATA && !has_gone(k);
	a->tally.unknown += k->error > 0;
	a->tally.marked += k->error == 0 && k->target->dir == SPOOL_HOLD &&
	    a->t->options.act == ACT_EXPIRE;
	a->tally.damaged += is_damaged(a, k);
}

/* The first that were refused are named, the others are counted. */
static void
tell(struct actor *a)
{
	char id[QUEUE_ID_SIZE];
	uint64_t named = 0;
	size_t i;

	for (i = 0; i < a->count; i++) {
		const struct work *k = &a->works[i];

		count(a, k);
		if (has_gone(k))
			worker_row(a->w, k->target, sizeof(*k->target));
		if (k->error >= 0 || k->error == -ENODATA || has_gone(k) ||
		    ++named > NAMED_MAX)
			continue;
		queue_id_format(&k->target->id, id);
		worker_note(a->w, "%s: %s", id,
		    text_in(of_message, ARRAY_LEN(of_message), k->error));
	}
	if (named > NAMED_MAX)
		worker_note(a->w, "%llu more message%s could not be %s",
		    (unsigned long long)(named - NAMED_MAX),
		    text_plural(named - NAMED_MAX),
		    act_past(a->t->options.act));
	worker_row(a->w, &a->tally, sizeof(a->tally));
}

static int
flush(struct actor *a)
{
	const struct msg all = { .type = MSG_ACT,
		.u.ACT = { .serial = 1, .act = ACT_RETRY } };
	uint32_t running = 0;
	int error = 0, r = peer_act(&a->peer, &all);

	if (r == 0)
		r = peer_answer(&a->peer, &error, &running);
	a->tally.done = running;
	return r < 0 ? r : error;
}

/* The same where no queue-send runs. */
static int
make_due(struct message *m, void *arg)
{
	struct actor *a = arg;
	enum spool_dir to;
	int r = act_move(
	    &a->sp, ACT_RETRY, m->dir, m->inode, m->fd, clock_wall(), &to);

	a->tally.done += r == 0;
	a->tally.refused += r < 0;
	return r == -ENOENT ? 0 : r;
}

static void
tell_trouble(const char *what, int error, void *arg)
{
	worker_note(((struct actor *)arg)->w, "%s: %s", what, strerror(-error));
}

static void
take_step(void *arg)
{
	worker_step(((struct actor *)arg)->w);
}

static int
flush_offline(struct actor *a)
{
	const struct message_walk walk = {
		.states = 1u << SPOOL_DEFERRED,
		.each = make_due,
		.trouble = tell_trouble,
		.step = take_step,
		.arg = a,
	};

	return message_walk(&a->sp, &walk);
}

/* The words of the command for the log of queue-send. Said before a wait, in
 * which the place may go to another operator; a second time there is nothing
 * left to log. */
static void
say_end(struct actor *a)
{
	if (!a->offline && a->peer.fd >= 0)
		(void)peer_end(
		    &a->peer, a->t->options.act, buf_str(&a->t->selection));
}

/* A connection that was refused has done nothing. */
static bool
is_to_be_told(const struct actor *a, int r)
{
	return r == 0 ||
	    (r != -EPERM && r != -EUSERS && !task_is_flush(a->t) &&
		!a->t->options.failed);
}

static int
act(struct actor *a)
{
	const struct options *o = &a->t->options;
	const uid_t uid = a->uid = getuid();
	int r = peer_connect(&a->peer, &a->sp, a->t->silence_limit);

	if (r == -ENOENT || r == -ECONNREFUSED)
		r = go_offline(a);
	if (r < 0)
		return r;
	say_end(a); /* queue-send has the words if the command is killed */
	if (o->act == ACT_SPREAD) {
		r = actor_do(a, ACT_SPREAD);
		if (r != -EPERM)
			actor_tell_came(a);
		pass_over_begun(a);
	} else if (task_is_flush(a->t))
		r = a->offline ? flush_offline(a) : flush(a);
	else if (o->failed)
		r = requeue_failed(a);
	else {
		r = actor_do(a, o->act);
		say_end(a);
		if (r == 0)
			actor_await(a, o->act);
	}
	/* Answers that came before the connection ended are told. */
	if (is_to_be_told(a, r))
		tell(a);
	if (r < 0)
		return r;
	if (a->offline)
		log_offline(a, uid);
	else
		say_end(a);
	return 0;
}

static void
complain(struct worker *w, int error)
{
	if (error == -EPERM || error == -EACCES)
		worker_denied(w);
	else
		worker_note(
		    w, "%s", text_in(of_queue, ARRAY_LEN(of_queue), error));
}

int
task_act(struct worker *w, void *task)
{
	struct actor a = {
		.w = w, .t = task, .peer = { .fd = -1 }, .lock = -1
	};
	int r = spool_open(&a.sp, &spool_sys_real, a.t->base, w->queue);

	if (r == 0)
		r = fill_works(&a);
	if (r == 0)
		r = act(&a);
	if (r < 0)
		complain(w, r);
	peer_close(&a.peer);
	io_close(&a.lock);
	if (a.to_open)
		spool_close(&a.to);
	spool_close(&a.sp);
	free(a.works);
	return 0;
}

/* ---- the right to act ---- */

/* Of a queue that does not run its owner has the lock. */
static int
ask_right(const struct spool *sp, usec_t limit)
{
	struct peer peer = { .fd = -1 };
	int r = peer_connect(&peer, sp, limit);

	if (r == -ENOENT || r == -ECONNREFUSED)
		r = owns_queue(sp) ? 0 : -EPERM;
	else if (r == 0)
		r = peer_ask(&peer,
		    &(struct msg){
			.type = MSG_RULES_READ, .u.RULES_READ.serial = 1 });
	peer_close(&peer);
	return r;
}

int
task_ask_right(struct worker *w, void *arg)
{
	const struct task *t = arg;
	struct spool sp;
	int r = spool_open(&sp, &spool_sys_real, t->base, w->queue);

	if (r == 0)
		r = ask_right(&sp, t->silence_limit);
	if (r == -EPERM || r == -EACCES)
		worker_denied(w);
	spool_close(&sp);
	return 0;
}
