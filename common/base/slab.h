/* base/slab.h - memory for many objects of one size.
 *
 *	         ┌────────┬────────┬────────┬── … ──┐
 *	page ──▶ │ header │ object │ object │       │  SLAB_PAGE bytes, aligned
 *	         └────────┴────────┴────────┴── … ──┘
 *
 * An object has no header, objects that are taken one after the other lie side
 * by side, and taking or giving back one costs a few steps, whatever the number
 * of objects: nothing is cleared, moved or joined. A page goes back to where
 * it came from when all of its objects have, but for one that is kept.
 *
 * Soft: NULL without memory. With AddressSanitizer each object is of malloc(),
 * so that its use after its end is found. */
#ifndef BASE_SLAB_H
#define BASE_SLAB_H

#include "base/pages.h"

struct slab_page;
LIST_HEAD(slab_pages, slab_page);

struct slab {
	size_t size;
	struct slab_pages room;     /* pages with room, the last used first */
	struct slab_page *empty;    /* the one that is kept, or NULL */
	struct page_source *source; /* of its pages; NULL: malloc() */
};

/* size: of an object; a multiple of 8, at most a tenth of a page. source: where
 * its pages come from; NULL: malloc(). */
void slab_init(struct slab *s, size_t size, struct page_source *source);
/* Nothing may be in use. */
void slab_done(struct slab *s);
/* The content is undefined, and zero. */
void *slab_get(struct slab *s);
void *slab_get_zeroed(struct slab *s);
/* object: of this slab. */
void slab_put(struct slab *s, void *object);

#endif
