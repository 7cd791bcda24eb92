/* deliver-smtp/session/trace.h - dialogues that operators follow (qctl trace).
 *
 * A trace has a pattern for destination_matches(). The pattern is compared with
 * the next hop and the destination of a delivery, and with the name and the
 * address of the server.
 */
#ifndef DELIVER_SMTP_SESSION_TRACE_H
#define DELIVER_SMTP_SESSION_TRACE_H

#include "agent/agent.h"

#define TRACES_MAX 8   /* at a time */
#define TRACE_RATE 200 /* lines of one trace within a second */

struct trace {
	uint64_t number;
	usec_t until; /* monotonic */
	char pattern[TRACE_PATTERN_MAX + 1];
	usec_t second;     /* begin of the second that is counted */
	uint32_t lines;    /* lines sent within the second */
	uint64_t left_out; /* lines since the last one that was sent */
};

struct traces {
	size_t count;
	struct trace list[TRACES_MAX];
};

/* One more trace, or another time of one; seconds 0: it ends. One above
 * TRACES_MAX is passed over: queue-send has fewer. */
void traces_set(struct traces *t, uint64_t number, const char *pattern,
    uint32_t seconds, usec_t now);
/* Words of a delivery with the server `relay`, for each trace that fits. Line
 * ends divide the text into lines. now: monotonic. */
void traces_tell_at(struct traces *t, usec_t now,
    const struct agent_delivery *delivery, const char *relay,
    enum trace_who who, const char *text, size_t len);
/* The same, now. */
void traces_tell(struct traces *t, const struct agent_delivery *delivery,
    const char *relay, enum trace_who who, const char *text);
/* The same of a reply with this code, or of commands with code 0. */
void traces_tell_words(struct traces *t, const struct agent_delivery *delivery,
    const char *relay, unsigned code, const char *text, size_t len);

#endif
