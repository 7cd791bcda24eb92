/* A supervisor in a process of its own, with children that are this very test
 * program under their names (fake_child.c), in a scratch directory.
 *
 * What a fake child does is in the file DIR/mode.ROLE: "ready" (the default),
 * or one of the modes of fake_child.c. What happens to it, it says on a pipe,
 * on which a test waits: nothing here waits for time to pass. */
#ifndef TESTS_QSCHEDULER_FAKE_H
#define TESTS_QSCHEDULER_FAKE_H

#include "qscheduler/children/children.h"

#include <sys/types.h>

#define SAID_SIZE 128

struct stage {
	char dir[32];
	char base[48];
	char conf[48];
	char instance[32];
	int pipe;      /* what children say */
	bool services; /* the supervisor has two programs of the instance */
	bool inherit;  /* the supervisor starts with a child that it did not
			  start */
	pid_t pid;     /* the supervisor, 0: none */
	int ready;     /* its --ready-fd */
	int log;       /* its standard error */
	char said[SAID_SIZE];
	char kept[2000][SAID_SIZE]; /* heard, and not yet waited for */
	size_t nkept;
	char logged[65536];
	size_t logged_len;
};

/* The programs that the stage has. */
extern const struct role_table stage_roles;

/* Names of the scratch instance; the test suite's init and fini. */
struct stage *stage(void);
void stage_init(void);
void stage_done(void);

void stage_conf(const char *more); /* write the configuration */
void stage_mode(const char *role, const char *mode);
void stage_start(const char *option); /* "-s" */
void stage_wait_ready(void);
/* Wait until a child says what begins with `what`, the earliest that was not
 * taken before; what it said. */
const char *stage_hear(const char *what);
/* The pid at the end of what was said. */
pid_t stage_pid(const char *said);
void stage_wait_log(const char *part);
bool stage_logged(const char *part);
int stage_finish(void); /* wait for the supervisor: its exit status */
int stage_stop(void);   /* TERM, then the same */
bool stage_object_there(const char *name); /* "queue1": shm or mq */

/* The page of the scheduler, which is being written to: not a torn copy. */
struct sched_page;
void stage_page(struct sched_page *ret_page);

#endif
