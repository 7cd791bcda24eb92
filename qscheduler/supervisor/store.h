/* qscheduler/supervisor/store.h - our own files in QUEUE_BASE, whose disk may
 * not answer.
 *
 * QUEUE_BASE/by-hand (byhand.h) is written by a process (look.h), one at a
 * time, as it should be when that begins. A request that changes it is answered
 * when that is on disk, or soon with words. */
#ifndef QSCHEDULER_SUPERVISOR_STORE_H
#define QSCHEDULER_SUPERVISOR_STORE_H

#include "ipc/page.h"

struct super;

/* QUEUE_BASE/by-hand, and who waits for it to be written. */
struct store_answer {
	uint32_t pid, nonce;
	uint64_t change; /* that is to be on disk */
	usec_t until;
	char text[SCHED_ANSWER_SIZE];
};
struct store {
	bool unsaved;    /* it is not as it should be */
	usec_t save_at;  /* not before, unless asked */
	uint64_t change; /* the last one */
	uint64_t saving; /* the last that is being written, 0: none is */
	usec_t as_of;    /* it is written as it was then */
	struct store_answer waiting[16]; /* the oldest first */
	size_t nwaiting;
};

/* Behind an answer that QUEUE_BASE keeps waiting. */
#define STORE_LATER "; not yet on disk"
/* The content of QUEUE_BASE/by-hand has changed. */
void store_changed(struct super *s);
/* Write it, unless it is being written: then again after that. */
void store_save(struct super *s, usec_t now);
/* Answer a request when all changes are on disk, or soon with words. */
void store_answer(struct super *s, uint32_t pid, uint32_t nonce,
    const char *text, usec_t now);
/* Every SUPER_TICK. */
void store_tick(struct super *s, usec_t now);
/* At the start, while TERM still ends this process: wait until the disk of
 * QUEUE_BASE answers, and say so if that takes long. */
void store_await(const char *path, usec_t limit);

#endif
