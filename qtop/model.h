/* qtop/model.h - what qtop shows, without terminal and clock:
 *
 *	model    the pages of an instance at one moment, checked
 *	column   the table of columns, and the order of rows
 *	layout   the columns that fit, and those behind the arrow keys
 *	format   a model as lines of text
 */
#ifndef QTOP_MODEL_H
#define QTOP_MODEL_H

#include "base/buf.h"
#include "ipc/page.h"

/* ---- model ----
 *
 * Nothing in a page is trusted: sums saturate, a row without a valid queue
 * number is left out, a page that cannot be read or is old is marked so. The
 * caller passes both times. */

/* Where pages come from: shared memory, or a test. As sched_page_read() and
 * queue_page_read(). */
struct model_source {
	int (*read_sched)(const char *instance, struct sched_page *ret_page);
	int (*read_queue)(
	    const char *instance, uint32_t queue, struct queue_page *ret_page);
};
extern const struct model_source model_source_shm;

struct model_row {
	struct sched_row sched;
	struct queue_page page; /* zeroed when it could not be read */
	int error;              /* of reading the page: 0 or -errno */
	bool stale;             /* the page is old */
	bool manual;            /* load_pct was set by setqload */
	usec_t now_mono;        /* of the model, for what is left of times */
	uint32_t load_pct;
	uint64_t in;        /* maildrop and incoming */
	usec_t oldest_age;  /* -1: nothing there */
	usec_t page_age;    /* since the last publication */
	usec_t manual_left; /* until the manual load ends */
};

struct model {
	int error;        /* of reading /qscheduler: 0 or -errno */
	bool stale;       /* the supervisor gave no sign of life */
	usec_t sched_age; /* since its last one */
	usec_t now_mono, now_wall;
	struct sched_page sched; /* zeroed when it could not be read */
	struct model_row rows[PAGE_QUEUES_MAX];
	uint32_t nrows;
	/* Sums; load_pct is the mean of the open queues whose load is known, by
	 * the rule of the supervisor. */
	struct model_row total;
};

void model_sample(struct model *model, const struct model_source *source,
    const char *instance, usec_t now_mono, usec_t now_wall);

/* ---- column ----
 *
 * One table: order, titles, text of a cell, order of rows, help and manual come
 * from it. */

#define CELL_MAX 240

enum column_id {
	COL_QUEUE,
	COL_STATE,
	COL_LOCAL,
	COL_REMOTE,
	COL_LOAD,
	COL_IN,
	COL_ACTIVE,
	COL_DEFERRED,
	COL_HOLD,
	COL_CORRUPT,
	COL_RATE_IN,
	COL_RATE_OUT,
	COL_OLDEST,
	COL_RESTARTS,
	COL_RECIPIENTS,
	COL_FAILED,
	COL_EXPIRED,
	COL_ERRORS,
	COL_UNTRIED, /* scripts cut the columns before by their place */
	COL_NOTE,
	NCOLS,
};

struct column {
	const char *key, *title;
	int width;
	bool left; /* text, not a number */
	bool rest; /* the last: as long as its text */
	/* A narrow screen shows the columns of the lowest ranks. A column with
	 * a value that is not normal ranks as if it had RANK_ALARM. */
	int rank;
	bool is_alarm;      /* any value but 0 is unusual */
	bool is_emphasised; /* any value but 0 is shown like a fault */
	void (*fmt)(const struct model_row *row, char cell[CELL_MAX]);
	/* For sorting, largest first; NULL: not sortable. */
	uint64_t (*value)(const struct model_row *row);
	const char *help;
};

extern const struct column columns[NCOLS];

/* The total row has a state that no queue has. */
bool row_is_total(const struct model_row *row);
/* A fault that somebody has to see to: of the directory or disk, of processes
 * that keep failing, of the page. */
bool row_is_faulty(const struct model_row *row);
/* The reason of an unusual state, or nothing. -ENOMEM. */
int note_add(const struct model_row *row, struct buf *out);
/* At most 5 characters: 99999, 123k, 1.2M … */
void count_format(uint64_t n, char cell[CELL_MAX]);
/* At most 5 characters: 59s, 12m, 3h, 5d, >999d; "-" for -1. */
void age_format(usec_t age, char cell[CELL_MAX]);

/* The next column that rows can be sorted by, or the last one before, around
 * the end. */
enum column_id column_next_sort(enum column_id column);
enum column_id column_last_sort(enum column_id column);
/* Largest first, or smallest first if reversed, equal ones by number; by number
 * for COL_QUEUE. */
void model_sort(struct model *model, enum column_id column, bool reversed);

/* ---- layout ---- */

#define LAYOUT_WIDE INT32_MAX /* a width that all columns fit */

struct layout {
	bool shown[NCOLS];
	uint32_t page;   /* 0: the columns that matter most */
	uint32_t hidden; /* columns that are not shown on this page */
	uint32_t after;  /* columns that are first shown on a later page */
};

/* The columns of a page that fit into this number of characters. Each column is
 * shown on one page, but QUEUE and STATE on all that have room. A page behind
 * the last one is the last one. */
void layout_choose(const struct model *model, int width, uint32_t page,
    struct layout *ret_layout);

/* ---- format: -ENOMEM, the line is cut then ----
 *
 * Lines for the screen and for batch output. */

/* The look of a line on the screen: one meaning each (qtop(8), COLOURS). */
enum line_kind {
	LINE_PLAIN,
	LINE_DIM,    /* an idle queue */
	LINE_LOADED, /* at the load at which a queue is added */
	LINE_CLOSED, /* takes no new mail, as somebody wants: closing, by hand
		      */
	LINE_BAD,    /* a fault */
};

#define PARTS_MAX 12

/* A part of a line. Of parts that do not fit all, those with a lower rank
 * stay. */
struct line_part {
	char text[160]; /* "": none */
	int rank;
};

void part_set(struct line_part *part, int rank, const char *format, ...)
    PRINTF(3, 4);
/* Appends the parts (PARTS_MAX) that fit into this number of characters, in
 * their order. */
int format_parts(const struct line_part *parts, size_t nparts,
    const char *between, int width, struct buf *out);

/* Each appends one line without its newline. */

/* "qscheduler mine: pid 4711, 2 open (1 to 20), 2 on disk, …" */
int format_summary(const struct model *model, const char *instance, int width,
    struct buf *out);
int format_titles(const bool shown[NCOLS], struct buf *out);
int format_row(
    const struct model_row *row, const bool shown[NCOLS], struct buf *out);
enum line_kind
format_row_kind(const struct model *model, const struct model_row *row);
/* "last change 5m ago: queue 6 added …", or nothing. */
int format_change(const struct model *model, struct buf *out);
/* "3: by hand for 2h: new disk", or nothing. */
int format_note(const struct model_row *row, struct buf *out);
/* Messages by age. */
int format_age_titles(struct buf *out);
int format_age_row(const struct model_row *row, struct buf *out);
#define FORMAT_AGES_WIDTH 77
/* "threshold = 90.00 , qcount = 5, qconf = 5", as parsers of the original know
 * it, and more behind it. */
int format_threshold(const struct model *model, struct buf *out);
/* A fault of the whole instance, or nothing. */
int format_trouble(
    const struct model *model, const char *instance, struct buf *out);

/* The whole batch output of one reading, with newlines. */
int
format_batch(const struct model *model, const char *instance, struct buf *out);

#endif
