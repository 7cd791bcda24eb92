/* A private QUEUE_BASE in a directory of its own, for each test of a suite. */
#ifndef TESTS_QSCHEDULER_BASE_DIR_H
#define TESTS_QSCHEDULER_BASE_DIR_H

#include "qscheduler/queues/base.h"

struct base_dir {
	char dir[32];  /* removed behind the test */
	char path[64]; /* the QUEUE_BASE, below dir; not made yet */
	struct base base;
	struct buf error; /* of base_dir_open() */
	struct daemon_users users;
};
extern struct base_dir base_dir;

/* .init and .fini of a suite. */
void base_dir_setup(void);
void base_dir_teardown(void);

/* base_open() of a path. */
int base_dir_open(const char *path);

#endif
