/* Use of what servers offer, by transport. */
#include "config/conf.h"

#include <criterion/criterion.h>
#include <string.h>

#include "config/param.h"

Test(config_esmtp, extensions_of_servers)
{
	static const struct {
		const char *line, *want; /* as --dump has it, or the error */
	} rows[] = {
		{ "smtp_8bit_conversion = quoted-printable",
		    "quoted-printable" },
		{ "smtp_8bit_conversion = refuse", "refuse" },
		{ "smtp_8bit_conversion = as-is", "as-is" },
		{ "smtp_8bit_conversion = AS-IS",
		    "c:1: smtp_8bit_conversion: must be one of: "
		    "quoted-printable refuse as-is" },
		{ "smtp_discard_ehlo_keywords = ", "" },
		{ "smtp_discard_ehlo_keywords = DSN, size pipelining",
		    "pipelining size dsn" },
		{ "smtp_discard_ehlo_keywords = size,xforward",
		    "c:1: smtp_discard_ehlo_keywords: \"xforward\" is none of "
		    "pipelining, size, 8bitmime, smtputf8, dsn, "
		    "starttls, auth, chunking" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const char *value = strstr(rows[i].line, " = ");
		struct buf name = { 0 }, got = { 0 };
		struct conf_setting setting = { NULL, value + 3, 1 };
		const struct param *p;
		struct conf conf;
		size_t len;
		int at;

		buf_add(&name, rows[i].line, (size_t)(value - rows[i].line));
		setting.name = buf_str(&name);
		p = param_find_override(setting.name, &len);
		cr_assert_not_null(p);
		if (conf_from_settings("c", &setting, 1, &conf, &got) == 0) {
			at = conf_transport_find(&conf, "smtp");
			cr_assert_geq(at, 0);
			param_format(p, &conf.transports[at], &got);
			conf_done(&conf);
		}
		cr_expect_str_eq(
		    buf_str(&got), rows[i].want, "%s", buf_str(&got));
		buf_done(&name);
		buf_done(&got);
	}
}

Test(config_esmtp, mechanisms_of_AUTH)
{
	static const struct {
		const char *value, *want; /* as --dump has it, or the error */
	} rows[] = {
		{ "", "" },
		{ "static:all", "" },
		{ "plain", "PLAIN" },
		{ "LOGIN, plain", "PLAIN LOGIN" },
		{ "!plain", "SCRAM-SHA-256 OAUTHBEARER XOAUTH2 LOGIN" },
		{ "!plain !login", "SCRAM-SHA-256 OAUTHBEARER XOAUTH2" },
		{ "!plain, login", "LOGIN" },
		{ "!plain, static:ALL",
		    "SCRAM-SHA-256 OAUTHBEARER XOAUTH2 LOGIN" },
		{ "plain, !plain", "PLAIN" },
		{ "!plain, plain, xoauth2", "XOAUTH2" },
		{ "!static:all",
		    "c:1: smtp_sasl_mechanism_filter: no mechanism is left; "
		    "name one" },
		{ "plian",
		    "c:1: smtp_sasl_mechanism_filter: \"plian\" is none of "
		    "SCRAM-SHA-256, OAUTHBEARER, XOAUTH2, PLAIN, LOGIN" },
		{ "!",
		    "c:1: smtp_sasl_mechanism_filter: \"\" is none of "
		    "SCRAM-SHA-256, OAUTHBEARER, XOAUTH2, PLAIN, LOGIN" },
	};
	static const char name[] = "smtp_sasl_mechanism_filter";
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct conf_setting setting = { name, rows[i].value, 1 };
		struct buf got = { 0 };
		struct conf conf;

		if (conf_from_settings("c", &setting, 1, &conf, &got) == 0) {
			param_format(param_find(name), &conf, &got);
			conf_done(&conf);
		}
		cr_expect_str_eq(buf_str(&got), rows[i].want, "%s: %s",
		    rows[i].value, buf_str(&got));
		buf_done(&got);
	}
}
