#include "queue-inject/message.h"
#include "base/date.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

Test(compose, date_has_the_local_zone)
{
	static const struct {
		const char *zone;
		int64_t seconds;
		const char *want;
	} cases[] = {
		{ "UTC0", 0, "Thu, 1 Jan 1970 00:00:00 +0000" },
		{ "UTC0", 1712052672, "Tue, 2 Apr 2024 10:11:12 +0000" },
		{ "AAA-5:30", 1712052672, "Tue, 2 Apr 2024 15:41:12 +0530" },
		{ "AAA3:30", 1712052672, "Tue, 2 Apr 2024 06:41:12 -0330" },
		{ "AAA0:30", 1712052672, "Tue, 2 Apr 2024 09:41:12 -0030" },
		/* T3 */
		{ "UTC0", 2147483648, "Tue, 19 Jan 2038 03:14:08 +0000" },
		{ "UTC0", 4294967296, "Sun, 7 Feb 2106 06:28:16 +0000" },
		{ "UTC0", -1, "Wed, 31 Dec 1969 23:59:59 +0000" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		char out[DATE_SIZE];

		setenv("TZ", cases[i].zone, 1);
		tzset();
		date_format(cases[i].seconds * USEC_PER_SEC, out);
		cr_expect_str_eq(out, cases[i].want, "%s", out);
	}
}

Test(compose, T3_any_time_fits)
{
	static const usec_t times[] = { INT64_MIN, INT64_MAX, -1, 1 };
	char out[DATE_SIZE];
	size_t i;

	for (i = 0; i < ARRAY_LEN(times); i++) {
		memset(out, 'x', sizeof(out));
		date_format(times[i], out);
		cr_expect_lt(strnlen(out, sizeof(out)), sizeof(out));
	}
}

Test(compose, from)
{
	static const struct {
		const char *name, *want;
	} cases[] = {
		{ "", "From: a@b\n" },
		{ "Anna Berg", "From: Anna Berg <a@b>\n" },
		{ "Anna B. Berg", "From: \"Anna B. Berg\" <a@b>\n" },
		{ "a\"b\\c", "From: \"a\\\"b\\\\c\" <a@b>\n" },
		{ "a\r\nBcc: x", "From: \"a??Bcc: x\" <a@b>\n" },
		{ "<x@y>,", "From: \"<x@y>,\" <a@b>\n" },
		{ "J\xc3\xb6rg M\xc3\xbcller",
		    "From: =?UTF-8?Q?J=C3=B6rg_M=C3=BCller?= <a@b>\n" },
		{ "J\xf6rg", "From: J?rg <a@b>\n" },
		{ "\xf0\x9f\x8c\x8d=?_",
		    "From: =?UTF-8?Q?=F0=9F=8C=8D=3D=3F=5F?= <a@b>\n" },
		{ "\xe4\xb8\x96\xe4\xb8\x96\xe4\xb8\x96\xe4\xb8\x96\xe4\xb8\x96"
		  "\xe4\xb8\x96",
		    "From: =?UTF-8?Q?=E4=B8=96=E4=B8=96=E4=B8=96=E4=B8=96=E4="
		    "B8=96?=\n =?UTF-8?Q?=E4=B8=96?= <a@b>\n" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		struct buf out = { 0 };
		struct compose c = { &out, "", "\n" };

		cr_assert_eq(compose_from(&c, cases[i].name, "a@b"), 0);
		cr_expect_str_eq(out.data, cases[i].want, "%s", out.data);
		buf_done(&out);
	}
}

Test(compose, resent_with_crlf)
{
	struct buf out = { 0 };
	struct compose c = { &out, "Resent-", "\r\n" };

	setenv("TZ", "UTC0", 1);
	tzset();
	cr_assert_eq(compose_from(&c, "", "a@b"), 0);
	cr_assert_eq(compose_date(&c, 0), 0);
	cr_assert_eq(compose_message_id(&c, 0, 0xabc, "mx.example"), 0);
	cr_expect_str_eq(out.data,
	    "Resent-From: a@b\r\n"
	    "Resent-Date: Thu, 1 Jan 1970 00:00:00 +0000\r\n"
	    "Resent-Message-ID: "
	    "<19700101000000.0000000000000abc@mx.example>\r\n",
	    "%s", out.data);
	buf_done(&out);
}

/* A header line cannot be broken by a host name. */
Test(identity, C4_names_are_fit_for_a_header)
{
	static const struct {
		const char *host, *domain, *want_host, *want_domain;
	} cases[] = {
		{ "mx.example", "example", "mx.example", "example" },
		{ "mx.example", "", "mx.example", "mx.example" },
		{ "mx.example", "a\nb", "mx.example", "mx.example" },
		{ "mx.example", "a b", "mx.example", "mx.example" },
		{ "mx.example", "[192.0.2.1]", "mx.example", "[192.0.2.1]" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		char host[64], domain[64];
		struct conf conf = { .myhostname = host, .mydomain = domain };
		struct identity id;

		snprintf(host, sizeof(host), "%s", cases[i].host);
		snprintf(domain, sizeof(domain), "%s", cases[i].domain);
		identity_init(&id, &conf);
		cr_expect_str_eq(id.host, cases[i].want_host);
		cr_expect_str_eq(id.domain, cases[i].want_domain);
		snprintf(host, sizeof(host), "a\nb");
		identity_init(&id, &conf);
		cr_expect_null(strchr(id.host, '\n'));
		cr_expect_str_neq(id.host, "");
	}
}
