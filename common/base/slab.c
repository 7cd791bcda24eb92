#include "base/slab.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define SLAB_PLAIN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLAB_PLAIN 1
#endif
#endif
#ifndef SLAB_PLAIN
#define SLAB_PLAIN 0
#endif

struct slab_page {
	LIST_ENTRY(slab_page) link; /* in slab->room, if it has room */
	void *free;                 /* objects that came back, chained */
	uint16_t used;              /* objects */
	uint16_t fresh;             /* from here on no object was taken yet */
	uint16_t size;              /* see pages_get() */
};
/* Objects begin on a line of the processor's cache. */
#define PAGE_HEAD (PAGES_USER + PAGES_HEAD)

_Static_assert(sizeof(struct slab_page) <= PAGES_USER, "head of a page");
_Static_assert(SLAB_PAGE <= UINT16_MAX, "places in a page");

static struct slab_page *
page_of(void *object)
{
	char *at = object;

	return (struct slab_page *)(void *)(at -
	    ((uintptr_t)object & (SLAB_PAGE - 1)));
}

static bool
has_room(const struct slab *s, const struct slab_page *page)
{
	return page->free != NULL || page->fresh + s->size <= page->size;
}

void
slab_init(struct slab *s, size_t size, struct page_source *source)
{
	ASSERT(size % 8 == 0 && size >= 8 && size <= SLAB_PAGE / 10);
	*s = (struct slab){ .size = size, .source = source };
	LIST_INIT(&s->room);
}

void
slab_done(struct slab *s)
{
	ASSERT(LIST_FIRST(&s->room) == s->empty);
	if (s->empty != NULL)
		pages_put(s->source, s->empty, s->empty->size);
	slab_init(s, s->size, s->source);
}

static struct slab_page *
page_new(struct slab *s)
{
	uint16_t size;
	struct slab_page *page = pages_get(s->source, &size);

	if (page == NULL)
		return NULL;
	page->size = size;
	page->free = NULL;
	page->used = 0;
	page->fresh = PAGE_HEAD;
	LIST_INSERT_HEAD(&s->room, page, link);
	return page;
}

static void *
take(struct slab *s, struct slab_page *page)
{
	void *object = page->free;

	if (object != NULL) {
		memcpy(&page->free, object, sizeof(page->free));
	} else {
		object = (char *)page + page->fresh;
		page->fresh = (uint16_t)(page->fresh + s->size);
	}
	page->used++;
	return object;
}

void *
slab_get(struct slab *s)
{
	struct slab_page *page = LIST_FIRST(&s->room);
	void *object;

	if (SLAB_PLAIN)
		return malloc(s->size);
	if (page == NULL)
		page = page_new(s);
	if (page == NULL)
		return NULL;
	if (page == s->empty)
		s->empty = NULL;
	object = take(s, page);
	if (!has_room(s, page))
		LIST_REMOVE(page, link);
	return object;
}

void *
slab_get_zeroed(struct slab *s)
{
	void *object = slab_get(s);

	return object == NULL ? NULL : memset(object, 0, s->size);
}

static void
page_empty(struct slab *s, struct slab_page *page)
{
	if (s->empty == NULL) {
		s->empty = page;
		return;
	}
	LIST_REMOVE(page, link);
	pages_put(s->source, page, page->size);
}

void
slab_put(struct slab *s, void *object)
{
	struct slab_page *page = page_of(object);

	if (SLAB_PLAIN) {
		free(object);
		return;
	}
	if (!has_room(s, page))
		LIST_INSERT_HEAD(&s->room, page, link);
	memcpy(object, &page->free, sizeof(page->free));
	page->free = object;
	if (--page->used == 0)
		page_empty(s, page);
}
