#include "queue-send/state/pure.h"

/* Credit is in parts of a microsecond, so that none is lost by dividing. */
#define LEAST (-(int64_t)QUOTA_DEBT * QUOTA_PARTS)
#define MOST  ((int64_t)QUOTA_SLICE * QUOTA_PARTS)

void
quota_init(struct quota *q, usec_t now)
{
	*q = (struct quota){ .credit = MOST, .at = now };
}

void
quota_earn(struct quota *q, usec_t now)
{
	const usec_t elapsed = now > q->at ? now - q->at : 0;

	q->at += elapsed;
	q->credit = elapsed >= MOST - q->credit ? MOST : q->credit + elapsed;
}

void
quota_fill(struct quota *q, usec_t now)
{
	q->at = now;
	q->credit = MOST;
}

void
quota_spend(struct quota *q, usec_t took)
{
	const int64_t left = q->credit - LEAST;

	if (took <= 0)
		return;
	q->credit =
	    took >= left / QUOTA_PARTS ? LEAST : q->credit - took * QUOTA_PARTS;
}

bool
quota_is_open(const struct quota *q)
{
	return q->credit > 0;
}

usec_t
quota_opens_at(const struct quota *q)
{
	return q->credit > 0 ? q->at : q->at + 1 - q->credit;
}
