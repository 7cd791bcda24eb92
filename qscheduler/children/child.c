#include "qscheduler/children/children.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/text.h"
#include "ipc/msg.h"
#include "ipc/wire.h"
#include "log/log.h"

/* A start includes the wait for the lock of a queue-send of before, which may
 * take as long as a stop, and the scan of what a crash left. */
#define READY_LIMIT (60 * USEC_PER_SEC)
/* Ticks that a child may be there without a channel: at its end the channel
 * closes a moment before the process is seen to be gone. */
#define MUTE_MAX    3
#define JUDGE_AFTER (500 * USEC_PER_MSEC)

static void
tell(struct child *c, void (*what)(struct child *c))
{
	if (what != NULL)
		what(c);
}

/* ---- frames ---- */

static void
on_ready(struct child *c, const struct msg *msg UNUSED)
{
	if (c->proc.state == PROC_STARTING)
		log_debug("%s: ready", c->name);
	child_event(c, PROC_EV_READY);
}

static void
on_status(struct child *c, const struct msg *msg)
{
	const struct msg_str *text = &msg->u.STATUS.text;
	struct buf clean = { 0 }, cut = { 0 };

	/* The cause stands at the end of a text, behind paths. */
	if (text_clean(&clean, text->data, text->len, 4 * CHILD_TEXT_MAX) ==
		0 &&
	    text_shorten(&cut, buf_str(&clean), CHILD_TEXT_MAX) == 0)
		snprintf(c->text, sizeof(c->text), "%s", buf_str(&cut));
	buf_done(&clean);
	buf_done(&cut);
}

static void
on_pong(struct child *c, const struct msg *msg)
{
	heartbeat_pong(c, msg->u.PONG.serial);
}

static const struct child_frame own_frames[] = {
	{ MSG_READY, on_ready },
	{ MSG_STATUS, on_status },
	{ MSG_PONG, on_pong },
};
static const struct child_frames frames = { own_frames, ARRAY_LEN(own_frames) };

/* ---- actions of the table ---- */

static double
seconds(usec_t t)
{
	return (double)t / (double)USEC_PER_SEC;
}

static void
act_spawn(struct child *c)
{
	const char *step = "";
	int r = child_launch(c, &step);

	c->not_started = r < 0;
	if (r < 0)
		snprintf(c->last_text, sizeof(c->last_text), "%s: %s", step,
		    strerror(-r));
	child_event(c, r < 0 ? PROC_EV_SPAWN_FAILED : PROC_EV_SPAWNED);
	if (r < 0) {
		log_error("%s: %s: %s: not started, again in %.2f s", c->name,
		    step, strerror(-r),
		    seconds(c->proc.deadline - clock_mono()));
		return;
	}
	log_debug("%s: started, pid %ld", c->name, (long)c->process.pid);
	group_child_started(c);
}

/* A little less than is left before the kill, so that it need not come to
 * that. */
static void
act_stop(struct child *c)
{
	const usec_t left = c->proc.deadline - clock_mono();
	const struct msg stop = { .type = MSG_STOP,
		.u.STOP = { .limit_usec = left - left / 10 } };

	(void)child_send(c, &stop, -1);
	(void)process_signal(&c->process, SIGTERM);
	/* A child that is stopped (SIGSTOP) has to hear it as well. */
	(void)process_signal(&c->process, SIGCONT);
}

static void
act_kill(struct child *c)
{
	log_warning("%s (pid %ld) is out of time: killed", c->name,
	    (long)c->process.pid);
	(void)process_signal(&c->process, SIGKILL);
}

static void
act_ask(struct child *c)
{
	if (group_is_clear(c->group))
		child_event(c, PROC_EV_CLEAR);
}

static void
act_stuck(struct child *c)
{
	log_error("ALERT: %s (pid %ld) does not end, though it was killed: "
		  "%s waits for it",
	    c->name, (long)c->process.pid,
	    c->role->scope == SCOPE_QUEUE ? "its queue" : "the next one");
	tell(c, c->group->events->stuck);
}

static void
act_nothing(struct child *c UNUSED)
{
}

static void
act_ended(struct child *c)
{
	tell(c, c->group->events->ended);
	group_child_ended(c);
}

static void (*const actions[])(struct child *c) = {
	[PROC_ACT_NOTHING] = act_nothing,
	[PROC_ACT_ASK] = act_ask,
	[PROC_ACT_SPAWN] = act_spawn,
	[PROC_ACT_STOP] = act_stop,
	[PROC_ACT_KILL] = act_kill,
	[PROC_ACT_STUCK] = act_stuck,
	[PROC_ACT_ENDED] = act_ended,
};

static void
set_timer(struct child *c, usec_t now)
{
	const struct timeval tv = clock_timeval(c->proc.deadline - now);

	if (c->proc.deadline == USEC_NEVER) {
		(void)evtimer_del(c->timer);
		return;
	}
	if (evtimer_add(c->timer, &tv) < 0)
		log_error("%s: no timer", c->name);
}

/* NULL: the group has no leader, or the child leads itself. */
static const struct proc *
leader_of(const struct child *c)
{
	const struct child *leader = group_leader(c->group);

	return leader == NULL || leader == c ? NULL : &leader->proc;
}

static void
fill_limits(const struct child *c, struct proc_limits *limits)
{
	const struct conf *conf = c->group->all->instance->conf;
	const struct proc *leader = leader_of(c);

	*limits = (struct proc_limits){
		.ready_limit = conf->stop_time_limit + READY_LIMIT,
		.stop_limit = conf->stop_time_limit,
		.delay_max = conf->restart_delay_max,
		.quarantine_max = conf->quarantine_delay_max,
	};
	if (leader != NULL && !proc_is_there(leader) &&
	    limits->stop_limit > FOLLOW_LIMIT)
		limits->stop_limit = FOLLOW_LIMIT;
}

void
child_event(struct child *c, enum proc_event event)
{
	const enum proc_state before = c->proc.state;
	const usec_t now = clock_mono();
	struct proc_limits limits;
	enum proc_action action;

	fill_limits(c, &limits);
	action = proc_event(&c->proc, event, now, &limits);
	set_timer(c, now);
	if (c->proc.state != before)
		log_debug("%s: %s: %s to %s, %s", c->name,
		    proc_event_name(event), proc_state_name(before),
		    proc_state_name(c->proc.state), proc_action_name(action));
	actions[action](c);
	group_progress(c->group);
}

/* libevent may be early by its own reckoning of the time; the table is asked
 * at the deadline and not before. */
static void
on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct child *c = arg;
	const usec_t now = clock_mono();

	if (c->proc.deadline > now)
		set_timer(c, now);
	else
		child_event(c, PROC_EV_TIMER);
}

static void
on_judge(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	child_judge(arg);
}

int
child_init(struct child *c, struct group *g, const struct role *role)
{
	struct event_base *loop = g->all->instance->loop;

	*c = (struct child){ .group = g,
		.role = role,
		.frames = &frames,
		.process = PROCESS_NONE };
	role_describe(g->number, (uint32_t)(c - g->child), c->name);
	proc_init(&c->proc);
	c->timer = evtimer_new(loop, on_timer, c);
	c->judge = evtimer_new(loop, on_judge, c);
	return c->timer == NULL || c->judge == NULL ? -ENOMEM : 0;
}

void
child_done(struct child *c)
{
	if (c->channel.wire != NULL)
		wire_free(&c->channel.wire);
	if (c->timer != NULL)
		event_free(c->timer);
	if (c->judge != NULL)
		event_free(c->judge);
	c->timer = c->judge = NULL;
}

bool
child_is_failing(const struct child *c)
{
	return c->proc.state == PROC_BACKOFF ||
	    c->proc.state == PROC_QUARANTINED;
}

static void
watch_heart(struct child *c)
{
	const enum heartbeat_verdict verdict = heartbeat_tick(c);

	if (verdict == HEARTBEAT_SILENT)
		child_event(c, PROC_EV_SILENT);
	else if (verdict == HEARTBEAT_SLOW)
		tell(c, c->group->events->slow);
}

void
child_tick(struct child *c)
{
	channel_tick(c);
	watch_heart(c);
	if (c->channel.wire != NULL || !proc_is_there(&c->proc)) {
		c->mute = 0;
	} else if (++c->mute == MUTE_MAX) {
		log_warning("%s (pid %ld) closed its channel: started again",
		    c->name, (long)c->process.pid);
		child_event(c, PROC_EV_WANT_AGAIN);
	}
}

/* ---- the end ---- */

void
child_describe_end(const struct child *c, char out[CHILD_END_SIZE])
{
	const int status = c->last_status;

	if (WIFSIGNALED(status))
		snprintf(out, CHILD_END_SIZE, "died of signal %d (%s)%s",
		    WTERMSIG(status), strsignal(WTERMSIG(status)),
		    WCOREDUMP(status) ? ", core dumped" : "");
	else
		snprintf(out, CHILD_END_SIZE, "ended with status %d",
		    WEXITSTATUS(status));
}

void
child_describe_failures(const struct child *c, char *out, size_t size)
{
	char what[CHILD_END_SIZE] = "not started";
	struct buf all = { 0 }, text = { 0 };
	int r;

	if (!c->not_started)
		child_describe_end(c, what);
	r = buf_printf(&all, "%s failed %" PRIu32 " times in a row, %s%s%s",
	    c->role->name, c->proc.failures, what,
	    c->last_text[0] == '\0' ? "" : ": ", c->last_text);
	if (r == 0)
		r = text_shorten(&text, buf_str(&all), size - 1);
	snprintf(out, size, "%s", r < 0 ? c->role->name : buf_str(&text));
	buf_done(&all);
	buf_done(&text);
}

void
child_dump(const struct child *c)
{
	char what[CHILD_END_SIZE] = "never ended";

	if (c->proc.restarts > 0 || c->proc.state == PROC_BACKOFF)
		child_describe_end(c, what);
	log_info("dump: %s: %s, pid %ld, %" PRIu32 " restarts, %" PRIu32
		 " failures, last %s%s%s",
	    c->name, proc_state_name(c->proc.state), (long)c->process.pid,
	    c->proc.restarts, c->proc.failures, what,
	    c->text[0] == '\0' ? "" : ": ", c->text);
}

/* An agent ends by itself, and rightly, when queue-send lets go of it. Once the
 * end of queue-send is seen, all of the group have been asked to end. */
static bool
followed_its_leader(const struct child *c)
{
	const struct proc *leader = leader_of(c);

	return leader != NULL && c->last_status == 0 &&
	    (leader->state == PROC_STOPPING || leader->state == PROC_KILLED);
}

static void
tell_end(const struct child *c, long pid, bool asked)
{
	const int status = c->last_status;
	char what[CHILD_END_SIZE];

	child_describe_end(c, what);
	if (!asked)
		log_error("%s (pid %ld) %s: again in %.2f s", c->name, pid,
		    what, seconds(c->proc.deadline - clock_mono()));
	/* TERM comes before the child hears of STOP; KILL was told. */
	else if (status == 0 ||
	    (WIFSIGNALED(status) &&
		(WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGKILL)))
		log_debug("%s (pid %ld) %s", c->name, pid, what);
	else
		log_warning("%s (pid %ld) was asked to stop and %s", c->name,
		    pid, what);
}

static void
judge_end(struct child *c, pid_t pid)
{
	bool asked;

	if (proc_is_there(&c->proc) && followed_its_leader(c))
		child_event(c,
		    c->group->leaving ? PROC_EV_WANT_DOWN : PROC_EV_WANT_AGAIN);
	asked = c->proc.state == PROC_STOPPING || c->proc.state == PROC_KILLED;
	child_event(c, PROC_EV_EXITED);
	tell_end(c, (long)pid, asked);
}

void
child_judge(struct child *c)
{
	const pid_t pid = c->unjudged;

	if (pid == 0)
		return;
	c->unjudged = 0;
	(void)evtimer_del(c->judge);
	judge_end(c, pid);
}

/* A process that dies lets go of its links long before it can be seen to be
 * gone: it has others to close, a core to write, threads to end. So a child
 * that ended well while its leader seems to be up is judged a little later. */
static bool
may_be_judged(const struct child *c)
{
	const struct timeval later = clock_timeval(JUDGE_AFTER);
	const struct proc *leader = leader_of(c);

	return leader == NULL || c->last_status != 0 ||
	    c->proc.state != PROC_UP || leader->state != PROC_UP ||
	    evtimer_add(c->judge, &later) < 0;
}

void
child_ended(struct child *c)
{
	const pid_t pid = c->process.pid;

	c->last_status = process_collect(&c->process);
	channel_finish(c);
	memcpy(c->last_text, c->text, sizeof(c->last_text));
	if (may_be_judged(c))
		judge_end(c, pid);
	else
		c->unjudged = pid;
}
