/* Queue ids and names of queue files: what parses formats to the same text,
 * what was formatted parses to the same values. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "spool/id.h"

static void
check_id(const char *s)
{
	char again[QUEUE_ID_SIZE];
	struct queue_id id;
	int r;

	FUZZ_FILL(id);
	r = queue_id_parse(s, &id);
	if (r < 0) {
		MUST(r == -EINVAL && FUZZ_UNTOUCHED(id));
		return;
	}
	MUST(id.arrival_wall >= 0 && id.arrival_wall <= QUEUE_ID_ARRIVAL_MAX);
	MUST(id.queue <= QUEUE_NUM_MAX);
	queue_id_format(&id, again);
	MUST(strcmp(again, s) == 0);
}

static void
check_name(const char *s)
{
	char again[QUEUE_FILE_MAX];
	uint64_t inode = 0;

	if (queue_file_parse(s, &inode) < 0) {
		MUST(inode == 0);
		return;
	}
	MUST(inode > 0);
	queue_file_name(inode, again);
	MUST(strcmp(again, s) == 0);
}

static void
check_made(struct fuzz_in *in)
{
	const struct queue_id id = {
		.arrival_wall =
		    (usec_t)(fuzz_number(in, 8) & QUEUE_ID_ARRIVAL_MAX),
		.nonce = (uint8_t)fuzz_number(in, 1),
		.queue = (uint32_t)fuzz_number(in, 2) % (QUEUE_NUM_MAX + 1),
		.inode = fuzz_number(in, 8) | 1,
	};
	char text[QUEUE_ID_SIZE], name[QUEUE_FILE_MAX];
	struct queue_id got = { 0 };
	uint64_t inode = 0;

	queue_id_format(&id, text);
	MUST(queue_id_parse(text, &got) == 0);
	MUST(got.arrival_wall == id.arrival_wall && got.nonce == id.nonce &&
	    got.queue == id.queue && got.inode == id.inode);
	queue_file_name(id.inode, name);
	MUST(queue_file_parse(name, &inode) == 0 && inode == id.inode);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	char *s = fuzz_string(&in);

	check_id(s);
	check_name(s);
	free(s);
	in = (struct fuzz_in){ data, size };
	check_made(&in);
	return 0;
}
