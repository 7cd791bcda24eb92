/* queue-send/publish.h - the page /queueN: load, backlog, counters, ages.
 *
 * Sampling is here, and nowhere else: at most ten times a second when something
 * has changed, else every PUBLISH_IDLE as a sign of life. A load above the
 * threshold is told to the supervisor, too, at most every LOAD_EVERY. */
#ifndef QUEUE_SEND_PUBLISH_H
#define QUEUE_SEND_PUBLISH_H

#include "queue-send/send.h"

/* The segment, made by the supervisor: maps it and closes the descriptor. */
int publish_linked(void *send, int fd);
/* The message queue of the supervisor, for load reports; ours from here on. */
int publish_requests_linked(void *send, int fd);
usec_t publish_work(struct send *s);
void publish_done(struct send *s);
/* What the page says, for who has no segment: tests, state dumps. */
void publish_fill(struct send *s, struct queue_page *page);

#endif
