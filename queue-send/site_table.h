/* queue-send/site_table.h - the windows of destinations (docs/SITES.md), in the
 * segment that all queues share: the supervisor links it, and another one in
 * its place when it was lost. No delivery starts while there is none. */
#ifndef QUEUE_SEND_SITE_TABLE_H
#define QUEUE_SEND_SITE_TABLE_H

#include "queue-send/send.h"

/* 0 or -ENOMEM; site_table_done() is right after either. */
int site_table_init(struct send *s);
/* After the scheduler: gives back what is held. */
void site_table_done(struct send *s);
/* This process ends before its deliveries: their places stay taken until the
 * supervisor has seen the end of those who may have connections. */
void site_table_abandon(struct send *s);
/* The parameters are those of s->conf from now on. */
int site_table_configure(struct send *s);

/* The segment, the first one or one in the place of another; takes the
 * descriptor. */
int site_table_linked(void *send, int fd);
/* All processes of that group are gone. */
void site_table_forget(struct send *s, uint32_t queue, uint32_t generation);
/* Tell the scheduler where there is room now. */
usec_t site_table_work(struct send *s);
/* What the table has cost so far, in the log. */
void site_table_tell(const struct send *s);

#endif
