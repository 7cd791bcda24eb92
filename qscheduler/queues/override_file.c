#include "qscheduler/queues/queues.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/io.h"
#include "base/line.h"
#include "base/num.h"
#include "ipc/ask.h"
#include "log/log.h"
#include "spool/id.h"

#define FIRST_LINE     "by-hand 2"
#define LAST_LINE      "end"
#define LINE_MAX_BYTES 160
#define FILE_MAX       ((2 * QUEUE_NUM_MAX + 9) * LINE_MAX_BYTES)
#define TIME_MAX       ((1ull << 40) * USEC_PER_SEC) /* some 30000 years */
#define NO_BOOT        "-"

/* The forms of rows: WORD [QUEUE] LEFT VALUE. A count has no QUEUE. */
static const struct form {
	const char *word;
	uint64_t left_min; /* 0: it may have no end */
	uint64_t min, max; /* of a number as value */
	const char *wrong; /* words to another value; NULL: it is a reason */
} forms[NOVERRIDES] = {
	[OVERRIDE_DISABLED] = { "disabled", 0, 0, 0, NULL },
	[OVERRIDE_LOAD] = { "load", 1, 0, 100, "not a load" },
	[OVERRIDE_COUNT] = { "count", 0, 1, PAGE_QUEUES_MAX,
	    "not a number of queues" },
};

/* ---- times ---- */

void
override_moment_now(usec_t mono, struct override_moment *ret_now)
{
	int64_t n;
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	memset(ret_now, 0, sizeof(*ret_now));
	ret_now->wall = clock_wall() < 0 ? 0 : clock_wall();
	ret_now->mono = mono;
	n = io_read_all(fd, ret_now->boot, OVERRIDE_BOOT_MAX);
	io_close(&fd);
	if (n != OVERRIDE_BOOT_MAX)
		snprintf(ret_now->boot, sizeof(ret_now->boot), NO_BOOT);
}

usec_t
override_until(const struct override_moment *written, usec_t until,
    const struct override_moment *now)
{
	const bool same_boot = strcmp(written->boot, NO_BOOT) != 0 &&
	    strcmp(written->boot, now->boot) == 0 && now->mono >= written->mono;
	usec_t passed =
	    same_boot ? now->mono - written->mono : now->wall - written->wall;

	if (until == USEC_NEVER)
		return until;
	if (passed < 0) /* the clock was set back */
		passed = 0;
	until -= written->mono + passed;
	return until > 0 ? now->mono + until : 0;
}

/* ---- reading ---- */

struct parser {
	struct override *table;
	struct override_moment *written;
	bool dated, ended;
};

/* Cut the next word off; the rest is behind the one blank that follows it. */
static char *
cut_word(char **rest)
{
	char *word = *rest, *end = word + strcspn(word, " ");

	*rest = *end == '\0' ? end : end + 1;
	*end = '\0';
	return word;
}

static const char *
parse_written(struct parser *p, char *rest)
{
	struct override_moment *m = p->written;
	uint64_t wall, mono;

	if (num_u64(cut_word(&rest), 0, TIME_MAX, &wall) < 0 ||
	    num_u64(cut_word(&rest), 0, TIME_MAX, &mono) < 0)
		return "not a time";
	if (p->dated)
		return "written twice";
	if (rest[0] == '\0' || strlen(rest) > OVERRIDE_BOOT_MAX ||
	    rest[strspn(rest, "0123456789abcdef-")] != '\0')
		return "not a boot";
	m->wall = (usec_t)wall;
	m->mono = (usec_t)mono;
	snprintf(m->boot, sizeof(m->boot), "%s", rest);
	p->dated = true;
	return NULL;
}

static const char *
parse_row(struct parser *p, enum override_kind kind, char *rest)
{
	const struct form *f = &forms[kind];
	uint64_t queue = 0, left, value = 0;
	struct override *o;

	if (kind != OVERRIDE_COUNT &&
	    num_u64(cut_word(&rest), 1, QUEUE_NUM_MAX, &queue) < 0)
		return "not a queue number";
	if (num_u64(cut_word(&rest), f->left_min, ASK_SECONDS_MAX, &left) < 0)
		return "not a time";
	if (f->wrong != NULL && num_u64(rest, f->min, f->max, &value) < 0)
		return f->wrong;
	if (f->wrong == NULL && ask_judge_reason(rest, strlen(rest)) != NULL)
		return "not a reason";
	o = &p->table[queue];
	if (o->until[kind] != 0)
		return queue == 0 ? "a count again" : "that queue again";
	o->until[kind] = left == 0
	    ? USEC_NEVER
	    : p->written->mono + (usec_t)left * USEC_PER_SEC;
	o->value[kind] = (uint32_t)value;
	if (f->wrong == NULL)
		snprintf(o->reason, sizeof(o->reason), "%s", rest);
	return NULL;
}

static const char *
parse_line(struct parser *p, uint32_t number, char *line)
{
	enum override_kind kind = 0;
	const char *word;

	if (number == 1)
		return strcmp(line, FIRST_LINE) == 0
		    ? NULL
		    : "of a version that is not known";
	if (p->ended)
		return "behind the end";
	p->ended = strcmp(line, LAST_LINE) == 0;
	if (p->ended || line[0] == '#' || line[0] == '\0')
		return NULL;
	word = cut_word(&line);
	if (strcmp(word, "written") == 0)
		return parse_written(p, line);
	while (kind < NOVERRIDES && strcmp(forms[kind].word, word) != 0)
		kind++;
	if (kind == NOVERRIDES)
		return "not a row of this file";
	return p->dated ? parse_row(p, kind, line)
			: "before the time of writing";
}

/* 1 when there is a file that is ours and that no other user may write. */
static int
read_text(int dir, struct buf *text)
{
	struct stat st;
	int64_t n = 0;
	int r, fd;

	fd = openat(
	    dir, OVERRIDE_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		r = -errno;
	else if (!S_ISREG(st.st_mode))
		r = -EINVAL;
	else if (st.st_uid != geteuid() ||
	    (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		r = -EPERM;
	else if (st.st_size > FILE_MAX)
		r = -EFBIG;
	else
		r = buf_reserve(text, (size_t)st.st_size);
	if (r == 0)
		n = io_read_all(fd, text->data, (size_t)st.st_size);
	io_close(&fd);
	if (r < 0 || n < 0)
		return r < 0 ? r : (int)n;
	text->len = (size_t)n;
	text->data[n] = '\0';
	return 1;
}

int
override_read(int dir, const char *path, struct override *table,
    struct override_moment *ret_written, struct buf *ret_error)
{
	const size_t size = (QUEUE_NUM_MAX + 1) * sizeof(*table);
	struct parser p = { .table = table, .written = ret_written };
	struct buf text = { 0 };
	struct line_cursor c = { 0 };
	const char *why = NULL;
	char *line;
	int r = read_text(dir, &text);

	memset(table, 0, size);
	*ret_written = (struct override_moment){ .boot = NO_BOOT };
	if (r < 0)
		(void)buf_printf(ret_error, "%s/" OVERRIDE_NAME ": %s", path,
		    r == -EPERM ? "not ours, or others may write it"
				: strerror(-r));
	if (r <= 0)
		goto done;
	line_begin(&c, &text, LINE_MAX_BYTES);
	while (why == NULL && line_next(&c, &line, &why) > 0)
		why = parse_line(&p, c.number, line);
	if (why == NULL && !p.ended)
		why = "cut off";
	if (why != NULL) {
		(void)buf_printf(ret_error,
		    "%s/" OVERRIDE_NAME ":%" PRIu32 ": %s", path, c.number,
		    why);
		memset(table, 0, size);
		r = -EBADMSG;
	}
done:
	buf_done(&text);
	return r;
}

/* ---- a file that is not believed ---- */

int
override_set_aside(int dir, char ret_name[32])
{
	char name[32];
	struct stat st;
	int i;

	for (i = 1; i <= OVERRIDE_ASIDE_MAX; i++) {
		snprintf(name, sizeof(name), OVERRIDE_NAME ".aside-%d", i);
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		if (errno != ENOENT ||
		    renameat(dir, OVERRIDE_NAME, dir, name) < 0 ||
		    fsync(dir) < 0)
			return -errno;
		memcpy(ret_name, name, sizeof(name));
		return 0;
	}
	return -EEXIST;
}

/* Kept for a person to look at. */
static void
tell_damaged(const struct queues *all, const char *why)
{
	char name[32];
	int r = override_set_aside(all->base->fd, name);

	if (r < 0)
		log_error("ALERT: %s: nothing is set by hand; the file could "
			  "not be put aside (%s), the next change writes over "
			  "it",
		    why, strerror(-r));
	else
		log_error("ALERT: %s: nothing is set by hand; the file is kept "
			  "as %s",
		    why, name);
}

/* ---- at the start ---- */

/* True: its time is over. */
static bool
restore_setting(struct queues *all, uint32_t number, enum override_kind kind,
    const struct override_moment *written, const struct override_moment *now)
{
	struct override *o = &all->overrides[number];
	const char *note = queue_find(all, number) != NULL
	    ? ""
	    : "; the queue is not run: that waits for it";
	struct buf time = { 0 };

	if (o->until[kind] == 0)
		return false;
	o->until[kind] = override_until(written, o->until[kind], now);
	if (o->until[kind] == 0) {
		log_info("%s %" PRIu32 ": what was set by hand is over",
		    kind == OVERRIDE_COUNT ? "count" : "queue",
		    kind == OVERRIDE_COUNT ? o->value[kind] : number);
		return true;
	}
	if (o->until[kind] != USEC_NEVER && buf_add_str(&time, " for ") == 0)
		(void)num_add_duration(&time,
		    (o->until[kind] - now->mono) / USEC_PER_SEC * USEC_PER_SEC);
	if (kind == OVERRIDE_DISABLED)
		log_info("queue %" PRIu32 ": still disabled by hand%s%s%s%s",
		    number, buf_str(&time), o->reason[0] == '\0' ? "" : ": ",
		    o->reason, note);
	else if (kind == OVERRIDE_LOAD)
		log_info("queue %" PRIu32 ": load %" PRIu32
			 " %% by hand, still%s%s",
		    number, o->value[kind], buf_str(&time), note);
	buf_done(&time);
	return false;
}

bool
override_restore(struct queues *all, const struct override_moment *now)
{
	struct override_moment written;
	struct buf error = { 0 };
	enum override_kind kind;
	int r = override_read(
	    all->base->fd, all->base->path, all->overrides, &written, &error);
	/* Times are counted from this boot on. */
	bool again = r > 0 && strcmp(written.boot, now->boot) != 0;
	uint32_t n;

	if (r < 0)
		tell_damaged(all, buf_str(&error));
	buf_done(&error);
	for (n = 0; n <= QUEUE_NUM_MAX; n++)
		for (kind = 0; kind < NOVERRIDES; kind++)
			again |= restore_setting(all, n, kind, &written, now);
	return again;
}

/* ---- writing ---- */

bool
override_is_any(const struct override *table, usec_t now)
{
	enum override_kind kind;
	uint32_t n;

	for (n = 0; n <= QUEUE_NUM_MAX; n++)
		for (kind = 0; kind < NOVERRIDES; kind++)
			if (now < table[n].until[kind])
				return true;
	return false;
}

static int
print_row(const struct override *o, uint32_t number, enum override_kind kind,
    usec_t now, struct buf *out)
{
	const struct form *f = &forms[kind];
	usec_t left = o->until[kind] - now;
	char queue[16] = "", value[16];

	if (left <= 0)
		return 0;
	/* Rounded up, so that it is not over before its time. */
	left = left / USEC_PER_SEC + (left % USEC_PER_SEC != 0);
	if (left > ASK_SECONDS_MAX) /* the reader takes no more */
		left = o->until[kind] == USEC_NEVER ? 0 : ASK_SECONDS_MAX;
	if (kind != OVERRIDE_COUNT)
		snprintf(queue, sizeof(queue), "%" PRIu32 " ", number);
	snprintf(value, sizeof(value), "%" PRIu32, o->value[kind]);
	return buf_printf(out, "%s %s%" PRId64 " %s\n", f->word, queue, left,
	    f->wrong != NULL ? value : o->reason);
}

int
override_print(const struct override *table, const struct override_moment *now,
    struct buf *out)
{
	enum override_kind kind;
	uint32_t i, n;
	int r;

	if (!override_is_any(table, now->mono))
		return 0;
	r = buf_printf(out,
	    FIRST_LINE
	    "\n# What setqload has set: disabled QUEUE LEFT REASON, load QUEUE "
	    "LEFT PERCENT,\n# count LEFT QUEUES; LEFT: seconds behind the "
	    "moment of writing, 0: no end\nwritten %" PRId64 " %" PRId64
	    " %s\n",
	    now->wall, now->mono, now->boot);
	for (i = 1; i <= QUEUE_NUM_MAX + 1; i++) {
		n = i % (QUEUE_NUM_MAX + 1); /* the count is the last row */
		for (kind = 0; r == 0 && kind < NOVERRIDES; kind++)
			r = print_row(&table[n], n, kind, now->mono, out);
	}
	return r == 0 ? buf_add_str(out, LAST_LINE "\n") : r;
}

static int
remove_file(int dir)
{
	if (unlinkat(dir, OVERRIDE_NAME, 0) == 0)
		return fsync(dir) < 0 ? -errno : 0;
	return errno == ENOENT ? 0 : -errno;
}

int
override_write(int dir, const char *path, const struct override *table,
    const struct override_moment *now, struct buf *ret_error)
{
	struct buf text = { 0 };
	int r = override_print(table, now, &text);

	if (r == 0)
		r = text.len == 0
		    ? remove_file(dir)
		    : file_replace(dir, OVERRIDE_NAME, 0644, &text);
	buf_done(&text);
	if (r < 0)
		(void)buf_printf(
		    ret_error, "%s/" OVERRIDE_NAME ": %s", path, strerror(-r));
	return r;
}
