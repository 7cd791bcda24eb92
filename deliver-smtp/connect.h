/* deliver-smtp/connect.h - one connection attempt in the event loop.
 *
 * done() gets a connected non-blocking socket, which is then the caller's, or
 * -errno (-ETIMEDOUT: the time limit), never before connect_start() has
 * returned and not after connect_cancel(); the attempt is gone when it is
 * called.
 */
#ifndef DELIVER_SMTP_CONNECT_H
#define DELIVER_SMTP_CONNECT_H

#include "base/base.h"

#include <sys/socket.h>

struct event_base;
struct connect_attempt;

typedef void connect_fn(void *arg, int result);

/* -errno: nothing was begun, or it failed at once. */
int connect_start(struct event_base *base, const struct sockaddr *address,
    socklen_t address_len, usec_t limit, connect_fn *done, void *arg,
    struct connect_attempt **ret_attempt);
void connect_cancel(struct connect_attempt **attempt);

/* Is the error of our own making (no descriptors, no memory), and says
 * nothing about the site? */
bool connect_error_is_local(int error);

#endif
