#include "base/line_file.h"

#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "base/line.h"
#include "base/text.h"

int
line_file_fail(struct buf *error, const char *path, uint32_t line,
    const char *word, const char *why)
{
	buf_printf(error, "%s:%u: ", path, line);
	if (word == NULL)
		buf_add_str(error, why);
	else
		(void)text_complain(error, word, why);
	return error->error < 0 ? error->error : -EINVAL;
}

static int
take_lines(const char *path, const struct line_file *how, void *arg,
    struct buf *text, struct wrong_lines *wrong, struct buf *ret_error)
{
	struct line_cursor c;
	const char *word = NULL, *why = NULL;
	char *line;
	int r;

	line_begin(&c, text, how->max_line);
	while ((r = line_next(&c, &line, &why)) != 0) {
		if (r > 0)
			r = how->take(arg, line, c.number, &word, &why);
		if (r < 0 && why != NULL) {
			(void)line_file_fail(
			    ret_error, path, c.number, word, why);
			r = wrong_lines_go_on(wrong, c.number, r, ret_error);
		}
		if (r < 0)
			return r;
		word = why = NULL;
	}
	return 0;
}

int
line_file_read_on(const char *path, const struct line_file *how, void *arg,
    struct buf *ret_text, struct wrong_lines *wrong, struct buf *ret_error)
{
	struct buf why = { 0 };
	int r = file_read(path, how->max_bytes, ret_text, &why);

	if (r == -ENOENT && how->may_be_absent)
		r = 0;
	else if (r < 0)
		(void)buf_printf(ret_error, "%s: %s", path, buf_str(&why));
	else
		r = take_lines(path, how, arg, ret_text, wrong, ret_error);
	buf_done(&why);
	return r;
}

int
line_file_read(const char *path, const struct line_file *how, void *arg,
    struct buf *ret_error)
{
	struct buf text = { 0 };
	int r = line_file_read_on(path, how, arg, &text, NULL, ret_error);

	buf_wipe(&text);
	return r;
}
