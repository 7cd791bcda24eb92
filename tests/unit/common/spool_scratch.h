/* spool_scratch.h - a queue of its own for a test, and the few things that
 * tests of the spool do again and again. Failure to set up ends the test. */
#ifndef TESTS_SPOOL_SCRATCH_H
#define TESTS_SPOOL_SCRATCH_H

#include "fault_sys.h"
#include "spool/accept.h"

struct scratch {
	char top[64];  /* mkdtemp() */
	char base[96]; /* QUEUE_BASE, below top */
	struct spool_owner owner;
	struct spool sp; /* queue 1, through fault_sys */
};

#define SCRATCH_SPLIT 3

/* A private instance, or one with numbers for users (root only). */
void scratch_open(struct scratch *s);
void scratch_open_shared(struct scratch *s);
void scratch_close(struct scratch *s);

extern const struct accept_options scratch_options; /* incoming, no limits */

struct scratch_mail {
	const char *content, *sender;
	const char *const *rcpts; /* ended by NULL */
};
extern const struct scratch_mail scratch_mail;
/* A new message: 0 or what failed; nothing stays open. */
int scratch_accept(struct scratch *s, const struct accept_options *opt,
    const struct scratch_mail *mail, struct queue_id *ret_id);
/* The standard message, safely in incoming/. */
struct queue_id scratch_put(struct scratch *s);
/* Write it to any descriptor. */
int scratch_write(int fd, const struct spool_sys *sys,
    const struct scratch_mail *mail, struct queue_file *ret_file);

/* What the sender asked of reports, of as many recipients. */
struct scratch_wishes {
	struct dsn_mail mail;
	struct dsn_rcpt rcpts[8];
};
extern const struct scratch_wishes scratch_wishes; /* for scratch_mail */
int scratch_write_wishes(int fd, const struct spool_sys *sys,
    const struct scratch_mail *mail, const struct scratch_wishes *wishes,
    struct queue_file *ret_file);

/* Files below the queue, the marker and the directories apart. */
unsigned scratch_files(const struct scratch *s);
/* "incoming/1/4711" below the queue, absolute. */
const char *
scratch_path(const struct scratch *s, enum spool_dir dir, uint64_t inode);
/* Write a file with this content by path. */
void scratch_spill(const char *path, const char *content);

#endif
