/* From an address and a template to a path: never out of its place, and one
 * part of the template gives one part of the path. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "deliver-local/child.h"

static void
check_part(const char *s, bool may_be_empty)
{
	size_t i;

	MUST(strlen(s) <= MAILBOX_PART_MAX && s[0] != '.');
	MUST(may_be_empty || s[0] != '\0');
	for (i = 0; s[i] != '\0'; i++)
		MUST((unsigned char)s[i] >= 0x20 && s[i] != 0x7f &&
		    s[i] != '/' && !(s[i] >= 'A' && s[i] <= 'Z'));
}

static size_t
count(const char *s, char c)
{
	size_t n = 0;

	for (; *s != '\0'; s++)
		n += *s == c;
	return n;
}

static void
check_path(const char *template, const struct mailbox *m)
{
	const struct mailbox_values values = { m->base, m->domain, "/home/h" };
	const char *plain = strchr(template, '/');
	struct buf path = { 0 };
	int r = mailbox_path(template, &values, &path);
	size_t slashes;

	MUST(
	    r == 0 || r == -EINVAL || r == -EDESTADDRREQ || r == -ENAMETOOLONG);
	if (r == 0) {
		MUST(path.data[0] == '/' && path.len < PATH_MAX);
		MUST(path.len == 1 || path.data[path.len - 1] != '/');
		slashes = count(template, '/');
		if (!mailbox_path_uses(template, 'h'))
			MUST(count(path.data, '/') <= slashes);
		if (strchr(template, '%') == NULL)
			MUST(strncmp(path.data, plain, path.len) == 0);
		if (mailbox_path_uses(template, 'u'))
			MUST(strstr(path.data, m->base) != NULL);
	}
	if (r == -EDESTADDRREQ)
		MUST(m->domain[0] == '\0' && mailbox_path_uses(template, 'd'));
	buf_done(&path);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	char *recipient = fuzz_string(&in), *template = fuzz_string(&in);
	const char *why = NULL;
	struct mailbox m;
	int r;

	FUZZ_FILL(m);
	r = mailbox_parse(recipient, &m, &why);
	if (r < 0) {
		MUST(r == -EINVAL && why != NULL && FUZZ_UNTOUCHED(m));
	} else {
		check_part(m.user, false);
		check_part(m.base, false);
		check_part(m.domain, true);
		MUST(strncmp(m.user, m.base, strlen(m.base)) == 0);
		MUST(m.user[strlen(m.base)] == '\0' ||
		    m.user[strlen(m.base)] == '+');
		check_path(template, &m);
		check_path("/var/mail/%d/%u/Maildir/", &m);
	}
	free(recipient);
	free(template);
	return 0;
}
