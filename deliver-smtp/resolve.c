#include "deliver-smtp/resolve.h"

#include <ares.h>
#include <errno.h>
#include <event2/event.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

/* Two rounds over the servers, 5 s for each the first time. */
#define QUERY_TIMEOUT_MSEC 5000
#define QUERY_TRIES	   2

struct watch { /* one socket of c-ares */
	LIST_ENTRY(watch) entry;
	struct resolver *resolver;
	ares_socket_t sock;
	struct event *event;
};

struct resolver {
	struct event_base *base;
	ares_channel channel;
	struct event *timer;
	LIST_HEAD(, watch) watches;
};

struct resolve_request {
	struct event *event; /* the answer is here: call done() */
	resolve_fn *done;    /* NULL: cancelled */
	void *arg;
	bool answered;
	struct resolve_result result;
};

/* ---- c-ares in the loop ---- */

static void
set_timer(struct resolver *r)
{
	struct timeval tv;

	if (ares_timeout(r->channel, NULL, &tv) != NULL)
		(void)evtimer_add(r->timer, &tv);
	else
		(void)evtimer_del(r->timer);
}

static void
on_timer(evutil_socket_t sock UNUSED, short what UNUSED, void *arg)
{
	struct resolver *r = arg;

	ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	set_timer(r);
}

static void
on_socket(evutil_socket_t sock, short what, void *arg)
{
	struct watch *w = arg;
	struct resolver *r = w->resolver;

	/* w may be gone after it. */
	ares_process_fd(r->channel, what & EV_READ ? sock : ARES_SOCKET_BAD,
	    what & EV_WRITE ? sock : ARES_SOCKET_BAD);
	set_timer(r);
}

static void
watch_free(struct watch *w)
{
	LIST_REMOVE(w, entry);
	if (w->event != NULL)
		event_free(w->event);
	free(w);
}

static struct watch *
watch_find(struct resolver *r, ares_socket_t sock)
{
	struct watch *w;

	LIST_FOREACH(w, &r->watches, entry)
	{
		if (w->sock == sock)
			return w;
	}
	w = calloc(1, sizeof(*w));
	if (w == NULL)
		return NULL;
	w->resolver = r;
	w->sock = sock;
	LIST_INSERT_HEAD(&r->watches, w, entry);
	return w;
}

/* Without memory the socket is not watched, and the query times out. */
static void
on_state(void *arg, ares_socket_t sock, int readable, int writable)
{
	struct resolver *r = arg;
	struct watch *w = watch_find(r, sock);
	short what = (short)((readable ? EV_READ : 0) |
	    (writable ? EV_WRITE : 0) | EV_PERSIST);

	if (w == NULL)
		return;
	if (w->event != NULL)
		event_free(w->event);
	w->event = NULL;
	if (!readable && !writable) {
		watch_free(w);
		return;
	}
	w->event = event_new(r->base, sock, what, on_socket, w);
	if (w->event != NULL)
		(void)event_add(w->event, NULL);
}

/* ---- requests ---- */

static void
request_free(struct resolve_request *request)
{
	if (request->event != NULL)
		event_free(request->event);
	free(request);
}

static void
on_deliver(evutil_socket_t sock UNUSED, short what UNUSED, void *arg)
{
	struct resolve_request *request = arg;
	resolve_fn *done = request->done;

	request->done = NULL;
	if (done != NULL)
		done(request->arg, &request->result);
	request_free(request);
}

static const struct {
	int status, error;
} errors[] = {
	{ ARES_SUCCESS, 0 },
	{ ARES_ENOTFOUND, -ENOENT },
	{ ARES_ENODATA, -ENOENT },
	{ ARES_EBADNAME, -ENOENT },
	{ ARES_ENOMEM, -ENOMEM },
};

static int
error_of(int status)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(errors); i++)
		if (errors[i].status == status)
			return errors[i].error;
	return -EAGAIN;
}

static void
collect(struct resolve_result *result, const struct ares_addrinfo *info)
{
	const struct ares_addrinfo_node *node;

	for (node = info->nodes; node != NULL; node = node->ai_next) {
		if (result->count == RESOLVE_MAX ||
		    node->ai_addrlen > sizeof(result->addresses[0]))
			continue;
		memcpy(&result->addresses[result->count++], node->ai_addr,
		    node->ai_addrlen);
	}
	if (result->count == 0) {
		result->error = -ENOENT;
		result->text = ares_strerror(ARES_ENODATA);
	}
}

static void
on_answer(
    void *arg, int status, int timeouts UNUSED, struct ares_addrinfo *info)
{
	struct resolve_request *request = arg;
	struct timeval now = { 0 };

	request->answered = true;
	request->result.error = error_of(status);
	request->result.text = ares_strerror(status);
	if (status == ARES_SUCCESS)
		collect(&request->result, info);
	if (info != NULL)
		ares_freeaddrinfo(info);
	if (request->done == NULL)
		request_free(request);
	else
		(void)evtimer_add(request->event, &now);
}

int
resolve_start(struct resolver *resolver, const char *name, uint16_t port,
    resolve_fn *done, void *arg, struct resolve_request **ret_request)
{
	static const struct ares_addrinfo_hints hints = {
		.ai_flags = ARES_AI_NUMERICSERV,
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
	};
	struct resolve_request *request = calloc(1, sizeof(*request));
	char service[8];

	if (request == NULL)
		return -ENOMEM;
	request->event = evtimer_new(resolver->base, on_deliver, request);
	if (request->event == NULL) {
		free(request);
		return -ENOMEM;
	}
	request->done = done;
	request->arg = arg;
	*ret_request = request;
	snprintf(service, sizeof(service), "%u", port);
	ares_getaddrinfo(
	    resolver->channel, name, service, &hints, on_answer, request);
	set_timer(resolver);
	return 0;
}

void
resolve_cancel(struct resolve_request **request)
{
	struct resolve_request *r = *request;

	*request = NULL;
	if (r == NULL)
		return;
	r->done = NULL;
	if (r->answered)
		request_free(r);
}

/* ---- the resolver ---- */

static int
open_channel(struct resolver *r)
{
	struct ares_options options = {
		.timeout = QUERY_TIMEOUT_MSEC,
		.tries = QUERY_TRIES,
		.sock_state_cb = on_state,
		.sock_state_cb_data = r,
	};
	int status = ares_init_options(&r->channel, &options,
	    ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB);

	return status == ARES_SUCCESS ? 0
	    : status == ARES_ENOMEM   ? -ENOMEM
				      : -EIO;
}

int
resolver_new(struct event_base *base, struct resolver **ret_resolver)
{
	struct resolver *r = calloc(1, sizeof(*r));
	int error = -ENOMEM;

	if (r == NULL)
		return -ENOMEM;
	r->base = base;
	LIST_INIT(&r->watches);
	r->timer = evtimer_new(base, on_timer, r);
	if (r->timer != NULL && ares_library_init(ARES_LIB_INIT_ALL) == 0)
		error = open_channel(r);
	if (error < 0) {
		if (r->timer != NULL)
			event_free(r->timer);
		free(r);
		return error;
	}
	*ret_resolver = r;
	return 0;
}

void
resolver_free(struct resolver **resolver)
{
	struct resolver *r = *resolver;

	*resolver = NULL;
	if (r == NULL)
		return;
	/* Ends the queries; requests were cancelled by their owners. */
	ares_destroy(r->channel);
	while (!LIST_EMPTY(&r->watches))
		watch_free(LIST_FIRST(&r->watches));
	event_free(r->timer);
	ares_library_cleanup();
	free(r);
}
