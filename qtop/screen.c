#include "qtop/qtop.h"

#include <errno.h>
#include <event2/event.h>
#include <locale.h>
#include <ncurses.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "qtop/model.h"

#define DEAD_READS_MAX 3 /* readable without a key: the terminal is gone */

struct screen {
	const struct options *options;
	const char *instance;
	const struct model_source *source;
	struct event_base *loop;
	struct model model;
	struct view view;
	uint64_t readings;
	int dead_reads;
};

/* ---- keys and readings ---- */

static void
end(struct screen *s)
{
	(void)event_base_loopbreak(s->loop);
}

static void
read_now(struct screen *s)
{
	model_sample(
	    &s->model, s->source, s->instance, clock_mono(), clock_wall());
	model_sort(&s->model, s->view.sort);
}

static void
key_quit(struct screen *s)
{
	end(s);
}

static void
key_sort(struct screen *s)
{
	s->view.sort = column_next_sort(s->view.sort);
	s->view.first = 0;
	model_sort(&s->model, s->view.sort);
}

static void
key_help(struct screen *s)
{
	s->view.help = true;
}

static void
scroll_by(struct screen *s, int64_t rows)
{
	const int64_t first = (int64_t)s->view.first + rows;

	s->view.first = first < 0 ? 0
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
	scroll_by(s, -(int64_t)draw_rows_shown(&s->view));
}

static void
key_page_down(struct screen *s)
{
	scroll_by(s, draw_rows_shown(&s->view));
}

static const struct {
	int key;
	void (*act)(struct screen *s);
} keys[] = {
	{ 'q', key_quit },
	{ 'Q', key_quit },
	{ ' ', read_now },
	{ 'r', read_now },
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

	if (s->view.help && key != 'q' && key != 'Q') {
		s->view.help = false;
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
	draw_view(&s->view);
}

static void
on_time(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct screen *s = arg;

	read_now(s);
	draw_view(&s->view);
	if (++s->readings == s->options->count)
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
	draw_view(&((struct screen *)arg)->view);
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
	draw_prepare();
}

static int
run(struct screen *s)
{
	struct event *events[ARRAY_LEN(watches)] = { NULL };
	size_t i;
	int r = watch_all(s, events);

	if (r == 0) {
		on_time(-1, 0, s);
		if (s->readings != s->options->count)
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

/* An absent instance is most likely mistyped. Later the screen shows its
 * absence and goes on. */
static int
first_look(struct screen *s)
{
	struct buf text = { 0 };

	read_now(s);
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
		.view = { .model = &s.model,
		    .instance = instance,
		    .sort = COL_QUEUE } };
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
