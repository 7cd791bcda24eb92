/* Lines of files that people write, against a plain splitter. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/line.h"

/* Is the line, without its end, what a file may hold? */
static bool
model_fits(const char *s, size_t len, size_t max, bool first)
{
	size_t i;

	for (i = 0; i < len; i++)
		if ((s[i] >= 0 && s[i] < 32 && s[i] != '\t') || s[i] == 127)
			return false;
	return len <= max &&
	    !(first && len >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0);
}

static void
check_trim(char *line)
{
	size_t len = strlen(line);
	char *p = line_trim(line);

	MUST(p >= line && p + strlen(p) <= line + len);
	MUST(*p != ' ' && *p != '\t');
	len = strlen(p);
	MUST(len == 0 || (p[len - 1] != ' ' && p[len - 1] != '\t'));
	line_uncomment(p);
	MUST(*p != '#' && strstr(p, " #") == NULL);
	MUST(strstr(p, "\t#") == NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	size_t max = fuzz_number(&in, 1), len, at = 0;
	struct buf text = { 0 };
	struct line_cursor c;
	const char *why = NULL;
	char *copy = fuzz_rest(&in, &len), *line;
	uint32_t number = 0;
	int r;

	MUST(buf_add(&text, copy, len) == 0);
	line_begin(&c, &text, max);
	while ((r = line_next(&c, &line, &why)) > 0) {
		const char *lf = memchr(copy + at, '\n', len - at);
		size_t n = lf == NULL ? len - at : (size_t)(lf - copy) - at;
		size_t whole = n + (lf != NULL);

		n -= n > 0 && copy[at + n - 1] == '\r';
		MUST(model_fits(copy + at, n, max, number == 0));
		MUST(strlen(line) == n && memcmp(line, copy + at, n) == 0);
		MUST(c.number == ++number);
		check_trim(line);
		at += whole;
	}
	MUST(r == 0 || r == -EINVAL);
	MUST(r < 0 ? why != NULL : at == len);
	if (r < 0) {
		const char *lf = memchr(copy + at, '\n', len - at);
		size_t n = lf == NULL ? len - at : (size_t)(lf - copy) - at;

		n -= n > 0 && copy[at + n - 1] == '\r';
		MUST(!model_fits(copy + at, n, max, number == 0));
	}
	buf_done(&text);
	free(copy);
	return 0;
}
