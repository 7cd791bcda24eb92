/* tests/bench/joined.h - commits that are joined: one process writes and links
 * the messages of several submitters, then makes all of them durable at once.
 * How they come to that process is not counted: this is more than joining could
 * gain.
 */
#ifndef TESTS_BENCH_JOINED_H
#define TESTS_BENCH_JOINED_H

#include <stddef.h>

#define JOINED_MAX 64 /* submitters */

/* An unnamed file in dir, written and linked; the descriptor, or -1. */
int bare_link(int dir, const char *text, size_t len);

/* fsync of each descriptor, one after the other. -1: one failed. */
int joined_plain(const int *fds, unsigned n);
/* The same, all of them handed to the kernel by one call. -1: one failed, or
 * the kernel has no io_uring for this process. */
int joined_ring(const int *fds, unsigned n);

#endif
