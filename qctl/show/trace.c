/* qctl trace: the dialogues of all queues with a destination, as these go on
 * (docs/QCTL.md, "Dialogues"). A process for each queue has a connection to its
 * queue-send; the lines come through the pipes of these processes. */
#include "qctl/show/sites.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "base/clock.h"
#include "base/io.h"
#include "ipc/trace.h"
#include "qctl/read/peer.h"
#include "qctl/show/show.h"

/* A process that only waits gives a sign of life in this time. */
#define TRACE_STEP (200 * USEC_PER_MSEC)

static const struct {
	char sign;
	const char *name; /* of --json */
} trace_speakers[TRACE_NWHO] = {
	[TRACE_WE] = { '>', "client" },
	[TRACE_SERVER] = { '<', "server" },
	[TRACE_EVENT] = { '*', "event" },
};

static void
trace_add_row(struct buf *out, uint32_t queue, const struct msg_TRACED *f)
{
	const time_t at = (time_t)(f->at_wall / USEC_PER_SEC);
	char clock[16];
	struct tm tm;

	(void)localtime_r(&at, &tm);
	if (strftime(clock, sizeof(clock), "%H:%M:%S", &tm) == 0)
		clock[0] = '\0';
	buf_printf(out, "%s.%03u  q%" PRIu32 "  %.*s  %.*s %c %.*s\n", clock,
	    (unsigned)(f->at_wall / USEC_PER_MSEC % 1000), queue,
	    (int)f->id.len, f->id.data, (int)f->relay.len, f->relay.data,
	    trace_speakers[f->who].sign, (int)f->text.len, f->text.data);
}

static void
trace_add_member(struct buf *out, const char *name, const struct msg_str *value)
{
	buf_printf(out, ", \"%s\": ", name);
	out_json(out, value->data, value->len);
}

static void
trace_add_object(struct buf *out, uint32_t queue, const struct msg_TRACED *f)
{
	buf_printf(out,
	    "{\"time\": %" PRId64 ".%06u, \"queue\": %" PRIu32
	    ", \"who\": \"%s\"",
	    f->at_wall / USEC_PER_SEC, (unsigned)(f->at_wall % USEC_PER_SEC),
	    queue, trace_speakers[f->who].name);
	trace_add_member(out, "id", &f->id);
	trace_add_member(out, "relay", &f->relay);
	trace_add_member(out, "text", &f->text);
	buf_add_str(out, "}\n");
}

static int
trace_put(struct worker *w, const struct options *o, const struct msg_TRACED *f)
{
	struct buf line = { 0 };
	int r;

	if (f->who >= TRACE_NWHO)
		return -EBADMSG;
	(o->json ? trace_add_object : trace_add_row)(&line, w->queue, f);
	r = out_send(&line, w);
	buf_done(&line);
	worker_message(w, 0);
	return r;
}

static int
trace_take(
    struct worker *w, const struct task *t, const struct chan_frame *frame)
{
	const struct msg *msg = &frame->msg;

	if (msg->type == MSG_TRACED)
		return trace_put(w, &t->options, &msg->u.TRACED);
	if (msg->type != MSG_ACTED)
		return -EBADMSG;
	if (msg->u.ACTED.error == 0)
		worker_row(w, "", 0); /* the trace has begun */
	return msg->u.ACTED.error;
}

/* Until the time is over. 0; -errno. */
static int
trace_follow(struct worker *w, const struct task *t, struct peer *peer)
{
	static struct chan_frame frame; /* large */
	const usec_t end = clock_mono() + t->options.trace_time;
	int r = 0;

	peer->limit = TRACE_STEP;
	while (r == 0 && clock_mono() < end) {
		r = peer_take(peer, &frame);
		if (r == 0) {
			io_close(&frame.fd);
			r = trace_take(w, t, &frame);
		} else if (r == -ETIMEDOUT) {
			worker_step(w);
			r = 0;
		}
	}
	return r;
}

static int
trace_connect(struct worker *w, const struct task *t, struct peer *peer)
{
	const struct msg begin = { .type = MSG_TRACE_BEGIN,
		.u.TRACE_BEGIN = {
		    .serial = 1,
		    .seconds = (uint32_t)(t->options.trace_time / USEC_PER_SEC),
		    .destination = MSG_S(t->options.sites.patterns[0]),
		} };
	struct spool sp;
	int r = spool_open(&sp, &spool_sys_real, t->base, w->queue);

	if (r == 0)
		r = peer_connect(peer, &sp, t->silence_limit);
	if (r == 0)
		r = peer_put(peer, &begin);
	spool_close(&sp);
	return r == -EPIPE ? 0 : r; /* the reason is still to be read */
}

static const char *
trace_trouble(int error)
{
	switch (error) {
	case -ENOENT:
	case -ECONNREFUSED:
		return "no queue-send runs here: the queue is stopped";
	case -EUSERS:
		return "too many traces are under way, or operators connected: "
		       "end one, then try again";
	case -EPIPE:
		return "queue-send has ended: run the command again";
	case -ETIMEDOUT:
		return "queue-send does not answer";
	case -EINVAL:
		return "queue-send refuses the destination or the time";
	default:
		return spool_error(error);
	}
}

static int
trace_run(struct worker *w, void *arg)
{
	const struct task *t = arg;
	struct peer peer = { .fd = -1 };
	int r = trace_connect(w, t, &peer);

	if (r == 0)
		r = trace_follow(w, t, &peer);
	peer_close(&peer);
	if (r == -EPERM || r == -EACCES)
		worker_denied(w);
	else if (r < 0)
		worker_note(w, "%s", trace_trouble(r));
	return 0;
}

/* Say that no destination fits the word. The word may be the name of a server,
 * which is in no table, or a recipient's domain that has another next hop. */
static void
trace_tell_waits(const char *program, const char *shown)
{
	const char *slash = strchr(shown, '/');
	const char *domain = slash == NULL ? shown : slash + 1;

	fprintf(stderr,
	    "%s: no destination fits `%s' now; waiting, also for "
	    "a server of that name",
	    program, shown);
	if (strpbrk(domain, "*/:[]@") == NULL &&
	    domain[strspn(domain, "0123456789.")] != '\0')
		fprintf(stderr,
		    ". `qctl route user@%s' shows the next hop of the domain",
		    domain);
	fputs("\n", stderr);
}

/* A queue follows the dialogues: told once. */
static void
trace_take_row(uint32_t queue UNUSED, const void *data UNUSED,
    size_t len UNUSED, void *arg)
{
	struct task *t = arg;
	const char *destination = t->options.sites.patterns[0];
	struct buf shown = { 0 };

	if (t->options.quiet)
		return;
	t->options.quiet = true;
	out_clean(&shown, destination, TRACE_PATTERN_MAX);
	task_tell(&t->options,
	    "trace of %s for %" PRId64 " s; interrupt (^C) to end",
	    buf_str(&shown), t->options.trace_time / USEC_PER_SEC);
	if (!sites_have(destination, t->instance))
		trace_tell_waits(t->options.program, buf_str(&shown));
	buf_done(&shown);
}

static const struct failure trace_failures[] = {
	{ -EIO, EX_IOERR, "standard output cannot be written" },
	{ -EPERM, EX_NOPERM,
	    "no permission to follow dialogues; this is for root and members "
	    "of both qmail_group and operator_group" },
};

int
trace_show(struct task *t)
{
	struct worker_job job = task_job(
	    t, trace_run, "its disk does not answer: no trace of this queue");
	struct worker_totals totals;
	int r;

	job.take_row = trace_take_row;
	r = worker_run_all(&job, &totals);
	if (r == 0 && totals.denied > 0)
		r = -EPERM;
	if (r < 0)
		return task_fail(
		    &t->options, trace_failures, ARRAY_LEN(trace_failures), r);
	return totals.silent + totals.troubled > 0 ? EX_TEMPFAIL : EX_OK;
}
