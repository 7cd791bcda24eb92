/* Authorities that no certificate of a server can be judged by: mail of level
 * `verify` waits then. Passwords for servers that are not verified. Fallbacks
 * of a low level of TLS. OpenSSL is no part of the supervisor, so that the file
 * is looked at for what an agent would miss first. */
#include "qscheduler/supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "route/credentials.h"
#include "route/tls_policy.h"

/* 1: a transport or a row asks for it. */
static int
asks_to_verify(const struct conf *conf, struct buf *ret_error)
{
	struct tls_policies *policies = NULL;
	bool speaks = false, verifies = false;
	uint32_t i;
	int r;

	for (i = 0; i < conf->ntransports; i++) {
		const struct conf_transport *t = &conf->transports[i];

		if (t->kind != AGENT_SMTP && t->kind != AGENT_LMTP)
			continue;
		speaks = true;
		verifies |= t->tls_level == TLS_LEVEL_VERIFY;
	}
	if (!speaks || verifies)
		return verifies;
	r = tls_policies_load(conf->smtp_tls_policy_file, &policies, ret_error);
	if (r < 0)
		return r;
	verifies = tls_policies_strictest(policies) == TLS_LEVEL_VERIFY;
	tls_policies_free(&policies);
	return verifies;
}

/* The agents read it as qmailr_user, and root reads everything. */
static bool
is_for_agents(const struct conf *conf, const struct stat *st)
{
	struct daemon_users users;
	struct buf ignored = { 0 };
	mode_t bit = S_IROTH;
	int r = daemon_users(conf, &users, &ignored);

	buf_done(&ignored);
	if (r < 0 || users.private)
		return true;
	if (st->st_uid == users.qmailr)
		bit = S_IRUSR;
	else if (st->st_gid == users.qmailr_group)
		bit = S_IRGRP;
	return (st->st_mode & bit) != 0;
}

static bool
has_certificate(FILE *f)
{
	char *line = NULL;
	size_t size = 0;
	bool found = false;

	while (!found && getline(&line, &size, f) >= 0)
		found = strncmp(line, "-----BEGIN ", 11) == 0 &&
		    strstr(line, "CERTIFICATE-----") != NULL;
	free(line);
	return found;
}

/* NULL: an agent can read it, and it has a certificate. */
static const char *
judge_open(const struct conf *conf, int fd)
{
	const char *why = NULL;
	struct stat st;
	FILE *f;

	if (fstat(fd, &st) < 0)
		return strerror(errno);
	if (!S_ISREG(st.st_mode))
		return "is not a regular file";
	if (!is_for_agents(conf, &st))
		return "cannot be read by qmailr_user";
	f = fdopen(dup(fd), "re");
	if (f == NULL)
		return strerror(errno);
	if (!has_certificate(f))
		why = ferror(f) ? "cannot be read" : "has no certificate (PEM)";
	fclose(f);
	return why;
}

static const char *
judge_file(const struct conf *conf)
{
	const char *why;
	int fd;

	if (conf->smtp_tls_CAfile[0] == '\0')
		return "no file is named";
	fd = open(conf->smtp_tls_CAfile, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? "is not there" : strerror(errno);
	why = judge_open(conf, fd);
	close(fd);
	return why;
}

static int
warn_authorities(
    const struct conf *conf, struct buf *out, struct buf *ret_error)
{
	const char *why;
	int r = asks_to_verify(conf, ret_error);

	if (r <= 0)
		return r;
	why = judge_file(conf);
	if (why == NULL)
		return 0;
	return buf_printf(out,
	    "smtp_tls_CAfile: %s%s%s: mail of level verify waits\n",
	    conf->smtp_tls_CAfile, conf->smtp_tls_CAfile[0] == '\0' ? "" : ": ",
	    why);
}

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

static int
warn_tables(const struct conf *conf, struct buf *out, struct buf *ret_error)
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

int
files_warn_tls(const struct conf *conf, struct buf *out, struct buf *ret_error)
{
	int r = warn_authorities(conf, out, ret_error);

	return r < 0 ? r : warn_tables(conf, out, ret_error);
}
