/* The file of relays by sender: any text is loaded or refused with its line; of
 * one that is loaded, a sender has a relay that is a next hop in ASCII and that
 * all spellings of the sender have. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/domain.h"
#include "route/nexthop.h"
#include "route/sender_relay.h"

static void
check_sender(const struct sender_map *relays, const char *sender)
{
	struct sender_row relay = { 0 }, other = { 0 };
	char folded[ADDRESS_FOLDED_MAX + 1];
	struct nexthop hop;
	int r = sender_map_find(relays, sender, &relay);

	MUST(r == 0 || r == 1);
	MUST(r == (relay.line > 0));
	if (r == 0)
		return;
	MUST(sender[0] != '\0' && strchr(sender, '@') != NULL);
	MUST(relay.value == NULL ||
	    (nexthop_parse(relay.value, 25, &hop) == 0 &&
		hop.kind != NEXTHOP_UNIX && !domain_is_utf8(relay.value)));
	MUST(address_fold(sender, folded) == 0);
	MUST(strlen(folded) > ADDRESS_MAX ||
	    (sender_map_find(relays, folded, &other) == 1 &&
		other.line == relay.line));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	char *sender = fuzz_string(&in), *text;
	struct sender_map *relays = NULL;
	struct buf error = { 0 }, errors = { 0 };
	size_t len;
	int r;

	text = fuzz_rest(&in, &len);
	fuzz_file("senders", text, len);
	r = sender_map_load(
	    fuzz_path("senders"), &sender_relay_kind, &relays, &error);
	MUST(sender_map_judge(
		 fuzz_path("senders"), &sender_relay_kind, &errors) == r);
	if (r < 0) {
		MUST(r == -EINVAL && relays == NULL);
		MUST(strncmp(buf_str(&error), fuzz_path("senders"),
			 strlen(fuzz_path("senders"))) == 0);
		MUST(error.len < 5000 && errors.len > 0);
	} else {
		MUST(error.len == 0 && errors.len == 0);
		check_sender(relays, sender);
		check_sender(relays, "a@b.a");
		check_sender(relays, "");
		sender_map_free(&relays);
	}
	free(text);
	free(sender);
	buf_done(&error);
	buf_done(&errors);
	return 0;
}
