#include "deliver-smtp/session/session.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HOST_NAME_SIZE 65 /* of Linux, with the NUL */
#define SMTP_PORT      25
#define LMTP_PORT      24 /* RFC 2033 section 5: never 25 */

static const struct lookup_ways ways_of[CONF_NLOOKUPS] = {
	[CONF_LOOKUP_DNS] = { 1, { RESOLVE_DNS } },
	[CONF_LOOKUP_NATIVE] = { 1, { RESOLVE_NATIVE } },
	[CONF_LOOKUP_DNS_NATIVE] = { 2, { RESOLVE_DNS, RESOLVE_NATIVE } },
	[CONF_LOOKUP_NATIVE_DNS] = { 2, { RESOLVE_NATIVE, RESOLVE_DNS } },
};

/* gethostname() with a domain: servers want to see a dot. */
static void
host_helo(const struct conf *conf, char helo[SETTINGS_HELO_MAX])
{
	const char *domain =
	    conf->mydomain[0] != '\0' ? conf->mydomain : "localdomain";
	char name[HOST_NAME_SIZE] = "";

	if (gethostname(name, sizeof(name) - 1) < 0 || name[0] == '\0')
		snprintf(name, sizeof(name), "localhost");
	if (strchr(name, '.') != NULL)
		domain = "";
	snprintf(helo, SETTINGS_HELO_MAX, "%s%s%.180s", name,
	    *domain == '\0' ? "" : ".", domain);
}

static void
choose_helo(const struct conf *conf, char helo[SETTINGS_HELO_MAX])
{
	const char *name = conf->smtp_helo_name[0] != '\0'
	    ? conf->smtp_helo_name
	    : conf->myhostname;

	if (name[0] != '\0')
		snprintf(helo, SETTINGS_HELO_MAX, "%s", name);
	else
		host_helo(conf, helo);
}

void
settings_load(const struct conf *conf, struct settings *ret_settings)
{
	struct settings s = {
		.connect_limit = conf->smtp_connect_timeout,
		.connect_limit_all = conf->smtp_connect_all_timeout,
		.head_start = conf->smtp_connect_head_start,
		.before_limit = conf->smtp_before_mail_timeout,
		.plan = {
			.randomize = conf->smtp_randomize_addresses,
			.balance = conf->smtp_balance_inet_protocols,
			.limit = conf->smtp_mx_address_limit,
		},
		.mx = true,
		.session_limit = conf->smtp_mx_session_limit,
		.ways = ways_of[CONF_LOOKUP_DNS],
		.idle_limit = conf->smtp_connection_cache_time_limit,
		.reuse_limit = conf->smtp_connection_reuse_time_limit,
		.reuse_count = conf->smtp_connection_reuse_count_limit,
		.limits = {
			[DIALOG_GREETING] = conf->smtp_greeting_timeout,
			[DIALOG_EHLO] = conf->smtp_helo_timeout,
			[DIALOG_HELO] = conf->smtp_helo_timeout,
			[DIALOG_STARTTLS] = conf->smtp_starttls_timeout,
			[DIALOG_TLS] = conf->smtp_starttls_timeout,
			[DIALOG_AUTH] = conf->smtp_mail_timeout,
			[DIALOG_SURVEY] = conf->smtp_data_xfer_timeout,
			[DIALOG_COUNT] = conf->smtp_data_xfer_timeout,
			[DIALOG_MAIL] = conf->smtp_mail_timeout,
			[DIALOG_RCPT] = conf->smtp_rcpt_timeout,
			[DIALOG_DATA] = conf->smtp_data_init_timeout,
			[DIALOG_MEASURE] = conf->smtp_data_xfer_timeout,
			[DIALOG_CONTENT] = conf->smtp_data_xfer_timeout,
			[DIALOG_DOT] = conf->smtp_data_done_timeout,
			[DIALOG_ABORT] = conf->smtp_data_done_timeout,
			[DIALOG_RSET] = conf->smtp_quit_timeout,
			[DIALOG_QUIT] = conf->smtp_quit_timeout,
		},
	};

	choose_helo(conf, s.helo);
	*ret_settings = s;
}

void
settings_reach(
    const struct settings *settings, enum agent_kind kind, struct reach *reach)
{
	reach->mx = kind == AGENT_SMTP && settings->mx;
	reach->default_port = kind == AGENT_LMTP ? LMTP_PORT : SMTP_PORT;
	reach->ways = settings->ways;
	reach->limit = settings->connect_limit;
	reach->limit_all = settings->connect_limit_all;
	reach->limit_before = settings->before_limit;
	reach->head_start = settings->head_start;
	reach->plan = settings->plan;
	reach->fallback = settings->fallback;
	reach->source = settings->source;
}

/* ---- of one transport ---- */

/* The parameters were judged when they were read. */
static void
load_source(const struct conf_transport *t, struct connect_source *source)
{
	if (inet_pton(AF_INET, t->bind_address.text, &source->in.sin_addr) == 1)
		source->in.sin_family = AF_INET;
	if (inet_pton(
		AF_INET6, t->bind_address6.text, &source->in6.sin6_addr) == 1)
		source->in6.sin6_family = AF_INET6;
}

void
settings_apply(
    const struct conf *conf, const char *transport, struct settings *settings)
{
	const int place = conf_transport_find(conf, transport);
	const struct conf_transport *t;

	if (place < 0)
		return;
	t = &conf->transports[place];
	settings->mx = t->mx_lookup;
	settings->ways = ways_of[t->host_lookup];
	memcpy(settings->fallback, t->fallback_relay.text,
	    sizeof(settings->fallback));
	settings->eight = (enum conf_eight)t->eight;
	settings->chunking = t->chunking;
	settings->ignored = t->ehlo_ignored;
	load_source(t, &settings->source);
	if (t->helo.name[0] != '\0')
		snprintf(
		    settings->helo, sizeof(settings->helo), "%s", t->helo.name);
}
