#include "qtop/qtop.h"

#include <ncurses.h>
#include <stdio.h>

static const struct {
	const char *keys, *help;
} keys[] = {
	{ "q", "quit" },
	{ "h, ?", "this help" },
	{ "right, left", "the columns that are hidden; back" },
	{ "up, down", "one row; page up, page down: a screen of rows" },
	{ "s, <", "sort by the next column, by the one before" },
	{ "S", "sort the other way round: smallest first, largest first" },
	{ "f",
	    "show all queues; those that are not normal; those that are busy" },
	{ "p", "freeze what is shown, and go on" },
	{ "+, -", "read less often, more often" },
	{ "space, r", "read again now" },
	{ "^L", "draw the screen again" },
};

static const struct {
	const char *look, *help;
	enum line_kind kind;
} looks[] = {
	{ "red", "a fault: see its note", LINE_BAD },
	{ "yellow", "its load is at the threshold, or above", LINE_LOADED },
	{ "cyan", "takes no new mail, as somebody wants: closing, by hand",
	    LINE_CLOSED },
	{ "dim", "idle", LINE_DIM },
	{ "plain", "busy", LINE_PLAIN },
};

/* ---- all lines, one after the other ---- */

struct sheet {
	uint32_t first; /* the line at the top of the screen */
	uint32_t line;  /* that comes next */
	uint32_t room;
};

/* The place on the screen of the next line; -1: it is not there. */
static int
next_place(struct sheet *s)
{
	const uint32_t line = s->line++;

	return line < s->first || line - s->first >= s->room
	    ? -1
	    : (int)(line - s->first);
}

static void
add_heading(struct sheet *s, const char *text)
{
	const int y = next_place(s);

	if (y >= 0)
		draw_heading(y, text);
}

static void
add_line(
    struct sheet *s, enum line_kind kind, const char *what, const char *help)
{
	const int y = next_place(s);
	char line[160];

	if (y < 0)
		return;
	snprintf(line, sizeof(line), "%-11s %s", what, help);
	draw_text(y, kind, line);
}

static void
add_all(struct sheet *s)
{
	size_t i;

	add_heading(s, "qtop: columns");
	for (i = 0; i < NCOLS; i++)
		add_line(s, LINE_PLAIN, columns[i].title, columns[i].help);
	add_heading(s, "keys");
	for (i = 0; i < ARRAY_LEN(keys); i++)
		add_line(s, LINE_PLAIN, keys[i].keys, keys[i].help);
	add_heading(s, "colours of queues");
	for (i = 0; i < ARRAY_LEN(looks); i++)
		add_line(s, looks[i].kind, looks[i].look, looks[i].help);
}

static uint32_t
count_lines(void)
{
	return NCOLS + ARRAY_LEN(keys) + ARRAY_LEN(looks) + 3;
}

void
help_draw(struct view *v)
{
	const uint32_t room = LINES > 1 ? (uint32_t)LINES - 1 : 0;
	const uint32_t lines = count_lines();
	struct sheet sheet;

	if (lines <= room)
		v->help_first = 0;
	else if (v->help_first > lines - room)
		v->help_first = lines - room;
	sheet = (struct sheet){ .first = v->help_first, .room = room };
	add_all(&sheet);
	draw_text(LINES - 1, LINE_DIM,
	    lines > room ? "up, down: more; any other key ends the help"
			 : "any key ends the help");
}
