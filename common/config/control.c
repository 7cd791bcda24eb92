/* A control file: one line with one value, blank lines around it. */
#include "config/param.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/file.h"
#include "base/line.h"
#include "base/text.h"

int
conf_fail(struct buf *error, const char *path, uint32_t line, const char *why)
{
	int r = text_clean(error, path, strlen(path), PATH_MAX);

	if (r == 0)
		r = line == 0 ? buf_printf(error, ": %s", why)
			      : buf_printf(error, ":%u: %s", line, why);
	return r < 0 ? r : -EINVAL;
}

static int
parse(const char *path, struct buf *text, struct buf *ret_value,
    struct buf *error)
{
	struct line_cursor cursor;
	const char *value = NULL, *why = NULL;
	char *line;
	int r;

	line_begin(&cursor, text, CONF_LINE_MAX);
	while ((r = line_next(&cursor, &line, &why)) > 0) {
		line = line_trim(line);
		if (*line == '\0')
			continue;
		if (value != NULL)
			return conf_fail(
			    error, path, cursor.number, "more than one line");
		value = line;
	}
	if (r < 0)
		return conf_fail(error, path, cursor.number, why);
	if (value == NULL)
		return conf_fail(error, path, 0, "is empty");
	r = buf_add_str(ret_value, value);
	return r < 0 ? r : 1;
}

int
control_read(const char *path, struct buf *ret_value, struct buf *error)
{
	struct buf text = { 0 }, why = { 0 };
	int r = file_read(path, CONF_LINE_MAX, &text, &why);

	if (r == 0)
		r = parse(path, &text, ret_value, error);
	else if (r == -ENOENT || r == -ENOTDIR)
		r = 0;
	else
		(void)conf_fail(error, path, 0, buf_str(&why));
	buf_done(&text);
	buf_done(&why);
	return r;
}
