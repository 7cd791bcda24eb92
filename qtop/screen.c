#include "qtop/screen.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <locale.h>
#include <ncurses.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "qtop/format.h"

#define LINE_SUMMARY   0
#define LINE_TROUBLE   1
#define LINE_TITLES    2
#define LINE_TOTAL     3
#define LINE_ROWS      4
#define DEAD_READS_MAX 3 /* readable without a key: the terminal is gone */

struct screen {
	const struct options *options;
	const char *instance;
	const struct model_source *source;
	struct event_base *loop;
	struct model model;
	enum column_id sort;
	uint64_t looks;
	uint32_t first; /* row at the top */
	bool help;
	int dead_reads;
};

/* ---- drawing ---- */

enum pair {
	PAIR_WARN = 1,
	PAIR_BAD,
	PAIR_GOOD,
};

static attr_t
attribute(enum line_kind kind)
{
	static const struct {
		attr_t plain, coloured;
	} attributes[] = {
		[LINE_PLAIN] = { A_NORMAL, A_NORMAL },
		[LINE_DIM] = { A_NORMAL, A_DIM },
		[LINE_WARN] = { A_BOLD, COLOR_PAIR(PAIR_WARN) },
		[LINE_BAD] = { A_REVERSE, COLOR_PAIR(PAIR_BAD) | A_BOLD },
	};

	return has_colors() ? attributes[kind].coloured
			    : attributes[kind].plain;
}

/* Cut at the edge; what is drawn is ours and ASCII. */
static void
draw(int y, attr_t attributes, const char *text, bool whole_line)
{
	if (y < 0 || y >= LINES)
		return;
	(void)attrset((int)attributes);
	(void)move(y, 0);
	if (whole_line)
		(void)hline(' ' | attributes, COLS);
	(void)addnstr(text, COLS);
	(void)attrset(A_NORMAL);
}

static uint32_t
page_rows(void)
{
	const int rows = LINES - LINE_ROWS - 1;

	return rows > 0 ? (uint32_t)rows : 0;
}

static void
draw_rows(struct screen *s, const bool shown[NCOLS])
{
	struct buf text = { 0 };
	uint32_t i, n = page_rows();

	if (s->first + n > s->model.nrows)
		s->first = s->model.nrows > n ? s->model.nrows - n : 0;
	for (i = 0; i < n && s->first + i < s->model.nrows; i++) {
		const struct model_row *row = &s->model.rows[s->first + i];

		buf_reset(&text);
		if (format_row(row, shown, &text) == 0)
			draw(LINE_ROWS + (int)i,
			    attribute(format_row_kind(&s->model, row)),
			    buf_str(&text), false);
	}
	buf_done(&text);
}

static void
draw_foot(const struct screen *s)
{
	struct buf text = { 0 };
	const uint32_t n = page_rows();
	int r;

	r = buf_printf(&text, "q quit  space refresh  s sort: %s  h help",
	    columns[s->sort].title);
	if (r == 0 && s->model.nrows > n)
		r = buf_printf(&text,
		    "  up/down %" PRIu32 "-%" PRIu32 " of %" PRIu32,
		    s->first + 1, s->first + n, s->model.nrows);
	if (r == 0)
		draw(LINES - 1, A_DIM, buf_str(&text), false);
	buf_done(&text);
}

static void
draw_table(struct screen *s)
{
	struct buf text = { 0 };
	bool shown[NCOLS];

	format_choose(COLS, shown);
	if (format_summary(&s->model, s->instance, &text) == 0)
		draw(LINE_SUMMARY, A_BOLD, buf_str(&text), false);
	buf_reset(&text);
	if (format_trouble(&s->model, s->instance, &text) == 0)
		draw(LINE_TROUBLE, attribute(LINE_BAD), buf_str(&text), false);
	buf_reset(&text);
	if (format_titles(shown, &text) == 0)
		draw(LINE_TITLES, A_REVERSE, buf_str(&text), true);
	buf_reset(&text);
	if (format_row(&s->model.total, shown, &text) == 0)
		draw(LINE_TOTAL, A_BOLD, buf_str(&text), false);
	buf_done(&text);
	draw_rows(s, shown);
	draw_foot(s);
}

static void
draw_help(void)
{
	static const char *const keys[] = {
		"q           quit",
		"space, r    look again now",
		"s           sort by the next column, largest first",
		"up, down    one row; page up, page down: a screen of rows",
		"h, ?        this help; any key leaves it",
	};
	char line[160];
	size_t i;
	int y = 0;

	draw(y++, A_REVERSE, "qtop: columns", true);
	for (i = 0; i < NCOLS; i++) {
		snprintf(line, sizeof(line), "%-11s %s", columns[i].title,
		    columns[i].help);
		draw(y++, A_NORMAL, line, false);
	}
	draw(y++, A_REVERSE, "keys", true);
	for (i = 0; i < ARRAY_LEN(keys); i++)
		draw(y++, A_NORMAL, keys[i], false);
}

static void
draw_all(struct screen *s)
{
	(void)erase();
	if (s->help)
		draw_help();
	else
		draw_table(s);
	(void)refresh();
}

/* ---- what happens ---- */

static void
end(struct screen *s)
{
	(void)event_base_loopbreak(s->loop);
}

static void
look(struct screen *s)
{
	model_sample(
	    &s->model, s->source, s->instance, clock_mono(), clock_wall());
	model_sort(&s->model, s->sort);
}

static void
key_quit(struct screen *s)
{
	end(s);
}

static void
key_sort(struct screen *s)
{
	s->sort = column_next_sort(s->sort);
	s->first = 0;
	model_sort(&s->model, s->sort);
}

static void
key_help(struct screen *s)
{
	s->help = true;
}

static void
scroll_by(struct screen *s, int64_t rows)
{
	const int64_t first = (int64_t)s->first + rows;

	s->first = first < 0 ? 0
	    : first >= s->model.nrows
	    ? (s->model.nrows > 0 ? s->model.nrows - 1 : 0)
	    : (uint32_t)first;
}

static void
key_up(struct screen *s)
{
	scroll_by(s, -1);
}

static void
key_down(struct screen *s)
{
	scroll_by(s, 1);
}

static void
key_page_up(struct screen *s)
{
	scroll_by(s, -(int64_t)page_rows());
}

static void
key_page_down(struct screen *s)
{
	scroll_by(s, page_rows());
}

static const struct {
	int key;
	void (*act)(struct screen *s);
} keys[] = {
	{ 'q', key_quit },
	{ 'Q', key_quit },
	{ ' ', look },
	{ 'r', look },
	{ 's', key_sort },
	{ 'h', key_help },
	{ '?', key_help },
	{ KEY_UP, key_up },
	{ KEY_DOWN, key_down },
	{ KEY_PPAGE, key_page_up },
	{ KEY_NPAGE, key_page_down },
};

static void
press(struct screen *s, int key)
{
	size_t i;

	if (s->help && key != 'q' && key != 'Q') {
		s->help = false;
		return;
	}
	for (i = 0; i < ARRAY_LEN(keys); i++)
		if (keys[i].key == key)
			keys[i].act(s);
}

static void
on_keys(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct screen *s = arg;
	int key = getch();

	if (key == ERR && ++s->dead_reads >= DEAD_READS_MAX)
		end(s);
	if (key == ERR)
		return;
	s->dead_reads = 0;
	for (; key != ERR; key = getch())
		press(s, key);
	draw_all(s);
}

static void
on_time(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct screen *s = arg;

	look(s);
	draw_all(s);
	if (++s->looks == s->options->count)
		end(s);
}

static void
on_stop(evutil_socket_t sig UNUSED, short what UNUSED, void *arg)
{
	end(arg);
}

static void
on_resize(evutil_socket_t sig UNUSED, short what UNUSED, void *arg)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row == 0 ||
	    size.ws_col == 0)
		return;
	(void)resizeterm(size.ws_row, size.ws_col);
	draw_all(arg);
}

/* ---- start and end ---- */

struct watch {
	evutil_socket_t fd; /* or signal */
	short what;
	event_callback_fn act;
};

static const struct watch watches[] = {
	{ STDIN_FILENO, EV_READ | EV_PERSIST, on_keys },
	{ -1, EV_TIMEOUT | EV_PERSIST, on_time },
	{ SIGTERM, EV_SIGNAL | EV_PERSIST, on_stop },
	{ SIGINT, EV_SIGNAL | EV_PERSIST, on_stop },
	{ SIGHUP, EV_SIGNAL | EV_PERSIST, on_stop },
	{ SIGQUIT, EV_SIGNAL | EV_PERSIST, on_stop },
	{ SIGWINCH, EV_SIGNAL | EV_PERSIST, on_resize },
};

static int
watch_all(struct screen *s, struct event *events[ARRAY_LEN(watches)])
{
	const struct timeval delay = {
		.tv_sec = s->options->delay / USEC_PER_SEC,
		.tv_usec = s->options->delay % USEC_PER_SEC,
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(watches); i++) {
		const struct watch *w = &watches[i];

		events[i] = event_new(s->loop, w->fd, w->what, w->act, s);
		if (events[i] == NULL ||
		    event_add(events[i],
			(w->what & EV_TIMEOUT) != 0 ? &delay : NULL) < 0)
			return -ENOMEM;
	}
	return 0;
}

static void
prepare_terminal(void)
{
	(void)cbreak();
	(void)noecho();
	(void)nonl();
	(void)nodelay(stdscr, TRUE);
	(void)keypad(stdscr, TRUE);
	(void)set_escdelay(25);
	(void)curs_set(0);
	if (!has_colors())
		return;
	(void)start_color();
	(void)use_default_colors();
	(void)init_pair(PAIR_WARN, COLOR_YELLOW, -1);
	(void)init_pair(PAIR_BAD, COLOR_RED, -1);
}

static int
run(struct screen *s)
{
	struct event *events[ARRAY_LEN(watches)] = { NULL };
	size_t i;
	int r = watch_all(s, events);

	if (r == 0) {
		on_time(-1, 0, s);
		if (s->looks != s->options->count)
			(void)event_base_dispatch(s->loop);
	}
	for (i = 0; i < ARRAY_LEN(watches); i++)
		if (events[i] != NULL)
			event_free(events[i]);
	return r;
}

static int
complain(int code, const char *text)
{
	fprintf(stderr, "qtop: %s\n", text);
	return code;
}

/* An instance that is not there is most likely a mistyped one. Later the
 * screen says so and goes on. */
static int
first_look(struct screen *s)
{
	struct buf text = { 0 };

	look(s);
	if (s->model.error == 0)
		return 0;
	if (format_trouble(&s->model, s->instance, &text) == 0)
		(void)complain(1, buf_str(&text));
	buf_done(&text);
	return 1;
}

int
screen_run(const struct options *options, const char *instance,
    const struct model_source *source)
{
	static struct screen s;
	SCREEN *terminal;
	int r = -ENOMEM;

	s = (struct screen){ .options = options,
		.instance = instance,
		.source = source,
		.sort = COL_QUEUE };
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return complain(EX_USAGE,
		    "standard input or output is not a terminal; use -b");
	if (first_look(&s) != 0)
		return 1;
	(void)setlocale(LC_ALL, "");
	terminal = newterm(NULL, stdout, stdin);
	if (terminal == NULL)
		return complain(1, "TERM names no terminal that can be used");
	prepare_terminal();
	s.loop = event_base_new();
	if (s.loop != NULL)
		r = run(&s);
	(void)endwin();
	delscreen(terminal);
	if (s.loop != NULL)
		event_base_free(s.loop);
	return r < 0 ? complain(1, strerror(-r)) : 0;
}
