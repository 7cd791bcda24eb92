#include "deliver-smtp/reach/question.h"

#include <arpa/nameser.h>
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "route/nexthop.h"

struct watch { /* one socket of c-ares */
	LIST_ENTRY(watch) entry;
	struct question *question;
	ares_socket_t sock;
	struct event *event;
};

struct question {
	struct name_servers *servers;
	struct event_base *base;
	enum question_kind kind;
	char name[NEXTHOP_HOST_MAX];
	question_fn *done;
	void *arg;
	/* The servers that are left. */
	struct name_servers_order order;
	ares_channel channel;
	bool opened;
	bool closing; /* the channel: what c-ares says now is no answer */
	struct event *timer;
	struct event *answered;
	LIST_HEAD(watch_list, watch) watches;
	/* Of the answer. */
	int status;
	size_t timeouts;
	unsigned char *message;
	size_t len;
	struct ares_addrinfo *addresses;
};

/* ---- c-ares in the loop ---- */

static void
timer_set(struct question *q)
{
	struct timeval tv = { 0 };

	if (ares_timeout(q->channel, NULL, &tv) != NULL)
		(void)evtimer_add(q->timer, &tv);
	else
		(void)evtimer_del(q->timer);
}

static void
on_timer(evutil_socket_t sock UNUSED, short what UNUSED, void *arg)
{
	struct question *q = arg;

	ares_process_fd(q->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	timer_set(q);
}

static void
on_socket(evutil_socket_t sock, short what, void *arg)
{
	struct question *q = ((struct watch *)arg)->question;

	/* The watch may be gone after it. */
	ares_process_fd(q->channel, what & EV_READ ? sock : ARES_SOCKET_BAD,
	    what & EV_WRITE ? sock : ARES_SOCKET_BAD);
	timer_set(q);
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
watch_find(struct question *q, ares_socket_t sock)
{
	struct watch *w;

	LIST_FOREACH (w, &q->watches, entry)
		if (w->sock == sock)
			return w;
	w = calloc(1, sizeof(*w));
	if (w == NULL)
		return NULL;
	w->question = q;
	w->sock = sock;
	LIST_INSERT_HEAD(&q->watches, w, entry);
	return w;
}

/* Without memory the socket is not watched, and the question times out. */
static void
on_state(void *arg, ares_socket_t sock, int readable, int writable)
{
	struct question *q = arg;
	struct watch *w = watch_find(q, sock);
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
	w->event = event_new(q->base, sock, what, on_socket, w);
	if (w->event != NULL)
		(void)event_add(w->event, NULL);
}

/* ---- the channel ---- */

/* Types of the records; 0: addresses that c-ares finds as the system does. */
static const int types[QUESTION_NKINDS] = {
	[QUESTION_MX] = ns_t_mx,
	[QUESTION_A] = ns_t_a,
	[QUESTION_AAAA] = ns_t_aaaa,
};

static void
channel_close(struct question *q)
{
	q->closing = true;
	if (q->opened)
		ares_destroy(q->channel);
	q->opened = q->closing = false;
	while (!LIST_EMPTY(&q->watches))
		watch_free(LIST_FIRST(&q->watches));
	if (q->timer != NULL)
		(void)evtimer_del(q->timer);
}

static int
servers_set(struct question *q)
{
	struct ares_addr_port_node nodes[NAME_SERVERS_MAX];
	size_t i;

	if (q->order.count == 0)
		return ARES_SUCCESS;
	for (i = q->order.count; i > 0; i--) {
		nodes[i - 1] = q->order.at[i - 1].node;
		if (i < q->order.count)
			nodes[i - 1].next = &nodes[i];
	}
	return ares_set_servers_ports(q->channel, nodes);
}

/* c-ares must give the answer of a server that refuses, since it would tell
 * only that no server could be reached. It reads resolv.conf for each channel;
 * what is set here counts instead. */
static int
channel_open(struct question *q)
{
	static char dns_alone[] = "b";
	struct ares_options options = {
		.flags = ARES_FLAG_NOCHECKRESP,
		.timeout = q->servers->timeout_msec,
		.tries = q->servers->attempts,
		.ndots = 1,
		.sock_state_cb = on_state,
		.sock_state_cb_data = q,
		.lookups = dns_alone,
		.ndomains = 0,
	};
	int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
	    ARES_OPT_SOCK_STATE_CB | ARES_OPT_NOROTATE;
	int status;

	if (q->kind != QUESTION_NATIVE)
		mask |= ARES_OPT_NDOTS | ARES_OPT_DOMAINS;
	if (types[q->kind] != 0)
		mask |= ARES_OPT_LOOKUPS;
#ifdef ARES_OPT_UDP_MAX_QUERIES
	options.udp_max_queries = 1;
	mask |= ARES_OPT_UDP_MAX_QUERIES;
#endif
	status = ares_init_options(&q->channel, &options, mask);
	if (status != ARES_SUCCESS)
		return status == ARES_ENOMEM ? -ENOMEM : -EIO;
	q->opened = true;
	status = servers_set(q);
	if (status == ARES_SUCCESS)
		return 0;
	channel_close(q);
	return status == ARES_ENOMEM ? -ENOMEM : -EIO;
}

/* ---- answers ---- */

/* text NULL: the words of c-ares. */
static const struct {
	int status, error;
	bool another; /* another server may know better */
	const char *text;
} statuses[] = {
	{ ARES_SUCCESS, 0, false, NULL },
	{ ARES_ENOTFOUND, -ENOENT, false, NULL },
	{ ARES_ENODATA, -ENODATA, false, NULL },
	{ ARES_EBADNAME, -ENOENT, false, NULL },
	{ ARES_ENOMEM, -ENOMEM, false, NULL },
	{ ARES_ESERVFAIL, -EAGAIN, true, "the name server says SERVFAIL" },
	{ ARES_EREFUSED, -EAGAIN, true, "the name server says REFUSED" },
	{ ARES_ENOTIMP, -EAGAIN, true, "the name server says NOTIMP" },
	{ ARES_EFORMERR, -EAGAIN, true, "the name server says FORMERR" },
	{ ARES_EBADRESP, -EAGAIN, true, "malformed answer" },
	{ ARES_ETIMEOUT, -EAGAIN, false, "no name server answers" },
	{ ARES_ECONNREFUSED, -EAGAIN, false, "no name server can be reached" },
};

static size_t
status_find(int status)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(statuses); i++)
		if (statuses[i].status == status)
			break;
	return i;
}

/* c-ares takes an answer with a code that it does not know, or of a server that
 * only points elsewhere, for one without records. */
static int
message_judge(int status, const unsigned char *message, int len)
{
	const HEADER *head = (const void *)message;
	HEADER copy;

	if (status != ARES_SUCCESS && status != ARES_ENODATA)
		return status;
	if (message == NULL || len < (int)sizeof(copy))
		return status == ARES_SUCCESS ? ARES_EBADRESP : status;
	memcpy(&copy, head, sizeof(copy));
	if (copy.rcode != ns_r_noerror)
		return ARES_ESERVFAIL;
	if (copy.ancount == 0 && !copy.aa && !copy.ra)
		return ARES_EREFUSED;
	return status;
}

static void
answer_note(struct question *q, int status, int timeouts)
{
	struct timeval now = { 0 };

	q->status = status;
	q->timeouts = timeouts < 0 ? 0 : (size_t)timeouts;
	(void)evtimer_add(q->answered, &now);
}

static void
on_message(void *arg, int status, int timeouts, unsigned char *message, int len)
{
	struct question *q = arg;

	if (q->closing)
		return;
	status = message_judge(status, message, len);
	if (status == ARES_SUCCESS) {
		q->message = malloc((size_t)len);
		if (q->message == NULL) {
			status = ARES_ENOMEM;
		} else {
			memcpy(q->message, message, (size_t)len);
			q->len = (size_t)len;
		}
	}
	answer_note(q, status, timeouts);
}

static void
on_addresses(void *arg, int status, int timeouts, struct ares_addrinfo *info)
{
	struct question *q = arg;

	if (q->closing) {
		if (info != NULL)
			ares_freeaddrinfo(info);
		return;
	}
	q->addresses = info;
	/* Of two questions together, of A and of AAAA. */
	answer_note(q, status, (timeouts + 1) / 2);
}

static void
question_free(struct question *q)
{
	channel_close(q);
	if (q->timer != NULL)
		event_free(q->timer);
	if (q->answered != NULL)
		event_free(q->answered);
	if (q->addresses != NULL)
		ares_freeaddrinfo(q->addresses);
	free(q->message);
	free(q);
}

static void
question_end(struct question *q, size_t found)
{
	const struct question_answer answer = {
		.error = found < ARRAY_LEN(statuses) ? statuses[found].error
						     : -EAGAIN,
		.text =
		    found < ARRAY_LEN(statuses) && statuses[found].text != NULL
		    ? statuses[found].text
		    : ares_strerror(q->status),
		.message = q->message,
		.len = q->len,
		.addresses = q->addresses,
	};

	q->done(q->arg, &answer);
	question_free(q);
}

/* ---- asking ---- */

static int
question_ask(struct question *q)
{
	/* CARES_HOSTS is another file than /etc/hosts. Without the variable
	 * c-ares 1.34 reads no file at all if ARES_AI_ENVHOSTS is set. */
	const struct ares_addrinfo_hints hints = {
		.ai_flags = ARES_AI_NUMERICSERV |
		    (getenv("CARES_HOSTS") != NULL ? ARES_AI_ENVHOSTS : 0),
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
	};
	int r = channel_open(q);

	if (r < 0)
		return r;
	if (types[q->kind] == 0)
		ares_getaddrinfo(
		    q->channel, q->name, NULL, &hints, on_addresses, q);
	else
		ares_query(q->channel, q->name, ns_c_in, types[q->kind],
		    on_message, q);
	timer_set(q);
	return 0;
}

/* The servers after the one that has answered. */
static bool
servers_skip(struct question *q)
{
	size_t skip = q->timeouts + 1;

	if (skip >= q->order.count)
		return false;
	q->order.count -= skip;
	memmove(q->order.at, q->order.at + skip,
	    q->order.count * sizeof(q->order.at[0]));
	return true;
}

static void
on_answered(evutil_socket_t sock UNUSED, short what UNUSED, void *arg)
{
	struct question *q = arg;
	size_t found = status_find(q->status);
	bool spoke = found < ARRAY_LEN(statuses) &&
	    (statuses[found].error != -EAGAIN || statuses[found].another);

	channel_close(q);
	if (spoke)
		name_servers_answered(
		    q->servers, &q->order, q->timeouts, clock_mono());
	if (spoke && statuses[found].another && servers_skip(q) &&
	    question_ask(q) == 0)
		return;
	question_end(q, found);
}

int
question_start(struct name_servers *servers, struct event_base *base,
    enum question_kind kind, const char *name, question_fn *done, void *arg,
    struct question **ret_question)
{
	struct question *q = calloc(1, sizeof(*q));
	int r = -ENOMEM;

	if (q == NULL)
		return -ENOMEM;
	q->servers = servers;
	q->base = base;
	q->kind = kind;
	q->done = done;
	q->arg = arg;
	LIST_INIT(&q->watches);
	memcpy(q->name, name, strlen(name) + 1);
	q->timer = evtimer_new(base, on_timer, q);
	q->answered = evtimer_new(base, on_answered, q);
	name_servers_order(servers, clock_mono(), &q->order);
	if (q->timer != NULL && q->answered != NULL)
		r = question_ask(q);
	if (r < 0)
		question_free(q);
	else
		*ret_question = q;
	return r;
}

void
question_cancel(struct question **question)
{
	struct question *q = *question;

	*question = NULL;
	if (q != NULL)
		question_free(q);
}
