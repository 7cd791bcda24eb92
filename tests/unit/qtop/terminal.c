#include "terminal.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define PATIENCE (120 * USEC_PER_SEC)

/* ---- the program on it ---- */

void
terminal_start(
    struct terminal *t, int rows, int cols, int (*body)(void *arg), void *arg)
{
	const bool utf8 = t->utf8;
	const char *term = t->term == NULL ? "vt220" : t->term;
	struct winsize size = { .ws_row = (unsigned short)rows,
		.ws_col = (unsigned short)cols };

	memset(t, 0, sizeof(*t));
	t->utf8 = utf8;
	t->term = term;
	t->rows = rows;
	t->cols = cols;
	t->bottom = rows - 1;
	memset(t->cells, ' ', sizeof(t->cells));
	t->pid = forkpty(&t->fd, NULL, NULL, &size);
	cr_assert_geq(t->pid, 0);
	if (t->pid > 0)
		return;
	if (*term == '\0')
		unsetenv("TERM");
	else
		setenv("TERM", term, 1);
	unsetenv("LINES");
	unsetenv("COLUMNS");
	_exit(body(arg));
}

void
terminal_resize(struct terminal *t, int rows, int cols)
{
	struct winsize size = { .ws_row = (unsigned short)rows,
		.ws_col = (unsigned short)cols };

	t->rows = rows;
	t->cols = cols;
	t->top = 0;
	t->bottom = rows - 1;
	t->y = t->y < rows ? t->y : rows - 1;
	t->x = t->x < cols ? t->x : cols - 1;
	t->wrap = false;
	cr_assert_eq(ioctl(t->fd, TIOCSWINSZ, &size), 0);
}

void
terminal_type(struct terminal *t, const char *keys)
{
	cr_assert_eq(write(t->fd, keys, strlen(keys)), (ssize_t)strlen(keys));
}

/* False at the end. */
static bool
read_some(struct terminal *t, int timeout_ms)
{
	struct pollfd p = { .fd = t->fd, .events = POLLIN };
	char data[4096];
	ssize_t n, i;

	if (poll(&p, 1, timeout_ms) <= 0)
		return true;
	n = read(t->fd, data, sizeof(data));
	for (i = 0; i < n; i++)
		terminal_take(t, data[i]);
	return n > 0;
}

const char *
terminal_line(struct terminal *t, int y)
{
	static char line[TERMINAL_COLS + 1];
	int len = t->cols;

	while (len > 0 && t->cells[y][len - 1] == ' ')
		len--;
	memcpy(line, t->cells[y], (size_t)len);
	line[len] = '\0';
	return line;
}

/* All lines that are not empty at the end. */
static const char *
whole(struct terminal *t)
{
	size_t used = 0, last = 0;
	int y;

	for (y = 0; y < t->rows; y++) {
		const char *line = terminal_line(t, y);

		used += (size_t)snprintf(
		    t->text + used, sizeof(t->text) - used, "%s\n", line);
		if (line[0] != '\0')
			last = used;
	}
	t->text[last] = '\0';
	return t->text;
}

enum wish {
	TO_CONTAIN,
	TO_LACK,
	TO_BE,
};

static bool
fulfilled(struct terminal *t, enum wish wish, const char *text)
{
	if (wish == TO_BE)
		return strcmp(whole(t), text) == 0;
	return (strstr(whole(t), text) != NULL) == (wish == TO_CONTAIN);
}

static bool
wait_for(struct terminal *t, enum wish wish, const char *text)
{
	const usec_t deadline = clock_mono() + PATIENCE;
	bool there = true;

	while (!fulfilled(t, wish, text)) {
		if (!there || clock_mono() > deadline) {
			fprintf(stderr, "the screen is:\n%s", t->text);
			return false;
		}
		there = read_some(t, 100);
	}
	return true;
}

bool
terminal_shows(struct terminal *t, const char *text)
{
	return wait_for(t, TO_CONTAIN, text);
}

bool
terminal_hides(struct terminal *t, const char *text)
{
	return wait_for(t, TO_LACK, text);
}

bool
terminal_is(struct terminal *t, const char *text)
{
	return wait_for(t, TO_BE, text);
}

int
terminal_finish(struct terminal *t)
{
	int status;

	while (read_some(t, 1000))
		;
	close(t->fd);
	cr_assert_eq(waitpid(t->pid, &status, 0), t->pid);
	return status;
}
