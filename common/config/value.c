/* The types of parameters: the reader of a value, and the writer, whose text
 * reads back as the same value. */
#include "config/param.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"

struct type_ops {
	const char *word; /* for the manual */
	param_parse_fn *parse;
	param_format_fn *format;
	bool text;         /* the field is a string that conf owns */
	const char *chars; /* of a text, beside letters and digits */
};
static const struct type_ops types[PARAM_NTYPES];

static int
wrong(struct buf *why, const char *text)
{
	int r = buf_add_str(why, text);

	return r < 0 ? r : -EINVAL;
}

/* Append the reason for an error of num_…(). num_…() call a negative number
 * malformed; the reason names the range, as for any number out of range. The
 * range is written as in param.def. */
static int
wrong_number(const struct param *p, const char *value, int error,
    const char *what, struct buf *why)
{
	int r = error == -ERANGE || (value[0] == '-' && value[1] != '\0')
	    ? buf_printf(why, "must be %s to %s", p->min, p->max)
	    : buf_printf(why, "must be %s", what);

	return r < 0 ? r : -EINVAL;
}

static uint64_t
bound_u64(const char *text)
{
	uint64_t value = 0;

	ASSERT(num_u64(text, 0, UINT64_MAX, &value) == 0);
	return value;
}

static int
parse_u64(
    const struct param *p, void *field, const char *value, struct buf *why)
{
	int r = num_u64(value, bound_u64(p->min), bound_u64(p->max), field);

	return r == 0 ? 0 : wrong_number(p, value, r, "a whole number", why);
}

static int
parse_u32(
    const struct param *p, void *field, const char *value, struct buf *why)
{
	uint64_t n;
	int r = parse_u64(p, &n, value, why);

	if (r == 0)
		*(uint32_t *)field = (uint32_t)n;
	return r;
}

/* A percent sign may follow. */
static int
parse_percent(
    const struct param *p, void *field, const char *value, struct buf *why)
{
	char digits[16];
	size_t len = strlen(value);
	uint64_t n;
	int r = -EINVAL;

	if (len > 0 && value[len - 1] == '%')
		len--;
	if (len < sizeof(digits)) {
		memcpy(digits, value, len);
		digits[len] = '\0';
		r = num_u64(digits, bound_u64(p->min), bound_u64(p->max), &n);
	}
	if (r < 0)
		return wrong_number(
		    p, value, r, "a whole number of percent", why);
	*(uint32_t *)field = (uint32_t)n;
	return 0;
}

static int
parse_size(
    const struct param *p, void *field, const char *value, struct buf *why)
{
	uint64_t min = 0, max = 0;
	int r;

	ASSERT(num_size(p->min, 0, UINT64_MAX, &min) == 0);
	ASSERT(num_size(p->max, 0, UINT64_MAX, &max) == 0);
	r = num_size(value, min, max, field);
	return r == 0 ? 0
		      : wrong_number(p, value, r, "a size (64k, 10m, 2g)", why);
}

static int
parse_duration(
    const struct param *p, void *field, const char *value, struct buf *why)
{
	usec_t min = 0, max = 0;
	int r;

	ASSERT(num_duration(p->min, 0, USEC_NEVER, &min) == 0);
	ASSERT(num_duration(p->max, 0, USEC_NEVER, &max) == 0);
	r = num_duration(value, min, max, field);
	return r == 0 ? 0
		      : wrong_number(p, value, r,
			    "a time (250ms, 30s, 5m, 2h, 5d, 1w)", why);
}

static int
parse_decimal(
    const struct param *p, void *field, const char *value, struct buf *why)
{
	double max = 0;
	int r;

	ASSERT(num_decimal(p->max, 0, 1e15, &max) == 0);
	r = num_decimal(value, 0, max, field);
	return r == 0 ? 0 : wrong_number(p, value, r, "a decimal number", why);
}

static const char *const feedback_below[] = {
	[WINDOW_FIXED] = "",
	[WINDOW_PER_N] = "/concurrency",
	[WINDOW_PER_ROOT_N] = "/sqrt_concurrency",
};

/* The part after x: nothing, /y, or a word. -EINVAL. */
static int
read_below(const char *rest, struct window_feedback *ret_f, double *ret_y)
{
	size_t i;

	*ret_y = 1;
	for (i = 0; i < ARRAY_LEN(feedback_below); i++)
		if (strcmp(rest, feedback_below[i]) == 0) {
			ret_f->form = (enum window_form)i;
			return 0;
		}
	ret_f->form = WINDOW_FIXED;
	return num_decimal(rest + 1, 0, 1e9, ret_y) < 0 || *ret_y <= 0 ? -EINVAL
								       : 0;
}

/* x, x/y, x/concurrency, x/sqrt_concurrency. */
static int
parse_feedback(
    const struct param *p, void *field, const char *value, struct buf *why)
{
	struct window_feedback f;
	size_t len = strcspn(value, "/");
	char x[32];
	double y;

	if (len < sizeof(x))
		memcpy(x, value, len);
	x[len < sizeof(x) ? len : 0] = '\0';
	if (num_decimal(x, 0, 1e9, &f.amount) < 0 ||
	    read_below(value + len, &f, &y) < 0)
		return wrong(
		    why, "must be x, x/y, x/concurrency or x/sqrt_concurrency");
	f.amount /= y;
	if (f.amount > 1)
		return wrong_number(p, value, -ERANGE, "", why);
	*(struct window_feedback *)field = f;
	return 0;
}

static int
parse_bool(const struct param *p UNUSED, void *field, const char *value,
    struct buf *why)
{
	bool yes = strcmp(value, "yes") == 0;

	if (!yes && strcmp(value, "no") != 0)
		return wrong(why, "must be yes or no");
	*(bool *)field = yes;
	return 0;
}

/* ---- texts ---- */

int
param_store_text(void *field, const char *value)
{
	char **text = field, *copy = strdup(value);

	if (copy == NULL)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

static int
check_length(const struct param *p, const char *value, struct buf *why)
{
	size_t len = strlen(value);
	int r;

	if (len < bound_u64(p->min))
		return wrong(why, "must not be empty");
	if (len <= bound_u64(p->max))
		return 0;
	r = buf_printf(why, "longer than %s bytes", p->max);
	return r < 0 ? r : -EINVAL;
}

int
param_set_text(
    const struct param *p, void *field, const char *value, struct buf *why)
{
	int r = check_length(p, value, why);

	return r < 0 ? r : param_store_text(field, value);
}

static int
parse_chars(
    const struct param *p, void *field, const char *value, struct buf *why)
{
	int r = check_length(p, value, why);

	if (r == 0)
		r = param_check_chars(value, types[p->type].chars, why);
	return r < 0 ? r : param_store_text(field, value);
}

static int
parse_host_name(
    const struct param *p, void *field, const char *value, struct buf *why)
{
	char ascii[CONF_HOST_SIZE];
	int r = param_host_to_ascii(&value, ascii, why);

	return r < 0 ? r : parse_chars(p, field, value, why);
}

static int
parse_host(
    const struct param *p, void *field, const char *value, struct buf *why)
{
	struct buf name = { 0 };
	int r;

	if (*value != '/')
		return parse_host_name(p, field, value, why);
	r = control_read(value, &name, why);
	if (r == 0)
		r = wrong(why, "is a file that is not there");
	else if (r > 0)
		r = parse_host_name(p, field, buf_str(&name), why);
	else if (r != -ENOMEM)
		r = -EINVAL; /* with its words in why */
	buf_done(&name);
	return r;
}

/* One plain address, with a domain or without. */
static int
parse_address(
    const struct param *p, void *field, const char *value, struct buf *why)
{
	const char *at = strchr(value, '@');

	if (at != NULL && (at == value || strchr(at + 1, '@') != NULL))
		return wrong(why, "must be name or name@domain");
	if (at != NULL && (at[1] == '\0' || at[1] == '.' || at[1] == '-'))
		return wrong(why, "has no domain behind the @");
	return parse_chars(p, field, value, why);
}

static int
parse_path(
    const struct param *p, void *field, const char *value, struct buf *why)
{
	int r = check_length(p, value, why);

	if (r < 0)
		return r;
	if (*value != '\0' && *value != '/')
		return wrong(why, "must be an absolute path");
	return param_store_text(field, value);
}

static int
check_template(const char *s, bool domain, struct buf *why)
{
	for (; (s = strchr(s, '%')) != NULL; s += 2)
		if (s[1] == '\0' ||
		    strchr(domain ? "udh%" : "uh%", s[1]) == NULL)
			return wrong(why,
			    domain ? "behind % must stand u, d, h or %"
				   : "behind % must stand u, h or %");
	return 0;
}

static int
parse_forward(
    const struct param *p, void *field, const char *value, struct buf *why)
{
	int r = check_length(p, value, why);

	if (r == 0 && *value != '\0' && *value != '/' &&
	    strncmp(value, "%h/", 3) != 0)
		return wrong(why, "must begin with / or %h/");
	if (r == 0)
		r = check_template(value, false, why);
	return r < 0 ? r : param_store_text(field, value);
}

static int
parse_maildir(
    const struct param *p, void *field, const char *value, struct buf *why)
{
	const char *s = value;
	int r = check_length(p, value, why);

	if (r < 0)
		return r;
	if (strncmp(s, CONF_MBOX_PREFIX, strlen(CONF_MBOX_PREFIX)) == 0) {
		s += strlen(CONF_MBOX_PREFIX);
		if (s[0] != '\0' && s[strlen(s) - 1] == '/')
			return wrong(why,
			    "an mbox is a file: its path must not end in /");
	}
	if (*s != '/' && strncmp(s, "%h", 2) != 0)
		return wrong(
		    why, "must begin with / or %h, or mbox:/ or mbox:%h");
	r = check_template(s, true, why);
	return r < 0 ? r : param_store_text(field, value);
}

/* ---- writing ---- */

static int
format_u32(const struct param *p UNUSED, const void *field, struct buf *out)
{
	return buf_printf(out, "%" PRIu32, *(const uint32_t *)field);
}

static int
format_u64(const struct param *p UNUSED, const void *field, struct buf *out)
{
	return buf_printf(out, "%" PRIu64, *(const uint64_t *)field);
}

static int
format_percent(const struct param *p UNUSED, const void *field, struct buf *out)
{
	return buf_printf(out, "%" PRIu32 "%%", *(const uint32_t *)field);
}

static int
format_size(const struct param *p UNUSED, const void *field, struct buf *out)
{
	return num_add_size(out, *(const uint64_t *)field);
}

static int
format_duration(
    const struct param *p UNUSED, const void *field, struct buf *out)
{
	return num_add_duration(out, *(const usec_t *)field);
}

static int
format_decimal(const struct param *p UNUSED, const void *field, struct buf *out)
{
	return num_add_decimal(out, *(const double *)field);
}

static int
format_feedback(
    const struct param *p UNUSED, const void *field, struct buf *out)
{
	const struct window_feedback *f = field;
	int r = num_add_decimal(out, f->amount);

	return r < 0 ? r : buf_add_str(out, feedback_below[f->form]);
}

static int
format_bool(const struct param *p UNUSED, const void *field, struct buf *out)
{
	return buf_add_str(out, *(const bool *)field ? "yes" : "no");
}

/* A text in the field itself. */
static int
format_fixed(const struct param *p UNUSED, const void *field, struct buf *out)
{
	return buf_add_str(out, field);
}

static int
format_text(const struct param *p UNUSED, const void *field, struct buf *out)
{
	return buf_add_str(out, *(char *const *)field);
}

/* clang-format off */
#define VALUE(type, word, parse, format) \
	[PARAM_##type] = { word, parse, format, false, NULL }
#define TEXT(type, word, parse, chars) \
	[PARAM_##type] = { word, parse, format_text, true, chars }
static const struct type_ops types[PARAM_NTYPES] = {
	VALUE(U32, "number", parse_u32, format_u32),
	VALUE(U64, "number", parse_u64, format_u64),
	VALUE(SIZE, "size", parse_size, format_size),
	VALUE(DURATION, "time", parse_duration, format_duration),
	VALUE(PERCENT, "percent", parse_percent, format_percent),
	VALUE(DECIMAL, "decimal", parse_decimal, format_decimal),
	VALUE(FEEDBACK, "feedback", parse_feedback, format_feedback),
	VALUE(BOOL, "yes or no", parse_bool, format_bool),
	TEXT(WORD, "word", word_parse, NULL),
	VALUE(CHOICE, "word", choice_parse, choice_format),
	TEXT(PATH, "path", parse_path, NULL),
	TEXT(DIR, "path", parse_path, NULL),
	TEXT(HOST, "host name", parse_host, ".-_:[]"),
	TEXT(DOMAINS, "domains", domains_parse, NULL),
	TEXT(NEXTHOP, "next hop", relay_parse, NULL),
	TEXT(USER, "name", parse_chars, "._-"),
	TEXT(ADDRESS, "address", parse_address, "._+=-@"),
	TEXT(USERS, "names", parse_chars, "._- ,"),
	TEXT(INSTANCE, "name", parse_chars, "_-"),
	TEXT(FORWARD, "path", parse_forward, NULL),
	TEXT(MAILDIR, "path", parse_maildir, NULL),
	VALUE(SOURCE4, "address", source4_parse, format_fixed),
	VALUE(SOURCE6, "address", source6_parse, format_fixed),
	VALUE(HELO, "host name", helo_parse, format_fixed),
	VALUE(TRANSPORTS, "list", transports_parse, transports_format),
	VALUE(KEYWORDS, "keywords", keywords_parse, keywords_format),
	VALUE(MECHANISMS, "mechanisms", mechanisms_parse, mechanisms_format),
	VALUE(FALLBACK, "next hops", fallback_parse, format_fixed),
};
/* clang-format on */

int
param_set(const struct param *p, void *base, const char *value, struct buf *why)
{
	ASSERT(types[p->type].parse != NULL);
	return types[p->type].parse(p, (char *)base + p->offset, value, why);
}

int
param_format(const struct param *p, const void *base, struct buf *out)
{
	ASSERT(types[p->type].format != NULL);
	return types[p->type].format(p, (const char *)base + p->offset, out);
}

void
param_free(const struct param *p, void *base)
{
	char **text;

	if (!types[p->type].text)
		return;
	text = (char **)(void *)((char *)base + p->offset);
	free(*text);
	*text = NULL;
}

const char *
param_type_word(enum param_type type)
{
	return types[type].word;
}
