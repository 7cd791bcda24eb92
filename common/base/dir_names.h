/* base/dir_names.h - the names in a directory that is open already, read with
 * nothing but the calls that give them. */
#ifndef BASE_DIR_NAMES_H
#define BASE_DIR_NAMES_H

#include "base/base.h"

#define DIR_NAMES_BUFFER 32768

/* fd is the caller's, read from where it stands. */
struct dir_names {
	int fd;
	size_t at, len;
	_Alignas(8) char data[DIR_NAMES_BUFFER];
};

void dir_names_begin(struct dir_names *d, int fd);
/* The next name but "." and "..", valid until the next call; NULL at the end
 * (*ret_error 0), or for an error (-errno). */
const char *dir_names_next(struct dir_names *d, int *ret_error);

#endif
