#include "queue-send/schedule/own.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "log/log.h"
#include "site/shared.h"

#define TOLD_PER_TURN 200 /* destinations whose time is over */

struct dead_site {
	RB_ENTRY(dead_site) by_name;
	RB_ENTRY(dead_site) by_time;
	usec_t until;
	uint32_t transport;
	const char *name; /* in text */
	char text[];
};

static int
name_compare(const struct dead_site *a, const struct dead_site *b)
{
	const int r =
	    (a->transport > b->transport) - (a->transport < b->transport);

	return r != 0 ? r : strcasecmp(a->name, b->name);
}

static int
time_compare(const struct dead_site *a, const struct dead_site *b)
{
	int r = (a->until > b->until) - (a->until < b->until);

	return r != 0 ? r : name_compare(a, b);
}

TREE_GENERATE(dead_names, dead_site, by_name, name_compare)
TREE_GENERATE(dead_times, dead_site, by_time, time_compare)

/* ---- the dead ---- */

static struct dead_site *
dead_find(struct schedule_log *w, uint32_t transport, const char *name)
{
	struct dead_site key = { .transport = transport, .name = name };

	return RB_FIND(dead_names, &w->names, &key);
}

static void
dead_drop(struct schedule_log *w, struct dead_site *d)
{
	RB_REMOVE(dead_names, &w->names, d);
	RB_REMOVE(dead_times, &w->times, d);
	w->count--;
	free(d);
}

/* Without memory the opening is not told, and nothing else is lost. */
static void
dead_add(
    struct schedule_log *w, uint32_t transport, const char *name, usec_t until)
{
	size_t size = strlen(name) + 1;
	struct dead_site *d;

	if (w->count >= WATCH_DEAD_MAX)
		return;
	d = malloc(sizeof(*d) + size);
	if (d == NULL)
		return;
	d->until = until;
	d->transport = transport;
	d->name = memcpy(d->text, name, size);
	RB_INSERT(dead_names, &w->names, d);
	RB_INSERT(dead_times, &w->times, d);
	w->count++;
}

/* ---- lines ---- */

#define SITE_SIZE   (SITE_NAME_MAX + 40) /* TRANSPORT/DESTINATION */
#define NUMBER_SIZE 24

static void
site_format(const struct send *s, uint32_t transport, const char *name,
    char out[SITE_SIZE])
{
	snprintf(
	    out, SITE_SIZE, "%s/%s", s->conf->transports[transport].name, name);
}

static void
number_format(double number, char out[NUMBER_SIZE])
{
	snprintf(out, NUMBER_SIZE, "%.3f", number);
}

static void
schedule_log_write(enum log_level level, const char *name,
    const struct log_field *fields, size_t nfields, const char *text)
{
	const struct log_event event = {
		.level = level,
		.name = name,
		.fields = fields,
		.nfields = nfields,
		.text = text,
	};

	log_write(&event);
}

static void
say_dead(const struct send *s, uint32_t transport, const char *name,
    const struct site_view *v)
{
	char site[SITE_SIZE];
	const struct log_field fields[] = {
		LOG_STR("destination", site),
		LOG_STR("state", "dead"),
		LOG_INT("window", v->window),
		LOG_INT("busy", v->busy),
		LOG_INT("deaths", v->deaths),
		LOG_TIME("opens_in", v->dead_until - s->now),
	};

	site_format(s, transport, name, site);
	schedule_log_write(LOG_WARNING_L, "destination-dead", fields,
	    ARRAY_LEN(fields), v->why);
}

static void
say_open(
    const struct send *s, uint32_t transport, const char *name, const char *why)
{
	char site[SITE_SIZE];
	const struct log_field fields[] = {
		LOG_STR("destination", site),
		LOG_STR("state", "open"),
	};

	site_format(s, transport, name, site);
	schedule_log_write(
	    LOG_INFO_L, "destination-open", fields, ARRAY_LEN(fields), why);
}

static const char *const results[] = {
	[SITE_DELIVERED] = "delivered",
	[SITE_FAILED] = "failed",
	[SITE_DOUBTED] = "doubted",
	[SITE_AGENT_DIED] = "nothing", /* also for a delivery that moved */
	[SITE_UNTRIED] = "untried",
};

static void
say_step(const struct send *s, uint32_t transport, const char *name,
    const struct site_step *step)
{
	const struct site_view *v = &step->after;
	char site[SITE_SIZE], success[NUMBER_SIZE], failure[NUMBER_SIZE],
	    cohorts[NUMBER_SIZE];
	const struct log_field fields[] = {
		LOG_STR("destination", site),
		LOG_STR("report", results[step->result]),
		LOG_INT("window_before", step->before.window),
		LOG_INT("window", v->window),
		LOG_INT("busy", step->before.busy),
		LOG_DECIMAL("success", success),
		LOG_DECIMAL("failure", failure),
		LOG_DECIMAL("fail_cohorts", cohorts),
	};

	site_format(s, transport, name, site);
	number_format(v->success, success);
	number_format(v->failure, failure);
	number_format(v->fail_cohorts, cohorts);
	schedule_log_write(
	    LOG_INFO_L, "feedback", fields, ARRAY_LEN(fields), NULL);
}

static const char *const preemptions[] = {
	[SCHED_PREEMPT_OFF] = "off",
	[SCHED_PREEMPT_NO_SLOTS] = "no-slots",
	[SCHED_PREEMPT_SMALL] = "small",
	[SCHED_PREEMPT_NOBODY] = "nobody",
	[SCHED_PREEMPT_UNPAID] = "unpaid",
	[SCHED_PREEMPT_DONE] = "done",
};

#define SELECTION_FIELDS 13

/* The other job: the one that was preempted, or the candidate. */
static size_t
add_other(const struct sched_job_view *other, const char *score,
    char id[QUEUE_ID_SIZE], struct log_field *fields)
{
	message_id(other->owner, id);
	fields[0] = LOG_STR("other", id);
	fields[1] = LOG_INT("other_selected", other->selected);
	fields[2] = LOG_INT("other_total", other->total);
	fields[3] = LOG_INT("other_slots", other->slots);
	fields[4] = LOG_DECIMAL("score", score);
	return 5;
}

static void
say_selection(const struct send *s, const struct sched_decision *d)
{
	bool preempts = d->preemption == SCHED_PREEMPT_DONE;
	const struct sched_job_view *job =
	    preempts ? &d->candidate : &d->current;
	const struct sched_job_view *other =
	    preempts ? &d->current : &d->candidate;
	char site[SITE_SIZE], score[NUMBER_SIZE], id[QUEUE_ID_SIZE],
	    other_id[QUEUE_ID_SIZE];
	struct log_field fields[SELECTION_FIELDS] = {
		LOG_STR("selected", site),
		LOG_INT("nrcpt", d->entry->nrcpts),
		LOG_INT("window", d->site.window),
		LOG_INT("busy", d->site.busy),
		LOG_INT("entry", job->selected + 1),
		LOG_INT("total", job->total),
		LOG_INT("slots", job->slots),
		LOG_STR("preemption", preemptions[d->preemption]),
	};
	struct log_event event = {
		.level = LOG_INFO_L,
		.name = "selected",
		.id = id,
		.fields = fields,
		.nfields = 8,
		.text = d->last ? "last of its job" : NULL,
	};

	site_format(s, d->entry->transport, d->entry->destination, site);
	message_id(d->entry->owner, id);
	number_format(d->score, score);
	if (other->owner != NULL)
		event.nfields += add_other(other, score, other_id, fields + 8);
	log_write(&event);
}

/* ---- calls of the scheduler ---- */

static void
on_selected(void *ctx, const struct sched_decision *decision)
{
	say_selection(ctx, decision);
}

/* Why a destination that this queue saw die is open. A success ends a row of
 * deaths, the passing of time and an operator do not: so a success that another
 * queue had is known. */
#define TIME_OVER  "its time is over"
#define SUCCEEDED  "a delivery that had begun before succeeded"
#define BY_ANOTHER "a delivery of another queue succeeded"
#define RETRIED    "a flush or retry opened it"

static void
opened(struct send *s, struct dead_site *d, const char *why)
{
	say_open(s, d->transport, d->name, why);
	dead_drop(&s->schedule->log, d);
}

/* The destination as all queues see it; without memory it counts as open. */
static void
read_view(const struct send *s, const struct dead_site *d, struct site_view *v)
{
	struct site *site = site_open(s->sites, d->transport, d->name, s->now);

	*v = (struct site_view){ .state = SITE_ROOM, .deaths = 1 };
	if (site == NULL)
		return;
	(void)site_state(site, s->now);
	site_view(site, v);
	site_close(site, s->now);
}

static const char *
why_open(const struct site_view *before)
{
	if (before->state == SITE_DEAD)
		return SUCCEEDED;
	return before->deaths > 0 ? RETRIED : BY_ANOTHER;
}

/* The time of a death is over: the site is open, or dead again for another
 * queue. */
static void
time_over(struct send *s, struct dead_site *d)
{
	struct site_view v;

	read_view(s, d, &v);
	if (v.state != SITE_DEAD || v.dead_until <= s->now) {
		opened(s, d, v.deaths > 0 ? TIME_OVER : BY_ANOTHER);
		return;
	}
	RB_REMOVE(dead_times, &s->schedule->log.times, d);
	d->until = v.dead_until;
	RB_INSERT(dead_times, &s->schedule->log.times, d);
}

static void
on_step(void *ctx, uint32_t transport, const char *name,
    const struct site_step *step)
{
	struct send *s = ctx;
	bool dead = step->after.state == SITE_DEAD;
	struct dead_site *d = dead_find(&s->schedule->log, transport, name);

	if (s->conf->destination_concurrency_feedback_debug &&
	    step->result != SITE_UNTRIED)
		say_step(s, transport, name, step);
	if (d != NULL && d->until <= s->now) {
		time_over(s, d);
		d = dead_find(&s->schedule->log, transport, name);
	}
	if (d != NULL && !dead) {
		opened(s, d, why_open(&step->before));
		d = NULL;
	}
	if (dead && step->before.state != SITE_DEAD) {
		if (d != NULL)
			opened(s, d, why_open(&step->before));
		say_dead(s, transport, name, &step->after);
		dead_add(
		    &s->schedule->log, transport, name, step->after.dead_until);
	}
}

/* ---- from outside ---- */

void
schedule_log_set(struct send *s)
{
	bool debug = s->conf->destination_concurrency_feedback_debug;
	const struct sched_watch watch = {
		.ctx = s,
		.selected = debug ? on_selected : NULL,
		.step = on_step,
	};

	sched_set_watch(s->sched, &watch);
}

usec_t
schedule_log_work(struct send *s)
{
	struct dead_site *d;
	int n;

	for (n = 0; n < TOLD_PER_TURN; n++) {
		d = RB_MIN(dead_times, &s->schedule->log.times);
		if (d == NULL)
			return USEC_NEVER;
		if (d->until > s->now)
			return d->until;
		time_over(s, d);
	}
	return s->now;
}

uint32_t
schedule_log_flushed(struct send *s)
{
	const uint32_t count = s->schedule->log.count;
	struct dead_site *d;

	while ((d = RB_ROOT(&s->schedule->log.names)) != NULL)
		dead_drop(&s->schedule->log, d);
	return count;
}
