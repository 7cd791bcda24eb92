/* tests/unit/files.h - shared by all programs of units. */
#ifndef UNIT_FILES_H
#define UNIT_FILES_H

/* A file of that directory has this text. Its path, until the next call. */
const char *unit_put_file(const char *dir, const char *name, const char *text);
/* The directory and all in it; a link, and not what it names. */
void unit_remove_tree(const char *top);

#endif
