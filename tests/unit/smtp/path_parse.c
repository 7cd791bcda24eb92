#include "smtp/smtp.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

/* clang-format off */
static const struct {
	const char *text, *address; /* NULL: not a path */
	ssize_t used;               /* 0: all of the text */
	bool no_domain, bare;
} rows[] = {
	{ .text = "<>", .address = "", .no_domain = true },
	{ .text = "<a@b>", .address = "a@b" },
	{ .text = "<a@b.>", .address = "a@b" },
	{ .text = "<a@b.c.> SIZE=1", .address = "a@b.c", .used = 8 },
	{ .text = "a@b.", .address = "a@b", .bare = true },
	{ .text = "<a@b> SIZE=1", .address = "a@b", .used = 5 },
	{ .text = "<a@b>x", .address = "a@b", .used = 5 },
	{ .text = "<postmaster>", .address = "postmaster", .no_domain = true },
	{ .text = "<a.b+c=d/e@f-g.example>", .address = "a.b+c=d/e@f-g.example" },
	{ .text = "<|/bin/false>", .address = "|/bin/false", .no_domain = true },
	{ .text = "<a..b.@c>", .address = "a..b.@c" },
	{ .text = "<\xc3\xa4@\xc3\xb6>", .address = "\xc3\xa4@\xc3\xb6" },
	{ .text = "<a@[192.0.2.1]>", .address = "a@[192.0.2.1]" },
	{ .text = "<a@[IPv6:::1]>", .address = "a@[IPv6:::1]" },
	{ .text = "<@x,@y:a@b>", .address = "a@b" },
	{ .text = "<\"a b\"@c>", .address = "\"a b\"@c" },
	{ .text = "<\"a\"@c>", .address = "a@c" },
	{ .text = "<\"a\\.b\"@c>", .address = "a.b@c" },
	{ .text = "<\"a\\\"b\"@c>", .address = "\"a\\\"b\"@c" },
	{ .text = "<\"a>b\"@c>", .address = "\"a>b\"@c" },
	{ .text = "<\"a@b\"@c>", .address = "\"a@b\"@c" },
	{ .text = "<\"\"@c>", .address = "\"\"@c" },
	{ .text = "<\"a b\">", .address = "\"a b\"", .no_domain = true },
	{ .text = "a@b", .address = "a@b", .bare = true },
	{ .text = "a@b SIZE=1", .address = "a@b", .used = 3, .bare = true },
	{ .text = "joe", .address = "joe", .no_domain = true, .bare = true },
	{ .text = "<a@b>", .address = "a@b", .bare = true },
	{ .text = "a@b" },
	{ .text = "" },
	{ .text = "", .bare = true },
	{ .text = " a", .bare = true },
	{ .text = "@b", .bare = true },
	{ .text = "<" },
	{ .text = "<a" },
	{ .text = "<a@b" },
	{ .text = "<a@>" },
	{ .text = "<@b>" },
	{ .text = "<@b:>" },
	{ .text = "<@b:@c:a@d>" },
	{ .text = "<a b@c>" },
	{ .text = "<a@b c>" },
	{ .text = "<a@b@c>" },
	{ .text = "<a@b..c>" },
	{ .text = "<a@.b>" },
	{ .text = "<a@b..>" },
	{ .text = "<a@.>" },
	{ .text = "<a@[192.0.2.1].>" },
	{ .text = "<a@b:25>" },
	{ .text = "<a@[192.0.2.1>" },
	{ .text = "<a@192.0.2.1]>" },
	{ .text = "<a@[]>" },
	{ .text = "<a@[[x]]>" },
	{ .text = "<a@b\">" },
	{ .text = "<<a@b>>" },
	{ .text = "<\"a@b>" },
	{ .text = "<\"a\\\"@b>" },
	{ .text = "<\"a\"b@c>" },
	{ .text = "<a\"b\"@c>" },
	{ .text = "<(x)a@b>" },
	{ .text = "<a,b@c>" },
};
/* clang-format on */

Test(path_parse, S2_each_form)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		char address[ADDRESS_MAX + 1] = "";
		bool domain = false;
		ssize_t used = rows[i].used,
			n = smtp_path_parse(
			    rows[i].text, rows[i].bare, address, &domain);

		if (rows[i].address == NULL) {
			cr_expect_eq(n, -EINVAL, "%s: %zd `%s'", rows[i].text,
			    n, address);
			continue;
		}
		if (used == 0)
			used = (ssize_t)strlen(rows[i].text);
		cr_expect_eq(n, used, "%s: %zd", rows[i].text, n);
		cr_expect_str_eq(
		    address, rows[i].address, "%s: %s", rows[i].text, address);
		cr_expect_eq(domain, !rows[i].no_domain, "%s", rows[i].text);
	}
}

Test(path_parse, S2_lengths_are_exact)
{
	size_t len;

	for (len = ADDRESS_MAX - 1; len <= ADDRESS_MAX + 1; len++) {
		char text[ADDRESS_MAX + 8], address[ADDRESS_MAX + 1];
		bool domain;
		ssize_t n;

		memset(text, 'a', sizeof(text));
		text[0] = '<';
		memcpy(text + 1 + len - 2, "@b>", 4);
		n = smtp_path_parse(text, false, address, &domain);
		cr_expect_eq(n,
		    len > ADDRESS_MAX ? -ENAMETOOLONG : (ssize_t)len + 2,
		    "%zu: %zd", len, n);
	}
}
