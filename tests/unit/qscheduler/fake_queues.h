/* Queues that a test has come and go, on the stage of fake.h. */
#ifndef TESTS_QSCHEDULER_FAKE_QUEUES_H
#define TESTS_QSCHEDULER_FAKE_QUEUES_H

#include "base/base.h"
#include "ipc/page.h"

#include <sys/types.h>

/* As it was at the last state_of(). */
extern struct sched_page page;
uint32_t state_of(uint32_t queue);
void wait_state(uint32_t queue, uint32_t state);
/* Below QUEUE_BASE; valid until the next call. */
const char *path_of(const char *rest);
void put_file(const char *rest);
bool is_there(const char *rest);
/* By the message queue of requests: the code of the answer. */
int set_count(uint32_t count);
int set_load(int32_t queue, uint32_t pct);
int disable(int32_t queue);
/* A supervisor that waits for nothing, with more lines of configuration. */
void start(const char *option, const char *conf);
size_t count_descriptors(void);

#endif
