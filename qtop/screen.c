#include "qtop/qtop.h"

#include <errno.h>
#include <event2/event.h>
#include <locale.h>
#include <ncurses.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "qtop/model.h"

#define KEY_CTRL_L     0x0c
#define DEAD_READS_MAX 3 /* readable without a key: the terminal is gone */

struct screen {
	const struct options *options;
	const char *instance;
	const struct model_source *source;
	struct event_base *loop;
	struct event *timer;
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

/* Puts what was read into the order that is asked for. */
static void
arrange(struct screen *s)
{
	model_sort(&s->model, s->view.sort, s->view.reversed);
	view_filter(&s->view);
}

static void
read_now(struct screen *s)
{
	model_sample(
	    &s->model, s->source, s->instance, clock_mono(), clock_wall());
	arrange(s);
}

static int
start_timer(struct screen *s)
{
	const struct timeval delay = {
		.tv_sec = s->view.delay / USEC_PER_SEC,
		.tv_usec = s->view.delay % USEC_PER_SEC,
	};

	return event_add(s->timer, &delay) < 0 ? -ENOMEM : 0;
}

static void
key_quit(struct screen *s)
{
	end(s);
}

static void
sort_by(struct screen *s, enum column_id column, bool reversed)
{
	s->view.sort = column;
	s->view.reversed = reversed;
	s->view.first = 0;
	arrange(s);
}

static void
key_sort_next(struct screen *s)
{
	sort_by(s, column_next_sort(s->view.sort), false);
}

static void
key_sort_last(struct screen *s)
{
	sort_by(s, column_last_sort(s->view.sort), false);
}

static void
key_reverse(struct screen *s)
{
	sort_by(s, s->view.sort, !s->view.reversed);
}

static void
key_filter(struct screen *s)
{
	s->view.filter = (s->view.filter + 1) % NFILTERS;
	s->view.first = 0;
	view_filter(&s->view);
}

static void
key_freeze(struct screen *s)
{
	s->view.frozen = !s->view.frozen;
	if (!s->view.frozen)
		read_now(s);
}

static void
key_repaint(struct screen *s)
{
	draw_again(&s->view);
}

static void
key_longer(struct screen *s)
{
	s->view.delay = view_longer(s->view.delay);
	(void)start_timer(s);
}

static void
key_shorter(struct screen *s)
{
	s->view.delay = view_shorter(s->view.delay);
	(void)start_timer(s);
}

static void
key_help(struct screen *s)
{
	s->view.help = true;
	s->view.help_first = 0;
}

static void
key_right(struct screen *s)
{
	struct layout layout;

	layout_choose(&s->model, COLS, s->view.columns, &layout);
	if (layout.after > 0)
		s->view.columns = layout.page + 1;
}

static void
key_left(struct screen *s)
{
	if (s->view.columns > 0)
		s->view.columns--;
}

/* Rows of queues, or lines of the help. */
static void
scroll_by(struct screen *s, int64_t rows)
{
	uint32_t *at = s->view.help ? &s->view.help_first : &s->view.first;
	const int64_t last = s->view.help ? UINT16_MAX
	    : s->view.nrows > 0           ? s->view.nrows - 1
					  : 0;
	const int64_t first = (int64_t)*at + rows;

	*at = (uint32_t)(first < 0 ? 0 : first > last ? last : first);
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
	bool in_help; /* does not end the help */
} keys[] = {
	{ 'q', key_quit, true },
	{ 'Q', key_quit, true },
	{ ' ', read_now, false },
	{ 'r', read_now, false },
	{ KEY_CTRL_L, key_repaint, true },
	{ 's', key_sort_next, false },
	{ '>', key_sort_next, false },
	{ '<', key_sort_last, false },
	{ 'S', key_reverse, false },
	{ 'f', key_filter, false },
	{ 'p', key_freeze, false },
	{ '+', key_longer, false },
	{ '-', key_shorter, false },
	{ 'h', key_help, false },
	{ '?', key_help, false },
	{ KEY_RIGHT, key_right, false },
	{ KEY_LEFT, key_left, false },
	{ KEY_UP, key_up, true },
	{ KEY_DOWN, key_down, true },
	{ KEY_PPAGE, key_page_up, true },
	{ KEY_NPAGE, key_page_down, true },
};

static void
press(struct screen *s, int key)
{
	size_t i = 0;

	while (i < ARRAY_LEN(keys) && keys[i].key != key)
		i++;
	if (s->view.help && (i == ARRAY_LEN(keys) || !keys[i].in_help))
		s->view.help = false;
	else if (i < ARRAY_LEN(keys))
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
	/* resizeterm() puts KEY_RESIZE among the keys; on_resize() has drawn.
	 */
	for (; key != ERR; key = getch())
		if (key != KEY_RESIZE)
			press(s, key);
	draw_view(&s->view);
}

static void
on_time(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct screen *s = arg;

	if (!s->view.frozen)
		read_now(s);
	s->view.age = clock_mono() - s->model.now_mono;
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
	draw_again(&((struct screen *)arg)->view);
}

/* Sets the terminal up again after ^Z and fg. The shell may have changed the
 * modes of the terminal. The size may have changed, too: a stopped process is
 * in the background, and the kernel sends SIGWINCH to the foreground only. */
static void
on_continue(evutil_socket_t sig, short what, void *arg)
{
	(void)endwin();
	(void)refresh();
	on_resize(sig, what, arg);
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
	{ SIGCONT, EV_SIGNAL | EV_PERSIST, on_continue },
};

static int
watch_all(struct screen *s, struct event *events[ARRAY_LEN(watches)])
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(watches); i++) {
		const struct watch *w = &watches[i];

		events[i] = event_new(s->loop, w->fd, w->what, w->act, s);
		if (events[i] == NULL)
			return -ENOMEM;
		if ((w->what & EV_TIMEOUT) != 0)
			s->timer = events[i];
		else if (event_add(events[i], NULL) < 0)
			return -ENOMEM;
	}
	return start_timer(s);
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
		(void)complain(EX_OK, buf_str(&text));
	buf_done(&text);
	return model_exit_code(&s->model);
}

static int
check_terminal(void)
{
	const char *term = getenv("TERM");
	const int r = terminal_check();
	struct buf text = { 0 };

	if (r == -ENOTTY)
		return complain(EX_USAGE,
		    "standard input or output is not a terminal: `qtop -b' "
		    "writes plain text");
	if (r == 0)
		return 0;
	if (buf_add_str(&text, "TERM ") == 0 &&
	    text_quote(&text, term == NULL ? "" : term) == 0 &&
	    buf_add_str(&text,
		": no terminal that a screen can be drawn on: `qtop -b' writes "
		"plain text") == 0)
		(void)complain(EX_USAGE, buf_str(&text));
	buf_done(&text);
	return EX_USAGE;
}

int
screen_run(const struct options *options, const char *instance,
    const struct model_source *source)
{
	static struct screen s;
	SCREEN *terminal;
	int r = -ENOMEM, code;

	s = (struct screen){ .options = options,
		.instance = instance,
		.source = source,
		.view = { .model = &s.model,
		    .instance = instance,
		    .sort = COL_QUEUE,
		    .delay = options->delay } };
	code = check_terminal();
	if (code == 0)
		code = first_look(&s);
	if (code != 0)
		return code;
	(void)setlocale(LC_CTYPE, "");
	terminal = newterm(NULL, stdout, stdin);
	if (terminal == NULL)
		return complain(EX_OSERR, "the terminal cannot be used");
	prepare_terminal();
	s.loop = event_base_new();
	if (s.loop != NULL)
		r = run(&s);
	(void)endwin();
	delscreen(terminal);
	if (s.loop != NULL)
		event_base_free(s.loop);
	return r < 0 ? complain(EX_OSERR, strerror(-r)) : 0;
}
