#include "qctl/show/sites.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/domain.h"
#include "ipc/page_text.h"
#include "qctl/show/explain.h"

const char sites_head[] = "STATE  WINDOW  BUSY  WAITING  DESTINATION\n";

static const char *const state_names[] = {
	[SITE_ROOM] = "open",
	[SITE_FULL] = "full",
	[SITE_DEAD] = "dead",
};

/* ---- rows ---- */

static usec_t
wall(usec_t mono, struct sites_now now)
{
	return mono == 0 ? 0 : now.wall + (mono - now.mono);
}

void
sites_row(struct buf *out, const struct shared_seen *seen, struct sites_now now)
{
	const struct site_view *v = &seen->view;

	buf_printf(out, "%-5s %7" PRIu32 " %5" PRIu32 " %8" PRIu32 "  ",
	    state_names[v->state], v->window, v->busy, seen->waiting);
	out_clean(out, seen->name, sizeof(seen->name));
	if (v->state == SITE_DEAD) {
		buf_add_str(out, ": since ");
		sentence_add_time(out, wall(v->dead_since, now), now.wall);
		buf_add_str(out, ", until ");
		sentence_add_time(out, wall(v->dead_until, now), now.wall);
		buf_add_str(out, ": ");
		out_clean(out, seen->why, SITE_WHY_MAX);
	}
	buf_add_str(out, "\n");
}

void
sites_object(
    struct buf *out, const struct shared_seen *seen, struct sites_now now)
{
	const struct site_view *v = &seen->view;
	const char *slash = strchr(seen->name, '/');
	char transport[sizeof(seen->name)];

	snprintf(transport, sizeof(transport), "%.*s",
	    slash == NULL ? 0 : (int)(slash - seen->name), seen->name);
	buf_add_str(out, "{\"transport\": ");
	out_json(out, transport, strlen(transport));
	out_member(out, "destination", slash == NULL ? seen->name : slash + 1);
	buf_printf(out,
	    ", \"state\": \"%s\", \"window\": %" PRIu32 ", \"busy\": %" PRIu32
	    ", \"waiting_queues\": %" PRIu32 ", \"deaths\": %" PRIu32,
	    state_names[v->state], v->window, v->busy, seen->waiting,
	    v->deaths);
	if (v->state == SITE_DEAD) {
		buf_printf(out,
		    ", \"dead_since\": %" PRId64 ", \"dead_until\": %" PRId64,
		    wall(v->dead_since, now) / USEC_PER_SEC,
		    wall(v->dead_until, now) / USEC_PER_SEC);
		out_member(out, "reason", seen->why);
	}
	buf_add_str(out, "}\n");
}

/* ---- the table ---- */

static int
descending(uint32_t a, uint32_t b)
{
	return (a < b) - (a > b);
}

int
sites_compare(const struct shared_seen *a, const struct shared_seen *b)
{
	int r =
	    descending(a->view.state == SITE_DEAD, b->view.state == SITE_DEAD);

	if (r == 0)
		r = descending(a->waiting, b->waiting);
	if (r == 0)
		r = descending(a->view.busy, b->view.busy);
	return r != 0 ? r : strcmp(a->name, b->name);
}

struct visit {
	const struct options *o;
	struct sites_now now;
	struct shared_seen
	    *top; /* the best so far, and more; NULL: all go out */
	size_t count;
	bool wrote;
	int error;
};

static bool
is_wanted(const struct options *o, const struct shared_seen *seen)
{
	size_t i;

	for (i = 0; i < o->sites.npatterns; i++)
		if (domain_matches(o->sites.patterns[i], seen->name))
			return true;
	return o->sites.npatterns == 0;
}

static bool
put(struct visit *v, const struct shared_seen *seen)
{
	struct buf line = { 0 };

	if (!v->wrote && !v->o->json)
		buf_add_str(&line, sites_head);
	v->wrote = true;
	(v->o->json ? sites_object : sites_row)(&line, seen, v->now);
	v->error = line.error;
	if (v->error == 0 && fputs(buf_str(&line), stdout) < 0)
		v->error = -EIO;
	buf_done(&line);
	return v->error == 0;
}

static int
compare_rows(const void *a, const void *b)
{
	return sites_compare(a, b);
}

/* The best of those that were seen so far stay. */
static void
cut(struct visit *v)
{
	qsort(v->top, v->count, sizeof(*v->top), compare_rows);
	if (v->count > v->o->sites.top)
		v->count = v->o->sites.top;
}

static void
keep(struct visit *v, const struct shared_seen *seen)
{
	if (v->count == 2 * (size_t)v->o->sites.top)
		cut(v);
	v->top[v->count++] = *seen;
}

static bool
visit(void *ctx, const struct shared_seen *seen)
{
	struct visit *v = ctx;

	if (!is_wanted(v->o, seen))
		return true;
	if (v->top == NULL)
		return put(v, seen);
	keep(v, seen);
	return true;
}

static void
put_top(struct visit *v)
{
	size_t i;

	cut(v);
	for (i = 0; i < v->count && put(v, &v->top[i]); i++)
		;
}

/* ---- one destination ---- */

struct search {
	const char *pattern;
	bool found;
};

static bool
look_for(void *ctx, const struct shared_seen *seen)
{
	struct search *x = ctx;
	const char *slash = strchr(seen->name, '/');
	char transport[sizeof(seen->name)];

	if (slash == NULL)
		return true;
	snprintf(transport, sizeof(transport), "%.*s",
	    (int)(slash - seen->name), seen->name);
	x->found = destination_matches(x->pattern, transport, slash + 1);
	return !x->found;
}

/* ---- the command ---- */

/* The user of queue-send, as the page of root or of this user names it. */
static uid_t
owner_of(const char *instance)
{
	static struct sched_page page; /* large */

	return sched_page_read(instance, &page) == 0 ? page.qmails_uid
						     : (uid_t)-1;
}

static const struct failure failures[] = {
	{ -EACCES, EX_NOPERM,
	    "no permission to read the table of destinations; this is for "
	    "root and members of qmail_group and reader_group" },
	{ -EPERM, EX_UNAVAILABLE,
	    "the table of destinations belongs to another user" },
	{ -EBADMSG, EX_TEMPFAIL,
	    "the table of destinations is of another version, or was "
	    "overwritten" },
	{ -EIO, EX_IOERR, "standard output cannot be written" },
};

static int
complain(const struct options *o, int error)
{
	char absent[PAGE_ABSENT_SIZE];

	if (error != -ENOENT)
		return task_fail(o, failures, ARRAY_LEN(failures), error);
	task_tell(o, "there is no table of destinations: %s",
	    page_absent_text(absent));
	return EX_UNAVAILABLE;
}

bool
sites_have(const char *pattern, const char *instance)
{
	struct search x = { .pattern = pattern };
	char name[IPC_NAME_MAX];

	ipc_name_sites(instance, name);
	return shared_read(name, owner_of(instance), look_for, &x) < 0 ||
	    x.found;
}

int
sites_show(struct task *t)
{
	const struct options *o = &t->options;
	struct visit v = { .o = o, .now = { clock_mono(), clock_wall() } };
	char name[IPC_NAME_MAX];
	int r = 0;

	ipc_name_sites(t->instance, name);
	if (o->sites.top > 0) {
		v.top = calloc(2 * (size_t)o->sites.top, sizeof(*v.top));
		r = v.top == NULL ? -ENOMEM : 0;
	}
	if (r == 0)
		r = shared_read(name, owner_of(t->instance), visit, &v);
	if (r == 0 && v.top != NULL)
		put_top(&v);
	if (r == 0)
		r = v.error;
	if (r == 0 && !v.wrote && !o->json && puts("No destination fits") < 0)
		r = -EIO;
	if (r == 0 && fflush(stdout) != 0)
		r = -EIO;
	free(v.top);
	return r < 0 ? complain(o, r) : EX_OK;
}
