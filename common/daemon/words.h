/* daemon/words.h - the last words of a child: what it logs as a warning or an
 * error, a failed ASSERT and the reason of a start that failed go to the
 * supervisor as STATUS, which keeps the last one to show it with the end of
 * the process. At most one a second, and always the last.
 *
 * One of it in a process, as there is one log. Never fails, never blocks,
 * never logs: the log watches it. Nothing is sent before words_begin().
 */
#ifndef DAEMON_WORDS_H
#define DAEMON_WORDS_H

#include "base/base.h"

struct event_base;

#define WORDS_MAX 200 /* the supervisor keeps less */

/* The channel is there: from now on all is watched. */
void words_begin(int channel);
/* With a loop, what has to wait for its second is sent by a timer. */
void words_attach(struct event_base *base);
void words_say(const char *text);
/* Before the channel is closed and the loop freed: send what waits, hear no
 * more. */
void words_end(void);

#endif
