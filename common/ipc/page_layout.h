/* ipc/page_layout.h - what the writer's and the readers' side of the pages
 * share. For page.c and page_read.c, and for tests of them. */
#ifndef IPC_PAGE_LAYOUT_H
#define IPC_PAGE_LAYOUT_H

#include "ipc/page.h"

/* Where struct page_head lies behind the leading bytes; magic is one of ours.
 */
size_t page_head_offset(uint64_t magic);

/* ThreadSanitizer does not follow fences, and gcc says so; what it checks
 * (tests/tsan) does not depend on them. */
#if defined(__SANITIZE_THREAD__)
#pragma GCC diagnostic ignored "-Wtsan"
#endif

static inline void
page_fence_release(void)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

static inline void
page_fence_acquire(void)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

#endif
