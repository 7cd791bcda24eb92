#include "terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	t->looks[t->y][t->x] = t->look;
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

/* Each number changes the look of the characters to come; 0 and none: plain. */
static void
do_look(struct terminal *t, int n UNUSED, int m UNUSED)
{
	const char *at = t->sequence + 2;
	char *end;

	for (;; at = end + 1) {
		const long number = strtol(at, &end, 10);

		t->look = number == 0 ? TERMINAL_PLAIN
		    : number == 7     ? TERMINAL_REVERSE
				      : t->look;
		if (*end != ';')
			return;
	}
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
	{ 'm', do_look },
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

void
terminal_take(struct terminal *t, char c)
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
