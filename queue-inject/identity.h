/* queue-inject/identity.h - who submits, on which host.
 *
 * The user is the real one of the process, never what the environment says.
 * Names that could not stand in a header field are replaced. The user is
 * looked up when it is first asked for: many submissions never need it.
 */
#ifndef QUEUE_INJECT_IDENTITY_H
#define QUEUE_INJECT_IDENTITY_H

#include "base/buf.h"
#include "config/conf.h"

#include <sys/types.h>

struct identity {
	uid_t uid;
	char host[CONF_HOST_SIZE];   /* myhostname, or the system's name */
	char domain[CONF_HOST_SIZE]; /* mydomain, or host */
	bool looked_up;
	char login[64];      /* "uid1000" where the user has no name */
	char full_name[256]; /* from the user database, "" if none */
};

void identity_init(struct identity *id, const struct conf *conf);
void identity_look_up(struct identity *id);

#endif
