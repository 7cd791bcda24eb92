/* base/line_file.h - a table that people write, a row to a line: the first
 * wrong line ends the reading, and the error names file, line and reason.
 */
#ifndef BASE_LINE_FILE_H
#define BASE_LINE_FILE_H

#include "base/buf.h"

struct line_file {
	size_t max_bytes, max_line;
	bool may_be_absent; /* as an empty one */
	/* The next line, number from 1, which may be cut into words in place;
	 * empty ones and comments come as well. -errno with the reason. */
	int (*take)(
	    void *arg, char *line, uint32_t number, const char **ret_why);
};

/* -errno with the error appended: of file_read(), of line_next(), or of take().
 * The text is wiped behind it, since it may hold secrets. */
int line_file_read(const char *path, const struct line_file *how, void *arg,
    struct buf *ret_error);

#endif
