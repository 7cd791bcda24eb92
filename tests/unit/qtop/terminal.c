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

/* ---- the screen ---- */

static void
erase(struct terminal *t, int y, int from, int to)
{
	memset(&t->cells[y][from], ' ', (size_t)(to - from));
}

static void
erase_lines(struct terminal *t, int from, int to)
{
	for (; from < to; from++)
		erase(t, from, 0, t->cols);
}

/* Lines from..bottom by n, up when n > 0. */
static void
scroll(struct terminal *t, int from, int n)
{
	const int lines = t->bottom + 1 - from;
	const int by = n < 0 ? -n : n;

	if (by >= lines) {
		erase_lines(t, from, t->bottom + 1);
		return;
	}
	memmove(t->cells[n < 0 ? from + by : from],
	    t->cells[n < 0 ? from : from + by],
	    (size_t)(lines - by) * sizeof(t->cells[0]));
	if (n < 0)
		erase_lines(t, from, from + by);
	else
		erase_lines(t, t->bottom + 1 - by, t->bottom + 1);
}

static void
line_feed(struct terminal *t)
{
	if (t->y == t->bottom)
		scroll(t, t->top, 1);
	else if (t->y < t->rows - 1)
		t->y++;
}

static void
reverse_line_feed(struct terminal *t)
{
	if (t->y == t->top)
		scroll(t, t->top, -1);
	else if (t->y > 0)
		t->y--;
}

static void
put(struct terminal *t, char c)
{
	if (t->wrap) {
		t->x = 0;
		line_feed(t);
	}
	t->cells[t->y][t->x] = c;
	t->wrap = t->x == t->cols - 1;
	if (!t->wrap)
		t->x++;
}

static int
clamp(int value, int max)
{
	return value < 0 ? 0 : value > max ? max : value;
}

static void
go(struct terminal *t, int y, int x)
{
	t->y = clamp(y, t->rows - 1);
	t->x = clamp(x, t->cols - 1);
	t->wrap = false;
}

/* ---- sequences: ESC [ numbers letter ---- */

static void
do_erase_display(struct terminal *t, int n, int m UNUSED)
{
	if (n == 2) {
		erase_lines(t, 0, t->rows);
		return;
	}
	if (n == 0) {
		erase(t, t->y, t->x, t->cols);
		erase_lines(t, t->y + 1, t->rows);
		return;
	}
	erase_lines(t, 0, t->y);
	erase(t, t->y, 0, t->x + 1);
}

static void
do_erase_line(struct terminal *t, int n, int m UNUSED)
{
	erase(t, t->y, n == 0 ? t->x : 0, n == 1 ? t->x + 1 : t->cols);
}

static void
do_move(struct terminal *t, int n, int m)
{
	go(t, n > 0 ? n - 1 : 0, m > 0 ? m - 1 : 0);
}

static void
do_up(struct terminal *t, int n, int m UNUSED)
{
	go(t, t->y - (n > 0 ? n : 1), t->x);
}

static void
do_down(struct terminal *t, int n, int m UNUSED)
{
	go(t, t->y + (n > 0 ? n : 1), t->x);
}

static void
do_right(struct terminal *t, int n, int m UNUSED)
{
	go(t, t->y, t->x + (n > 0 ? n : 1));
}

static void
do_left(struct terminal *t, int n, int m UNUSED)
{
	go(t, t->y, t->x - (n > 0 ? n : 1));
}

static void
do_region(struct terminal *t, int n, int m)
{
	t->top = n > 0 ? n - 1 : 0;
	t->bottom = m > 0 && m <= t->rows ? m - 1 : t->rows - 1;
	go(t, 0, 0);
}

static void
do_erase_chars(struct terminal *t, int n, int m UNUSED)
{
	const int end = t->x + (n > 0 ? n : 1);

	erase(t, t->y, t->x, end < t->cols ? end : t->cols);
}

/* The rest of the line by n, to the right when n > 0. */
static void
shift(struct terminal *t, int n)
{
	char *at = &t->cells[t->y][t->x];
	const int room = t->cols - t->x, by = n < 0 ? -n : n;

	if (by >= room) {
		erase(t, t->y, t->x, t->cols);
		return;
	}
	memmove(
	    n > 0 ? at + by : at, n > 0 ? at : at + by, (size_t)(room - by));
	memset(n > 0 ? at : at + room - by, ' ', (size_t)by);
}

static void
do_insert_chars(struct terminal *t, int n, int m UNUSED)
{
	shift(t, n > 0 ? n : 1);
}

static void
do_delete_chars(struct terminal *t, int n, int m UNUSED)
{
	shift(t, n > 0 ? -n : -1);
}

static void
do_insert_lines(struct terminal *t, int n, int m UNUSED)
{
	scroll(t, t->y, n > 0 ? -n : -1);
}

static void
do_delete_lines(struct terminal *t, int n, int m UNUSED)
{
	scroll(t, t->y, n > 0 ? n : 1);
}

static void
do_nothing(struct terminal *t UNUSED, int n UNUSED, int m UNUSED)
{
}

static const struct {
	char letter;
	void (*act)(struct terminal *t, int n, int m);
} controls[] = {
	{ 'A', do_up },
	{ 'B', do_down },
	{ 'C', do_right },
	{ 'D', do_left },
	{ 'H', do_move },
	{ 'J', do_erase_display },
	{ 'K', do_erase_line },
	{ 'm', do_nothing }, /* how it looks */
	{ 'r', do_region },
	{ 'X', do_erase_chars },
	{ '@', do_insert_chars },
	{ 'P', do_delete_chars },
	{ 'L', do_insert_lines },
	{ 'M', do_delete_lines },
	{ 'h', do_nothing }, /* modes */
	{ 'l', do_nothing },
};

static void
not_known(struct terminal *t)
{
	size_t i;

	if (t->unknown[0] != '\0')
		return;
	for (i = 0; i < t->sequence_len && i < 20; i++)
		snprintf(t->unknown + 3 * i, 4, "%02x ",
		    (unsigned char)t->sequence[i]);
}

static void
run_control(struct terminal *t)
{
	const char letter = t->sequence[t->sequence_len - 1];
	const char *numbers = t->sequence + 2, *semicolon;
	int n, m = 0;
	size_t i;

	t->sequence[t->sequence_len] = '\0';
	numbers += *numbers == '?';
	n = (int)strtol(numbers, NULL, 10);
	semicolon = strchr(numbers, ';');
	if (semicolon != NULL)
		m = (int)strtol(semicolon + 1, NULL, 10);
	for (i = 0; i < ARRAY_LEN(controls); i++)
		if (controls[i].letter == letter) {
			controls[i].act(t, n, m);
			return;
		}
	not_known(t);
}

/* Is the sequence complete? */
static bool
take_sequence(struct terminal *t)
{
	const char last = t->sequence[t->sequence_len - 1];
	const char kind = t->sequence[1];

	if (t->sequence_len == 1)
		return false;
	if (kind == '[') {
		if (t->sequence_len == 2 || last == ';' || last == '?' ||
		    (last >= '0' && last <= '9'))
			return t->sequence_len == sizeof(t->sequence) - 1;
		run_control(t);
		return true;
	}
	if (kind == '(' || kind == ')') /* character sets */
		return t->sequence_len == 3;
	if (kind == 'M')
		reverse_line_feed(t);
	else if (kind == 'D')
		line_feed(t);
	else if (strchr("=>78", kind) == NULL)
		not_known(t);
	return true;
}

/* Of a character the first byte says all that is to be known here. */
static bool
take_utf8(struct terminal *t, unsigned char c)
{
	if (!t->utf8 || c < 0x80)
		return false;
	if (c >= 0xe4 && c <= 0xe9) {
		put(t, 'w');
		put(t, 'w');
	} else if (c >= 0xc0) {
		put(t, 'u');
	}
	return true;
}

static void
take(struct terminal *t, char c)
{
	if (t->sequence_len > 0 || c == '\x1b') {
		t->sequence[t->sequence_len++] = c;
		if (take_sequence(t))
			t->sequence_len = 0;
		return;
	}
	if (take_utf8(t, (unsigned char)c))
		return;
	if (c == '\r')
		go(t, t->y, 0);
	else if (c == '\n')
		line_feed(t);
	else if (c == '\b')
		go(t, t->y, t->x - 1);
	else if (c == '\t')
		go(t, t->y, (t->x / 8 + 1) * 8);
	else if (c >= ' ' && c < 0x7f)
		put(t, c);
	else if (c != '\0' && c != '\x0e' && c != '\x0f') {
		/* not padding, nor a change of character sets */
		t->sequence[0] = c;
		t->sequence_len = 1;
		not_known(t);
		t->sequence_len = 0;
	}
}

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
	go(t, t->y, t->x);
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
		take(t, data[i]);
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
