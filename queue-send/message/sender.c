#include "queue-send/message/path.h"

#include <string.h>

#include "smtp/verp.h"

int
sender_for(const struct send *s, const struct message *m, const char *recipient,
    char out[ADDRESS_MAX + 1])
{
	char domain[CONF_HOST_SIZE] = "";

	if (m->verp && strchr(recipient, '@') == NULL)
		conf_domain(s->conf, domain);
	return verp_expand(m->sender, recipient, domain, out);
}
