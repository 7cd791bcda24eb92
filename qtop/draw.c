#include "qtop/qtop.h"

#include <inttypes.h>
#include <ncurses.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "qtop/model.h"

#define LINE_SUMMARY 0
#define LINE_TROUBLE 1
#define LINE_TITLES  2
#define LINE_TOTAL   3
#define LINE_ROWS    4
#define LINE_MAX_LEN 512 /* characters; no screen shows more */

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

/* A character that the terminal does not have, or that has no width, becomes
 * `?`. Returns the columns of the next character. */
static int
next_char(const char **text, mbstate_t *state, wchar_t *ret_char)
{
	size_t n = mbrtowc(ret_char, *text, strlen(*text), state);
	int width;

	if (n == (size_t)-1 || n == (size_t)-2) {
		memset(state, 0, sizeof(*state));
		n = 1;
		*ret_char = L'?';
	}
	*text += n;
	width = wcwidth(*ret_char);
	if (width > 0)
		return width;
	*ret_char = L'?';
	return 1;
}

/* Draws a line, cut at the edge. */
static void
draw(int y, attr_t attributes, const char *text, bool whole_line)
{
	wchar_t line[LINE_MAX_LEN];
	mbstate_t state = { 0 };
	int used = 0, n = 0;

	if (y < 0 || y >= LINES)
		return;
	while (*text != '\0' && n < LINE_MAX_LEN) {
		const int width = next_char(&text, &state, &line[n]);

		if (used + width > COLS)
			break;
		used += width;
		n++;
	}
	(void)attrset((int)attributes);
	(void)move(y, 0);
	if (whole_line)
		(void)hline(' ' | attributes, COLS);
	(void)addnwstr(line, n);
	(void)attrset(A_NORMAL);
}

/* ---- the table ---- */

static bool
has_note(const struct model_row *row)
{
	struct buf text = { 0 };
	const bool has = note_add(row, &text) == 0 && text.len > 0;

	buf_done(&text);
	return has;
}

/* At most a third of the lines for queues. */
static uint32_t
note_lines(const struct view *v)
{
	const int room = (LINES - LINE_ROWS - 1) / 3;
	bool shown[NCOLS];
	uint32_t i, n = 0;

	format_choose(COLS, shown);
	if (shown[COL_NOTE] || room <= 0)
		return 0;
	for (i = 0; i < v->model->nrows && n < (uint32_t)room; i++)
		n += has_note(&v->model->rows[i]);
	return n;
}

uint32_t
draw_rows_shown(const struct view *v)
{
	const int rows = LINES - LINE_ROWS - 1 - (int)note_lines(v);

	return rows > 0 ? (uint32_t)rows : 0;
}

static void
draw_rows(struct view *v, const bool shown[NCOLS])
{
	const struct model *model = v->model;
	struct buf text = { 0 };
	uint32_t i, n = draw_rows_shown(v);

	if (v->first > model->nrows || v->first + n > model->nrows)
		v->first = model->nrows > n ? model->nrows - n : 0;
	for (i = 0; i < n && v->first + i < model->nrows; i++) {
		const struct model_row *row = &model->rows[v->first + i];

		buf_reset(&text);
		if (format_row(row, shown, &text) == 0)
			draw(LINE_ROWS + (int)i,
			    attribute(format_row_kind(model, row)),
			    buf_str(&text), false);
	}
	buf_done(&text);
}

/* Draws the notes above the keys. */
static void
draw_notes(const struct view *v)
{
	const struct model *model = v->model;
	uint32_t i, n = note_lines(v);
	int y = LINES - 1 - (int)n;
	struct buf text = { 0 };

	for (i = 0; i < model->nrows && y < LINES - 1 && n > 0; i++) {
		const struct model_row *row = &model->rows[i];

		buf_reset(&text);
		if (format_note(row, &text) == 0 && text.len > 0)
			draw(y++, attribute(format_row_kind(model, row)),
			    buf_str(&text), false);
	}
	buf_done(&text);
}

static void
draw_foot(const struct view *v)
{
	struct buf text = { 0 };
	const uint32_t n = draw_rows_shown(v);
	int r;

	if (LINES <= LINE_ROWS) /* the figures, not the keys */
		return;
	r = buf_printf(&text, "q quit  space refresh  s sort: %s  h help",
	    columns[v->sort].title);
	if (r == 0 && n > 0 && v->model->nrows > n)
		r = buf_printf(&text,
		    "  up/down %" PRIu32 "-%" PRIu32 " of %" PRIu32,
		    v->first + 1, v->first + n, v->model->nrows);
	if (r == 0)
		draw(LINES - 1, A_DIM, buf_str(&text), false);
	buf_done(&text);
}

static void
draw_head(const struct view *v)
{
	struct buf text = { 0 };

	if (format_summary(v->model, v->instance, &text) == 0)
		draw(LINE_SUMMARY, A_BOLD, buf_str(&text), false);
	buf_reset(&text);
	if (format_trouble(v->model, v->instance, &text) == 0 && text.len > 0)
		draw(LINE_TROUBLE, attribute(LINE_BAD), buf_str(&text), false);
	else if (format_change(v->model, &text) == 0)
		draw(LINE_TROUBLE, A_NORMAL, buf_str(&text), false);
	buf_done(&text);
}

static void
draw_table(struct view *v)
{
	struct buf text = { 0 };
	bool shown[NCOLS];

	format_choose(COLS, shown);
	draw_head(v);
	if (format_titles(shown, &text) == 0)
		draw(LINE_TITLES, A_REVERSE, buf_str(&text), true);
	buf_reset(&text);
	if (format_row(&v->model->total, shown, &text) == 0)
		draw(LINE_TOTAL, A_BOLD, buf_str(&text), false);
	buf_done(&text);
	draw_rows(v, shown);
	draw_notes(v);
	draw_foot(v);
}

static void
draw_help(void)
{
	static const char *const keys[] = {
		"q           quit",
		"space, r    read again now",
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

void
draw_view(struct view *v)
{
	(void)erase();
	if (v->help)
		draw_help();
	else
		draw_table(v);
	(void)refresh();
}

void
draw_prepare(void)
{
	if (!has_colors())
		return;
	(void)start_color();
	(void)use_default_colors();
	(void)init_pair(PAIR_WARN, COLOR_YELLOW, -1);
	(void)init_pair(PAIR_BAD, COLOR_RED, -1);
}
