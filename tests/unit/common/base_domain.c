#include "base/domain.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "idn_seam.h"

/* clang-format off */
static const struct {
	const char *domain, *want; /* NULL: refused */
	const char *why;
} rows[] = {
	{ "bücher.example", "xn--bcher-kva.example", NULL },
	{ "BÜCHER.Example", "xn--bcher-kva.example", NULL },
	{ "bu\xcc\x88" "cher.example", "xn--bcher-kva.example", NULL },
	{ "bücher.example.", "xn--bcher-kva.example", NULL },
	{ "bücher。example", "xn--bcher-kva.example", NULL },
	{ "XN--BCHER-KVA.example", "xn--bcher-kva.example", NULL },
	{ "straße.example", "xn--strae-oqa.example", NULL },
	{ "ＥＸＡＭＰＬＥ.org", "example.org", NULL },
	{ "a_b.ü.example", "a_b.xn--tda.example", NULL },
	{ "Example.ORG", "example.org", NULL },
	{ "Example.ORG.", "example.org", NULL },
	{ "example..", "example..", NULL },
	{ ".", ".", NULL },
	{ "", "", NULL },
	{ "[IPv6:2001:DB8::1]", "[ipv6:2001:db8::1]", NULL },
	{ "xn--ls8h.example", "xn--ls8h.example", NULL },
	{ "xn--no_label.example", "xn--no_label.example", NULL },
	{ "b\xff" "cher.example", NULL, "not valid UTF-8" },
	{ "\xc3.example", NULL, "not valid UTF-8" },
	{ "💩.example", NULL, "IDNA 2008 does not allow" },
	{ "-ü.example", NULL, "begins or ends with a hyphen" },
	{ "אa.example", NULL, "both directions" },
	{ "ü..example", NULL, "not a valid internationalized" },
	{ ".ü", NULL, "not a valid internationalized" },
	{ "℀.ü.example", NULL, "not a valid internationalized" },
	{ "［127.0.0.1］", NULL, "not a valid internationalized" },
	{ "ü x.example", NULL, "not a valid internationalized" },
	{ "ü@x", NULL, "not a valid internationalized" },
	{ "\xc2\xad", NULL, "not a valid internationalized" },
};
/* clang-format on */

/* mutation: common/base/domain.c, domain_normalize() without libidn2, without
 * the dot of the root, or with a result that is no name. */
Test(domain, F15_one_spelling)
{
	char out[DOMAIN_MAX + 1];
	const char *why;
	size_t i;
	int r;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		memcpy(out, "before", 7);
		why = "";
		r = domain_normalize(rows[i].domain, out, &why);
		cr_expect_eq(r, rows[i].want == NULL ? -EINVAL : 0, "%s: %d",
		    rows[i].domain, r);
		cr_expect_str_eq(out,
		    rows[i].want == NULL ? "before" : rows[i].want, "%s: %s",
		    rows[i].domain, out);
		if (rows[i].want == NULL)
			cr_expect_not_null(strstr(why, rows[i].why), "%s: %s",
			    rows[i].domain, why);
	}
}

/* `before`, n times the piece, and `behind`. Valid until the next call. */
static const char *
repeated(const char *before, int n, const char *piece, const char *behind)
{
	static struct buf text;
	int r;

	buf_reset(&text);
	r = buf_add_str(&text, before);
	while (r == 0 && n-- > 0)
		r = buf_add_str(&text, piece);
	cr_assert_eq(r < 0 ? r : buf_add_str(&text, behind), 0);
	return buf_str(&text);
}

Test(domain, lengths)
{
	char out[DOMAIN_MAX + 1], folded[ADDRESS_FOLDED_MAX + 1];
	char text[2048] = "";
	const char *why;
	size_t i;

	memset(text, 'A', 255);
	cr_expect_eq(domain_normalize(text, out, &why), 0);
	cr_expect_eq(strlen(out), 255);
	text[255] = '.';
	cr_expect_eq(domain_normalize(text, out, &why), 0);
	text[255] = 'A';
	cr_expect_eq(domain_normalize(text, out, &why), -EINVAL);
	cr_expect_eq(domain_fold(text, folded), 0);
	cr_expect_eq(strlen(folded), 256);
	memset(text, 'A', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	cr_expect_eq(domain_fold(text, folded), 0);
	cr_expect_eq(strlen(folded), DOMAIN_FOLDED_MAX);
	cr_expect_eq(address_fold(text, folded), 0);
	cr_expect_eq(strlen(folded), ADDRESS_MAX);
	text[300] = '@';
	cr_expect_eq(address_fold(text, folded), 0);
	cr_expect_leq(strlen(folded), ADDRESS_FOLDED_MAX);
	cr_expect_eq(domain_pattern(text, folded), -ENAMETOOLONG);
	/* A label of 64 octets, and a domain of 256. */
	for (i = 0; i < 70; i++)
		memcpy(text + 2 * i, "ü", 3);
	cr_expect_eq(domain_normalize(text, out, &why), -EINVAL);
	cr_expect_str_eq(why, "a label of the domain is too long");
	cr_expect_eq(
	    domain_normalize(repeated("", 20, "üüüüüüüüüü.", ""), out, &why),
	    -EINVAL);
	cr_expect_str_eq(why, "the domain is too long");
}

/* A label of an "a" and n accents above the letter. */
static const char *
accents(int n)
{
	return repeated("a", n, "\u0301", ".example");
}

/* mutation: common/base/domain.c, why_too_long() without a limit. */
Test(domain, what_is_too_long_is_refused_without_libidn2)
{
	char out[DOMAIN_MAX + 1];
	const char *why = "";

	idn_seam_conversions = 0;
	cr_expect_eq(domain_normalize(accents(252), out, &why), -EINVAL);
	cr_expect_str_eq(why, "a label of the domain is too long");
	cr_expect_eq(
	    domain_normalize(repeated("", 128, "ü.", ""), out, &why), -EINVAL);
	cr_expect_str_eq(why, "the domain is too long");
	cr_expect_eq(idn_seam_conversions, 0);
	/* Each of these dots ends a label. */
	cr_expect_eq(
	    domain_normalize(
		repeated("", 4, "ü。üüüüü．üüüüüüü｡üüüüüüü.", ""), out, &why),
	    0);
	cr_expect_eq(domain_normalize(accents(240), out, &why), -EINVAL,
	    "its A-label is too long");
	cr_expect_eq(idn_seam_conversions, 2);
}

/* A recipient is looked up in one table after the other. */
Test(domain, the_same_domain_is_converted_once)
{
	char out[ADDRESS_FOLDED_MAX + 1];
	const char *why = "";
	int i;

	idn_seam_conversions = 0;
	for (i = 0; i < 3; i++) {
		cr_expect_eq(address_fold("a@BÜCHER.example", out), 0);
		cr_expect_str_eq(out, "a@xn--bcher-kva.example");
		cr_expect_eq(domain_normalize("BÜCHER.example", out, &why), 0);
		cr_expect_str_eq(out, "xn--bcher-kva.example");
	}
	cr_expect_eq(idn_seam_conversions, 1);
	for (i = 0; i < 3; i++) {
		memcpy(out, "before", 7);
		why = "";
		cr_expect_eq(domain_normalize("💩.example", out, &why), -EINVAL);
		cr_expect_str_eq(out, "before");
		cr_expect_not_null(strstr(why, "IDNA 2008 does not allow"));
	}
	cr_expect_eq(idn_seam_conversions, 2);
}

Test(domain, addresses)
{
	char out[ADDRESS_FOLDED_MAX + 1];

	cr_expect_eq(address_fold("Jürg@BÜCHER.example.", out), 0);
	cr_expect_str_eq(out, "Jürg@xn--bcher-kva.example");
	cr_expect_eq(address_fold("Jürg", out), 0);
	cr_expect_str_eq(out, "Jürg");
	cr_expect_eq(address_fold("a@💩.Example", out), 0);
	cr_expect_str_eq(out, "a@💩.example");
	cr_expect(domain_is_same("BÜCHER.example", "xn--bcher-KVA.example."));
	cr_expect_not(domain_is_same("bücher.example", "bucher.example"));
	cr_expect_not(domain_is_same("💩.example", "xn--ls8h.example"));
}

Test(domain, patterns)
{
	/* clang-format off */
	static const struct {
		const char *pattern, *text;
		bool domain, address;
	} want[] = {
		{ "bücher.example", "xn--bcher-kva.example", true, true },
		{ "xn--bcher-kva.example", "BÜCHER.example", true, false },
		{ "*.bücher.example", "a.BÜCHER.example", true, false },
		{ "*.bücher.*", "a.xn--bcher-kva.example", true, true },
		{ "*ü*", "BüCHER.example", true, true },
		{ "*.org", "Example.ORG", true, true },
		{ "example.org", "Example.ORG.", true, false },
		{ "example.org.", "example.org", true, true },
		{ "example.org", "example.com", false, false },
		{ "smtp/bücher.example", "smtp/xn--bcher-kva.example", true,
		    true },
		{ "[bücher.example]:587", "[xn--bcher-kva.example]:587", true,
		    true },
		{ "u@bücher.example", "u@BÜCHER.example.", false, true },
		{ "*@bücher.example", "ü@xn--bcher-kva.example", false, true },
		{ "ü@*", "u@xn--bcher-kva.example", false, false },
	};
	/* clang-format on */
	size_t i;

	for (i = 0; i < ARRAY_LEN(want); i++) {
		if (strchr(want[i].pattern, '@') == NULL)
			cr_expect_eq(
			    domain_matches(want[i].pattern, want[i].text),
			    want[i].domain, "%s %s", want[i].pattern,
			    want[i].text);
		cr_expect_eq(address_matches(want[i].pattern, want[i].text),
		    want[i].address, "%s %s", want[i].pattern, want[i].text);
	}
	cr_expect(address_contains("BÜCHER", "u@xn--bcher-kva.example"));
	cr_expect(address_contains("kva", "u@bücher.example"));
	cr_expect(address_contains("U@b", "u@bücher.example"));
	cr_expect_not(address_contains("bucher", "u@bücher.example"));
}
