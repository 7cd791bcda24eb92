#include "qscheduler/supervisor/super.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "ipc/wire.h"
#include "log/log.h"

const char *const role_names[NROLES] = {
	[ROLE_QUEUE_SEND] = "queue-send",
	[ROLE_TODO_PROC] = "todo-proc",
	[ROLE_DELIVER_LOCAL] = "deliver-local",
	[ROLE_DELIVER_SMTP] = "deliver-smtp",
};

/* Ticks that a child may be there without a channel: at its end the channel
 * closes a moment before the process is seen to be gone. */
#define MUTE_MAX    3
#define JUDGE_AFTER (500 * USEC_PER_MSEC)

/* ---- what the table says ---- */

static int
exec_child(struct child *c, int channel, const char **ret_step)
{
	struct super *s = c->queue->super;
	const char *name = role_names[c->role];
	const char *conf_path = s->options.conf_path;
	char number[16], *path = NULL;
	const char *argv[5];
	size_t n = 0;
	int r;

	*ret_step = "memory";
	if (asprintf(&path, "%s/%s", s->program_dir, name) < 0)
		return -ENOMEM;
	snprintf(number, sizeof(number), "%" PRIu32, c->queue->number);
	argv[n++] = path;
	if (conf_path != NULL) {
		argv[n++] = "-c";
		argv[n++] = conf_path;
	}
	argv[n++] = number;
	argv[n] = NULL;
	r = process_spawn(
	    &(struct spawn){
		.path = path,
		.argv = (char *const *)(uintptr_t)argv,
		.envp = s->child_env,
		.channel = channel,
		.memory = s->conf->process_memory_limit,
		.fork = fork,
	    },
	    &c->process, ret_step);
	free(path);
	return r;
}

static int
spawn_child(struct child *c, const char **ret_step)
{
	int ends[2], r;

	*ret_step = "socket";
	r = chan_pair(ends);
	if (r < 0)
		return r;
	r = channel_open(c, ends[0]);
	if (r < 0) {
		io_close(&ends[0]);
	} else {
		r = exec_child(c, ends[1], ret_step);
		if (r < 0)
			wire_free(&c->channel);
	}
	io_close(&ends[1]);
	c->mute = 0;
	c->text[0] = '\0';
	heartbeat_init(c);
	return r;
}

static double
seconds(usec_t t)
{
	return (double)t / (double)USEC_PER_SEC;
}

static void
act_spawn(struct child *c)
{
	const char *step = "";
	int r = spawn_child(c, &step);

	c->not_started = r < 0;
	if (r < 0)
		snprintf(c->last_text, sizeof(c->last_text), "%s: %s", step,
		    strerror(-r));
	child_event(c, r < 0 ? PROC_EV_SPAWN_FAILED : PROC_EV_SPAWNED);
	if (r < 0) {
		log_error("%s/%" PRIu32 ": %s: %s: not started, again in "
			  "%.2f s",
		    role_names[c->role], c->queue->number, step, strerror(-r),
		    seconds(c->proc.deadline - clock_mono()));
		return;
	}
	log_debug("%s/%" PRIu32 ": started, pid %ld", role_names[c->role],
	    c->queue->number, (long)c->process.pid);
	orphans_record(c);
	link_child(c);
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
	/* One that is stopped (SIGSTOP) has to hear it as well. */
	(void)process_signal(&c->process, SIGCONT);
}

static void
act_kill(struct child *c)
{
	log_warning("%s/%" PRIu32 " (pid %ld) is out of time: killed",
	    role_names[c->role], c->queue->number, (long)c->process.pid);
	(void)process_signal(&c->process, SIGKILL);
}

static void
act_ask(struct child *c)
{
	if (queue_is_clear(c->queue))
		child_event(c, PROC_EV_CLEAR);
}

static void
act_stuck(struct child *c)
{
	log_error("ALERT: %s/%" PRIu32 " (pid %ld) does not end, though it was "
		  "killed: its queue waits for it",
	    role_names[c->role], c->queue->number, (long)c->process.pid);
	sites_child_stuck(c);
}

static void
act_nothing(struct child *c UNUSED)
{
}

static void
act_ended(struct child *c)
{
	queue_child_ended(c->queue, c->role, c->last_status);
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
		log_error("%s/%" PRIu32 ": no timer", role_names[c->role],
		    c->queue->number);
}

/* Without its queue-send a child has nobody to report to: more time to end is
 * of no use. */
static bool
is_orphan(const struct child *c)
{
	return c->role != ROLE_QUEUE_SEND &&
	    !proc_is_there(&c->queue->children[ROLE_QUEUE_SEND].proc);
}

void
child_event(struct child *c, enum proc_event event)
{
	const enum proc_state before = c->proc.state;
	const usec_t now = clock_mono();
	struct proc_limits limits;
	enum proc_action action;

	super_limits(c->queue->super, is_orphan(c), &limits);
	action = proc_event(&c->proc, event, now, &limits);
	set_timer(c, now);
	if (c->proc.state != before)
		log_debug("%s/%" PRIu32 ": %s: %s to %s, %s",
		    role_names[c->role], c->queue->number,
		    proc_event_name(event), proc_state_name(before),
		    proc_state_name(c->proc.state), proc_action_name(action));
	actions[action](c);
	queue_progress(c->queue);
	super_progress(c->queue->super);
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
child_init(struct child *c, struct queue *q, enum role role)
{
	*c =
	    (struct child){ .queue = q, .role = role, .process = PROCESS_NONE };
	proc_init(&c->proc);
	c->timer = evtimer_new(q->super->loop, on_timer, c);
	c->judge = evtimer_new(q->super->loop, on_judge, c);
	return c->timer == NULL || c->judge == NULL ? -ENOMEM : 0;
}

void
child_done(struct child *c)
{
	if (c->channel != NULL)
		wire_free(&c->channel);
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

bool
child_is_joinable(const struct child *c)
{
	return c->channel != NULL &&
	    (c->proc.state == PROC_STARTING || c->proc.state == PROC_UP);
}

void
child_tick(struct child *c)
{
	channel_tick(c);
	heartbeat_tick(c);
	if (c->channel != NULL || !proc_is_there(&c->proc)) {
		c->mute = 0;
	} else if (++c->mute == MUTE_MAX) {
		log_warning("%s/%" PRIu32 " (pid %ld) closed its channel: "
			    "started again",
		    role_names[c->role], c->queue->number,
		    (long)c->process.pid);
		child_event(c, PROC_EV_WANT_AGAIN);
	}
}

/* ---- the end ---- */

void
child_describe_end(int status, char *out, size_t size)
{
	if (WIFSIGNALED(status))
		snprintf(out, size, "died of signal %d (%s)%s",
		    WTERMSIG(status), strsignal(WTERMSIG(status)),
		    WCOREDUMP(status) ? ", core dumped" : "");
	else
		snprintf(
		    out, size, "ended with status %d", WEXITSTATUS(status));
}

/* An agent ends by itself, and rightly, when queue-send lets go of it. Once the
 * end of queue-send is seen, all of the group have been asked to end. */
static bool
followed_its_leader(const struct child *c)
{
	const struct proc *leader = &c->queue->children[ROLE_QUEUE_SEND].proc;

	return c->role != ROLE_QUEUE_SEND && c->last_status == 0 &&
	    (leader->state == PROC_STOPPING || leader->state == PROC_KILLED);
}

static void
tell_end(const struct child *c, long pid, bool asked)
{
	const int status = c->last_status;
	char what[CHILD_END_SIZE];

	child_describe_end(status, what, sizeof(what));
	if (!asked)
		log_error("%s/%" PRIu32 " (pid %ld) %s: again in %.2f s",
		    role_names[c->role], c->queue->number, pid, what,
		    seconds(c->proc.deadline - clock_mono()));
	/* TERM comes before the child hears of it, KILL was told. */
	else if (status == 0 ||
	    (WIFSIGNALED(status) &&
		(WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGKILL)))
		log_debug("%s/%" PRIu32 " (pid %ld) %s", role_names[c->role],
		    c->queue->number, pid, what);
	else
		log_warning("%s/%" PRIu32 " (pid %ld) was asked to stop and %s",
		    role_names[c->role], c->queue->number, pid, what);
}

static void
judge_end(struct child *c, pid_t pid)
{
	bool asked;

	if (proc_is_there(&c->proc) && followed_its_leader(c))
		child_event(c,
		    queue_is_leaving(c->queue) ? PROC_EV_WANT_DOWN
					       : PROC_EV_WANT_AGAIN);
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
 * gone: it has others to close, a core to write, threads to end. So who ended
 * well while queue-send seems to be up is judged a little later. */
static bool
may_be_judged(const struct child *c)
{
	const struct timeval later = clock_timeval(JUDGE_AFTER);

	return c->role == ROLE_QUEUE_SEND || c->last_status != 0 ||
	    c->proc.state != PROC_UP ||
	    c->queue->children[ROLE_QUEUE_SEND].proc.state != PROC_UP ||
	    evtimer_add(c->judge, &later) < 0;
}

static void
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

/* Of what ended together, queue-send ended first: the others followed it. */
static void
reap_leader(struct queue *q)
{
	struct child *leader = &q->children[ROLE_QUEUE_SEND];
	siginfo_t info = { 0 };

	if (leader->process.pid > 0 &&
	    waitid(P_PID, (id_t)leader->process.pid, &info,
		WEXITED | WNOHANG | WNOWAIT) == 0 &&
	    info.si_pid != 0)
		child_ended(leader);
}

static struct child *
find_child(struct super *s, pid_t pid)
{
	uint32_t i;
	int role;

	for (i = 0; i < s->nqueues; i++)
		for (role = 0; role < NROLES; role++)
			if (s->queues[i]->children[role].process.pid == pid)
				return &s->queues[i]->children[role];
	return NULL;
}

void
children_reap(struct super *s)
{
	siginfo_t info;
	struct child *c;

	for (;;) {
		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 &&
		    errno == EINTR)
			continue;
		if (info.si_pid == 0)
			return;
		c = find_child(s, info.si_pid);
		if (c != NULL) {
			reap_leader(c->queue);
			if (c->process.pid == info.si_pid)
				child_ended(c);
			continue;
		}
		log_debug("process %ld ended, which is none of ours",
		    (long)info.si_pid);
		(void)waitpid(info.si_pid, NULL, WNOHANG);
	}
}
