/* Members of JSON objects. Cleaned text has no control characters: two are left
 * to be escaped. */
#include <string.h>

#include "base/text.h"
#include "qctl/task/task.h"

int
json_add_string(struct buf *out, const char *s)
{
	struct buf clean = { 0 };
	int rc = text_clean(&clean, s, strlen(s), SIZE_MAX);

	if (rc == 0)
		rc = buf_add_quoted(out, buf_str(&clean), clean.len);
	buf_done(&clean);
	return rc;
}

int
json_add_member(struct buf *out, const char *name, const char *value)
{
	int rc = value == NULL ? 0 : buf_printf(out, ", \"%s\": ", name);

	return rc < 0 || value == NULL ? rc : json_add_string(out, value);
}
