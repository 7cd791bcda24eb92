/* queue-send/ages.h - how old the messages are: a histogram for the page,
 * without walking the messages. Pure.
 *
 * Arrivals are counted by the minute for as long as the histogram tells ages
 * apart, and by the hour for all of AGES_HOURS; older ones together. So ages
 * are exact to a minute, and the oldest to an hour when it is older than a day.
 */
#ifndef QUEUE_SEND_AGES_H
#define QUEUE_SEND_AGES_H

#include "ipc/page.h"

#define AGES_MINUTES 2048 /* above the last step of the histogram */
#define AGES_HOURS   4096 /* above the longest lifetime, 100 days */

struct ages {
	uint32_t minute; /* the newest slot, minutes since the epoch */
	uint32_t minutes[AGES_MINUTES], hours[AGES_HOURS];
	uint64_t older, count;
};

/* A message that arrived then. The answer is what ages_remove() wants. */
uint32_t ages_add(struct ages *a, usec_t arrival_wall, usec_t now_wall);
void ages_remove(struct ages *a, uint32_t minute, usec_t now_wall);
/* Messages by age, and the arrival of the oldest, 0 when there is none. */
void ages_read(struct ages *a, usec_t now_wall, uint64_t ret_age[PAGE_AGES],
    usec_t *ret_oldest_wall);

#endif
