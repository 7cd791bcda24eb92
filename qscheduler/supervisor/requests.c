#include "qscheduler/supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "log/log.h"

/* ---- common to requests ---- */

/* A request that is being handled. The handler returns 0 or -errno, with words
 * for the process that asked. */
struct request {
	struct super *s;
	usec_t now;
	struct queue *queue;
	char *answer;          /* [SCHED_ANSWER_SIZE] */
	struct msg_str reason; /* for the log, clean */
	const struct ask_source *from;
	struct asker asker;
	bool judge; /* only: nothing is to change */
};

static int
    PRINTF(3, 4) answer(const struct request *r, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(r->answer, SCHED_ANSWER_SIZE, fmt, ap);
	va_end(ap);
	return code;
}

/* Append; what does not fit is cut. */
static void PRINTF(2, 3) add(const struct request *r, const char *fmt, ...)
{
	const size_t len = strlen(r->answer);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(r->answer + len, SCHED_ANSWER_SIZE - len, fmt, ap);
	va_end(ap);
}

static void
add_time(const struct request *r, uint32_t seconds)
{
	struct buf text = { 0 };

	if (seconds == 0)
		add(r, " for ever");
	else if (num_add_duration(&text, seconds * USEC_PER_SEC) == 0)
		add(r, " for %s", buf_str(&text));
	buf_done(&text);
}

static bool
judge_time(const struct request *r, uint32_t seconds)
{
	if (seconds <= ASK_SECONDS_MAX)
		return true;
	(void)answer(r, 0, "the time is longer than a year");
	return false;
}

static int
take_queue(struct request *r, int32_t number)
{
	r->queue =
	    number < 1 ? NULL : queue_find(&r->s->queues, (uint64_t)number);
	if (r->queue != NULL)
		return 0;
	return answer(r, -ENOENT, "%s",
	    number >= 1 && number <= QUEUE_NUM_MAX &&
		    r->s->queues.on_disk[number]
		? "is not run (closed)"
		: "there is no such queue");
}

/* ---- loads ---- */

/* 0/0: not said. */
static int
ratio(uint32_t used, uint32_t limit, uint32_t *ret_pct, const char **ret_why)
{
	*ret_pct = 0;
	if (used == 0 && limit == 0)
		return 0;
	if (limit == 0 || limit > ASK_LIMIT_MAX) {
		*ret_why = "a limit is out of range";
		return -ERANGE;
	}
	if (used > limit) {
		*ret_why = "more in use than the limit";
		return -ERANGE;
	}
	*ret_pct = (uint32_t)((uint64_t)used * 100 / limit);
	return 0;
}

int
request_load(const struct msg_SET_LOAD_FOR *r, uint32_t *ret_load_pct,
    const char **ret_why)
{
	uint32_t local, remote;

	if (r->local_limit == 0 && r->remote_limit == 0) {
		*ret_why = "no limit given";
		return -EINVAL;
	}
	if (ratio(r->local_used, r->local_limit, &local, ret_why) < 0 ||
	    ratio(r->remote_used, r->remote_limit, &remote, ret_why) < 0)
		return -ERANGE;
	*ret_load_pct = local > remote ? local : remote;
	return 0;
}

static int
set_load(struct request *r, const struct msg *msg)
{
	const struct msg_SET_LOAD_FOR *load = &msg->u.SET_LOAD_FOR;
	const uint32_t seconds =
	    load->seconds == 0 ? ASK_LOAD_SECONDS : load->seconds;
	const char *why = "";
	uint32_t pct = 0;
	int code = take_queue(r, load->queue);

	if (code < 0)
		return code;
	code = request_load(load, &pct, &why);
	if (code < 0)
		return answer(r, code, "%s", why);
	if (!judge_time(r, seconds))
		return -ERANGE;
	if (r->judge)
		return answer(r, 0, "would be set");
	override_set_load(r->queue, pct, r->now + seconds * USEC_PER_SEC);
	(void)answer(
	    r, 0, "queue %" PRIu32 ": load %" PRIu32 " %%", load->queue, pct);
	add_time(r, seconds);
	return 0;
}

/* True: it was in force. */
static bool
take_back(struct request *r, int32_t number, enum override_kind kind)
{
	const bool held =
	    override_holds(&r->s->queues, (uint64_t)number, kind, r->now);

	if (held && !r->judge)
		(void)override_clear(&r->s->queues, (uint32_t)number, kind);
	return held;
}

static int
clear_all_loads(struct request *r)
{
	uint32_t cleared = 0;
	int32_t i;

	if (r->judge)
		return answer(r, 0, "would be cleared");
	for (i = 1; i <= QUEUE_NUM_MAX; i++)
		cleared += take_back(r, i, OVERRIDE_LOAD);
	return answer(r, 0, "loads by hand cleared: %" PRIu32, cleared);
}

/* Of a queue that is not run. -ENOENT: nothing is set for it. */
static int
take_back_unrun(struct request *r, int32_t number, enum override_kind kind,
    const char *what)
{
	if (!take_back(r, number, kind))
		return -ENOENT;
	return answer(
	    r, 0, "queue %" PRIi32 ": %s; it is not run", number, what);
}

static int
clear_load(struct request *r, const struct msg *msg)
{
	const int32_t number = msg->u.CLEAR_LOAD.queue;

	if (number == 0)
		return clear_all_loads(r);
	if (take_queue(r, number) < 0)
		return take_back_unrun(
		    r, number, OVERRIDE_LOAD, "load by hand cleared");
	return answer(r, 0, "queue %" PRIi32 ": %s", number,
	    take_back(r, number, OVERRIDE_LOAD) ? "load by hand cleared"
						: "had no load by hand");
}

/* ---- disabled ---- */

/* Injectors put mail into a queue in quarantine when there is no other. */
static bool
is_any_chosen(const struct super *s, usec_t now)
{
	uint32_t i;

	for (i = 0; i < s->queues.nqueues; i++) {
		const enum queue_state state =
		    queue_state(s->queues.queues[i], now);

		if (state == QUEUE_STATE_OPEN ||
		    state == QUEUE_STATE_QUARANTINED)
			return true;
	}
	return false;
}

static int
disable(struct request *r, const struct msg *msg)
{
	const struct msg_DISABLE *m = &msg->u.DISABLE;
	const char *why = ask_judge_reason(m->reason.data, m->reason.len);
	int code = take_queue(r, m->queue);

	if (code < 0)
		return code;
	if (why != NULL)
		return answer(r, -EINVAL, "%s", why);
	if (!judge_time(r, m->seconds))
		return -ERANGE;
	if (queue_state(r->queue, r->now) == QUEUE_STATE_CLOSING)
		return answer(r, -EBUSY, "is closing: takes no new mail");
	if (r->judge)
		return answer(r, 0, "would be disabled");
	override_disable(r->queue,
	    m->seconds == 0 ? USEC_NEVER : r->now + m->seconds * USEC_PER_SEC,
	    m->reason.data, m->reason.len);
	r->reason = m->reason;
	(void)answer(r, 0, "queue %" PRIi32 ": disabled", m->queue);
	add_time(r, m->seconds);
	if (!is_any_chosen(r->s, r->now))
		add(r, "; NO QUEUE IS OPEN: who submits is to try again");
	return 0;
}

/* A faulty queue does not come back because an operator says so; but its disk
 * is checked at once, by a worker. */
static int
enable_faulty(struct request *r)
{
	if (r->judge)
		return answer(r, 0, "would be looked at again");
	queue_health(r->queue);
	return answer(r, -EBUSY,
	    "is looked at again; is disabled for a fault: %.65s",
	    queue_reason(r->queue));
}

static void
enable_now(struct request *r, bool by_hand, bool failing)
{
	if (by_hand)
		(void)override_clear(
		    &r->s->queues, r->queue->number, OVERRIDE_DISABLED);
	(void)answer(r, 0, "queue %" PRIu32 ": %s", r->queue->number,
	    by_hand       ? "enabled"
		: failing ? "was in quarantine"
			  : "was not disabled");
	if (failing && quarantine_release(r->queue))
		add(r, ", tried again %s",
		    group_is_clear(&r->queue->group)
			? "at once"
			: "when its processes have ended");
	if (queue_is_faulty(r->queue))
		add(r, "; but it is disabled for a fault");
}

static int
enable(struct request *r, const struct msg *msg)
{
	const int32_t number = msg->u.ENABLE.queue;
	bool by_hand, failing;

	if (take_queue(r, number) < 0)
		return take_back_unrun(r, number, OVERRIDE_DISABLED, "enabled");
	by_hand = override_holds(
	    &r->s->queues, r->queue->number, OVERRIDE_DISABLED, r->now);
	failing = quarantine_of(r->queue, r->now) != NULL;
	if (!by_hand && queue_is_faulty(r->queue))
		return enable_faulty(r);
	if (!by_hand && !failing && r->queue->want == QUEUE_STATE_CLOSING)
		return answer(r, -EBUSY, "is closing");
	if (r->judge)
		return answer(r, 0, "would be enabled");
	enable_now(r, by_hand, failing);
	return 0;
}

/* ---- how many ---- */

static int
set_count(struct request *r, const struct msg *msg)
{
	const struct msg_COUNT *m = &msg->u.COUNT;
	char what[SCHED_ANSWER_SIZE / 2];
	int code;

	if (!judge_time(r, m->seconds))
		return -ERANGE;
	if (r->judge) {
		code = grow_judge_count(r->s, m->count, what, sizeof(what));
		return answer(r, code, "%s", code < 0 ? what : "would be done");
	}
	code = grow_set_count(r->s, m->count,
	    m->seconds == 0 ? 0 : r->now + m->seconds * USEC_PER_SEC, what,
	    sizeof(what));
	if (code < 0)
		return answer(r, code, "%s", what);
	(void)answer(
	    r, 0, "%" PRIu32 " queue%s", m->count, m->count == 1 ? "" : "s");
	if (m->seconds > 0)
		add_time(r, m->seconds);
	add(r, ": %s", what);
	return 0;
}

/* ---- reload ---- */

/* The answer comes when the reload has ended. */
#define ANSWERED_LATER 1

static int
reread(struct request *r, const struct msg *msg UNUSED)
{
	if (r->from->uid != 0 && r->from->uid != getuid())
		return answer(r, -EACCES,
		    "only root and the user who runs the instance may reload");
	if (r->s->stopping)
		return answer(r, -EBUSY, "qscheduler is stopping");
	if (r->judge)
		return answer(r, 0, "would be done");
	if (reload_ask(r->s, &r->asker) < 0)
		return answer(r, -EBUSY, "too many commands wait for a reload");
	return ANSWERED_LATER;
}

/* ---- the table ---- */

static const struct {
	enum msg_type type;
	int (*handle)(struct request *r, const struct msg *msg);
} requests[] = {
	{ MSG_SET_LOAD_FOR, set_load },
	{ MSG_CLEAR_LOAD, clear_load },
	{ MSG_DISABLE, disable },
	{ MSG_ENABLE, enable },
	{ MSG_COUNT, set_count },
	{ MSG_REREAD, reread },
};

/* The pid that asks and the nonce stand first in all of them. */
#define SAME_HEAD(type)                                         \
	_Static_assert(offsetof(struct msg_##type, pid) == 0 && \
		offsetof(struct msg_##type, nonce) == 4,        \
	    "the first two fields")
SAME_HEAD(SET_LOAD_FOR);
SAME_HEAD(CLEAR_LOAD);
SAME_HEAD(DISABLE);
SAME_HEAD(ENABLE);
SAME_HEAD(COUNT);
SAME_HEAD(REREAD);

/* ---- the log ---- */

/* "root, uid 0, pid 4711". */
static void
request_tell(const struct request *r)
{
	const struct requests *known = &r->s->requests;
	const char *name = "";
	size_t i;

	for (i = 0; i < ARRAY_LEN(known->users); i++)
		if (known->users[i].uid == r->from->uid)
			name = known->users[i].name;
	log_info("%s (asked by %s%suid %lu, pid %" PRIu32 "%s%.*s)", r->answer,
	    name, name[0] == '\0' ? "" : ", ", (unsigned long)r->from->uid,
	    r->from->pid, r->reason.len > 0 ? ": " : "", (int)r->reason.len,
	    r->reason.len > 0 ? r->reason.data : "");
}

int
request_handle(struct super *s, const struct msg *msg,
    const struct ask_source *from, usec_t now)
{
	char text[SCHED_ANSWER_SIZE] = "";
	struct request r = {
		.s = s,
		.now = now,
		.answer = text,
		.from = from,
		.judge = from->judge,
		.asker = { msg->u.ENABLE.pid, msg->u.ENABLE.nonce, -1,
		    from->address },
	};
	const uint64_t change = s->store.change;
	size_t i = 0;
	int code;

	while (i < ARRAY_LEN(requests) && requests[i].type != msg->type)
		i++;
	if (i == ARRAY_LEN(requests))
		return -EBADMSG;
	/* The command hears this socket alone, which may be closed before the
	 * answer. */
	r.asker.socket = fcntl(s->requests.socket.fd, F_DUPFD_CLOEXEC, 0);
	code = requests[i].handle(&r, msg);
	if (code == ANSWERED_LATER)
		return 0;
	if (code == 0 && !r.judge) {
		request_tell(&r);
		publish(s, now);
	}
	/* Changes are answered when they are on disk. */
	if (s->store.change != change)
		store_answer(s, &r.asker, text, now);
	else
		publish_answer(s, &r.asker, code, text);
	return code;
}
