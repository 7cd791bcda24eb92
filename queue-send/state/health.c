#include "queue-send/state/pure.h"

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
	return h->counted >= HEALTH_ERRORS &&
	    now - h->at[h->counted % HEALTH_ERRORS] <= HEALTH_SPAN;
}

bool
health_failed(struct health *h, enum health_write what, int error, usec_t now)
{
	bool general = health_is_general(error);

	h->errors++;
	if (what == HEALTH_OTHER && general && error != -EROFS)
		return false;
	h->at[h->counted++ % HEALTH_ERRORS] = now;
	if (h->read_only || (!general && !too_many(h, now)))
		return false;
	h->read_only = true;
	h->error = error;
	h->probe_at = now + h->probe_every;
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
		h->probe_at = now + h->probe_every;
		return false;
	}
	h->read_only = false;
	h->error = 0;
	return true;
}
