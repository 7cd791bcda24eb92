/* tests/unit/files.h - shared by all programs of units. */
#ifndef UNIT_FILES_H
#define UNIT_FILES_H

/* A file of that directory has this text. Its path, until the next call. */
const char *unit_put_file(const char *dir, const char *name, const char *text);

#endif
