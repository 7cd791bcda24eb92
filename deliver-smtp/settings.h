/* deliver-smtp/settings.h - what sessions need of the configuration. A session
 * has its own copy: a reload is for those that begin after it. */
#ifndef DELIVER_SMTP_SETTINGS_H
#define DELIVER_SMTP_SETTINGS_H

#include "config/conf.h"
#include "deliver-smtp/dialog.h"

#define SETTINGS_HELO_MAX 256

struct settings {
	char helo[SETTINGS_HELO_MAX];
	usec_t connect_limit;
	usec_t limits[DIALOG_NSTATES]; /* RFC 5321 section 4.5.3.2 */
};

/* The name for EHLO is smtp_helo_name, else myhostname, else the host's own,
 * with mydomain, else "localdomain", behind it where it has no dot. */
void settings_load(const struct conf *conf, struct settings *ret_settings);

#endif
