#include "log/parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/num.h"
#include "base/text.h"

#define ROOM        (LOG_LINE_MAX - 1) /* the newline */
#define JSON_TAIL   ",\"truncated\":true}"
#define NUMBER_SIZE 32

/* Seconds with one to three decimals. */
static void
format_time(usec_t us, char out[NUMBER_SIZE])
{
	int64_t msec = us < 0 ? 0 : us / USEC_PER_MSEC;
	int len = snprintf(out, NUMBER_SIZE, "%" PRId64 ".%03" PRId64,
	    msec / 1000, msec % 1000);

	while (out[len - 1] == '0' && out[len - 2] != '.')
		out[--len] = '\0';
}

static void
format_int(int64_t num, char out[NUMBER_SIZE])
{
	const bool minus = num < 0;

	out[0] = '-';
	num_format(minus ? 0 - (uint64_t)num : (uint64_t)num, out + minus);
}

static void
format_number(const struct log_field *field, char out[NUMBER_SIZE])
{
	if (field->kind == LOG_KIND_TIME)
		format_time(field->num, out);
	else
		format_int(field->num, out);
}

/* Has the field a number to be written by format_number()? */
static bool
is_number(const struct log_field *field)
{
	return field->kind == LOG_KIND_INT || field->kind == LOG_KIND_TIME;
}

static const char *const level_names[] = {
	[LOG_DEBUG_L] = "debug",
	[LOG_INFO_L] = "info",
	[LOG_WARNING_L] = "warning",
	[LOG_ERROR_L] = "error",
};

/* ---- text ---- */

/* The bytes that fit while `keep` bytes stay free. */
static size_t
room_in(const struct buf *out, size_t keep)
{
	return out->len + keep >= ROOM ? 0 : ROOM - keep - out->len;
}

/* Adds the part of the text that fits. */
static void
add_clean(struct buf *out, const char *s)
{
	(void)text_clean(out, s, strlen(s), room_in(out, 0));
}

/* Characters that could end a value for a parser, or seem to begin another one.
 * An address without quotes has none of them. `=` stays as it is: addresses
 * that name a recipient within a sender have it, and it cannot end a value. */
static const char ends_value[] = " \"(),;<>\\";

static size_t
value_run(const char *begin UNUSED, const char *s)
{
	return strcspn(s, ends_value);
}

static bool
is_of_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	    (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '=';
}

/* Up to a `=' that could make a field of the word in front of it. */
static size_t
text_run(const char *begin, const char *s)
{
	const char *at = strchr(s, '=');

	while (at != NULL && (at == begin || !is_of_name(at[-1])))
		at = strchr(at + 1, '=');
	return at == NULL ? strlen(s) : (size_t)(at - s);
}

/* Runs of characters as add_clean() does, and the character behind each run as
 * \xHH, with one byte left free. An escape is never cut. */
static void
add_escaped(struct buf *out, const char *s,
    size_t (*run_of)(const char *begin, const char *s))
{
	const char *begin = s;
	size_t run, room, was;

	while (out->error == 0 && *s != '\0') {
		run = run_of(begin, s);
		room = room_in(out, 1);
		was = out->len;
		if (run > 0) {
			(void)text_clean(out, s, run, room);
		} else if (room >= 4) {
			run = 1;
			buf_printf(out, "\\x%02x", (unsigned char)*s);
		}
		if (run == 0 || out->len < was + run)
			break;
		s += run;
	}
}

static void
add_text_field(struct buf *out, const struct log_field *field)
{
	char number[NUMBER_SIZE];
	bool address = field->kind == LOG_KIND_ADDR;

	add_clean(out, field->name);
	add_clean(out, address ? "=<" : "=");
	if (is_number(field)) {
		format_number(field, number);
		add_clean(out, number);
		return;
	}
	add_escaped(out, field->str == NULL ? "" : field->str, value_run);
	add_clean(out, address ? ">" : "");
}

static void
add_head(struct buf *out, const char *head)
{
	if (head != NULL) {
		add_clean(out, head);
		add_clean(out, ": ");
	}
}

int
log_line_text(struct buf *out, const struct log_event *event,
    const struct log_style *style)
{
	const bool parens = !event->plain && event->nfields > 0;
	size_t i;

	add_head(out, style->program);
	add_head(out,
	    event->level >= LOG_WARNING_L ? level_names[event->level] : NULL);
	add_head(out, event->id);
	for (i = 0; i < event->nfields; i++) {
		add_clean(out, i > 0 ? ", " : "");
		add_text_field(out, &event->fields[i]);
	}
	if (event->text == NULL)
		return out->error;
	if (event->nfields > 0)
		add_clean(out, parens ? " (" : " ");
	if (parens)
		add_escaped(out, event->text, text_run);
	else
		add_clean(out, event->text);
	add_clean(out, parens ? ")" : "");
	return out->error;
}

/* ---- JSON ---- */

static bool
fits(const struct buf *out, size_t more)
{
	return out->len + more + sizeof(JSON_TAIL) - 1 <= ROOM;
}

/* A string from outside. After text_clean() only these two characters need an
 * escape. */
static void
add_json_string(struct buf *out, const char *s, bool *cut)
{
	struct buf clean = { 0 };
	size_t i, n;

	buf_note(out, text_clean(&clean, s, strlen(s), LOG_LINE_MAX));
	buf_add_char(out, '"');
	for (i = 0; i < clean.len; i += n) {
		bool escape = clean.data[i] == '"' || clean.data[i] == '\\';

		/* A character of UTF-8 is never cut. */
		for (n = 1; i + n < clean.len &&
		     ((unsigned char)clean.data[i + n] & 0xc0) == 0x80;)
			n++;
		if (!fits(out, n + escape + 1)) {
			*cut = true;
			break;
		}
		if (escape)
			buf_add_char(out, '\\');
		buf_add(out, clean.data + i, n);
	}
	buf_done(&clean);
	buf_add_char(out, '"');
}

/* `,"name":`; false when it does not fit with a small value. */
static bool
add_json_name(struct buf *out, const char *name, size_t len, bool *cut)
{
	if (!fits(out, len + NUMBER_SIZE + 8)) {
		*cut = true;
		return false;
	}
	buf_printf(out,
	    "%s\"%.*s\":", out->data[out->len - 1] == '{' ? "" : ",", (int)len,
	    name);
	return true;
}

static void
add_json_member(struct buf *out, const char *name, const char *value, bool *cut)
{
	if (value != NULL && add_json_name(out, name, strlen(name), cut))
		add_json_string(out, value, cut);
}

/* Is it a number as JSON has it: digits, with a point between digits? */
static bool
is_decimal(const char *s, size_t len)
{
	size_t whole = strspn(s, "0123456789");
	size_t part;

	if (whole == 0 || (s[0] == '0' && whole > 1))
		return false;
	if (whole == len)
		return true;
	part = s[whole] == '.' ? strspn(s + whole + 1, "0123456789") : 0;
	return part > 0 && whole + 1 + part == len;
}

static void
add_json_decimal(struct buf *out, const char *s, size_t len)
{
	if (is_decimal(s, len) && len < NUMBER_SIZE)
		buf_add(out, s, len);
	else
		buf_add_str(out, "null");
}

/* `{"a":1,"b":2}` of the values 1/2 and the names a/b. */
static void
add_json_decimals(struct buf *out, const struct log_field *field, bool *cut)
{
	const char *name = field->members, *value = field->str;
	size_t name_len, value_len;

	buf_add_char(out, '{');
	while (*name != '\0') {
		name_len = strcspn(name, "/");
		value_len = strcspn(value, "/");
		if (!add_json_name(out, name, name_len, cut))
			break;
		add_json_decimal(out, value, value_len);
		name += name_len + (name[name_len] == '/');
		value += value_len + (value[value_len] == '/');
	}
	buf_add_char(out, '}');
}

static void
add_json_field(struct buf *out, const struct log_field *field, bool *cut)
{
	const char *str = field->str == NULL ? "" : field->str;
	char number[NUMBER_SIZE];

	if (!add_json_name(out, field->name, strlen(field->name), cut))
		return;
	switch (field->kind) {
	case LOG_KIND_STR:
	case LOG_KIND_ADDR:
		add_json_string(out, str, cut);
		break;
	case LOG_KIND_DECIMALS:
		add_json_decimals(out, field, cut);
		break;
	case LOG_KIND_DECIMAL:
		add_json_decimal(out, str, strlen(str));
		break;
	case LOG_KIND_INT:
	case LOG_KIND_TIME:
		format_number(field, number);
		buf_add_str(out, number);
	}
}

/* RFC 3339, UTC. */
static void
format_stamp(usec_t wall, char out[64])
{
	time_t seconds = (time_t)(wall / USEC_PER_SEC);
	struct tm tm = { 0 };
	char date[32];

	gmtime_r(&seconds, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out, 64, "%s.%06dZ", date, (int)(wall % USEC_PER_SEC));
}

int
log_line_json(struct buf *out, const struct log_event *event,
    const struct log_style *style)
{
	char stamp[64];
	bool cut = false;
	size_t i;

	format_stamp(style->now_wall, stamp);
	if (buf_add_char(out, '{') < 0)
		return -ENOMEM;
	add_json_member(out, "time", stamp, &cut);
	add_json_member(out, "program", style->program, &cut);
	add_json_member(out, "level", level_names[event->level], &cut);
	add_json_member(out, "event", event->name, &cut);
	add_json_member(out, "queue_id", event->id, &cut);
	for (i = 0; i < event->nfields; i++)
		add_json_field(out, &event->fields[i], &cut);
	add_json_member(out, "text", event->text, &cut);
	buf_add_str(out, cut ? JSON_TAIL : "}");
	return out->error;
}
