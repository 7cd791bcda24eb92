/* base/pages.h - pages of SLAB_PAGE bytes for slabs that may become large.
 *
 *	         ┌──────┬──────┬── … ──┬──────┐
 *	block ──▶ │ page │ page │       │ page │  BLOCK bytes, aligned
 *	         └──────┴──────┴── … ──┴──────┘
 *
 * PAGES_SMALL pages of a source are of malloc(). Further ones are of
 * blocks of the size of a large page of the processor, for which the kernel is
 * asked: so many objects need so few entries of the processor's tables of
 * addresses that a random one is found sooner. The kernel clears a block at
 * once when it is first used, which takes longer than a decision may: only what
 * new mail needs comes from here.
 *
 * A block goes back to the kernel when all of its pages have, but for one that
 * is kept. Soft: NULL without memory. */
#ifndef BASE_PAGES_H
#define BASE_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define SLAB_PAGE   ((size_t)16384)
#define PAGES_SMALL 256

/* Each page begins with a head of its user. Where it is the first of a block,
 * the last PAGES_HEAD bytes of these are of the block, whether the page is used
 * or not. */
#define PAGES_USER  32
#define PAGES_HEAD  32

struct page_block;
LIST_HEAD(page_blocks, page_block);

struct page_source {
	struct page_blocks room;  /* blocks with room */
	struct page_block *empty; /* the one that is kept, or NULL */
	uint32_t small;           /* pages of malloc() in use */
};

void pages_init(struct page_source *source);
/* Nothing may be in use. */
void pages_done(struct page_source *source);
/* source may be NULL: malloc(). *ret_size: what can be used of the page, to be
 * given back with it. */
void *pages_get(struct page_source *source, uint16_t *ret_size);
void pages_put(struct page_source *source, void *page, uint16_t size);

#endif
