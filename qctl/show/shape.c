/* The shape of the queues: recipients, or messages, by domain and age. */
#include "qctl/qctl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <bsd/sys/tree.h>

#include "base/address.h"
#include "base/text.h"

#define AGES       10 /* 5, 10, … 1280 minutes, and more */
#define FIRST_AGE  (5 * 60 * USEC_PER_SEC)
#define DOMAIN_MAX 255
#define NAME_WIDTH 40
#define NULL_NAME  "MAILER-DAEMON"

struct shape_row {
	RB_ENTRY(shape_row) link;
	uint64_t counts[AGES], total;
	char domain[]; /* in lower case, cleaned */
};

RB_HEAD(shape_tree, shape_row);

struct shape {
	struct shape_tree tree;
	size_t count;
};

static int
by_domain(const struct shape_row *a, const struct shape_row *b)
{
	return strcasecmp(a->domain, b->domain);
}

TREE_GENERATE(shape_tree, shape_row, link, by_domain)

struct shape *
shape_new(void)
{
	return calloc(1, sizeof(struct shape));
}

void
shape_free(struct shape **s)
{
	struct shape_row *row;

	if (*s == NULL)
		return;
	while ((row = RB_ROOT(&(*s)->tree)) != NULL) {
		RB_REMOVE(shape_tree, &(*s)->tree, row);
		free(row);
	}
	free(*s);
	*s = NULL;
}

/* The row of a domain, made if there is none. NULL: no memory. */
static struct shape_row *
get_row(struct shape *s, const char *domain, size_t len)
{
	struct shape_row *row = calloc(1, sizeof(*row) + len + 1), *there;

	if (row == NULL)
		return NULL;
	memcpy(row->domain, domain, len);
	there = RB_INSERT(shape_tree, &s->tree, row);
	if (there != NULL) {
		free(row);
		return there;
	}
	s->count++;
	return row;
}

/* ---- counting ---- */

static unsigned
age_column(usec_t age)
{
	usec_t limit = FIRST_AGE;
	unsigned i;

	for (i = 0; i < AGES - 1 && age > limit; i++)
		limit *= 2;
	return i;
}

struct counting {
	struct shape *shape;
	unsigned column;
};

static int
count_domain(struct counting *c, const char *address)
{
	const char *domain = address_domain(address);
	struct buf clean = { 0 };
	struct shape_row *row = NULL;
	int rc = *address == '\0'
	    ? buf_add_str(&clean, NULL_NAME)
	    : text_clean(&clean, domain, strlen(domain), DOMAIN_MAX);

	if (rc == 0)
		row = get_row(c->shape, buf_str(&clean), clean.len);
	buf_done(&clean);
	if (row == NULL)
		return -ENOMEM;
	row->counts[c->column]++;
	row->total++;
	return 0;
}

static int
count_recipient(const struct recipient *one, void *arg)
{
	return one->rcpt->mark == RCPT_DONE
	    ? 0
	    : count_domain(arg, one->rcpt->address);
}

int
shape_count(
    struct worker *w UNUSED, const struct message *m, const struct view *v)
{
	struct counting c = { v->rows,
		age_column(v->now_wall - m->file.arrival_wall) };

	if (m->damage[0] != '\0')
		return 0;
	if (v->options->senders)
		return count_domain(&c, buf_str(&m->sender));
	return message_recipients(m, false, count_recipient, &c);
}

/* ---- from a worker to its parent ---- */

void
shape_send(struct shape *s, struct worker *w)
{
	char data[sizeof(uint64_t) * AGES + DOMAIN_MAX];
	struct shape_row *row;

	RB_FOREACH (row, shape_tree, &s->tree) {
		const size_t len = strlen(row->domain);

		memcpy(data, row->counts, sizeof(row->counts));
		memcpy(data + sizeof(row->counts), row->domain, len);
		worker_row(w, data, sizeof(row->counts) + len);
	}
}

int
shape_take(struct shape *s, const void *data, size_t len)
{
	struct shape_row *row;
	uint64_t counts[AGES];
	size_t i;

	if (len < sizeof(counts))
		return 0;
	memcpy(counts, data, sizeof(counts));
	row = get_row(
	    s, (const char *)data + sizeof(counts), len - sizeof(counts));
	if (row == NULL)
		return -ENOMEM;
	for (i = 0; i < AGES; i++) {
		row->counts[i] += counts[i];
		row->total += counts[i];
	}
	return 0;
}

/* ---- the table ---- */

static const char *const titles[AGES + 1] = { "T", "5", "10", "20", "40", "80",
	"160", "320", "640", "1280", "1280+" };

static int
by_total(const void *a, const void *b)
{
	const struct shape_row *x = *(const struct shape_row *const *)a;
	const struct shape_row *y = *(const struct shape_row *const *)b;

	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return by_domain(x, y);
}

static int
digits(uint64_t n)
{
	int count = 1;

	for (; n > 9; n /= 10)
		count++;
	return count;
}

struct widths {
	int name, column[AGES + 1];
};

/* No number is wider than its sum, and no domain's than the total's. */
static void
fit(const struct shape_row *total, struct shape_row *const *rows, size_t count,
    struct widths *w)
{
	size_t i;

	w->name = (int)strlen("TOTAL");
	for (i = 0; i < count; i++) {
		const int len = (int)strlen(rows[i]->domain);

		if (len > w->name)
			w->name = len < NAME_WIDTH ? len : NAME_WIDTH;
	}
	for (i = 0; i <= AGES; i++) {
		const int wide =
		    digits(i == 0 ? total->total : total->counts[i - 1]);
		const int title = (int)strlen(titles[i]);

		w->column[i] = wide > title ? wide : title;
	}
}

static int
print_titles(const struct widths *w, struct buf *out)
{
	size_t i;
	int rc = buf_printf(out, "%*s", w->name, "");

	for (i = 0; rc == 0 && i <= AGES; i++)
		rc = buf_printf(out, " %*s", w->column[i], titles[i]);
	return rc < 0 ? rc : buf_add_char(out, '\n');
}

static int
print_row(const struct widths *w, const char *name, const struct shape_row *row,
    struct buf *out)
{
	size_t i;
	int rc = buf_printf(out, "%*.*s %*" PRIu64, w->name, NAME_WIDTH, name,
	    w->column[0], row->total);

	for (i = 0; rc == 0 && i < AGES; i++)
		rc = buf_printf(
		    out, " %*" PRIu64, w->column[i + 1], row->counts[i]);
	return rc < 0 ? rc : buf_add_char(out, '\n');
}

/* The rows in the order of their totals; NULL: no memory. */
static struct shape_row **
sort_rows(struct shape *s, struct shape_row *total)
{
	struct shape_row **rows = calloc(s->count + 1, sizeof(*rows));
	struct shape_row *row = NULL;
	size_t n = 0, i;

	if (rows == NULL)
		return NULL;
	RB_FOREACH (row, shape_tree, &s->tree) {
		for (i = 0; i < AGES; i++)
			total->counts[i] += row->counts[i];
		total->total += row->total;
		rows[n++] = row;
	}
	qsort(rows, n, sizeof(struct shape_row *), by_total);
	return rows;
}

int
shape_print(struct shape *s, struct buf *out)
{
	struct shape_row total = { 0 };
	struct shape_row **rows = sort_rows(s, &total);
	struct widths widths;
	size_t i;
	int rc;

	if (rows == NULL)
		return -ENOMEM;
	fit(&total, rows, s->count, &widths);
	rc = print_titles(&widths, out);
	if (rc == 0)
		rc = print_row(&widths, "TOTAL", &total, out);
	for (i = 0; rc == 0 && i < s->count; i++)
		rc = print_row(&widths,
		    rows[i]->domain[0] == '\0' ? "(none)" : rows[i]->domain,
		    rows[i], out);
	free(rows);
	return rc;
}
