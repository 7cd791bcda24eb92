#include "base/line_file.h"

#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "base/line.h"

static int
take_lines(const char *path, const struct line_file *how, void *arg,
    struct buf *text, struct buf *ret_error)
{
	struct line_cursor c;
	const char *why = NULL;
	char *line;
	int r;

	line_begin(&c, text, how->max_line);
	while ((r = line_next(&c, &line, &why)) > 0) {
		r = how->take(arg, line, c.number, &why);
		if (r < 0)
			break;
	}
	if (r < 0)
		(void)buf_printf(ret_error, "%s:%u: %s", path, c.number, why);
	return r;
}

int
line_file_read(const char *path, const struct line_file *how, void *arg,
    struct buf *ret_error)
{
	struct buf text = { 0 }, why = { 0 };
	int r = file_read(path, how->max_bytes, &text, &why);

	if (r == -ENOENT && how->may_be_absent)
		r = 0;
	else if (r < 0)
		(void)buf_printf(ret_error, "%s: %s", path, buf_str(&why));
	else if (text.len > 0)
		r = take_lines(path, how, arg, &text, ret_error);
	buf_wipe(&text);
	buf_done(&why);
	return r;
}
