/* ipc/page_layout.h - the layout that writers (page.c) and readers
 * (page_read.c) of pages share, and their tests. */
#ifndef IPC_PAGE_LAYOUT_H
#define IPC_PAGE_LAYOUT_H

#include "ipc/page.h"

/* Where struct page_head lies behind the leading bytes; magic is one of ours.
 */
size_t page_head_offset(uint64_t magic);

static inline uint32_t
page_version(uint64_t magic)
{
	return magic == QUEUE_PAGE_MAGIC ? QUEUE_PAGE_VERSION
					 : SCHED_PAGE_VERSION;
}

/* ThreadSanitizer does not follow fences, and gcc warns of it; the checks of
 * tests/tsan do not depend on fences. */
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
