/* A directory of its own for each test process, and files in it. */
#ifndef TESTS_LOCAL_SCRATCH_H
#define TESTS_LOCAL_SCRATCH_H

#include "deliver-local/child.h"

#include <sys/types.h>

/* Made at the first call; removed by scratch_done(). Absolute. */
const char *scratch(void);
void scratch_done(void);
/* scratch()/format, in one of a few static buffers. */
const char *scratch_path(const char *format, ...) PRINTF(1, 2);
/* Make a file with this content, mode 0600, and return its path. */
const char *scratch_file(const char *name, const void *data, size_t len);
/* The whole of a file into out; -errno. */
int scratch_read(const char *path, struct buf *out);
/* Number of entries (without . and ..); the name of one of them into
 * last[256] unless NULL. -errno. */
int scratch_count(const char *dir, char *last);

/* A message whose content lies in the middle of a file, as in a queue file. */
void scratch_message(struct message *m, const char *sender,
    const char *recipient, const void *content, size_t len);
void scratch_message_done(struct message *m);
/* The lines of ours and the content. */
void scratch_whole(
    const struct message *m, const void *content, size_t len, struct buf *out);

/* An ordinary user to deliver as when the tests run as root. */
#define SCRATCH_USER "nobody"

#endif
