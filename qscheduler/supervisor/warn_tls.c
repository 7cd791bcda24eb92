/* Passwords for servers that are not verified, and fallbacks of a low level of
 * TLS. */
#include "qscheduler/supervisor/supervisor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "route/credentials.h"
#include "route/tls_policy.h"

struct tables {
	struct tls_policies *policies;
	struct credentials *credentials;
};

/* ---- passwords for servers that are not verified ---- */

/* A next hop may be that of any transport: the strictest level, so that there
 * is no false alarm. */
static enum tls_level
level_of_transports(const struct conf *conf)
{
	enum tls_level level = TLS_LEVEL_NONE;
	uint32_t i;

	for (i = 0; i < conf->ntransports; i++) {
		const struct conf_transport *t = &conf->transports[i];

		if ((t->kind == AGENT_SMTP || t->kind == AGENT_LMTP) &&
		    (enum tls_level)t->tls_level > level)
			level = (enum tls_level)t->tls_level;
	}
	return level;
}

/* A socket of this host needs no name. */
static bool
is_local_socket(const char *key)
{
	return strncmp(key, "unix:", strlen("unix:")) == 0;
}

/* An agent that has a password for a server raises `may` to `encrypt`. */
static enum tls_level
level_with_password(const struct conf *conf, enum tls_level level)
{
	return level == TLS_LEVEL_MAY && !conf->smtp_auth_in_clear
	    ? TLS_LEVEL_ENCRYPT
	    : level;
}

static int
warn_passwords(
    const struct conf *conf, const struct tables *tables, struct buf *out)
{
	const enum tls_level usual = level_of_transports(conf);
	const struct credential *c;
	size_t i;
	int r = 0;

	for (i = 0;
	     r == 0 && (c = credentials_row(tables->credentials, i)) != NULL;
	     i++) {
		const struct tls_policy *row =
		    tls_policies_find(tables->policies, c->key);
		const enum tls_level level =
		    level_with_password(conf, row != NULL ? row->level : usual);

		if (level == TLS_LEVEL_VERIFY || is_local_socket(c->key))
			continue;
		r = buf_printf(out,
		    "smtp_password_file: %s:%" PRIu32
		    ": level %s does not verify the server, and whoever "
		    "answers in its place gets the password: add \"%s "
		    "verify\" to smtp_tls_policy_file\n",
		    conf->smtp_password_file, c->line, tls_level_word(level),
		    c->key);
	}
	return r;
}

/* ---- fallbacks with a lower level of TLS than the mail for them ---- */

static enum tls_level
level_of_fallback(const struct conf *conf, const struct conf_transport *t,
    const struct tls_policy *row, bool password)
{
	enum tls_level level =
	    row != NULL ? row->level : (enum tls_level)t->tls_level;

	if (level == TLS_LEVEL_MAY && t->tls_wrappermode)
		level = TLS_LEVEL_ENCRYPT;
	return password ? level_with_password(conf, level) : level;
}

static int
warn_fallback(const struct conf *conf, const struct conf_transport *t,
    const struct tables *tables, struct buf *out)
{
	const enum tls_level most = tls_policies_strictest(tables->policies);
	const char *rest = t->fallback_relay.text, *word;
	char hop[CONF_FALLBACK_SIZE];
	enum tls_level level;
	size_t len;
	int r = 0;

	while (r == 0 && (word = text_next_word(&rest, &len)) != NULL) {
		snprintf(hop, sizeof(hop), "%.*s", (int)len, word);
		level = level_of_fallback(conf, t,
		    tls_policies_find(tables->policies, hop),
		    credentials_find(tables->credentials, hop) != NULL);
		if (level < most)
			r = buf_printf(out,
			    "%s_fallback_relay: %s: mail for next hops of "
			    "level %s may go here with level %s: add \"%s %s\" "
			    "to smtp_tls_policy_file\n",
			    t->name, hop, tls_level_word(most),
			    tls_level_word(level), hop, tls_level_word(most));
	}
	return r;
}

/* Without a row of `encrypt` or `verify`, no mail needs a level. */
static int
warn_fallbacks(
    const struct conf *conf, const struct tables *tables, struct buf *out)
{
	uint32_t i;
	int r = 0;

	if (tls_policies_strictest(tables->policies) < TLS_LEVEL_ENCRYPT)
		return 0;
	for (i = 0; r == 0 && i < conf->ntransports; i++)
		if (conf->transports[i].kind == AGENT_SMTP ||
		    conf->transports[i].kind == AGENT_LMTP)
			r = warn_fallback(
			    conf, &conf->transports[i], tables, out);
	return r;
}

int
files_warn_tls(const struct conf *conf, struct buf *out, struct buf *ret_error)
{
	struct tables t = { NULL, NULL };
	int r = tls_policies_load(
	    conf->smtp_tls_policy_file, &t.policies, ret_error);

	if (r == 0)
		r = credentials_load(
		    conf->smtp_password_file, &t.credentials, ret_error);
	if (r == 0)
		r = warn_passwords(conf, &t, out);
	if (r == 0)
		r = warn_fallbacks(conf, &t, out);
	tls_policies_free(&t.policies);
	credentials_free(&t.credentials);
	return r;
}
