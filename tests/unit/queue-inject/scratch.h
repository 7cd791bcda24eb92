/* A scratch instance without a supervisor: queue directories, a configuration
 * file, faces run in a child, and what lies in the queues after. */
#ifndef TESTS_UNIT_QUEUE_INJECT_SCRATCH_H
#define TESTS_UNIT_QUEUE_INJECT_SCRATCH_H

#include "base/buf.h"
#include "ipc/page.h"
#include "spool/spool.h"

#define SCRATCH_NOBODY 65534

struct scratch {
	char dir[96], base[112], conf[112];
	char instance[32];
	uint32_t queues;
};

/* Queues 1…queues; settings are lines for the configuration, or NULL. */
void scratch_new(struct scratch *s, uint32_t queues, const char *settings);
/* Other settings from here on. */
void scratch_conf(const struct scratch *s, const char *settings);
/* Directories and shared memory. */
void scratch_done(struct scratch *s);

struct run {
	const char *const *argv; /* ended by NULL */
	const char *input;       /* NULL: standard input is closed */
	size_t len;
	const char *envelope; /* on descriptor 1, or NULL */
	size_t envelope_len;
	int input_fd;    /* above 0: instead of input */
	int envelope_fd; /* the same of envelope */
	int close_fd;    /* above 0: not for the face */
	int out_fd, err_fd;
	bool as_nobody;
	/* what came of it */
	int status;
	char out[4096], err[512];
};
pid_t scratch_start(struct run *run);
void scratch_wait(pid_t pid, struct run *run);
void scratch_run(const struct scratch *s, struct run *run);
/* The exit code of `argv…` fed with a string; err is left in run. */
int scratch_exit(const struct scratch *s, struct run *run,
    const char *const *argv, const char *input);

/* A message of a queue: all of it. */
struct stored {
	uint32_t queue;
	enum spool_dir dir;
	struct queue_file file;
	struct buf content, sender, rcpts; /* joined by `|` */
	/* "hdrs id": of the message; then " success,failure orcpt" of each
	 * recipient, joined by `|`. */
	struct buf wishes;
};
/* How many files there are in incoming and maildrop of all queues, and of
 * other names; *ret_last is filled with one of them, unless NULL. */
size_t scratch_stored(const struct scratch *s, struct stored *ret_last);
void stored_done(struct stored *stored);
/* Takes them all away. */
void scratch_empty(const struct scratch *s);

/* Pages of a supervisor: rows 1…queues in this state, all idle. */
void scratch_pages(const struct scratch *s, uint32_t state, usec_t age);
/* One queue's page again. */
void scratch_queue_page(const struct scratch *s, uint32_t queue, usec_t age,
    const struct queue_page *content);
void scratch_no_pages(const struct scratch *s);

#endif
