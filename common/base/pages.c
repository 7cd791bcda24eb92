#include "base/pages.h"

#include "base/base.h"

#include <stdlib.h>
#include <sys/mman.h>

#define BLOCK ((size_t)2 << 20)
#define PAGES (BLOCK / SLAB_PAGE)
#define WORD  64
#define ALL   UINT64_MAX
/* malloc() has a head of 16 bytes before each of its pages, so these are not
 * used at the end of a page: one page follows the other. */
#define SMALL (SLAB_PAGE - 16)

struct page_block {
	LIST_ENTRY(page_block) link; /* in source->room, if it has room */
	uint64_t free[PAGES / WORD]; /* a bit for each page */
};
_Static_assert(sizeof(struct page_block) <= PAGES_HEAD, "head of a block");
_Static_assert(PAGES == 2 * WORD, "two words of bits");

static char *
start_of(struct page_block *block)
{
	return (char *)block - PAGES_USER;
}

static struct page_block *
block_at(char *start)
{
	return (struct page_block *)(void *)(start + PAGES_USER);
}

/* Twice as much holds an aligned block; the rest goes back. */
static char *
map_aligned(void)
{
	char *at = mmap(NULL, 2 * BLOCK, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t before;

	if (at == MAP_FAILED)
		return NULL;
	before = (BLOCK - ((uintptr_t)at & (BLOCK - 1))) & (BLOCK - 1);
	if (before > 0)
		munmap(at, before);
	munmap(at + before + BLOCK, BLOCK - before);
	return at + before;
}

static struct page_block *
block_new(struct page_source *source)
{
	char *start = map_aligned();
	struct page_block *block;

	if (start == NULL)
		return NULL;
	/* Where the kernel has none, the pages are small ones. */
	(void)madvise(start, BLOCK, MADV_HUGEPAGE);
	block = block_at(start);
	block->free[0] = block->free[1] = ALL;
	LIST_INSERT_HEAD(&source->room, block, link);
	return block;
}

void
pages_init(struct page_source *source)
{
	*source = (struct page_source){ .small = 0 };
	LIST_INIT(&source->room);
}

void
pages_done(struct page_source *source)
{
	ASSERT(
	    source->small == 0 && LIST_FIRST(&source->room) == source->empty);
	if (source->empty != NULL)
		munmap(start_of(source->empty), BLOCK);
	pages_init(source);
}

static void *
take(struct page_block *block)
{
	size_t word = block->free[0] == 0;
	size_t bit = (size_t)__builtin_ctzll(block->free[word]);

	block->free[word] &= block->free[word] - 1;
	if ((block->free[0] | block->free[1]) == 0)
		LIST_REMOVE(block, link);
	return start_of(block) + (word * WORD + bit) * SLAB_PAGE;
}

static void *
get_small(struct page_source *source)
{
	void *page = NULL;

	if (posix_memalign(&page, SLAB_PAGE, SMALL) != 0)
		return NULL;
	if (source != NULL)
		source->small++;
	return page;
}

void *
pages_get(struct page_source *source, uint16_t *ret_size)
{
	struct page_block *block;

	*ret_size = SMALL;
	if (source == NULL || source->small < PAGES_SMALL)
		return get_small(source);
	block = LIST_FIRST(&source->room);
	if (block == NULL)
		block = block_new(source);
	if (block == NULL)
		return get_small(source);
	if (block == source->empty)
		source->empty = NULL;
	*ret_size = SLAB_PAGE;
	return take(block);
}

static void
block_empty(struct page_source *source, struct page_block *block)
{
	if (source->empty == NULL) {
		source->empty = block;
		return;
	}
	LIST_REMOVE(block, link);
	munmap(start_of(block), BLOCK);
}

void
pages_put(struct page_source *source, void *page, uint16_t size)
{
	size_t at = (uintptr_t)page & (BLOCK - 1);
	struct page_block *block = block_at((char *)page - at);

	if (size == SMALL) {
		free(page);
		if (source != NULL)
			source->small--;
		return;
	}
	if ((block->free[0] | block->free[1]) == 0)
		LIST_INSERT_HEAD(&source->room, block, link);
	at /= SLAB_PAGE;
	block->free[at / WORD] |= (uint64_t)1 << at % WORD;
	if ((block->free[0] & block->free[1]) == ALL)
		block_empty(source, block);
}
