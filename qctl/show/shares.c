/* `qctl shares': what each user has in the queues, beside the limits. */
#include "qctl/show/shares.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/subuid.h"
#include "ipc/page.h"
#include "qctl/read/look.h"
#include "qctl/read/user.h"
#include "spool/waiting.h"

/* ---- the process of a queue ---- */

/* A row for the parent; messages of a user, or with `walk' the time of the last
 * walk over the queue. */
struct frame {
	uid_t uid;
	bool walk, is_system; /* is_system: no limit is on the user */
	usec_t walked_wall;
	struct use use;
};

struct shares {
	struct task *task;
	uid_t account; /* the rows of this one, or USE_ALL */
	struct share_row *rows;
	size_t count, room;
	usec_t walked_wall; /* the earliest of the last walks; 0: none */
	int error;
};

struct sender {
	const struct shares *shares;
	struct worker *worker;
	const struct spool *sp;
};

static void
send_use(void *arg, uid_t account, const struct use *use)
{
	const struct sender *s = arg;
	struct frame f;

	if (s->shares->account != USE_ALL && s->shares->account != account)
		return;
	memset(&f, 0, sizeof(f)); /* the padding, too */
	f.uid = account;
	f.is_system = waiting_is_made(s->sp, account) || s->sp->private;
	f.use = *use;
	worker_row(s->worker, &f, sizeof(f));
}

static int
send_table(const struct sender *s)
{
	struct waiting_file file;
	struct waiting_user row;
	struct frame f;
	uint64_t i;
	int r = waiting_open(s->sp, &file);

	for (i = 0; r == 0 && i < file.count; i++) {
		r = waiting_row(&file, i, &row);
		if (r == 0)
			send_use((void *)(uintptr_t)s, waiting_account(row.uid),
			    &(struct use){ row.messages, row.bytes,
				row.messages, row.made });
		worker_step(s->worker);
	}
	if (r == 0) {
		memset(&f, 0, sizeof(f));
		f.walk = true;
		f.walked_wall = file.walked_wall;
		worker_row(s->worker, &f, sizeof(f));
	}
	waiting_close(&file);
	return r == -ENOENT ? 0 : r;
}

static int
read_queue(struct worker *w, void *arg)
{
	struct spool sp;
	const struct shares *shares = arg;
	struct sender s = { shares, w, &sp };
	int r = spool_open(&sp, &spool_sys_real, shares->task->base, w->queue);

	if (r == 0)
		r = send_table(&s);
	if (r == 0)
		r = use_each_drop(&sp, shares->account, send_use, &s);
	if (r == -EACCES)
		worker_denied(w);
	else if (r == -EBADMSG)
		worker_note(w,
		    "its table of users is damaged, or of another version: "
		    "todo-proc writes it anew when it runs");
	else if (r < 0)
		worker_note(w, "%s", spool_error(r));
	spool_close(&sp);
	return 0;
}

/* ---- rows ---- */

static int
add_row(struct shares *s, uid_t uid, bool is_free, const struct use *use)
{
	const struct share_row row = {
		.uid = uid, .is_free = is_free, .use = *use
	};

	return array_add(&s->rows, &s->count, &s->room, &row, sizeof(row));
}

static void
take_frame(uint32_t queue UNUSED, const void *data, size_t len, void *arg)
{
	struct shares *s = arg;
	struct frame f;
	int r = 0;

	if (len != sizeof(f))
		return;
	memcpy(&f, data, sizeof(f));
	if (!f.walk)
		r = add_row(s, f.uid, f.is_system, &f.use);
	else if (s->walked_wall == 0 || f.walked_wall < s->walked_wall)
		s->walked_wall = f.walked_wall;
	if (r < 0)
		s->error = r;
}

static int
by_uid(const void *a, const void *b)
{
	const struct share_row *x = a, *y = b;

	return (x->uid > y->uid) - (x->uid < y->uid);
}

/* One row for each user, of all queues. */
static void
merge(struct shares *s)
{
	size_t i, n = 0;

	qsort(s->rows, s->count, sizeof(*s->rows), by_uid);
	for (i = 0; i < s->count; i++) {
		if (n > 0 && s->rows[n - 1].uid == s->rows[i].uid) {
			use_add(&s->rows[n - 1].use, &s->rows[i].use);
			s->rows[n - 1].is_free |= s->rows[i].is_free;
		} else {
			s->rows[n++] = s->rows[i];
		}
	}
	s->count = n;
}

static int
by_fullness(const void *a, const void *b)
{
	return share_row_compare(a, b);
}

/* ---- output ---- */

static void
add_foot(struct buf *out, const struct shares_time *when, usec_t now_wall)
{
	if (when->walked_wall == 0) {
		buf_add_str(out,
		    "The queues were not counted yet; drops are counted\n");
		return;
	}
	buf_add_str(out,
	    when->is_running
		? "Last walk over the queues: "
		: "The instance does not run. Drops are counted now, other "
		  "messages by the last walk: ");
	out_time(out, when->walked_wall, now_wall);
	buf_add_str(out, "\n");
}

static void
print(const struct shares *s, const struct shares_time *when, struct buf *out)
{
	const bool json = s->task->options.json;
	size_t i;

	if (!json)
		buf_add_str(out,
		    s->count > 0 ? share_row_head
				 : "No user has mail in the queues\n");
	for (i = 0; i < s->count; i++)
		if (json)
			share_row_object(out, &s->rows[i], when);
		else
			share_row_text(out, &s->rows[i]);
	if (!json)
		add_foot(out, when, s->task->view.now_wall);
}

static bool
is_running(const char *instance)
{
	static struct sched_page page;

	return sched_page_read(instance, &page) == 0 &&
	    !page_stale(&page.head, clock_mono());
}

/* ---- the command ---- */

/* The user whom the command names; empty: none. */
static const char *
account_word(const struct task *t)
{
	return t->options.sites.npatterns > 0 ? t->options.sites.patterns[0]
					      : "";
}

/* A name, else a number. Other than the own account only readers may ask for.
 */
static int
find_account(const struct task *t, uid_t *ret)
{
	const char *word = account_word(t);
	const struct passwd *pw = *word == '\0' ? NULL : user_by_name(word);
	uint64_t uid;

	if (t->own_only)
		*ret = waiting_account(getuid());
	else if (*word == '\0')
		*ret = USE_ALL;
	else if (pw != NULL)
		*ret = waiting_account(pw->pw_uid);
	else if (num_u64(word, 0, UINT32_MAX - 1, &uid) == 0)
		*ret = waiting_account((uid_t)uid);
	else
		return -ENOENT;
	return 0;
}

static int
complain_unknown(const struct task *t)
{
	struct buf text = { 0 };
	int code;

	buf_add_str(&text, "no such user: ");
	out_clean(&text, account_word(t), 100);
	code = task_complain(&t->options, EX_NOUSER, buf_str(&text));
	buf_done(&text);
	return code;
}

static int
finish(struct shares *s, const struct worker_totals *totals)
{
	const struct options *o = &s->task->options;
	const struct shares_time when = { s->walked_wall,
		is_running(s->task->instance) };
	struct buf text = { 0 };
	size_t i;
	int code, r = s->error;

	if (r == 0 && totals->denied > 0)
		return task_complain(o, EX_NOPERM, LOOK_DENIED);
	/* The row of a user who has nothing. */
	if (r == 0 && s->account != USE_ALL)
		r = add_row(s, s->account, false, &(struct use){ 0 });
	merge(s);
	for (i = 0; i < s->count; i++)
		share_row_complete(s->task, &s->rows[i]);
	qsort(s->rows, s->count, sizeof(*s->rows), by_fullness);
	if (r == 0)
		print(s, &when, &text);
	code = task_put(o, r, &text);
	return code == EX_OK && totals->silent + totals->troubled > 0
	    ? EX_TEMPFAIL
	    : code;
}

int
shares_show(struct task *t)
{
	struct shares s = { .task = t };
	struct worker_job job = task_job(t, read_queue,
	    "its disk does not answer; what it holds is not counted");
	struct worker_totals totals;
	int code, r = use_accounts_read(SUBUID_FILE);

	if (r < 0)
		return task_complain(&t->options, EX_OSERR, strerror(-r));
	if (find_account(t, &s.account) < 0)
		return complain_unknown(t);
	job.take_row = take_frame;
	job.arg = &s;
	r = worker_run_all(&job, &totals);
	if (r < 0)
		code = task_complain(&t->options, EX_OSERR, strerror(-r));
	else
		code = finish(&s, &totals);
	free(s.rows);
	return code;
}
