#include "qscheduler/queues/queues.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/io.h"
#include "base/line.h"
#include "base/num.h"
#include "ipc/ask.h"
#include "spool/id.h"

#define LINE_MAX_BYTES 160
#define FILE_MAX       (PAGE_QUEUES_MAX * LINE_MAX_BYTES)
#define WALL_MAX       (1ull << 40) /* seconds: some 30000 years */
#define LAST_LINE      "end"

/* ---- reading ---- */

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
parse_row(char *line, struct override_row *ret_row)
{
	char *reason = line;
	const char *number = cut_word(&reason), *until = cut_word(&reason);
	uint64_t queue, wall;
	size_t len = strlen(reason);

	if (num_u64(number, 1, QUEUE_NUM_MAX, &queue) < 0)
		return "not a queue number";
	if (num_u64(until, 0, WALL_MAX, &wall) < 0)
		return "not a time";
	if (ask_judge_reason(reason, len) != NULL)
		return "not a reason";
	ret_row->queue = (uint32_t)queue;
	ret_row->until_wall = (int64_t)wall;
	memcpy(ret_row->reason, reason, len + 1);
	return NULL;
}

static bool
has_queue(const struct override_rows *rows, uint32_t queue)
{
	uint32_t i;

	for (i = 0; i < rows->n; i++)
		if (rows->rows[i].queue == queue)
			return true;
	return false;
}

static const char *
take_line(char *line, struct override_rows *rows)
{
	struct override_row row;
	const char *why;

	if (line[0] == '#' || line[0] == '\0')
		return NULL;
	why = parse_row(line, &row);
	if (why != NULL)
		return why;
	if (rows->n == ARRAY_LEN(rows->rows))
		return "too many queues";
	if (has_queue(rows, row.queue))
		return "that queue again";
	rows->rows[rows->n++] = row;
	return NULL;
}

/* NULL, or words about the line *ret_line. */
static const char *
parse(struct buf *text, struct override_rows *rows, uint32_t *ret_line)
{
	struct line_cursor c;
	const char *why = NULL;
	bool ended = false;
	char *line;
	int r;

	line_begin(&c, text, LINE_MAX_BYTES);
	while (why == NULL && (r = line_next(&c, &line, &why)) > 0) {
		if (ended)
			why = "behind the end";
		else if (strcmp(line, LAST_LINE) == 0)
			ended = true;
		else
			why = take_line(line, rows);
	}
	*ret_line = c.number;
	if (why == NULL && !ended)
		why = "cut off";
	return why;
}

/* The file is believed when it is ours and no other user may write it. */
static int
check(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return -EPERM;
	return st.st_size > FILE_MAX ? -EFBIG : 0;
}

/* 1 when there is a file. */
static int
read_text(int dir, struct buf *text)
{
	int64_t n = 0;
	int r, fd;

	fd = openat(
	    dir, OVERRIDE_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = check(fd);
	if (r == 0)
		r = buf_reserve(text, FILE_MAX);
	if (r == 0)
		n = io_read_all(fd, text->data, FILE_MAX);
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

	ret->n = 0;
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

/* ---- writing ---- */

static int
print(const struct override_rows *rows, struct buf *out)
{
	uint32_t i;
	int r = buf_add_str(out,
	    "# queues disabled by hand: number, until (0: for ever), reason\n");

	for (i = 0; r == 0 && i < rows->n; i++)
		r = buf_printf(out, "%" PRIu32 " %" PRId64 " %s\n",
		    rows->rows[i].queue, rows->rows[i].until_wall,
		    rows->rows[i].reason);
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
