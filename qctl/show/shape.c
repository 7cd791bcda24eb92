/* The shape of the queues: recipients or messages, by a key and by age. */
#include "qctl/show/show.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <bsd/sys/tree.h>

#include "base/domain.h"
#include "base/text.h"
#include "base/verp.h"
#include "qctl/read/user.h"

#define AGES         10 /* 5, 10, … 1280 minutes, and more */
#define FIRST_AGE    (5 * 60 * USEC_PER_SEC)
#define DOMAIN_WIDTH 40 /* longer domains are cut, as by qshape */
#define NULL_NAME    "MAILER-DAEMON"
#define LABEL_SIZE   (ADDRESS_MAX + 1)

struct shape_row {
	RB_ENTRY(shape_row) link;
	uint64_t counts[AGES], total;
	char name[]; /* printable text of the domain, address or user */
};

RB_HEAD(shape_tree, shape_row);

struct shape {
	struct shape_tree tree;
	size_t count;
};

static int
by_name(const struct shape_row *a, const struct shape_row *b)
{
	return strcasecmp(a->name, b->name);
}

TREE_GENERATE(shape_tree, shape_row, link, by_name)

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

/* The row of this name, made if there is none. NULL: no memory. */
static struct shape_row *
get_row(struct shape *s, const char *name, size_t len)
{
	struct shape_row *row = calloc(1, sizeof(*row) + len + 1), *there;

	if (row == NULL)
		return NULL;
	memcpy(row->name, name, len);
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
count_name(struct counting *c, const char *name)
{
	struct buf clean = { 0 };
	struct shape_row *row = NULL;

	if (text_clean(&clean, name, strlen(name), ADDRESS_MAX) == 0)
		row = get_row(c->shape, buf_str(&clean), clean.len);
	buf_done(&clean);
	if (row == NULL)
		return -ENOMEM;
	row->counts[c->column]++;
	row->total++;
	return 0;
}

static int
count_domain(struct counting *c, const char *address)
{
	char domain[DOMAIN_FOLDED_MAX + 1];

	if (*address == '\0')
		return count_name(c, NULL_NAME);
	if (domain_fold(address_domain(address), domain) < 0)
		return -ENOMEM;
	return count_name(c, domain);
}

static int
count_recipient(const struct recipient *one, void *arg)
{
	return one->rcpt->mark == RCPT_DONE
	    ? 0
	    : count_domain(arg, one->rcpt->address);
}

/* ---- keys ---- */

/* Keys of rows: the value of --by, the first member of a JSON object, and what
 * is counted. */
static const struct {
	const char *name, *member, *counted;
} keys[] = {
	[SHAPE_BY_DOMAIN] = { "domain", "domain", "recipients" },
	[SHAPE_BY_SENDER] = { "sender", "sender", "messages" },
	[SHAPE_BY_SENDER_DOMAIN] = { "sender-domain", "sender_domain",
	    "messages" },
	[SHAPE_BY_UID] = { "uid", "uid", "messages" },
};

static int
count(struct counting *c, enum shape_by by, const struct message *m)
{
	char text[ADDRESS_MAX + 1];
	size_t len;

	switch (by) {
	case SHAPE_BY_DOMAIN:
		return message_recipients(m, false, count_recipient, c);
	case SHAPE_BY_SENDER:
		return count_name(c, buf_str(&m->sender));
	case SHAPE_BY_SENDER_DOMAIN:
		len = verp_base_len(m->sender.data, m->sender.len);
		snprintf(
		    text, sizeof(text), "%.*s", (int)len, buf_str(&m->sender));
		return count_domain(c, text);
	case SHAPE_BY_UID:
		break;
	}
	snprintf(text, sizeof(text), "%" PRIu32, m->file.uid);
	return count_name(c, text);
}

static const char *
name_of(const struct shape_row *row)
{
	return user_name((uid_t)strtoul(row->name, NULL, 10));
}

/* An address that is cut could not be given to another command. */
static void
label_row(const struct shape_row *row, enum shape_by by, char label[LABEL_SIZE])
{
	const char *user;

	if (by == SHAPE_BY_UID) {
		user = name_of(row);
		snprintf(label, LABEL_SIZE, *user == '\0' ? "%s" : "%s(%s)",
		    row->name, user);
	} else if (by == SHAPE_BY_SENDER)
		snprintf(label, LABEL_SIZE, "%s",
		    row->name[0] == '\0' ? NULL_NAME : row->name);
	else
		snprintf(label, LABEL_SIZE, "%.*s", DOMAIN_WIDTH,
		    row->name[0] == '\0' ? "(none)" : row->name);
}

int
shape_find_key(const char *name, enum shape_by *ret_by)
{
	unsigned i;

	for (i = 0; i < ARRAY_LEN(keys); i++)
		if (strcmp(keys[i].name, name) == 0) {
			*ret_by = (enum shape_by)i;
			return 0;
		}
	return -EINVAL;
}

int
shape_count(
    struct worker *w UNUSED, const struct message *m, const struct view *v)
{
	struct counting c = { v->rows,
		age_column(v->now_wall - m->file.arrival_wall) };

	return m->damage[0] != '\0' ? 0 : count(&c, v->options->by, m);
}

/* ---- from a worker to its parent ---- */

void
shape_send(struct shape *s, struct worker *w)
{
	char data[sizeof(uint64_t) * AGES + ADDRESS_MAX];
	struct shape_row *row;

	RB_FOREACH (row, shape_tree, &s->tree) {
		const size_t len = strlen(row->name);

		memcpy(data, row->counts, sizeof(row->counts));
		memcpy(data + sizeof(row->counts), row->name, len);
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
	return by_name(x, y);
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

/* No number is wider than its sum, and none of a row than the total's. */
static void
fit(const struct shape_row *total, struct shape_row *const *rows, size_t count,
    enum shape_by by, struct widths *w)
{
	char label[LABEL_SIZE];
	size_t i;

	w->name = (int)strlen("TOTAL");
	for (i = 0; i < count; i++) {
		label_row(rows[i], by, label);
		if ((int)strlen(label) > w->name)
			w->name = (int)strlen(label);
	}
	for (i = 0; i <= AGES; i++) {
		const int wide =
		    digits(i == 0 ? total->total : total->counts[i - 1]);
		const int title = (int)strlen(titles[i]);

		w->column[i] = wide > title ? wide : title;
	}
}

static void
print_titles(const struct widths *w, struct buf *out)
{
	size_t i;

	buf_printf(out, "%*s", w->name, "");
	for (i = 0; i <= AGES; i++)
		buf_printf(out, " %*s", w->column[i], titles[i]);
	buf_add_str(out, "\n");
}

static void
print_row(const struct widths *w, const char *name, const struct shape_row *row,
    struct buf *out)
{
	size_t i;

	buf_printf(
	    out, "%*s %*" PRIu64, w->name, name, w->column[0], row->total);
	for (i = 0; i < AGES; i++)
		buf_printf(out, " %*" PRIu64, w->column[i + 1], row->counts[i]);
	buf_add_str(out, "\n");
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

static void
print_table(struct shape_row *const *rows, size_t count,
    const struct shape_row *total, enum shape_by by, struct buf *out)
{
	char label[LABEL_SIZE];
	struct widths widths;
	size_t i;

	fit(total, rows, count, by, &widths);
	print_titles(&widths, out);
	print_row(&widths, "TOTAL", total, out);
	for (i = 0; i < count; i++) {
		label_row(rows[i], by, label);
		print_row(&widths, label, rows[i], out);
	}
}

static void
print_object(const struct shape_row *row, enum shape_by by, struct buf *out)
{
	size_t i;

	buf_printf(out, "{\"%s\": ", keys[by].member);
	if (by == SHAPE_BY_UID) {
		buf_add_str(out, row->name);
		out_member(out, "user", name_of(row));
	} else
		out_json(out, row->name, strlen(row->name));
	buf_printf(out, ", \"%s\": %" PRIu64 ", \"ages\": {", keys[by].counted,
	    row->total);
	for (i = 0; i < AGES; i++)
		buf_printf(out, "%s\"%s\": %" PRIu64, i == 0 ? "" : ", ",
		    titles[i + 1], row->counts[i]);
	buf_add_str(out, "}}\n");
}

int
shape_print(struct shape *s, const struct options *o, struct buf *out)
{
	struct shape_row total = { 0 };
	struct shape_row **rows = sort_rows(s, &total);
	size_t i;

	if (rows == NULL)
		return -ENOMEM;
	if (!o->json)
		print_table(rows, s->count, &total, o->by, out);
	for (i = 0; o->json && i < s->count; i++)
		print_object(rows[i], o->by, out);
	free(rows);
	return 0;
}
