/* queue-send/results.h - what became of each recipient.
 *
 * In this order: the reason, if there is one, is appended (bounce/ before the
 * mark, D3); the mark is written; then it is logged and counted. A mark that
 * cannot be written parks the result in memory: it is tried again until it
 * can, and its message waits for it (D4, D7). */
#ifndef QUEUE_SEND_RESULTS_H
#define QUEUE_SEND_RESULTS_H

#include "queue-send/send.h"

struct delivery;

struct report {
	uint32_t index;
	uint64_t offset;
	const char *address;
	enum agent_outcome outcome;
	const char *dsn, *relay, *text;
	usec_t conn, xfer;
	usec_t selected_at;
	bool ours;    /* a failure of our own: never the end of the message */
	bool expired; /* failed because the message is too old */
};

void
results_apply(struct send *s, struct message *m, const struct report *report);

/* Frames of an agent: -EBADMSG when it said what it may not say (I18). */
int results_on_result(
    struct send *s, struct agent_link *agent, const struct msg_RESULT *frame);
int results_on_done(
    struct send *s, struct agent_link *agent, const struct msg_DONE *frame);
/* Recipients of the delivery without a result; ours: of our own trouble. */
void results_defer_rest(struct send *s, struct delivery *d, const char *dsn,
    const char *text, bool ours);

/* The probe of a queue that cannot write, and parked results. */
usec_t results_work(struct send *s);
void results_drop_unrecorded(struct send *s);

#endif
