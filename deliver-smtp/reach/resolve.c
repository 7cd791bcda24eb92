#include "deliver-smtp/reach/resolve.h"

/* ares_query() is deprecated since c-ares 1.28. Debian 12 has 1.18, which lacks
 * its successor. */
#define CARES_NO_DEPRECATED
#include <ares.h>
#include <arpa/nameser.h>
#include <errno.h>
#include <event2/event.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/base.h"

/* Two rounds over the servers, 5 s for each the first time. */
#define QUERY_TIMEOUT_MSEC 5000
#define QUERY_TRIES        2

struct channel;

struct watch { /* one socket of c-ares */
	LIST_ENTRY(watch) entry;
	struct channel *channel;
	ares_socket_t sock;
	struct event *event;
};

/* A channel is what c-ares has read of the system's configuration, for queries
 * of one scope. After a reload the old one lives until its queries have ended.
 */
struct channel {
	LIST_ENTRY(channel) entry;
	struct resolver *resolver;
	enum resolve_scope scope;
	ares_channel ares;
	bool opened;
	size_t pending; /* queries */
	struct event *timer;
	LIST_HEAD(watch_list, watch) watches;
};

struct resolver {
	struct event_base *base;
	struct channel *current[RESOLVE_NSCOPES];
	LIST_HEAD(channel_list, channel) channels;
};

struct resolve_request {
	struct channel *channel;
	struct event *event; /* the answer is here: call done() */
	resolve_fn *done;    /* NULL: cancelled */
	void *arg;
	bool answered;
	unsigned char *answer; /* of a query for MX records */
	struct resolve_result result;
};

/* ---- c-ares in the loop ---- */

static bool
is_over(const struct channel *c)
{
	return c->pending == 0 && c != c->resolver->current[c->scope];
}

static void
set_timer(struct channel *c)
{
	struct timeval tv = { 0 };

	if (ares_timeout(c->ares, NULL, &tv) != NULL || is_over(c))
		(void)evtimer_add(c->timer, &tv);
	else
		(void)evtimer_del(c->timer);
}

static void
watch_free(struct watch *w)
{
	LIST_REMOVE(w, entry);
	if (w->event != NULL)
		event_free(w->event);
	free(w);
}

static void
channel_free(struct channel *c)
{
	LIST_REMOVE(c, entry);
	if (c->opened)
		ares_destroy(c->ares);
	while (!LIST_EMPTY(&c->watches))
		watch_free(LIST_FIRST(&c->watches));
	if (c->timer != NULL)
		event_free(c->timer);
	free(c);
}

static void
on_timer(evutil_socket_t sock UNUSED, short what UNUSED, void *arg)
{
	struct channel *c = arg;

	if (is_over(c)) {
		channel_free(c);
		return;
	}
	ares_process_fd(c->ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	set_timer(c);
}

static void
on_socket(evutil_socket_t sock, short what, void *arg)
{
	struct watch *w = arg;
	struct channel *c = w->channel;

	/* w may be gone after it. */
	ares_process_fd(c->ares, what & EV_READ ? sock : ARES_SOCKET_BAD,
	    what & EV_WRITE ? sock : ARES_SOCKET_BAD);
	set_timer(c);
}

static struct watch *
watch_find(struct channel *c, ares_socket_t sock)
{
	struct watch *w;

	LIST_FOREACH (w, &c->watches, entry)
		if (w->sock == sock)
			return w;
	w = calloc(1, sizeof(*w));
	if (w == NULL)
		return NULL;
	w->channel = c;
	w->sock = sock;
	LIST_INSERT_HEAD(&c->watches, w, entry);
	return w;
}

/* Without memory the socket is not watched, and the query times out. */
static void
on_state(void *arg, ares_socket_t sock, int readable, int writable)
{
	struct channel *c = arg;
	struct watch *w = watch_find(c, sock);
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
	w->event = event_new(c->resolver->base, sock, what, on_socket, w);
	if (w->event != NULL)
		(void)event_add(w->event, NULL);
}

/* The options of a scope, beside those of all. */
static int
open_channel(struct channel *c)
{
	static char hosts_file[] = "f";
	struct ares_options options = {
		.timeout = QUERY_TIMEOUT_MSEC,
		.tries = QUERY_TRIES,
		.sock_state_cb = on_state,
		.sock_state_cb_data = c,
		.lookups = hosts_file,
		.ndomains = 0,
	};
	static const int more[RESOLVE_NSCOPES] = {
		[RESOLVE_EXACT] = ARES_OPT_DOMAINS,
		[RESOLVE_HOSTS_FILE] = ARES_OPT_DOMAINS | ARES_OPT_LOOKUPS,
	};

	return ares_init_options(&c->ares, &options,
	    ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB |
		more[c->scope]);
}

static int
channel_new(
    struct resolver *r, enum resolve_scope scope, struct channel **ret_channel)
{
	struct channel *c = calloc(1, sizeof(*c));
	int status = ARES_ENOMEM;

	if (c == NULL)
		return -ENOMEM;
	c->resolver = r;
	c->scope = scope;
	LIST_INIT(&c->watches);
	LIST_INSERT_HEAD(&r->channels, c, entry);
	c->timer = evtimer_new(r->base, on_timer, c);
	if (c->timer != NULL)
		status = open_channel(c);
	if (status != ARES_SUCCESS) {
		channel_free(c);
		return status == ARES_ENOMEM ? -ENOMEM : -EIO;
	}
	c->opened = true;
	*ret_channel = c;
	return 0;
}

/* All scopes, or none. */
static int
open_scopes(struct resolver *r, struct channel *fresh[RESOLVE_NSCOPES])
{
	int i, error = 0;

	for (i = 0; error == 0 && i < RESOLVE_NSCOPES; i++)
		error = channel_new(r, (enum resolve_scope)i, &fresh[i]);
	if (error == 0)
		return 0;
	for (i--; i > 0; i--)
		channel_free(fresh[i - 1]);
	return error;
}

/* ---- requests ---- */

static void
request_free(struct resolve_request *request)
{
	if (request->event != NULL)
		event_free(request->event);
	free(request->answer);
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
	{ ARES_ENODATA, -ENODATA },
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
	const struct ares_addrinfo_cname *alias;
	const struct ares_addrinfo_node *node;

	result->ttl = INT_MAX;
	for (alias = info->cnames; alias != NULL; alias = alias->next)
		if (alias->ttl < result->ttl)
			result->ttl = alias->ttl;
	for (node = info->nodes; node != NULL; node = node->ai_next) {
		if (result->count == RESOLVE_MAX ||
		    node->ai_addrlen > sizeof(result->addresses[0]))
			continue;
		if (node->ai_ttl < result->ttl)
			result->ttl = node->ai_ttl;
		memcpy(&result->addresses[result->count++], node->ai_addr,
		    node->ai_addrlen);
	}
	if (result->count == 0) {
		result->error = -ENODATA;
		result->text = ares_strerror(ARES_ENODATA);
	}
}

/* The request may be gone after it. */
static void
answered(struct resolve_request *request)
{
	struct timeval now = { 0 };

	if (request->done == NULL)
		request_free(request);
	else
		(void)evtimer_add(request->event, &now);
}

static void
note_status(struct resolve_request *request, int status)
{
	request->answered = true;
	request->channel->pending--;
	request->result.error = error_of(status);
	request->result.text = ares_strerror(status);
}

static void
on_addresses(
    void *arg, int status, int timeouts UNUSED, struct ares_addrinfo *info)
{
	struct resolve_request *request = arg;

	note_status(request, status);
	if (status == ARES_SUCCESS)
		collect(&request->result, info);
	if (info != NULL)
		ares_freeaddrinfo(info);
	answered(request);
}

static void
on_records(
    void *arg, int status, int timeouts UNUSED, unsigned char *answer, int len)
{
	struct resolve_request *request = arg;

	note_status(request, status);
	if (status == ARES_SUCCESS && len > 0) {
		request->answer = malloc((size_t)len);
		if (request->answer == NULL) {
			request->result.error = -ENOMEM;
		} else {
			memcpy(request->answer, answer, (size_t)len);
			request->result.answer = request->answer;
			request->result.answer_len = (size_t)len;
		}
	}
	answered(request);
}

static int
request_new(struct resolver *resolver, enum resolve_scope scope,
    resolve_fn *done, void *arg, struct resolve_request **ret_request)
{
	struct resolve_request *request = calloc(1, sizeof(*request));

	if (request == NULL)
		return -ENOMEM;
	request->event = evtimer_new(resolver->base, on_deliver, request);
	if (request->event == NULL) {
		free(request);
		return -ENOMEM;
	}
	request->channel = resolver->current[scope];
	request->channel->pending++;
	request->done = done;
	request->arg = arg;
	*ret_request = request;
	return 0;
}

int
resolve_start(struct resolver *resolver, enum resolve_scope scope,
    const char *name, resolve_fn *done, void *arg,
    struct resolve_request **ret_request)
{
	/* CARES_HOSTS is another file than /etc/hosts. Without the variable
	 * c-ares 1.34 reads no file at all if ARES_AI_ENVHOSTS is set. */
	const struct ares_addrinfo_hints hints = {
		.ai_flags = ARES_AI_NUMERICSERV |
		    (getenv("CARES_HOSTS") != NULL ? ARES_AI_ENVHOSTS : 0),
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
	};
	struct resolve_request *request;
	struct channel *c;
	int r = request_new(resolver, scope, done, arg, &request);

	if (r < 0)
		return r;
	c = request->channel;
	*ret_request = request;
	ares_getaddrinfo(c->ares, name, NULL, &hints, on_addresses, request);
	set_timer(c);
	return 0;
}

int
resolve_mx_start(struct resolver *resolver, const char *name, resolve_fn *done,
    void *arg, struct resolve_request **ret_request)
{
	struct resolve_request *request;
	struct channel *c;
	int r = request_new(resolver, RESOLVE_EXACT, done, arg, &request);

	if (r < 0)
		return r;
	c = request->channel;
	*ret_request = request;
	ares_query(c->ares, name, ns_c_in, ns_t_mx, on_records, request);
	set_timer(c);
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

int
resolver_new(struct event_base *base, struct resolver **ret_resolver)
{
	struct resolver *r = calloc(1, sizeof(*r));
	int error;

	if (r == NULL)
		return -ENOMEM;
	r->base = base;
	LIST_INIT(&r->channels);
	if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS) {
		free(r);
		return -ENOMEM;
	}
	error = open_scopes(r, r->current);
	if (error < 0)
		resolver_free(&r);
	else
		*ret_resolver = r;
	return error;
}

int
resolver_reload(struct resolver *resolver)
{
	struct channel *fresh[RESOLVE_NSCOPES], *old;
	int i, r = open_scopes(resolver, fresh);

	if (r < 0)
		return r;
	for (i = 0; i < RESOLVE_NSCOPES; i++) {
		old = resolver->current[i];
		resolver->current[i] = fresh[i];
		set_timer(old);
	}
	return 0;
}

void
resolver_free(struct resolver **resolver)
{
	struct resolver *r = *resolver;

	*resolver = NULL;
	if (r == NULL)
		return;
	while (!LIST_EMPTY(&r->channels))
		channel_free(LIST_FIRST(&r->channels));
	ares_library_cleanup();
	free(r);
}
