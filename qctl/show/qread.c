#include "qctl/show/qread.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "config/conf.h"
#include "ipc/page_text.h"

enum channel {
	CHANNEL_LOCAL,
	CHANNEL_REMOTE,
	CHANNEL_TODO,
	NCHANNELS,
};

static const struct {
	const char *name, *title;
	unsigned wish;
} channels[NCHANNELS] = {
	[CHANNEL_LOCAL] = { "local", "local  queue", QREAD_LOCAL },
	[CHANNEL_REMOTE] = { "remote", "remote queue", QREAD_REMOTE },
	[CHANNEL_TODO] = { "todo", "todo   queue", QREAD_TODO },
};

struct counts {
	uint64_t recipients[NCHANNELS];
	uint64_t bouncing; /* messages of which a recipient has failed */
};

static struct counts counts;

/* ---- messages ---- */

static enum channel
channel_of(const struct message *m, const char *address)
{
	const bool expanded = (m->file.flags & QUEUE_FILE_EXPANDED) != 0;

	if (m->dir == SPOOL_MAILDROP || m->dir == SPOOL_INCOMING)
		return CHANNEL_TODO;
	return destination_is_local(address, expanded) ? CHANNEL_LOCAL
						       : CHANNEL_REMOTE;
}

struct page {
	struct worker *w;
	const struct message *m;
	const struct view *v;
	struct buf out;
	bool begun, bouncing;
};

/* "22 Nov 2026 10:00:00 GMT  #ID  1234  <sender> " */
static void
add_head(struct page *p)
{
	const struct message *m = p->m;
	const time_t seconds = (time_t)(m->file.arrival_wall / USEC_PER_SEC);
	char when[64] = "";
	struct tm tm;

	if (gmtime_r(&seconds, &tm) != NULL)
		(void)strftime(when, sizeof(when), "%e %b %Y %H:%M:%S", &tm);
	buf_printf(&p->out, "%s GMT  #%s  %" PRIu64 "  <",
	    when + strspn(when, " "), m->id, m->file.content_len);
	out_clean(&p->out, buf_str(&m->sender), ADDRESS_MAX);
	buf_printf(&p->out, "> %s\n", p->bouncing ? " bouncing" : "");
}

static int
note_failure(const struct recipient *one, void *arg)
{
	struct page *p = arg;

	p->bouncing |= one->rcpt->mark == RCPT_FAILED;
	return p->bouncing;
}

static int
add_recipient(const struct recipient *one, void *arg)
{
	struct page *p = arg;
	const enum channel c = channel_of(p->m, one->rcpt->address);
	const unsigned wish = p->v->options->qread;

	if ((wish & channels[c].wish) == 0)
		return 0;
	counts.recipients[c] += one->rcpt->mark == RCPT_PENDING;
	if ((wish & QREAD_SILENT) != 0)
		return 0;
	if (!p->begun)
		add_head(p);
	p->begun = true;
	buf_printf(&p->out, "%s\t%s\t",
	    one->rcpt->mark == RCPT_PENDING ? "" : "  done", channels[c].name);
	out_clean(&p->out, one->rcpt->address, ADDRESS_MAX);
	buf_add_str(&p->out, "\n");
	return out_send(&p->out, p->w);
}

int
qread_text(struct worker *w, const struct message *m, const struct view *v)
{
	struct page p = { .w = w, .m = m, .v = v };
	int rc;

	if (m->damage[0] != '\0' || m->dir == SPOOL_HOLD)
		return 0;
	rc = message_recipients(m, false, note_failure, &p);
	if (rc >= 0) {
		counts.bouncing += p.bouncing;
		rc = message_recipients(m, false, add_recipient, &p);
	}
	buf_done(&p.out);
	return rc;
}

void
qread_send(struct worker *w)
{
	worker_row(w, &counts, sizeof(counts));
}

void
qread_take(const void *data, size_t len)
{
	struct counts more;
	size_t i;

	if (len != sizeof(more))
		return;
	memcpy(&more, data, sizeof(more));
	for (i = 0; i < NCHANNELS; i++)
		counts.recipients[i] += more.recipients[i];
	counts.bouncing += more.bouncing;
}

static void
add_count(struct buf *out, const char *title, uint64_t count)
{
	buf_printf(out, "Total Messages in %s: %" PRIu64 "\n", title, count);
}

void
qread_print(const struct options *o, struct buf *out)
{
	static const enum channel first[] = { CHANNEL_LOCAL, CHANNEL_REMOTE };
	size_t i;

	if ((o->qread & QREAD_COUNTS) == 0)
		return;
	for (i = 0; i < ARRAY_LEN(first); i++)
		if ((o->qread & channels[first[i]].wish) != 0)
			add_count(out, channels[first[i]].title,
			    counts.recipients[first[i]]);
	add_count(out, "bounce queue", counts.bouncing);
	if ((o->qread & QREAD_TODO) != 0)
		add_count(out, channels[CHANNEL_TODO].title,
		    counts.recipients[CHANNEL_TODO]);
}

/* ---- queues ---- */

static int
compare_rows(const void *a, const void *b)
{
	const struct sched_row *x = a, *y = b;

	if (x->load_pct != y->load_pct)
		return x->load_pct < y->load_pct ? 1 : -1;
	return x->queue < y->queue ? -1 : x->queue > y->queue;
}

/* Rows in use come first. */
static size_t
sort_rows(struct sched_page *page)
{
	size_t i, n = 0;

	for (i = 0; i < PAGE_QUEUES_MAX; i++)
		if (page->rows[i].state != QUEUE_STATE_NONE)
			page->rows[n++] = page->rows[i];
	qsort(page->rows, n, sizeof(page->rows[0]), compare_rows);
	return n;
}

/* `-` has no more to do than any other, and `+` has. */
static void
add_row(const struct sched_row *row, const struct queue_page *q, bool least,
    struct buf *out)
{
	char name[32];

	snprintf(name, sizeof(name), "queue%" PRIu32, row->queue);
	buf_printf(out, "%-8s %3d/%-4d %3d/%-4d %c %s\n", name, q->local_used,
	    q->local_limit, q->remote_used, q->remote_limit, least ? '-' : '+',
	    row->state == QUEUE_STATE_OPEN ? "enabled" : "disabled");
}

void
qread_table(struct sched_page *page,
    int (*read)(
	const char *instance, uint32_t queue, struct queue_page *ret_page),
    const char *instance, struct buf *out)
{
	static struct queue_page pages[PAGE_QUEUES_MAX];
	const size_t n = sort_rows(page);
	int64_t least = INT64_MAX;
	size_t i;

	buf_add_str(out, "queue      local  Remote   +/- flag\n");
	for (i = 0; i < n; i++) {
		int64_t used;

		/* One that cannot be read is shown without deliveries. */
		if (read(instance, page->rows[i].queue, &pages[i]) < 0)
			memset(&pages[i], 0, sizeof(pages[i]));
		used = (int64_t)pages[i].local_used + pages[i].remote_used;
		if (used < least)
			least = used;
	}
	for (i = 0; i < n; i++)
		add_row(&page->rows[i], &pages[i],
		    (int64_t)pages[i].local_used + pages[i].remote_used ==
			least,
		    out);
	buf_printf(out,
	    "threshold = %" PRIu32 ".00 , qcount = %" PRIu32
	    ", qconf = %" PRIu32 ", qload = %" PRIu32 ".00\n",
	    page->threshold_pct, page->qcount, page->qconf,
	    page->mean_load_pct);
}

int
qread_queues(const struct options *o)
{
	static struct sched_page page;
	char absent[PAGE_ABSENT_SIZE];
	struct buf instance = { 0 }, error = { 0 };
	struct buf text = { 0 };
	int code, r = conf_instance(NULL, o->conf_path, &instance, &error);

	if (r >= 0)
		r = sched_page_read(buf_str(&instance), &page);
	if (r == 0)
		qread_table(&page, queue_page_read, buf_str(&instance), &text);
	if (r == -EACCES || r == -EPERM)
		code = task_complain(o, EX_NOPERM, "another user's instance");
	else if (r < 0 && r != -ENOMEM)
		code = task_complain(o, EX_UNAVAILABLE,
		    r == -ENOENT ? page_absent_text(absent) : strerror(-r));
	else
		code = task_put(o, r, &text);
	buf_done(&instance);
	buf_done(&error);
	return code;
}
