/* A whole message of the mail faces: its recipients may stand in an envelope,
 * and the fields that are put in front of it are fields, each on its own. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "queue-inject/message.h"

static struct message_author author = {
	.address = "me@here.example",
	.host = "here.example",
	.wall = 1700000000000000,
	.random = 7,
};

/* What was added, read as a header: From, Date and Message-ID at most. */
static void
check_added(const struct message *m)
{
	struct header h = { 0 };
	struct header_field f;
	size_t used = 0, pos = 0;
	unsigned n = 0;

	if (m->added.len == 0)
		return;
	MUST(header_feed(&h, m->added.data, m->added.len, &used) == 0);
	MUST(used == m->added.len);
	header_finish(&h);
	MUST(h.begin == 0 && h.end == m->added.len);
	while (header_next(&h, &pos, &f)) {
		const char *p = m->resent ? "Resent-" : "";

		MUST(f.name_len > strlen(p));
		MUST(memcmp(f.name, p, strlen(p)) == 0);
		MUST(memchr(f.raw, '\0', f.raw_len) == NULL);
		n++;
	}
	MUST(n >= 1 && n <= 3);
	header_done(&h);
}

/* Ascending, and within the fields. */
static void
check_places(const struct message *m)
{
	size_t i, place, last = m->header.begin;

	MUST(m->places.len % sizeof(place) == 0);
	for (i = 0; i < m->places.len; i += sizeof(place)) {
		memcpy(&place, m->places.data + i, sizeof(place));
		MUST(place > last && place <= m->header.end);
		last = place;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	struct envelope e = { .rcpt_limit = 20 };
	struct refusal why = { 0 };
	struct message m = { 0 };
	char *name = fuzz_string(&in), *s;
	const char *rcpt;
	struct source src;
	size_t len, pos = 0;

	s = fuzz_rest(&in, &len);
	author.full_name = name;
	MUST(source_init(
		 &src, fuzz_file("input", s, len), false, USEC_NEVER, -1) == 0);
	MUST(message_read(&m, &src, &why) == 0);
	MUST(m.header.complete && why.kind == REFUSAL_NONE);
	MUST(message_qualify(&m, "here.example", &why) == 0);
	check_places(&m);
	if (message_recipients(&m, "here.example", &e, &why) < 0) {
		MUST(why.kind != REFUSAL_NONE);
		MUST(fuzz_is_shown(why.text, strlen(why.text)));
	}
	MUST(e.rcpt_count <= 20);
	while ((rcpt = envelope_next_rcpt(&e, &pos, &len)) != NULL)
		MUST(address_check(rcpt, len) == 0);
	MUST(message_complete(&m, &author, &why) == 0);
	check_added(&m);
	message_done(&m);
	envelope_done(&e);
	source_done(&src);
	free(name);
	free(s);
	return 0;
}
