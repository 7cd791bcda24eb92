/* queue-send/message/fetch.h - files of the active queue that are not in memory
 * (docs/QUEUE.md, "Fetching").
 *
 * A file that has rested is closed, and may have left the memory of the kernel;
 * further recipients of a long one never were in it. The loop asks for them in
 * a way that does not wait; what is not there a thread opens and reads, and
 * then the loop does what it was about to do.
 *
 * Soft: in a queue in memory, or without memory, the loop reads. */
#ifndef QUEUE_SEND_MESSAGE_FETCH_H
#define QUEUE_SEND_MESSAGE_FETCH_H

#include "queue-send/state/send.h"

/* So much of the recipients that come next is read at once. */
#define FETCH_AHEAD 65536

void fetch_init(struct send *s);
/* So many files are fetched that nothing begins that may need another one. */
bool fetches_are_full(const struct send *s);
/* Entries that wait are put back. */
void fetch_done(struct send *s);
/* Before the recipients from m->next on are read. True: not now; m is on
 * STATE_FETCHING, and on STATE_READING again when it can go on; or is there
 * still, since fetches are full. */
bool fetch_batch(struct send *s, struct message *m);
/* Before a selected entry is dealt with. True: not now, the entry is kept, and
 * go_on() has it later; why is copied, NULL: none. */
bool fetch_entry(struct send *s, struct sched_entry *e, const char *why,
    void (*go_on)(struct send *s, struct sched_entry *e, const char *why));

#endif
