/* Domains of the host, the relay host, and parameters that do nothing. */
#include "config/conf.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "config/param.h"

static int
try(const struct conf_setting *settings, size_t n, struct conf *ret_conf,
    struct buf *error)
{
	return conf_from_settings("c", settings, n, ret_conf, error);
}

Test(config_destination, names_and_variables)
{
	static const struct {
		const char *value, *want;
	} rows[] = {
		{ NULL, "host.a localhost.dom.b localhost" },
		{ "", "" },
		{ " , ,", "" },
		{ "*", "*" },
		{ "a.example,b.example", "a.example b.example" },
		{ ",a.example ,\tb.example,", "a.example b.example" },
		{ "$mydomain", "dom.b" },
		{ "mail.$mydomain, * $myhostname", "mail.dom.b * host.a" },
		{ "$myhostname.$mydomain", "host.a.dom.b" },
		{ "[192.0.2.1] [IPv6:::1]", "[192.0.2.1] [ipv6:::1]" },
		{ "A.Example", "a.example" },
		{ "bücher.$mydomain, B\xc3\x9c"
		  "cher.example",
		    "xn--bcher-kva.dom.b xn--bcher-kva.example" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct conf_setting settings[] = {
			{ "myhostname", "host.a", 1 },
			{ "mydomain", "dom.b", 2 },
			{ "mydestination", rows[i].value, 3 },
		};
		struct buf out = { 0 }, error = { 0 };
		struct conf conf;

		cr_assert_eq(
		    try(settings, rows[i].value == NULL ? 2 : 3, &conf, &error),
		    0, "%s: %s", rows[i].value, buf_str(&error));
		cr_expect_eq(conf_destinations(&conf, &out), 0);
		cr_expect_str_eq(buf_str(&out), rows[i].want, "%s: \"%s\"",
		    rows[i].value, buf_str(&out));
		conf_done(&conf);
		buf_done(&out);
		buf_done(&error);
	}
}

Test(config_destination, the_default_has_the_name_of_the_host)
{
	char host[CONF_HOST_SIZE];
	struct buf out = { 0 }, error = { 0 }, want = { 0 };
	struct conf conf;

	cr_assert_eq(try(NULL, 0, &conf, &error), 0);
	conf_host(&conf, host);
	cr_assert_eq(
	    buf_printf(&want, "%s localhost.%s localhost", host, host), 0);
	cr_assert_eq(conf_destinations(&conf, &out), 0);
	cr_expect_str_eq(buf_str(&out), buf_str(&want));
	cr_expect_str_eq(conf.relayhost, "");
	conf_done(&conf);
	buf_done(&out);
	buf_done(&want);
	buf_done(&error);
}

#define NO_HOP(s)                                                \
	"c:1: relayhost: \"" s                                   \
	"\" is not a next hop: it must be domain, domain:port, " \
	"[host]:port or [address]:port"

Test(config_destination, F4_wrong_values)
{
	static const struct {
		const char *name, *value, *want; /* NULL: right */
	} rows[] = {
		{ "mydestination", "a b..c",
		    "c:1: mydestination: \"b..c\" is not a domain" },
		{ "mydestination", ".a",
		    "c:1: mydestination: \".a\" is not a domain" },
		{ "mydestination", "-a",
		    "c:1: mydestination: \"-a\" is not a domain" },
		{ "mydestination", "a.",
		    "c:1: mydestination: \"a.\" is not a domain" },
		{ "mydestination", "*.a",
		    "c:1: mydestination: \"*.a\" is not a domain" },
		{ "mydestination", "x@a",
		    "c:1: mydestination: \"x@a\" is not a domain" },
		{ "mydestination", "/etc/domains",
		    "c:1: mydestination: \"/etc/domains\" is not a domain" },
		{ "mydestination", "a, $myorigin",
		    "c:1: mydestination: \"$myorigin\" names neither "
		    "$myhostname nor $mydomain" },
		{ "mydestination", "$",
		    "c:1: mydestination: \"$\" names neither $myhostname nor "
		    "$mydomain" },
		{ "mydestination", "$myhostnames",
		    "c:1: mydestination: \"$myhostnames\" names neither "
		    "$myhostname nor $mydomain" },
		{ "relayhost", "relay.example", NULL },
		{ "relayhost", "[relay.example]:587", NULL },
		{ "relayhost", "[2001:db8::25]:26", NULL },
		{ "relayhost", "unix:/run/relay", NO_HOP("unix:/run/relay") },
		{ "relayhost", "", NULL },
		{ "relayhost", "relay.example:0", NO_HOP("relay.example:0") },
		{ "relayhost", "relay.example:smtp",
		    NO_HOP("relay.example:smtp") },
		{ "relayhost", "smtp:relay.example",
		    "c:1: relayhost: \"smtp:relay.example\" is not a next hop; "
		    "leave out \"smtp:\"" },
		{ "relayhost", "a b", NO_HOP("a b") },
		{ "relayhost", "-x", NO_HOP("-x") },
		{ "relayhost", "relay..example", NO_HOP("relay..example") },
		{ "relayhost", "unix:run/relay", NO_HOP("unix:run/relay") },
		{ "relayhost", "[relay.example", NO_HOP("[relay.example") },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct conf_setting one = { rows[i].name, rows[i].value,
			1 };
		struct buf error = { 0 };
		struct conf conf;
		int r = try(&one, 1, &conf, &error);

		cr_expect_eq(
		    r, rows[i].want == NULL ? 0 : -EINVAL, "%s", rows[i].value);
		cr_expect_str_eq(buf_str(&error),
		    rows[i].want == NULL ? "" : rows[i].want, "%s: \"%s\"",
		    rows[i].value, buf_str(&error));
		if (r == 0)
			conf_done(&conf);
		buf_done(&error);
	}
}

#define NO_KIND(name) \
	"c:2: " name  \
	": does nothing: there is no transport of the kind that it is for\n"

Test(config_destination, parameters_that_do_nothing_are_named)
{
	static const struct {
		const char *transports, *name, *value, *want;
	} rows[] = {
		{ "smtp local pipe", "smtp_helo_name", "a", "" },
		{ "lmtp", "smtp_quit_timeout", "5s", "" },
		{ "local", "smtp_quit_timeout", "5s",
		    NO_KIND("smtp_quit_timeout") },
		{ "out:smtp", "smtp_helo_name", "a", "" },
		{ "smtp", "maildir_path", "/m/%u", NO_KIND("maildir_path") },
		{ "box:local", "maildir_user", "u", "" },
		{ "smtp", "local_account_share", "5",
		    NO_KIND("local_account_share") },
		{ "smtp", "programs_file", "/p", NO_KIND("programs_file") },
		{ "smtp", "command_time_limit", "5s", "" },
		{ "prog:pipe", "command_time_limit", "5s", "" },
		{ "local", "default_domain_literals", "yes",
		    NO_KIND("default_domain_literals") },
		{ "smtp local", "local_domain_literals", "yes",
		    "c:2: local_domain_literals: does nothing: local is of "
		    "kind local; the parameter is for smtp and lmtp\n" },
		{ "smtp local", "smtp_domain_literals", "yes", "" },
		{ "smtp local", "default_delivery_slot_cost", "7", "" },
		{ "smtp", "delay_warning_time", "4h", "" },
		{ "smtp", "delay_warning_time", "5d",
		    "c:2: delay_warning_time: does nothing: "
		    "maximal_queue_lifetime is no longer than that\n" },
		{ "smtp", "hopcount_limit", "7", "" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct conf_setting settings[] = {
			{ "transports", rows[i].transports, 1 },
			{ rows[i].name, rows[i].value, 2 },
		};
		struct buf out = { 0 }, error = { 0 };
		struct conf conf;

		cr_assert_eq(try(settings, 2, &conf, &error), 0, "%s: %s",
		    rows[i].name, buf_str(&error));
		cr_expect_eq(conf_idle(&conf, &out), 0);
		cr_expect_str_eq(buf_str(&out), rows[i].want, "%s: \"%s\"",
		    rows[i].name, buf_str(&out));
		cr_expect(conf_is_set(&conf, "transports"));
		cr_expect_not(conf_is_set(&conf, "relayhost"));
		conf_done(&conf);
		buf_done(&out);
		buf_done(&error);
	}
}

Test(config_destination, a_value_for_all_that_each_transport_replaces)
{
	const struct conf_setting settings[] = {
		{ "transports", "smtp local", 1 },
		{ "default_process_limit", "5", 2 },
		{ "smtp_process_limit", "6", 3 },
		{ "local_process_limit", "7", 4 },
		{ "alias_process_limit", "8", 5 },
	};
	struct buf out = { 0 }, error = { 0 };
	struct conf conf;

	cr_assert_eq(try(settings, 5, &conf, &error), 0);
	cr_expect_eq(conf_idle(&conf, &out), 0);
	cr_expect_str_eq(buf_str(&out),
	    "c:2: default_process_limit: does nothing: every transport has a "
	    "value of its own\n");
	conf_done(&conf);
	buf_reset(&out);
	cr_assert_eq(try(settings, 4, &conf, &error), 0);
	cr_expect_eq(conf_idle(&conf, &out), 0);
	cr_expect_str_eq(buf_str(&out), "");
	conf_done(&conf);
	buf_done(&out);
	buf_done(&error);
}

Test(config_destination, how_hosts_are_found)
{
	static const struct {
		const char *value, *want; /* NULL: refused */
	} rows[] = {
		{ "dns", "dns" },
		{ "native", "native" },
		{ "dns, native", "dns,native" },
		{ "dns native", "dns,native" },
		{ " native ,dns", "native,dns" },
		{ "", NULL },
		{ "dns, dns", NULL },
		{ "dns, native, dns", NULL },
		{ "files", NULL },
		{ "dnsnative", NULL },
	};
	const struct param *p = param_find("default_host_lookup");
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct conf_setting settings[] = {
			{ "smtp_host_lookup", rows[i].value, 1 },
		};
		struct buf out = { 0 }, error = { 0 };
		struct conf conf;
		int r = try(settings, 1, &conf, &error);

		if (rows[i].want == NULL) {
			cr_expect_eq(r, -EINVAL, "%s", rows[i].value);
			cr_expect_not_null(strstr(
			    buf_str(&error), "must be one of: dns native "));
		} else {
			cr_assert_eq(r, 0, "%s", buf_str(&error));
			cr_expect_eq(
			    param_format(p, &conf.transports[0], &out), 0);
			cr_expect_str_eq(buf_str(&out), rows[i].want);
			conf_done(&conf);
		}
		buf_done(&out);
		buf_done(&error);
	}
}

Test(config_destination, next_hops_of_the_fallback)
{
	static const struct {
		const char *value;
		bool good;
	} rows[] = {
		{ "", true },
		{ "relay.example", true },
		{ "[relay.example]:587, 192.0.2.1 [2001:db8::1]:26", true },
		{ "unix:/run/relay", false },
		{ "relay.example, -x", false },
		{ "relay.example:0", false },
	};
	char longer[2 * CONF_FALLBACK_SIZE];
	size_t i;

	for (i = 0; i <= ARRAY_LEN(rows); i++) {
		const char *value =
		    i < ARRAY_LEN(rows) ? rows[i].value : longer;
		const struct conf_setting settings[] = {
			{ "smtp_fallback_relay", value, 1 },
		};
		struct buf error = { 0 };
		struct conf conf;
		int r;

		memset(longer, 'a', sizeof(longer) - 1);
		longer[sizeof(longer) - 1] = '\0';
		r = try(settings, 1, &conf, &error);
		cr_expect_eq(r,
		    i < ARRAY_LEN(rows) && rows[i].good ? 0 : -EINVAL, "%s: %s",
		    value, buf_str(&error));
		if (r == 0) {
			cr_expect_str_eq(
			    conf.transports[0].fallback_relay.text, value);
			conf_done(&conf);
		}
		buf_done(&error);
	}
}
