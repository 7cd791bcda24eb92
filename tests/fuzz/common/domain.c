/* Any octets as a domain: the one spelling is a bounded name that is its own
 * spelling, in ASCII where the domain was not; a refusal has a reason and
 * leaves the output untouched. Folding never fails, and patterns fit what they
 * are. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/domain.h"
#include "base/text.h"
#include "route/nexthop.h"

static void
check_domain(const char *domain)
{
	char out[DOMAIN_MAX + 1], again[DOMAIN_MAX + 1];
	char folded[DOMAIN_FOLDED_MAX + 1];
	const char *why = NULL;
	int r;

	memset(out, 'x', sizeof(out));
	r = domain_normalize(domain, out, &why);
	if (r < 0) {
		MUST(r == -EINVAL && why != NULL);
		MUST(strncmp(why, "the domain", 10) == 0 ||
		    strncmp(why, "a label of the domain", 21) == 0);
		MUST(fuzz_is_filled(out, sizeof(out), 'x'));
	} else {
		MUST(memchr(out, '\0', sizeof(out)) != NULL);
		MUST(!domain_is_utf8(out));
		MUST(domain_normalize(out, again, &why) == 0);
		MUST(domain_is_utf8(domain) ? strcmp(out, again) == 0
					    : strlen(again) <= strlen(out));
		MUST(domain_is_same(domain, out));
	}
	if (r == 0 && domain_is_utf8(domain))
		MUST(
		    nexthop_fits_domain(out) && strpbrk(out, "[]:/@ ") == NULL);
	MUST(domain_fold(domain, folded) == 0);
	MUST(strlen(folded) <= DOMAIN_FOLDED_MAX);
	MUST(r < 0 || strcmp(folded, out) == 0);
}

static void
check_address(const char *address, const char *pattern)
{
	char folded[ADDRESS_FOLDED_MAX + 1], wanted[ADDRESS_FOLDED_MAX + 1];
	const size_t local = address_local_len(address);
	int r;

	MUST(address_fold(address, folded) == 0);
	MUST(strlen(folded) <= ADDRESS_FOLDED_MAX);
	if (local < ADDRESS_MAX)
		MUST(strncmp(address, folded, local) == 0);
	r = domain_pattern(pattern, wanted);
	MUST(r == 0 || r == -ENAMETOOLONG);
	MUST(r < 0 || strlen(wanted) <= ADDRESS_FOLDED_MAX);
	if (text_matches(pattern, address))
		MUST(address_matches(pattern, address) &&
		    domain_matches(pattern, address));
	(void)address_matches(pattern, address);
	(void)domain_matches(pattern, address);
	(void)address_contains(pattern, address);
}

static void
check_nexthop(const char *text)
{
	char ascii[NEXTHOP_TEXT_MAX + 1];
	struct nexthop hop, same;
	const bool fits = nexthop_parse(text, 25, &hop) == 0;

	if (nexthop_to_ascii(text, ascii) < 0 || !fits)
		return;
	MUST(nexthop_parse(ascii, 25, &same) == 0);
	MUST(hop.kind == same.kind && hop.port == same.port);
	MUST(strcmp(hop.host, same.host) == 0);
	MUST(hop.kind == NEXTHOP_UNIX || !domain_is_utf8(ascii));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	char *text = fuzz_string(&in), *pattern = fuzz_string(&in);

	check_domain(text);
	check_address(text, pattern);
	check_nexthop(text);
	free(text);
	free(pattern);
	return 0;
}
