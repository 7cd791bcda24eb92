#include "qscheduler/super.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "ipc/ask.h"
#include "ipc/names.h"
#include "log/log.h"

#define REQUESTS_DEPTH 64
#define REQUESTS_TURN  32 /* taken in one turn of the loop */
#define LIMIT_MAX      1000000
#define MANUAL_TIME    (60 * USEC_PER_SEC)
#define LOAD_PCT_MAX   1000

static struct queue *
find_queue(struct super *s, uint64_t number)
{
	uint32_t i;

	for (i = 0; i < s->nqueues; i++)
		if (s->queues[i]->number == number)
			return s->queues[i];
	return NULL;
}

/* ---- load reports ---- */

static int
take_report(struct super *s, const struct load_report *report)
{
	struct queue *q = find_queue(s, report->queue);

	if (q == NULL || report->load_pct > LOAD_PCT_MAX)
		return -EINVAL;
	q->reported_load_pct = (uint32_t)report->load_pct;
	return 0;
}

/* ---- setqload ---- */

/* 0/0: not said. */
static int
ratio(uint32_t used, uint32_t limit, uint32_t *ret_pct, const char **ret_why)
{
	*ret_pct = 0;
	if (used == 0 && limit == 0)
		return 0;
	if (limit == 0 || limit > LIMIT_MAX) {
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
request_load(
    const struct msg_SET_LOAD *r, uint32_t *ret_load_pct, const char **ret_why)
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
set_load(struct super *s, const struct msg *msg)
{
	const struct msg_SET_LOAD *r = &msg->u.SET_LOAD;
	struct queue *q =
	    r->queue < 1 ? NULL : find_queue(s, (uint64_t)r->queue);
	const char *why = "there is no such queue";
	uint32_t load = 0;
	char text[52];
	int code = -ENOENT;

	if (q != NULL)
		code = request_load(r, &load, &why);
	if (code == 0) {
		q->hand.load_pct = load;
		q->hand.load_until = clock_mono() + MANUAL_TIME;
		snprintf(text, sizeof(text),
		    "queue %" PRIu32 ": load %" PRIu32 " %% for 60 s",
		    q->number, load);
		log_info("queue %" PRIu32 ": load set to %" PRIu32
			 " %% by pid %" PRIu32,
		    q->number, load, r->pid);
		publish(s, clock_mono());
	} else {
		snprintf(text, sizeof(text), "%s", why);
	}
	publish_answer(s, r->pid, r->nonce, code, text);
	return code;
}

static const struct {
	enum msg_type type;
	int (*handle)(struct super *s, const struct msg *msg);
} requests[] = {
	{ MSG_SET_LOAD, set_load },
};

static int
take_request(struct super *s, const struct msg *msg)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(requests); i++)
		if (requests[i].type == msg->type)
			return requests[i].handle(s, msg);
	return -EBADMSG;
}

/* ---- the message queue ---- */

static void
on_requests(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct super *s = arg;
	struct ask ask;
	int i, r;

	for (i = 0; i < REQUESTS_TURN; i++) {
		r = ask_take(s->requests, &ask);
		if (r == 0)
			return;
		if (r == 1)
			r = take_report(s, &ask.report);
		else if (r == 2)
			r = take_request(s, &ask.msg);
		else if (r != -EBADMSG) {
			log_error("message queue of requests: %s: closed, "
				  "made again within a minute",
			    strerror(-r));
			requests_close(s);
			return;
		}
		if (r < 0)
			s->bad_requests++;
	}
}

static int
requests_try(struct super *s)
{
	char name[IPC_NAME_MAX];
	uint32_t depth;
	int r;

	ipc_name_scheduler(s->instance, name);
	r = mq_create(name,
	    &(struct mq_shape){ REQUESTS_DEPTH, ASK_MESSAGE_SIZE }, (uid_t)-1,
	    (gid_t)-1, 0600, &s->requests, &depth);
	if (r < 0) {
		s->requests = -1;
		return r;
	}
	s->requests_event = event_new(
	    s->loop, s->requests, EV_READ | EV_PERSIST, on_requests, s);
	if (s->requests_event == NULL ||
	    event_add(s->requests_event, NULL) < 0) {
		requests_close(s);
		return -ENOMEM;
	}
	return 0;
}

void
requests_open(struct super *s)
{
	int r = requests_try(s);

	if (r < 0)
		log_warning("message queue of requests: %s: setqload is not "
			    "heard; tried again every minute",
		    strerror(-r));
}

void
requests_close(struct super *s)
{
	char name[IPC_NAME_MAX];

	if (s->requests_event != NULL)
		event_free(s->requests_event);
	s->requests_event = NULL;
	if (s->requests < 0)
		return;
	ipc_name_scheduler(s->instance, name);
	if (mq_same(name, s->requests))
		(void)mq_unlink(name);
	mq_close(s->requests);
	s->requests = -1;
}

void
requests_health(struct super *s)
{
	char name[IPC_NAME_MAX];
	uint32_t i;

	ipc_name_scheduler(s->instance, name);
	if (s->requests >= 0 && mq_same(name, s->requests))
		return;
	requests_close(s);
	if (requests_try(s) < 0)
		return;
	log_info("message queue %s: made again", name);
	for (i = 0; i < s->nqueues; i++)
		link_object(&s->queues[i]->children[ROLE_QUEUE_SEND],
		    "qscheduler", s->requests);
}
