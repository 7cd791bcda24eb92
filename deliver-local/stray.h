/* deliver-local/stray.h - processes of deliveries that do not end.
 *
 * A process that waits within the kernel, as for a file system of the
 * recipient's own that never answers, cannot be killed until that is over. The
 * delivery is answered for, and its slot given back, without it: SIGKILL is
 * pending, so nothing of the program runs any more, but the call that it waits
 * in may still have its effect. A stray is reaped when it ends.
 *
 * Strays are counted under the name that the scheduler has for the site.
 * One name may have STRAYS_EACH, and one only while there are STRAYS_MANY;
 * beyond that nothing is started for it, and all others go on.
 */
#ifndef DELIVER_LOCAL_STRAY_H
#define DELIVER_LOCAL_STRAY_H

#include "base/base.h"

#include <sys/queue.h>
#include <sys/types.h>

#define STRAYS_EACH 4
#define STRAYS_MANY 100

struct event;
struct event_base;
struct stray;

struct strays {
	LIST_HEAD(stray_list, stray) list;
	uint32_t count;
	struct event *timer; /* looks whether one has ended */
};

/* -ENOMEM. */
int strays_init(struct strays *s, struct event_base *base);
/* Those that are left stay with init. */
void strays_done(struct strays *s);
/* This child is not waited for any more. Without memory it is not counted, and
 * stays a zombie. */
void strays_add(struct strays *s, const char *name, pid_t pid, usec_t now);
/* May a process be started for it? */
bool strays_allow(const struct strays *s, const char *name);

#endif
