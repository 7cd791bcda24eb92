#include "deliver-smtp/session/session_inside.h"

#include <errno.h>

#include "route/sender_rewrite.h"
#include "smtp/verp.h"

/* A row of the whole sender comes first: an account may look like a VERP
 * sender. A VERP sender has the row of its stored form, and keeps the variable
 * part. */
int
session_rewrite_sender(const struct sender_map *map,
    const struct agent_delivery *delivery, char out[ADDRESS_MAX + 1])
{
	const char *recipient = delivery->rcpts[0].address;
	char stored[ADDRESS_MAX + 1], other[ADDRESS_MAX + 1];
	struct sender_row row;
	bool whole;
	int r = sender_map_find(map, delivery->sender, &row);

	if (r < 0)
		return r;
	whole = r == 1 && row.whole;
	r = 0;
	if (delivery->nrcpts == 1 && !whole)
		r = verp_restore(delivery->sender, recipient, stored);
	if (r == 0)
		return sender_rewrite(map, delivery->sender, out);
	if (r > 0)
		r = sender_rewrite(map, stored, other);
	if (r <= 0)
		return r;
	r = verp_expand(other, recipient, "", out);
	if (r == -ENAMETOOLONG)
		return 0;
	return r == 0 ? 1 : r;
}
