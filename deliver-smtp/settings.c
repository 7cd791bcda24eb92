#include "deliver-smtp/session.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HOST_NAME_SIZE 65 /* of Linux, with the NUL */

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
	const char *const names[] = { conf->smtp_helo_name, conf->myhostname };
	size_t i;

	for (i = 0; i < ARRAY_LEN(names); i++)
		if (names[i][0] != '\0') {
			snprintf(helo, SETTINGS_HELO_MAX, "%s", names[i]);
			return;
		}
	host_helo(conf, helo);
}

void
settings_load(const struct conf *conf, struct settings *ret_settings)
{
	struct settings s = {
		.connect_limit = conf->smtp_connect_timeout,
		.idle_limit = conf->smtp_connection_cache_time_limit,
		.reuse_limit = conf->smtp_connection_reuse_time_limit,
		.reuse_count = conf->smtp_connection_reuse_count_limit,
		.limits = {
			[DIALOG_GREETING] = conf->smtp_greeting_timeout,
			[DIALOG_EHLO] = conf->smtp_helo_timeout,
			[DIALOG_HELO] = conf->smtp_helo_timeout,
			[DIALOG_MAIL] = conf->smtp_mail_timeout,
			[DIALOG_RCPT] = conf->smtp_rcpt_timeout,
			[DIALOG_DATA] = conf->smtp_data_init_timeout,
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
