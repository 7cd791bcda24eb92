/* A todo-proc without its process: a scratch spool, and the test at the other
 * end of its link as queue-send. */
#ifndef TESTS_TODO_WORLD_H
#define TESTS_TODO_WORLD_H

#include "todo-proc/todo.h"

#include "spool/accept.h"

struct world {
	char dir[64];
	unsigned threads; /* 0: the loop waits for the disk */
	struct conf conf;
	struct todo t;
	int send; /* our end of the link, or -1 */
	/* Of files; NULL: short ones. */
	const char *content, *sender;
	/* what it said */
	struct msg_MESSAGE messages[256]; /* without strings */
	char census[256][16 * 8];
	size_t census_len[256];
	char rcpts[256][MSG_FEW_BYTES];
	char message_id[256][HEADER_MESSAGE_ID_MAX];
	int fds[256]; /* that came along, or -1 */
	struct msg_GONE gone[256];
	uint32_t nmessages, ngone;
	uint32_t ncounts,
	    ncounts_alone; /* alone: in no datagram of a message */
};

/* conf: lines of a configuration file. `smtp.test` goes to smtp, the rest is
 * discarded. Not linked. */
void world_start(struct world *w, const char *conf);
void world_end(struct world *w);
/* The process dies and is started again. */
void world_again(struct world *w);
void world_link(struct world *w);
void world_run(struct world *w);

void world_credit(struct world *w, uint32_t n);
void world_prepare(struct world *w, uint64_t inode);
void world_scan(struct world *w);

/* A message for n recipients rI@dI.test, or the one given if it has a `@`. */
uint64_t
world_file(struct world *w, enum spool_dir dir, const char *to, uint32_t n);
/* The same, its writer not done: the lock is held until accept_end(a). */
uint64_t world_unfinished(struct world *w, struct accept *a);
void world_bell(struct world *w, uint64_t inode);
/* A file of any bytes under a name in a directory; its inode. */
uint64_t world_raw(struct world *w, enum spool_dir dir, const char *name,
    const void *data, size_t len);
/* Name an unnamed file as a queue file must be. */
uint64_t world_raw_named(
    struct world *w, enum spool_dir dir, const void *data, size_t len);

/* The name of a drop in maildrop/; false: there is none of that inode. */
bool world_drop_name(
    const struct world *w, uint64_t inode, char out[SPOOL_DROP_MAX]);
/* Where the file is: a directory, or SPOOL_NDIRS. */
enum spool_dir world_where(const struct world *w, uint64_t inode);
uint32_t world_count(const struct world *w, enum spool_dir dir);

#endif
