#include "ipc_page_scratch.h"

#include <criterion/criterion.h>

const struct page_owner ipc_page_own = { (uid_t)-1, (gid_t)-1, 0644 };
char ipc_page_name[IPC_NAME_MAX];
struct sched_page *ipc_page_sched;
struct queue_page *ipc_page_queue;

int
ipc_page_create_sched(int *ret_fd, uint32_t *ret_pid)
{
	void *page = NULL;
	int r;

	ipc_name_scheduler(ipc_scratch(), ipc_page_name);
	r = page_create(ipc_page_name, sizeof(*ipc_page_sched),
	    SCHED_PAGE_MAGIC, &ipc_page_own, &page, ret_fd, ret_pid);
	ipc_page_sched = page;
	return r;
}

int
ipc_page_make_sched(void)
{
	uint32_t pid;
	int fd = -1;

	cr_assert_eq(ipc_page_create_sched(&fd, &pid), 0);
	return fd;
}

int
ipc_page_make_queue(const struct page_owner *owner)
{
	void *page = NULL;
	uint32_t pid;
	int fd = -1;

	ipc_name_queue(ipc_scratch(), 1, ipc_page_name);
	cr_assert_eq(page_create(ipc_page_name, sizeof(*ipc_page_queue),
			 QUEUE_PAGE_MAGIC, owner, &page, &fd, &pid),
	    0);
	ipc_page_queue = page;
	return fd;
}
