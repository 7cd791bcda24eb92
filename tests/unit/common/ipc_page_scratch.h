/* The two pages of a scratch instance, for the tests of them. */
#ifndef TESTS_IPC_PAGE_SCRATCH_H
#define TESTS_IPC_PAGE_SCRATCH_H

#include "ipc/page.h"
#include "ipc_scratch.h"

extern const struct page_owner ipc_page_own; /* the owner as it is, 0644 */
extern char ipc_page_name[IPC_NAME_MAX];     /* of the one made last */
extern struct sched_page *ipc_page_sched;    /* as the writer has them */
extern struct queue_page *ipc_page_queue;

/* The result of page_create(). */
int ipc_page_create_sched(int *ret_fd, uint32_t *ret_pid);
/* Their descriptors. */
int ipc_page_make_sched(void);
int ipc_page_make_queue(const struct page_owner *owner);

#endif
