/* A segment of a test's own, and processes' ends of it. */
#ifndef TEST_SITE_SHARED_SCRATCH_H
#define TEST_SITE_SHARED_SCRATCH_H

#include "ipc/names.h"
#include "site/shared_parts.h"

#include "site_scratch.h"

struct scratch {
	char name[IPC_NAME_MAX];
	int fd;
};
void scratch_begin(struct scratch *t, uint32_t slots, uint32_t members);
void scratch_end(struct scratch *t);

/* As another queue's process would have it. Two transports, smtp and lmtp. */
struct end {
	struct shared *shared;
};
void end_open(struct end *e, const struct site_params *params);
void end_attach(struct end *e, const struct scratch *t, uint32_t queue);
void end_begin(struct end *e, const struct scratch *t, uint32_t queue,
    const struct site_params *params);
void end_close(struct end *e);
struct site *end_site(struct end *e, const char *name, usec_t now);
struct site_view end_view(struct site *site);
/* There is room, there is none. */
void end_take(struct site *site, usec_t now);
void end_full(struct site *site, usec_t now);
/* Lines up. */
void end_wait(struct site *site, usec_t now);
void end_done(struct site *site, enum site_result result, usec_t now);
void end_doubt(struct site *site, uint32_t message, usec_t now);
/* How many of the sites whose user is set are told to be ready: each time adds
 * one to the uint32_t that it points to. */
usec_t end_work(struct end *e, usec_t now);
/* The process is gone without a word; its member is as it was. */
void end_die(struct end *e);

#endif
