/* route/sender_map.h - a file with a value for each sender, one row a line, `#`
 * comments:
 *
 *	user@domain	value
 *	@domain		value
 *
 * The address comes first, then the address without its +extension, then its
 * domain. Of a VERP sender it is the address in front of the suffix
 * (base/verp.h). Neither part has case, and domains compare as base/domain.h
 * has them. A value has no blanks. The null sender has no row. A key that
 * stands twice is an error.
 *
 * A map does not change once loaded, and may have several owners of one
 * process. Soft: -errno, with the text in *ret_error as route.h says. Never
 * logs.
 */
#ifndef ROUTE_SENDER_MAP_H
#define ROUTE_SENDER_MAP_H

#include "base/buf.h"
#include "base/domain.h"

#define SENDER_VALUE_MAX ADDRESS_MAX

/* The values of a file. */
struct sender_kind {
	const char *form; /* the complaint about a line of another form */
	/* Writes the value that is kept, "" for none, into out. NULL, or the
	 * complaint, a static text for text_complain(). */
	const char *(*judge)(const char *text, char out[SENDER_VALUE_MAX + 1]);
};

struct sender_row {
	const char *value; /* NULL: none */
	uint32_t line;
	bool whole; /* the key of the row is the whole address */
};

struct sender_map;

/* Judge user@domain or @domain, and write the domain in A-labels into ascii.
 * NULL, or the complaint for text_complain(), a static text. */
const char *sender_address_judge(const char *text, char ascii[DOMAIN_MAX + 1]);

/* -ENOENT for no file, -EINVAL for the first wrong line. The kind is static. */
int sender_map_load(const char *path, const struct sender_kind *kind,
    struct sender_map **ret_map, struct buf *ret_error);
/* Each wrong line, as base/wrong_lines.h tells them. 0: the load succeeds. */
int sender_map_judge(
    const char *path, const struct sender_kind *kind, struct buf *ret_errors);
/* One more owner, of NULL none. The last one that frees it ends the map. */
struct sender_map *sender_map_ref(struct sender_map *map);
void sender_map_free(struct sender_map **map);
/* No row is there; map may be NULL. */
bool sender_map_is_empty(const struct sender_map *map);

/* 1: a row fits the sender; 0: none does; -ENOMEM. map may be NULL. */
int sender_map_find(const struct sender_map *map, const char *sender,
    struct sender_row *ret_row);

#endif
