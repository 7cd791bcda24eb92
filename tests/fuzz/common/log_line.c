/* Log lines: one line each, never longer than a pipe takes at once; JSON is
 * well-formed whatever its strings are, and says them back as text_clean()
 * shows them. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "log/parts.h"

#define FIELDS_MAX 6

/* ---- a reader of JSON: objects of strings, numbers and true ---- */

static const char *
read_string(const char *p, struct buf *out)
{
	MUST(*p == '"');
	buf_reset(out);
	for (p++; *p != '"'; p++) {
		MUST(*p != '\0');
		if (*p == '\\') {
			p++;
			MUST(*p == '"' || *p == '\\');
		}
		MUST(buf_add_char(out, *p) == 0);
	}
	return p + 1;
}

static const char *
read_value(const char *p, struct buf *out)
{
	size_t n;

	if (*p == '"')
		return read_string(p, out);
	if (strncmp(p, "true", 4) == 0)
		return p + 4;
	n = strspn(p, "-0123456789.");
	MUST(n > 0);
	return p + n;
}

/* The value of the last member is left in *ret_last. */
static unsigned
read_object(const char *p, struct buf *ret_last)
{
	struct buf name = { 0 };
	unsigned members = 0;

	MUST(*p++ == '{');
	while (*p != '}') {
		if (members++ > 0)
			MUST(*p++ == ',');
		p = read_string(p, &name);
		MUST(name.len > 0 && *p++ == ':');
		p = read_value(p, ret_last);
	}
	MUST(p[1] == '\0');
	buf_done(&name);
	return members;
}

/* ---- */

static void
check_json(const struct log_event *event, usec_t now)
{
	const struct log_style style = { "fuzz/1", now };
	struct buf line = { 0 }, last = { 0 }, text = { 0 };
	unsigned members;

	MUST(log_line_json(&line, event, &style) == 0);
	MUST(line.len < LOG_LINE_MAX);
	MUST(fuzz_is_shown(buf_str(&line), line.len));
	members = read_object(buf_str(&line), &last);
	if (strstr(buf_str(&line), "\"truncated\":true}") == NULL) {
		MUST(members ==
		    4u + (event->id != NULL) + event->nfields +
			(event->text != NULL));
		if (event->text != NULL) {
			MUST(text_clean(&text, event->text, strlen(event->text),
				 SIZE_MAX) == 0);
			MUST(strcmp(buf_str(&last), buf_str(&text)) == 0);
		}
	}
	buf_done(&text);
	buf_done(&line);
	buf_done(&last);
}

static void
check_text(const struct log_event *event)
{
	const struct log_style style = { "fuzz/1", 0 };
	struct buf line = { 0 };

	MUST(log_line_text(&line, event, &style) == 0);
	MUST(line.len < LOG_LINE_MAX);
	MUST(fuzz_is_shown(buf_str(&line), line.len));
	buf_done(&line);
}

static void
take_field(struct fuzz_in *in, char **string, struct log_field *ret_field)
{
	static const char *const names[] = { "to", "relay", "delay", "n" };
	uint8_t how = (uint8_t)fuzz_number(in, 1);

	*ret_field =
	    (struct log_field){ .name = names[how >> 2 & 3], .kind = how & 3 };
	if (ret_field->kind >= LOG_KIND_INT)
		ret_field->num = (int64_t)fuzz_number(in, 8);
	else
		ret_field->str = *string = fuzz_string(in);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	uint8_t how = (uint8_t)fuzz_number(&in, 1);
	struct log_field fields[FIELDS_MAX];
	char *strings[FIELDS_MAX] = { NULL }, *id, *text;
	struct log_event event = {
		.level = how & 3,
		.name = "event",
		.fields = fields,
		.nfields = (how >> 2 & 7) % (FIELDS_MAX + 1),
		.plain = how & 32,
	};
	size_t i;

	id = fuzz_string(&in);
	for (i = 0; i < event.nfields; i++)
		take_field(&in, &strings[i], &fields[i]);
	text = fuzz_string(&in);
	event.id = how & 64 ? id : NULL;
	event.text = how & 128 ? text : NULL;
	check_text(&event);
	check_json(&event, (usec_t)fuzz_number(&in, 7));
	for (i = 0; i < FIELDS_MAX; i++)
		free(strings[i]);
	free(id);
	free(text);
	return 0;
}
