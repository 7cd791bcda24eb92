/* Reason files (defer/, bounce/): what was added is read back in order, also
 * behind whatever else lies in the file. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "spool/reason.h"

#define INODE 0 /* the file is "0/0" */

struct seen {
	uint32_t count, index;
	bool last_is_ours;
	const struct reason *ours;
};

static bool
is_cleaned(const char *got, const char *given, size_t max)
{
	return fuzz_is_shown(got, strlen(got)) && strlen(got) <= max &&
	    strlen(got) <= strlen(given);
}

/* Only what the file holds can be said, each field in one line. */
static int
look(const struct reason *reason, void *arg)
{
	struct seen *seen = arg;

	seen->count++;
	MUST(strpbrk(reason->dsn, "\t\n") == NULL);
	MUST(strpbrk(reason->relay, "\t\n") == NULL);
	MUST(strpbrk(reason->address, "\t\n") == NULL);
	MUST(strpbrk(reason->text, "\t\n") == NULL);
	MUST(reason->when_wall >= 0 && reason->when_wall % USEC_PER_SEC == 0);
	seen->last_is_ours = seen->ours != NULL &&
	    reason->index == seen->ours->index &&
	    reason->when_wall / USEC_PER_SEC ==
		seen->ours->when_wall / USEC_PER_SEC &&
	    is_cleaned(reason->dsn, seen->ours->dsn, 16) &&
	    is_cleaned(reason->relay, seen->ours->relay, 300) &&
	    is_cleaned(reason->address, seen->ours->address, ADDRESS_MAX) &&
	    is_cleaned(reason->text, seen->ours->text, 2000);
	return 0;
}

static uint32_t
count_lines(const char *data, size_t len)
{
	uint32_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += data[i] == '\n';
	return n;
}

static void
check(const struct spool *sp, const char *before, size_t len,
    const struct reason *ours)
{
	struct seen seen = { 0 };
	uint32_t was;

	MUST(reason_read(sp, SPOOL_DEFER, INODE, look, &seen) == 0);
	MUST(seen.count <= count_lines(before, len));
	was = seen.count;
	seen = (struct seen){ .ours = ours };
	MUST(reason_add(sp, SPOOL_DEFER, INODE, ours) == 0);
	MUST(reason_read(sp, SPOOL_DEFER, INODE, look, &seen) == 0);
	MUST(seen.last_is_ours);
	/* Half a line before it was ended may be a line now. */
	MUST(seen.count == was + 1 || seen.count == was + 2);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	struct spool sp = { .sys = &spool_sys_real, .split = 1 };
	char *text[4], *before;
	struct reason ours = {
		.index = (uint32_t)fuzz_number(&in, 4),
		.when_wall = (usec_t)fuzz_number(&in, 7),
	};
	size_t len;

	for (size_t i = 0; i < ARRAY_LEN(text); i++)
		text[i] = fuzz_string(&in);
	ours.dsn = text[0];
	ours.relay = text[1];
	ours.address = text[2];
	ours.text = text[3];
	before = fuzz_rest(&in, &len);
	sp.dir[SPOOL_DEFER] = fuzz_subdir();
	fuzz_file("0/0", before, len);
	check(&sp, before, len, &ours);
	free(before);
	for (size_t i = 0; i < ARRAY_LEN(text); i++)
		free(text[i]);
	return 0;
}
