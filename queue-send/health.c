#include "queue-send/health.h"

#include <errno.h>

bool
health_is_general(int error)
{
	return error == -EROFS || error == -ENOSPC || error == -EDQUOT;
}

static bool
too_many(const struct health *h, usec_t now)
{
	/* The ring's next place holds the oldest of the last HEALTH_ERRORS. */
	return h->errors >= HEALTH_ERRORS &&
	    now - h->at[h->errors % HEALTH_ERRORS] <= HEALTH_SPAN;
}

bool
health_failed(struct health *h, int error, usec_t now)
{
	h->at[h->errors++ % HEALTH_ERRORS] = now;
	if (h->read_only || (!health_is_general(error) && !too_many(h, now)))
		return false;
	h->read_only = true;
	h->error = error;
	h->probe_at = now + HEALTH_PROBE;
	return true;
}

bool
health_probe_due(const struct health *h, usec_t now)
{
	return h->read_only && now >= h->probe_at;
}

bool
health_probed(struct health *h, int error, usec_t now)
{
	if (error < 0) {
		h->error = error;
		h->probe_at = now + HEALTH_PROBE;
		return false;
	}
	h->read_only = false;
	h->error = 0;
	return true;
}
