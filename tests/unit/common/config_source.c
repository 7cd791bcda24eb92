/* The addresses that transports connect from, and the names that they give. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "config/conf.h"

static int
load(const struct conf_setting *settings, size_t count, struct conf *ret_conf,
    struct buf *error)
{
	return conf_from_settings("c", settings, count, ret_conf, error);
}

static const struct conf_transport *
transport(const struct conf *conf, const char *name)
{
	int i = conf_transport_find(conf, name);

	cr_assert_geq(i, 0);
	return &conf->transports[i];
}

Test(config_source, a_transport_has_its_own)
{
	static const struct conf_setting settings[] = {
		{ "transports", "smtp slow:smtp", 1 },
		{ "default_smtp_bind_address", "192.0.2.1", 2 },
		{ "slow_smtp_bind_address", "", 3 },
		{ "slow_smtp_bind_address6", "2001:db8::1", 4 },
		{ "slow_smtp_helo_name", "slow.test", 5 },
		{ "slow_mx_lookup", "no", 6 },
	};
	const struct conf_transport *smtp, *slow;
	struct buf error = { 0 };
	struct conf conf;

	cr_assert_eq(load(settings, ARRAY_LEN(settings), &conf, &error), 0,
	    "%s", buf_str(&error));
	smtp = transport(&conf, "smtp");
	slow = transport(&conf, "slow");
	cr_expect_str_eq(smtp->bind_address.text, "192.0.2.1");
	cr_expect_str_eq(smtp->bind_address6.text, "");
	cr_expect_str_eq(smtp->helo.name, "");
	cr_expect(smtp->mx_lookup);
	cr_expect_str_eq(slow->bind_address.text, "");
	cr_expect_str_eq(slow->bind_address6.text, "2001:db8::1");
	cr_expect_str_eq(slow->helo.name, "slow.test");
	cr_expect_not(slow->mx_lookup);
	conf_done(&conf);
	buf_done(&error);
}

/* mutation: common/config/source.c, is_address() takes what parses. */
Test(config_source, N17_addresses_to_connect_from)
{
	static const struct conf_setting no[] = {
		{ "default_smtp_bind_address", "192.0.2", 7 },
		{ "default_smtp_bind_address", "0.0.0.0", 7 },
		{ "default_smtp_bind_address", "2001:db8::1", 7 },
		{ "default_smtp_bind_address", "mx.test", 7 },
		{ "default_smtp_bind_address", "[192.0.2.1]", 7 },
		{ "default_smtp_bind_address", "192.0.2.1:25", 7 },
		{ "default_smtp_bind_address6", "192.0.2.1", 7 },
		{ "default_smtp_bind_address6", "::", 7 },
		{ "default_smtp_bind_address6", "fe80::1", 7 },
		{ "default_smtp_bind_address6", "::ffff:192.0.2.1", 7 },
		{ "default_smtp_bind_address6", "[::1]", 7 },
		{ "default_smtp_helo_name", "a b", 7 },
		{ "default_smtp_helo_name", "-x", 7 },
	};
	struct conf conf;
	size_t i;

	for (i = 0; i < ARRAY_LEN(no); i++) {
		struct buf error = { 0 }, want = { 0 };

		cr_expect_eq(
		    load(&no[i], 1, &conf, &error), -EINVAL, "%s", no[i].value);
		cr_assert_eq(buf_printf(&want, "c:7: %s: ", no[i].name), 0);
		cr_expect_eq(strncmp(buf_str(&error), buf_str(&want), want.len),
		    0, "%s", buf_str(&error));
		buf_done(&error);
		buf_done(&want);
	}
}
