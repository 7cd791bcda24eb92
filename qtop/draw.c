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
#define MIDDLE_MIN   16  /* columns for "..." and what is behind */

enum pair {
	PAIR_LOADED = 1,
	PAIR_CLOSED,
	PAIR_BAD,
};

static attr_t
attribute(enum line_kind kind)
{
	static const struct {
		attr_t plain, coloured;
	} attributes[] = {
		[LINE_PLAIN] = { A_NORMAL, A_NORMAL },
		[LINE_DIM] = { A_NORMAL, A_DIM },
		[LINE_LOADED] = { A_BOLD, COLOR_PAIR(PAIR_LOADED) },
		[LINE_CLOSED] = { A_UNDERLINE, COLOR_PAIR(PAIR_CLOSED) },
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

struct line {
	wchar_t chars[LINE_MAX_LEN];
	int widths[LINE_MAX_LEN];
	int n, width; /* characters, columns */
};

static void
line_read(struct line *line, const char *text)
{
	mbstate_t state = { 0 };

	line->n = line->width = 0;
	for (; *text != '\0' && line->n < LINE_MAX_LEN; line->n++) {
		line->widths[line->n] =
		    next_char(&text, &state, &line->chars[line->n]);
		line->width += line->widths[line->n];
	}
}

static void
line_remove(struct line *line, int at)
{
	const size_t behind = (size_t)(--line->n - at);

	line->width -= line->widths[at];
	memmove(&line->chars[at], &line->chars[at + 1],
	    behind * sizeof(line->chars[0]));
	memmove(&line->widths[at], &line->widths[at + 1],
	    behind * sizeof(line->widths[0]));
}

/* Cuts the line to COLS columns: behind the first `keep` columns its middle is
 * left out, with "..." in its place, so that its end is shown. */
static void
line_cut_middle(struct line *line, int keep)
{
	int at = 0, used = 0, dots;

	if (line->width <= COLS || COLS - keep < MIDDLE_MIN)
		return;
	while (at < line->n && used + line->widths[at] <= keep)
		used += line->widths[at++];
	for (dots = 0; dots < 3; dots++) {
		line->width += 1 - line->widths[at];
		line->chars[at] = L'.';
		line->widths[at++] = 1;
	}
	while (line->width > COLS && at < line->n)
		line_remove(line, at);
}

/* Draws a line, cut at the edge. */
static void
line_draw(struct line *line, int y, attr_t attributes, bool whole_line)
{
	if (y < 0 || y >= LINES)
		return;
	while (line->width > COLS)
		line->width -= line->widths[--line->n];
	(void)attrset((int)attributes);
	(void)move(y, 0);
	if (whole_line)
		(void)hline(' ' | attributes, COLS);
	(void)addnwstr(line->chars, line->n);
	(void)attrset(A_NORMAL);
}

static void
draw(int y, attr_t attributes, const char *text, bool whole_line)
{
	struct line line;

	line_read(&line, text);
	line_draw(&line, y, attributes, whole_line);
}

/* Draws a line whose end matters: of a line that is too long the middle is left
 * out, behind the first keep columns. */
static void
draw_reason(int y, enum line_kind kind, const char *text, int keep)
{
	struct line line;

	line_read(&line, text);
	line_cut_middle(&line, keep);
	line_draw(&line, y, attribute(kind), false);
}

void
draw_text(int y, enum line_kind kind, const char *text)
{
	draw(y, attribute(kind), text, false);
}

void
draw_heading(int y, const char *text)
{
	draw(y, A_REVERSE, text, true);
}

/* ---- where what is ---- */

static void
lay_out(const struct view *v, struct layout *ret_layout)
{
	layout_choose(v->model, COLS, v->columns, ret_layout);
}

static bool
has_note(const struct model_row *row)
{
	struct buf text = { 0 };
	const bool has = note_add(row, &text) == 0 && text.len > 0;

	buf_done(&text);
	return has;
}

static uint32_t
count_notes(const struct model *model)
{
	uint32_t i, n = 0;

	for (i = 0; i < model->nrows; i++)
		n += has_note(&model->rows[i]);
	return n;
}

/* At most a third of the lines for queues, while their column is not shown. */
static uint32_t
note_lines(const struct view *v)
{
	const int room = (LINES - LINE_ROWS - 1) / 3;
	struct layout layout;
	uint32_t n;

	lay_out(v, &layout);
	if (layout.shown[COL_NOTE] || room <= 0)
		return 0;
	n = count_notes(v->model);
	return n < (uint32_t)room ? n : (uint32_t)room;
}

uint32_t
draw_rows_shown(const struct view *v)
{
	const int rows = LINES - LINE_ROWS - 1 - (int)note_lines(v);

	return rows > 0 ? (uint32_t)rows : 0;
}

/* ---- the table ---- */

/* Highlights the cells of a row that show a fault. */
static void
emphasise(int y, const struct model_row *row, const bool shown[NCOLS])
{
	const attr_t look = has_colors() ? A_BOLD : A_REVERSE;
	const short pair = has_colors() ? PAIR_BAD : 0;
	int i, x = 0;

	for (i = 0; i < NCOLS; i++) {
		if (!shown[i])
			continue;
		if (columns[i].is_emphasised && row->error == 0 &&
		    columns[i].value(row) != 0 && y < LINES)
			(void)mvchgat(y, x, columns[i].width, look, pair, NULL);
		x += columns[i].width + 1;
	}
}

/* The columns of a row that a long note leaves as they are: the figures, and a
 * third of the room behind them. */
static int
row_keep(const bool shown[NCOLS])
{
	int i, figures = 0;

	for (i = 0; i < NCOLS; i++)
		if (shown[i] && !columns[i].rest)
			figures += columns[i].width + 1;
	return COLS > figures ? figures + (COLS - figures) / 3 : COLS;
}

static void
draw_rows(struct view *v, const bool shown[NCOLS])
{
	struct buf text = { 0 };
	uint32_t i, n = draw_rows_shown(v);

	if (v->first > v->nrows || v->first + n > v->nrows)
		v->first = v->nrows > n ? v->nrows - n : 0;
	for (i = 0; i < n && v->first + i < v->nrows; i++) {
		const struct model_row *row = v->rows[v->first + i];

		buf_reset(&text);
		if (format_row(row, shown, &text) < 0)
			continue;
		draw_reason(LINE_ROWS + (int)i, format_row_kind(v->model, row),
		    buf_str(&text), row_keep(shown));
		emphasise(LINE_ROWS + (int)i, row, shown);
	}
	buf_done(&text);
}

static void
draw_age_row(const struct view *v, int y, const struct model_row *row)
{
	struct buf text = { 0 };

	if (format_age_row(row, &text) == 0)
		draw_text(y, format_row_kind(v->model, row), buf_str(&text));
	buf_done(&text);
}

/* Messages by age take the lines that the queues leave: a blank line, titles,
 * the total, and as many queues as fit. */
static void
draw_ages(const struct view *v)
{
	const uint32_t rows = draw_rows_shown(v);
	int y = LINE_ROWS + (int)v->nrows + 1;
	const int end = LINE_ROWS + (int)rows;
	struct buf text = { 0 };
	uint32_t i;

	if (v->nrows == 0 || v->nrows >= rows || end - y < 3 ||
	    COLS < FORMAT_AGES_WIDTH)
		return;
	if (format_age_titles(&text) == 0)
		draw_heading(y++, buf_str(&text));
	buf_done(&text);
	draw_age_row(v, y++, &v->model->total);
	for (i = 0; i < v->nrows && y < end; i++)
		draw_age_row(v, y++, v->rows[i]);
}

/* ---- the lines below ---- */

/* Draws the notes above the keys; the last line counts those without one. */
static void
draw_notes(const struct view *v)
{
	const struct model *model = v->model;
	const uint32_t notes = count_notes(model), lines = note_lines(v);
	const uint32_t told = notes > lines && lines > 0 ? lines - 1 : lines;
	struct buf text = { 0 };
	uint32_t i, n;

	for (i = 0, n = 0; i < model->nrows && n < told; i++) {
		buf_reset(&text);
		if (format_note(&model->rows[i], &text) < 0 || text.len == 0)
			continue;
		draw_reason(LINES - 1 - (int)(lines - n++),
		    format_row_kind(model, &model->rows[i]), buf_str(&text),
		    COLS / 3);
	}
	buf_reset(&text);
	if (told < lines &&
	    buf_printf(
		&text, "and %" PRIu32 " notes more: right", notes - told) == 0)
		draw_text(LINES - 2, LINE_PLAIN, buf_str(&text));
	buf_done(&text);
}

static void
draw_foot(const struct view *v, const struct layout *layout)
{
	const struct view_extent extent = { layout, draw_rows_shown(v) };
	struct buf text = { 0 };

	if (LINES <= LINE_ROWS) /* the figures, not the keys */
		return;
	if (view_keys(v, &extent, COLS, &text) == 0)
		draw_text(LINES - 1, LINE_DIM, buf_str(&text));
	buf_done(&text);
}

/* ---- the whole ---- */

static void
draw_head(const struct view *v)
{
	struct buf text = { 0 };

	if (format_summary(v->model, v->instance, COLS, &text) == 0)
		draw(LINE_SUMMARY, A_BOLD, buf_str(&text), false);
	buf_reset(&text);
	if (format_trouble(v->model, v->instance, &text) == 0 && text.len > 0)
		draw_reason(LINE_TROUBLE, LINE_BAD, buf_str(&text), COLS / 3);
	else if (format_change(v->model, &text) == 0)
		draw_reason(LINE_TROUBLE, LINE_PLAIN, buf_str(&text), COLS / 3);
	buf_done(&text);
}

static void
draw_table(struct view *v)
{
	struct buf text = { 0 };
	struct layout layout;

	lay_out(v, &layout);
	v->columns = layout.page;
	draw_head(v);
	if (format_titles(layout.shown, &text) == 0)
		draw_heading(LINE_TITLES, buf_str(&text));
	buf_reset(&text);
	if (format_row(&v->model->total, layout.shown, &text) == 0)
		draw(LINE_TOTAL, A_BOLD, buf_str(&text), false);
	emphasise(LINE_TOTAL, &v->model->total, layout.shown);
	buf_done(&text);
	draw_rows(v, layout.shown);
	draw_ages(v);
	draw_notes(v);
	draw_foot(v, &layout);
}

void
draw_view(struct view *v)
{
	(void)erase();
	if (v->help)
		help_draw(v);
	else
		draw_table(v);
	(void)refresh();
}

void
draw_again(struct view *v)
{
	(void)clearok(curscr, TRUE);
	draw_view(v);
}

void
draw_prepare(void)
{
	if (!has_colors())
		return;
	(void)start_color();
	(void)use_default_colors();
	(void)init_pair(PAIR_LOADED, COLOR_YELLOW, -1);
	(void)init_pair(PAIR_CLOSED, COLOR_CYAN, -1);
	(void)init_pair(PAIR_BAD, COLOR_RED, -1);
}
