/* queue-drop/door.h - one submission through the door (docs/DOOR.md).
 *
 *	guard    the process and the paths that it believes
 *	stream   the records on standard input
 *	share    what one user may have waiting
 *	door     all of it in order, and the answer
 */
#ifndef QUEUE_DROP_DOOR_H
#define QUEUE_DROP_DOOR_H

#include "config/conf.h"
#include "queue-drop/share.h"
#include "queue-drop/stream.h"
#include "spool/accept.h"

struct door {
	const char *base;
	uint32_t queue;
	uid_t uid;
	const struct spool_sys *sys;
	struct conf conf;
	struct spool sp;
	struct share share;
	struct stream in;
	struct accept accept;
	bool opened, begun; /* spool_close(), accept_end() are due */
	uint32_t rcpts;
	char host[CONF_HOST_SIZE];
	/* why not, once something failed */
	int status; /* of sysexits.h */
	char reason[256];
};

/* The exit code; the answer is on standard output, or on standard error. */
int door_main(int argc, char **argv);
/* The parts, for tests: arguments and instance; the message on d->in. 0, or -1
 * with status and reason. door_done() always. */
int door_open(struct door *d, int argc, char *const *argv, bool secure);
int door_take(struct door *d, struct queue_id *ret_id);
void door_done(struct door *d);

#endif
