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
#include "spool/id.h"

#define VERSION        2
#define FIRST_LINE     "by-hand"
#define LAST_LINE      "end"
#define LINE_MAX_BYTES 160
#define FILE_MAX       ((OVERRIDE_ROWS_MAX + 8) * LINE_MAX_BYTES)
#define WALL_MAX       (1ull << 40) /* seconds: some 30000 years */
#define PCT_MAX        100
#define NO_BOOT        "-"

/* ---- time left ---- */

void
override_moment_now(usec_t mono, struct override_moment *ret_now)
{
	int64_t n = 0;
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	memset(ret_now, 0, sizeof(*ret_now));
	ret_now->wall = clock_wall() < 0 ? 0 : clock_wall();
	ret_now->mono = mono;
	if (fd >= 0)
		n = io_read_all(fd, ret_now->boot, OVERRIDE_BOOT_MAX);
	io_close(&fd);
	if (n != OVERRIDE_BOOT_MAX)
		snprintf(ret_now->boot, sizeof(ret_now->boot), NO_BOOT);
}

usec_t
override_time_left(const struct override_moment *written, int64_t left,
    const struct override_moment *now)
{
	const bool same_boot = strcmp(written->boot, NO_BOOT) != 0 &&
	    strcmp(written->boot, now->boot) == 0 && now->mono >= written->mono;
	const usec_t passed =
	    same_boot ? now->mono - written->mono : now->wall - written->wall;
	const usec_t all = left * USEC_PER_SEC;

	if (passed <= 0) /* the clock was set back */
		return all;
	return passed < all ? all - passed : 0;
}

/* ---- reading ---- */

struct parser {
	struct override_rows *rows;
	bool begun, dated, ended;
	uint8_t seen[QUEUE_NUM_MAX + 1]; /* a bit for each kind */
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
take_number(
    char **rest, uint64_t min, uint64_t max, uint64_t *ret, const char *why)
{
	return num_u64(cut_word(rest), min, max, ret) < 0 ? why : NULL;
}

static const char *
add_row(struct parser *p, const struct override_row *row)
{
	const uint8_t bit = (uint8_t)(1u << row->kind);

	if ((p->seen[row->queue] & bit) != 0)
		return row->kind == OVERRIDE_COUNT ? "a count again"
						   : "that queue again";
	p->seen[row->queue] |= bit;
	p->rows->rows[p->rows->n++] = *row;
	return NULL;
}

static const char *
take_reason(struct override_row *row, const char *reason)
{
	const size_t len = strlen(reason);

	if (ask_judge_reason(reason, len) != NULL)
		return "not a reason";
	memcpy(row->reason, reason, len + 1);
	return NULL;
}

static const char *
parse_written(struct parser *p, char *rest)
{
	struct override_moment *m = &p->rows->written;
	const uint64_t max = WALL_MAX * USEC_PER_SEC;
	uint64_t wall = 0, mono = 0;
	const char *why = take_number(&rest, 0, max, &wall, "not a time");

	if (why == NULL)
		why = take_number(&rest, 0, max, &mono, "not a time");
	if (why != NULL || p->dated)
		return why != NULL ? why : "written twice";
	if (rest[0] == '\0' || strlen(rest) > OVERRIDE_BOOT_MAX ||
	    rest[strspn(rest, "0123456789abcdef-")] != '\0')
		return "not a boot";
	m->wall = (usec_t)wall;
	m->mono = (usec_t)mono;
	memcpy(m->boot, rest, strlen(rest) + 1);
	p->dated = true;
	return NULL;
}

/* QUEUE LEFT, as they begin the rows of queues. */
static const char *
parse_queue(char **rest, uint64_t min, uint64_t max, struct override_row *row)
{
	uint64_t queue = 0, left = 0;
	const char *why =
	    take_number(rest, 1, QUEUE_NUM_MAX, &queue, "not a queue number");

	if (why == NULL)
		why = take_number(rest, min, max, &left, "not a time");
	row->queue = (uint32_t)queue;
	row->left = (int64_t)left;
	return why;
}

static const char *
parse_disabled(struct parser *p, char *rest)
{
	struct override_row row = { .kind = OVERRIDE_DISABLED };
	const char *why = parse_queue(&rest, 0, ASK_SECONDS_MAX, &row);

	if (why == NULL)
		why = take_reason(&row, rest);
	return why != NULL ? why : add_row(p, &row);
}

static const char *
parse_load(struct parser *p, char *rest)
{
	struct override_row row = { .kind = OVERRIDE_LOAD };
	const char *why = parse_queue(&rest, 1, ASK_SECONDS_MAX, &row);
	uint64_t pct = 0;

	if (why == NULL && num_u64(rest, 0, PCT_MAX, &pct) < 0)
		why = "not a load";
	row.value = (uint32_t)pct;
	return why != NULL ? why : add_row(p, &row);
}

static const char *
parse_count(struct parser *p, char *rest)
{
	struct override_row row = { .kind = OVERRIDE_COUNT };
	uint64_t left = 0, count = 0;
	const char *why =
	    take_number(&rest, 0, ASK_SECONDS_MAX, &left, "not a time");

	if (why == NULL && num_u64(rest, 1, PAGE_QUEUES_MAX, &count) < 0)
		why = "not a number of queues";
	row.left = (int64_t)left;
	row.value = (uint32_t)count;
	return why != NULL ? why : add_row(p, &row);
}

static const struct {
	const char *word;
	const char *(*parse)(struct parser *p, char *rest);
} words[] = {
	{ "written", parse_written },
	{ "disabled", parse_disabled },
	{ "load", parse_load },
	{ "count", parse_count },
};

static const char *
parse_line(struct parser *p, char *line)
{
	const char *word = cut_word(&line);
	size_t i;

	for (i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(words[i].word, word) == 0)
			return i > 0 && !p->dated ? "before the time of writing"
						  : words[i].parse(p, line);
	return "not a row of this file";
}

/* Version 1: QUEUE UNTIL REASON. All is disabled, and counted from the first
 * second of the wall clock on. */
static const char *
parse_line_1(struct parser *p, char *line)
{
	struct override_row row = { .kind = OVERRIDE_DISABLED };
	const char *why = parse_queue(&line, 0, WALL_MAX, &row);

	if (why == NULL)
		why = take_reason(&row, line);
	return why != NULL ? why : add_row(p, &row);
}

static const char *
parse_version(struct parser *p, char *rest)
{
	uint64_t version;

	if (num_u64(rest, 0, UINT32_MAX, &version) < 0)
		return "not a version";
	if (version != VERSION)
		return "of a version that is not known";
	p->rows->version = VERSION;
	return NULL;
}

static const char *
take_line(struct parser *p, char *line)
{
	const size_t len = strlen(FIRST_LINE);

	if (p->ended)
		return "behind the end";
	if (!p->begun) {
		p->begun = true;
		if (strncmp(line, FIRST_LINE " ", len + 1) == 0)
			return parse_version(p, line + len + 1);
	}
	p->ended = strcmp(line, LAST_LINE) == 0;
	if (p->ended || line[0] == '#' || line[0] == '\0')
		return NULL;
	return p->rows->version == VERSION ? parse_line(p, line)
					   : parse_line_1(p, line);
}

/* NULL, or words about the line *ret_line. */
static const char *
parse(struct buf *text, struct override_rows *rows, uint32_t *ret_line)
{
	struct parser p = { .rows = rows };
	struct line_cursor c;
	const char *why = NULL;
	char *line;
	int r;

	rows->version = 1;
	line_begin(&c, text, LINE_MAX_BYTES);
	while (why == NULL && (r = line_next(&c, &line, &why)) > 0)
		why = take_line(&p, line);
	*ret_line = c.number;
	if (why == NULL && !p.ended)
		why = "cut off";
	return why;
}

/* The file is believed when it is ours and no other user may write it. */
static int
check(int fd, size_t *ret_size)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return -EPERM;
	if (st.st_size > FILE_MAX)
		return -EFBIG;
	*ret_size = (size_t)st.st_size;
	return 0;
}

/* 1 when there is a file. */
static int
read_text(int dir, struct buf *text)
{
	size_t size = 0;
	int64_t n = 0;
	int r, fd;

	fd = openat(
	    dir, OVERRIDE_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = check(fd, &size);
	if (r == 0)
		r = buf_reserve(text, size);
	if (r == 0)
		n = io_read_all(fd, text->data, size);
	io_close(&fd);
	if (r < 0 || n < 0)
		return r < 0 ? r : (int)n;
	text->len = (size_t)n;
	text->data[n] = '\0';
	return 1;
}

int
override_file_read(
    int dir, const char *path, struct override_rows *ret, struct buf *ret_error)
{
	struct buf text = { 0 };
	const char *why = NULL;
	uint32_t line = 0;
	int r = read_text(dir, &text);

	ret->n = ret->version = 0;
	ret->written = (struct override_moment){ .boot = NO_BOOT };
	if (r < 0)
		(void)buf_printf(ret_error, "%s/" OVERRIDE_NAME ": %s", path,
		    r == -EPERM ? "not ours, or others may write it"
				: strerror(-r));
	if (r > 0)
		why = parse(&text, ret, &line);
	buf_done(&text);
	if (why != NULL) {
		(void)buf_printf(ret_error,
		    "%s/" OVERRIDE_NAME ":%" PRIu32 ": %s", path, line, why);
		r = -EBADMSG;
	}
	if (r < 0)
		ret->n = 0;
	return r < 0 ? r : 0;
}

/* ---- a file that is not believed ---- */

int
override_file_set_aside(int dir, char ret_name[32])
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

/* ---- writing ---- */

static int
print_disabled(const struct override_row *row, struct buf *out)
{
	return buf_printf(out, "disabled %" PRIu32 " %" PRId64 " %s\n",
	    row->queue, row->left, row->reason);
}

static int
print_load(const struct override_row *row, struct buf *out)
{
	return buf_printf(out, "load %" PRIu32 " %" PRId64 " %" PRIu32 "\n",
	    row->queue, row->left, row->value);
}

static int
print_count(const struct override_row *row, struct buf *out)
{
	return buf_printf(
	    out, "count %" PRId64 " %" PRIu32 "\n", row->left, row->value);
}

static int (*const print_row[NOVERRIDES])(
    const struct override_row *row, struct buf *out) = {
	[OVERRIDE_DISABLED] = print_disabled,
	[OVERRIDE_LOAD] = print_load,
	[OVERRIDE_COUNT] = print_count,
};

static int
print(const struct override_rows *rows, struct buf *out)
{
	uint32_t i;
	int r = buf_printf(out,
	    FIRST_LINE " %d\n"
		       "# What setqload has set: disabled QUEUE LEFT REASON, "
		       "load QUEUE LEFT PERCENT,\n"
		       "# count LEFT QUEUES; LEFT: seconds behind the moment "
		       "of writing, 0: no end\n"
		       "written %" PRId64 " %" PRId64 " %s\n",
	    VERSION, rows->written.wall, rows->written.mono,
	    rows->written.boot);

	for (i = 0; r == 0 && i < rows->n; i++)
		r = print_row[rows->rows[i].kind](&rows->rows[i], out);
	if (r == 0)
		r = buf_add_str(out, LAST_LINE "\n");
	return r;
}

static int
remove_file(int dir)
{
	if (unlinkat(dir, OVERRIDE_NAME, 0) == 0)
		return fsync(dir) < 0 ? -errno : 0;
	return errno == ENOENT ? 0 : -errno;
}

int
override_file_write(int dir, const char *path, const struct override_rows *rows,
    struct buf *ret_error)
{
	struct buf text = { 0 };
	int r = rows->n == 0 ? 0 : print(rows, &text);

	if (r == 0)
		r = rows->n == 0
		    ? remove_file(dir)
		    : file_replace(dir, OVERRIDE_NAME, 0644, &text);
	buf_done(&text);
	if (r < 0)
		(void)buf_printf(
		    ret_error, "%s/" OVERRIDE_NAME ": %s", path, strerror(-r));
	return r;
}
